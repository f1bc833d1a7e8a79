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


def test_who_asks_what_an_open_key_asked_shares_its_segment_and_only_its_maker_ends_it(team):
    first = execute(team, "ada")
    again = team.post(EXECUTE, HOLDERS, headers=team.keys["bob"]).json()
    assert (again["id"], again["cached"]) == (first, True)
    refused = team.delete(f"/v1/segment/{first}?result=delete", headers=team.keys["bob"])
    assert (refused.status_code, refused.json()["code"]) == (403, "not-yours")
    deleted = team.delete(f"/v1/segment/{first}?result=delete", headers=team.keys["ada"])
    assert (deleted.status_code, deleted.json()["status"]) == (200, "expired")
    # Whoever makes it anew is its maker.
    assert execute(team, "bob") == first
    refused = team.delete(f"/v1/segment/{first}?result=delete", headers=team.keys["ada"])
    assert (refused.status_code, refused.json()["code"]) == (403, "not-yours")


def test_the_id_that_is_explained_is_the_one_that_is_executed_also_of_a_private_key(team):
    for name in ("ada", "eve"):
        explained = team.post("/explain", HOLDERS, headers=team.keys[name]).json()
        assert explained["id"] == execute(team, name)


def test_a_private_keys_segment_has_an_id_rows_times_and_a_fate_of_its_own(team):
    """Whatever others asked and deleted before, and whatever they ask and delete afterwards."""

    def asked(name: str) -> dict[str, object]:
        headers = {**team.keys[name], "Idempotency-Key": "the-same"}
        answer = team.post(EXECUTE, HOLDERS, headers=headers)
        assert (answer.status_code, "Idempotency-Replayed" in answer.headers) == (200, False)
        return answer.json()

    team.keys["mia"] = {"x-api-key": team.container.keys.add("mia", private=True)[1].reveal()}
    made = {name: asked(name) for name in ("eve", "ada", "mia")}
    assert len({each["id"] for each in made.values()}) == 3
    assert {each["cached"] for each in made.values()} == {False}
    assert made["eve"]["createdAt"] < made["ada"]["createdAt"] < made["mia"]["createdAt"]
    files = {team.container.segments.store.get(each["id"]).result.file for each in made.values()}
    assert len(files) == 3
    assert read_by(team, made["eve"]["id"]) == {
        "ada": [404] * 4,
        "bob": [404] * 4,
        "eve": [200] * 4,
        "root": [200] * 4,
        "mia": [404] * 4,
    }
    gone = team.delete(f"/v1/segment/{made['ada']['id']}?result=delete", headers=team.keys["ada"])
    assert gone.json()["status"] == "expired"
    assert read_by(team, made["eve"]["id"])["eve"] == [200] * 4


def test_nothing_that_a_private_key_asks_is_answered_sooner_for_what_others_asked_or_the_other_way(
    team,
):
    def remembered() -> tuple[list[str], list[bytes]]:
        """What the data remembers, in the order of its use: whoever finds a set there puts it last."""
        return list(data.sets), [*team.container.segments.planned.get(data, {})]

    data = team.container.generations.newest
    others = {**HOLDERS, "filters": {"activity": {"transfers": {"min": 2}}}}
    for request in (HOLDERS, others):
        execute(team, "ada", request)
    before = remembered()
    assert (len(before[0]) > 1, len(before[1])) == (True, 2)
    of_its_own = {**HOLDERS, "filters": {"activity": {"transfers": {"min": 3}}}}
    for request in (HOLDERS, of_its_own, others):
        for operation in (EXECUTE, "/explain", "/funnel"):
            answer = team.post(operation, request, headers=team.keys["eve"])
            assert answer.status_code == 200, answer.text
        assert remembered() == before
    execute(team, "ada", of_its_own)
    assert remembered() != before


def test_metrics_show_a_private_keys_counts_to_the_scope_admin_alone(team):
    for name in ("ada", "eve"):
        execute(team, name)
    shown = {
        name: {
            key
            for key in ("ada", "eve")
            if f'key="{team.ids[key]}"' in team.get("/metrics", headers=team.keys[name]).text
        }
        for name in ("ada", "bob", "eve", "root")
    }
    assert shown == {"ada": {"ada"}, "bob": {"ada"}, "eve": {"ada"}, "root": {"ada", "eve"}}


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
    assert list(team.container.segments.results.folder.glob("*.arrow")) == []


def test_a_running_segment_is_cancelled_by_its_key_or_an_admin_alone(
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
    assert ended_by("bob", together) == (403, "not-yours"), "ada made it"
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
    sent = team.session.post(
        f"{team.url}/lists",
        data=b"x" * 20,
        headers={**team.keys["ada"], "Content-Type": "application/octet-stream"},
        timeout=60,
    )
    signed = team.post("/v1/signup/newsletter", {"email": "a@b.co"}, headers=team.keys["bob"])
    assert (sent.status_code, signed.status_code) == (201, 202)
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
        (team.ids["ada"], "list.store", sent.json()["id"], "127.0.0.1"),
        (team.ids["bob"], "signup.record", None, "127.0.0.1"),
    ]
    for key in (team.ids["bob"], "bob"):
        assert main(["audit", "--key", key, "--since", "1h", *data]) == 0
        assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
            lines[3],
            lines[5],
            lines[8],
        ]
    assert main(["audit", "--key", "bobb", *data]) == 2
    assert (
        capsys.readouterr().err
        == "ConfigError: No key has the name or id 'bobb'. Did you mean 'bob'?\n"
    )
    team.container.audit.prune(before=2e9)
    assert list(team.container.audit.entries()) == []
