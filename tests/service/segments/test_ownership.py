"""Whose a segment is: who may read it, end it, and what is noted of it."""

from __future__ import annotations

import json
import re

import pytest

from nbext.cli import main
from tests.service.conftest import HOLDERS, Running
from tests.service.segments.test_segments import body, slow  # noqa: F401 - a fixture

EXECUTE = "/v1/segment/execute"
FORMS = ("", "/json", "/csv", "/arrow")


@pytest.fixture
def team(data_dir, tmp_path):
    """A service with four keys: two that share, a private one, and one with the scope admin."""
    running = Running(data_dir, tmp_path / "service")
    running.folder = tmp_path
    running.keys = keys_of(running)
    yield running
    running.stop()


def keys_of(running: Running) -> dict[str, dict[str, str]]:
    ring = running.container.keys
    made = {
        "ada": ring.add("ada"),
        "bob": ring.add("bob"),
        "eve": ring.add("eve", private=True),
        "root": ring.add("root", ["read", "execute", "admin"]),
    }
    running.ids = {name: key.id for name, (key, _) in made.items()}
    return {name: {"x-api-key": text.reveal()} for name, (_, text) in made.items()}


def execute(team, name, request=HOLDERS) -> str:
    answer = team.post(EXECUTE, request, headers=team.keys[name])
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


def read_by(team, segment_id) -> dict[str, list[int]]:
    return {
        name: [
            team.get(f"/v1/segment/{segment_id}{form}", headers=key).status_code for form in FORMS
        ]
        for name, key in team.keys.items()
    }


def test_every_key_reads_a_segment_by_its_id_but_a_private_one(team):
    assert read_by(team, execute(team, "ada")) == {
        "ada": [200] * 4,
        "bob": [200] * 4,
        "eve": [404] * 4,
        "root": [200] * 4,
    }


def test_a_private_keys_segment_is_seen_by_that_key_and_an_admin(team):
    assert read_by(team, execute(team, "eve")) == {
        "ada": [404] * 4,
        "bob": [404] * 4,
        "eve": [200] * 4,
        "root": [200] * 4,
    }


def test_who_asks_the_same_shares_the_result_and_owns_it_too(team):
    first = execute(team, "eve")
    of_eve = team.get(f"/v1/segment/{first}", headers=team.keys["eve"]).json()
    again = team.post(EXECUTE, HOLDERS, headers=team.keys["ada"]).json()
    # Nothing says that a private key asked it before; who asks what an open key asked is told.
    assert (again["id"], again["cached"], again["createdAt"] > of_eve["completedAt"]) == (
        first,
        False,
        True,
    )
    read = team.get(f"/v1/segment/{first}", headers=team.keys["ada"]).json()
    assert {name: read[name] for name in ("createdAt", "completedAt", "durationMs")} == {
        name: again[name] for name in ("createdAt", "completedAt", "durationMs")
    }
    assert team.post(EXECUTE, HOLDERS, headers=team.keys["bob"]).json()["cached"] is True
    assert read_by(team, first) == {name: [200] * 4 for name in team.keys}
    deleted = team.delete(f"/v1/segment/{first}?result=delete", headers=team.keys["ada"])
    assert (deleted.status_code, deleted.json()["status"]) == (200, "completed")
    deleted = team.delete(f"/v1/segment/{first}?result=delete", headers=team.keys["bob"])
    assert (deleted.status_code, deleted.json()["status"]) == (200, "completed")
    assert read_by(team, first) == {
        "ada": [404] * 4,
        "bob": [404] * 4,
        "eve": [200] * 4,
        "root": [200] * 4,
    }


def test_a_saved_segment_that_a_key_may_not_see_is_not_there_in_its_queries(team):
    saved = {"filters": {"segment": {"id": execute(team, "eve")}}}
    answers = {name: team.post(EXECUTE, saved, headers=key) for name, key in team.keys.items()}
    assert {name: answer.status_code for name, answer in answers.items()} == {
        "ada": 422,
        "bob": 422,
        "eve": 200,
        "root": 200,
    }
    unknown = team.post(
        EXECUTE, {"filters": {"segment": {"id": "none"}}}, headers=team.keys["ada"]
    ).json()["errors"]
    (told,) = answers["ada"].json()["errors"]
    assert told == {
        **unknown[0],
        "detail": unknown[0]["detail"].replace("none", saved["filters"]["segment"]["id"]),
    }


def test_another_keys_result_is_deleted_by_an_admin_only(team):
    path = f"/v1/segment/{execute(team, 'ada')}?result=delete"
    refused = team.delete(path, headers=team.keys["bob"])
    assert (refused.status_code, refused.json()["code"], refused.json()["detail"]) == (
        403,
        "not-yours",
        "This is another key's segment. Only that key, or one with the scope admin, may end it.",
    )
    assert team.delete(path, headers=team.keys["eve"]).status_code == 404
    gone = team.delete(path, headers=team.keys["root"]).json()
    assert (gone["status"], gone["error"]["detail"]) == (
        "expired",
        "An administrator deleted the result. Execute the segment again for a new one.",
    )
    assert list(team.container.results.folder.glob("*.arrow")) == []


def test_a_running_segment_is_cancelled_by_its_key_or_an_admin_and_goes_on_for_others_who_asked(
    slow,  # noqa: F811
):
    slow.keys = keys_of(slow)

    def begin(number: int, *names: str) -> str:
        answers = [
            slow.post(EXECUTE, body(number), headers={**slow.keys[name], "Prefer": "respond-async"})
            for name in names
        ]
        assert [answer.status_code for answer in answers] == [202] * len(names)
        return f"/v1/segment/{answers[0].json()['id']}"

    def ended_by(name: str, path: str) -> tuple[int, str]:
        answer = slow.delete(path, headers=slow.keys[name])
        return answer.status_code, answer.json().get("code") or answer.json()["status"]

    alone, together = begin(1, "ada"), begin(2, "ada", "bob")
    assert ended_by("bob", alone) == (403, "not-yours")
    assert ended_by("eve", alone) == (404, "not-found")
    assert ended_by("ada", f"{alone}?result=delete") == (409, "not-ready")
    assert ended_by("ada", alone) == (200, "cancelled")
    code, status = ended_by("ada", together)
    assert (code, status in ("queued", "running")) == (202, True)
    assert ended_by("ada", together) == (403, "not-yours"), "it is bob's alone now"
    assert ended_by("root", together) == (200, "cancelled")


def test_the_audit_log_tells_who_did_what_from_where(team, capsys):
    data = ["--data", str(team.folder)]
    assert main(["keys", "add", "late", *data]) == 0
    assert main(["signups", "export", *data]) == 0
    (late,) = re.findall(r"Added late \((\w+)\)", capsys.readouterr().out)
    segment = execute(team, "ada")
    team.get(f"/v1/segment/{segment}/csv", headers=team.keys["bob"])
    team.get(f"/v1/segment/{segment}/csv", headers=team.keys["eve"])
    team.get(f"/v1/segment/{segment}", headers=team.keys["ada"])
    team.get(f"/v1/segment/{segment}", headers=team.keys["root"])
    team.delete(f"/v1/segment/{segment}?result=delete", headers=team.keys["bob"])
    team.delete(f"/v1/segment/{segment}?result=delete", headers=team.keys["ada"])
    team.container.audit.flush()
    assert main(["audit", *data]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["key"], line["action"], line["target"], line["client"]) for line in lines] == [
        (None, "key.add", late, "command line"),
        (None, "signups.export", None, "command line"),
        (team.ids["ada"], "segment.execute", segment, "127.0.0.1"),
        (team.ids["bob"], "segment.export", segment, "127.0.0.1"),
        (team.ids["root"], "segment.read", segment, "127.0.0.1"),
        (team.ids["bob"], "segment.delete.refused", segment, "127.0.0.1"),
        (team.ids["ada"], "segment.delete", segment, "127.0.0.1"),
    ]
    for key in (team.ids["bob"], "bob"):
        assert main(["audit", "--key", key, "--since", "1h", *data]) == 0
        assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
            lines[3],
            lines[5],
        ]
    assert main(["audit", "--key", "bobb", *data]) == 2
    assert (
        capsys.readouterr().err
        == "ConfigError: No key has the name or id 'bobb'. Did you mean 'bob'?\n"
    )
    team.container.audit.prune(before=2e9)
    assert list(team.container.audit.entries()) == []
