"""What cannot be read now is neither damaged nor gone: nothing is set aside, expired or deleted for it."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path

import pytest

from nbext.cli import main
from nbext.errors import StorageError
from nbext.service.accounts.database import Database
from nbext.service.container import Container
from nbext.service.limits import Policy
from nbext.service.middleware import Log
from nbext.service.segments.files import Unavailable
from nbext.service.segments.results import ResultFolder
from tests.service.conftest import Running
from tests.service.segments.test_lists import packed, sent
from tests.service.segments.test_segments import body

CSV = "/v1/segment/{}/csv"


@pytest.fixture
def running(data_dir, tmp_path):
    service = Running(data_dir, tmp_path / "service")
    yield service
    service.stop()


def told(answer) -> tuple[int, str | None, str | None]:
    problem = answer.headers["content-type"] == "application/problem+json"
    return (
        answer.status_code,
        answer.json()["code"] if problem else None,
        answer.headers.get("Retry-After"),
    )


def rounds(service: Running, count: int = 2) -> None:
    for _ in range(count):
        service.container.maintenance._do("clean", service.container.maintenance._clean)


def test_a_file_is_here_absent_damaged_or_unavailable(tmp_path, monkeypatch):
    files = ResultFolder(tmp_path, "a-registry")
    files.claim(expected=False)
    path, read = files.folder / "one", []

    def intact(path: Path) -> bool:
        read.append(path.name)
        return path.read_bytes() == b"bytes"

    assert files.condition("one", intact=intact) == "absent"
    path.write_bytes(b"bytes")
    assert [files.condition("one", size=5, intact=intact) for _ in range(2)] == ["here"] * 2
    assert read == ["one"], "its bytes are read once"
    assert files.condition("one", size=6) == "damaged"
    path.write_bytes(b"bites")
    os.utime(path, (1, 1))
    assert files.condition("one", size=5, intact=intact) == "damaged"
    files.folder.rename(tmp_path / "away")
    files.folder.mkdir()
    with pytest.raises(Unavailable):
        files.condition("one")
    assert not files.is_own()

    def refused(*_, **__):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(Unavailable):
        files.condition("one")


@pytest.mark.parametrize("kind", ["renamed", "no descriptor", "another folder"])
def test_results_that_cannot_be_read_now_are_503_and_are_read_once_they_can_be(
    running, kind, monkeypatch
):
    segment = running.execute(body(1))
    results, read = running.container.segments.results, CSV.format(segment["id"])
    rows, away = running.get(read).content, results.folder.with_name("away")
    with monkeypatch.context() as patch:
        if kind == "no descriptor":
            results._intact.clear()

            def refused(_: Path) -> str:
                raise OSError(24, "Too many open files")

            patch.setattr("nbext.service.segments.results.sha256_of", refused)
        else:
            results.folder.rename(away)
        if kind == "another folder":
            results.folder.mkdir()
        assert told(running.get(read)) == (503, "unavailable", "5")
        if kind != "no descriptor":
            again = running.post("/v1/segment/execute", body(1))
            assert told(again) == (503, "unavailable", "5")
            assert told(running.get(f"/v1/segment/{segment['id']}"))[1] == "unavailable"
            ready = running.get("/readyz")
            assert (ready.status_code, ready.json()["checks"]) == (503, ["results"])
        rounds(running)
    if kind == "another folder":
        results.folder.rmdir()
    if kind != "no descriptor":
        away.rename(results.folder)
    assert running.get(read).content == rows
    assert running.execute(body(1))["cached"] is True
    assert running.get("/readyz").status_code == 200
    assert not results.folder.with_name("aside").exists()


def test_a_result_that_is_missing_is_410_until_it_is_back_and_is_made_anew_when_asked_for(running):
    segment = running.execute(body(1))
    results, read = running.container.segments.results, CSV.format(segment["id"])
    rows, file = (
        running.get(read).content,
        running.container.segments.store.get(segment["id"]).result.file,
    )
    (results.folder / file).rename(results.folder / "away")
    answer = running.get(read)
    assert (answer.status_code, answer.json()["detail"]) == (
        410,
        "The result's file is missing. Execute the segment again for a new one.",
    )
    assert running.get(f"/v1/segment/{segment['id']}").json()["status"] == "expired"
    rounds(running)
    (results.folder / "away").rename(results.folder / file)
    assert running.get(read).content == rows
    (results.folder / file).unlink()
    again = running.execute(body(1))
    assert (again["id"], again["cached"], again["preview"]) == (
        segment["id"],
        False,
        segment["preview"],
    )
    assert running.get(read).content == rows


def test_a_round_that_finds_many_results_missing_does_nothing_and_readiness_says_why(running):
    segments = [running.execute(body(number)) for number in range(8)]
    folder = running.container.segments.results.folder
    files = {path: path.read_bytes() for path in folder.glob("*.arrow")}
    # Of another size, and a stray: a sound folder's round would set the one aside and delete the other.
    first, stray = next(iter(files)), folder / "0123456789abcdef01234567.arrow"
    for path in list(files)[1:7]:
        path.unlink()
    first.write_bytes(b"")
    stray.write_bytes(b"")
    os.utime(stray, (1, 1))
    received = running.container.segments.lists.folder / ".0123456789ab.part"
    received.write_bytes(b"")
    os.utime(received, (1, 1))
    running.container.database.set_policy(Policy(keep_days=1e-9))
    rounds(running)
    assert (first.exists(), stray.exists(), len(files)) == (True, True, 8)
    ready = running.get("/readyz").json()
    assert (ready["checks"], ready["detail"]) == (
        ["results"],
        "6 results are missing from their folder, results. Bring them back, or run nbext check --give-up.",
    )
    running.container.database.set_policy(Policy())
    for path, content in files.items():
        path.write_bytes(content)
    rounds(running)
    assert not stray.exists()
    assert not received.exists()
    assert running.get("/readyz").status_code == 200
    assert [running.get(CSV.format(each["id"])).status_code for each in segments] == [200] * 8


def test_a_list_is_compared_with_its_name_before_each_use_after_a_change(running):
    rows = running.get(running.execute({**body(0), "limit": 100})["links"]["json"]).json()["data"]
    found = sent(running, packed([row["address"] for row in rows])).json()["id"]
    asked = {"filters": {"wallet": {"list": found}, "exclude": []}, "limit": 7}
    assert running.execute(asked)["counts"]["matched"] == len(rows)
    path = running.container.segments.lists.folder / found
    flipped = bytearray(path.read_bytes())
    for place in range(0, len(flipped), 40):
        flipped[place] ^= 1
    path.write_bytes(bytes(flipped))
    answer = running.post("/v1/segment/execute", {**asked, "limit": 8})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (422, "unknown-list")
    assert [
        each.name for each in running.container.segments.lists.folder.with_name("aside").iterdir()
    ] == [found]


def opened(data_dir: Path, state: Path, **options) -> Container:
    service = Running(data_dir, state, **options)
    service.stop()
    return service.container


def refused(data_dir: Path, state: Path, **options) -> str:
    from nbext.engine.open import open_dataset

    with pytest.raises(StorageError) as caught:
        Container(open_dataset(data_dir), state, log=Log(io.StringIO()), **options)
    return str(caught.value)


def test_a_folder_and_a_registry_that_do_not_go_together_are_refused_and_left_as_they_are(
    data_dir, registry, tmp_path
):
    one, two = tmp_path / "one", tmp_path / "two"
    first = Running(data_dir, one, registry=registry)
    segment = first.execute(body(1))
    first.stop()
    files = sorted(path.name for path in (one / "results").iterdir())
    advice = (
        " Name the --data and the --registry that go together, or mount the disk that is missing. To give the"
        " results up, run nbext check --give-up; to begin anew with this --data, move its folder `service` away."
    )
    # A second --data on one registry, or a disk that is not mounted.
    missing = f"{two / 'results'} is not the folder of this registry: the registry names results, and the folder is"
    assert refused(data_dir, two, registry=registry) == f"{missing} empty or missing.{advice}"
    assert not (two / "results").exists()
    # Another registry on the folder of this one.
    foreign = f"{one / 'results'} is not the folder of this registry: it has the results of another one.{advice}"
    assert refused(data_dir, one, registry=tmp_path / "another.sqlite") == foreign
    # A folder whose registry is lost, as it was before folders had a name.
    (one / "results" / "registry-id").rename(tmp_path / "id")
    unknown = "it has results, of which the registry knows none."
    assert unknown in refused(data_dir, one, registry=tmp_path / "third.sqlite")
    (tmp_path / "id").rename(one / "results" / "registry-id")
    assert sorted(path.name for path in (one / "results").iterdir()) == files
    again = Running(data_dir, one, registry=registry)
    try:
        assert again.get(CSV.format(segment["id"])).status_code == 200
    finally:
        again.stop()


def test_results_that_are_lost_for_good_are_given_up_by_a_command(data_dir, tmp_path, capsys):
    first = Running(data_dir, tmp_path / "service")
    segment = first.execute(body(1))
    first.stop()
    for path in (tmp_path / "service" / "results").iterdir():
        path.unlink()
    data = ["--data", str(tmp_path)]
    assert main(["check", *data]) == 1
    assert main(["check", "--give-up", *data]) == 0
    again = Running(data_dir, tmp_path / "service")
    try:
        answer = again.get(CSV.format(segment["id"]))
        assert (answer.status_code, answer.json()["detail"]) == (
            410,
            "The result's file was lost. Execute the segment again for a new one.",
        )
        assert again.execute(body(1))["cached"] is False
    finally:
        again.stop()


def test_nothing_is_too_old_before_the_clock_has_been_right_for_a_round(running, monkeypatch):
    segment = running.execute(body(1))
    now = time.time
    rounds(running)
    results = running.container.segments.results.folder
    being_written = results / "0123456789ab0123456789ab.arrow"
    being_written.touch()
    # A clock that jumped ahead by a year, and is set right before the next round.
    monkeypatch.setattr(time, "time", lambda: now() + 365 * 86_400)
    rounds(running, 1)
    assert being_written.exists()
    monkeypatch.setattr(time, "time", now)
    rounds(running)
    assert running.get(CSV.format(segment["id"])).status_code == 200
    monkeypatch.setattr(time, "time", lambda: now() + 31 * 86_400)
    rounds(running)
    answer = running.get(CSV.format(segment["id"]))
    assert (answer.status_code, answer.json()["detail"]) == (
        410,
        "Results are stored for 30 days. Execute the segment again for a new one.",
    )


def test_the_policy_stands_in_the_registry_and_is_changed_for_all_by_a_command(
    data_dir, tmp_path, capsys
):
    data, place = ["--data", str(tmp_path)], tmp_path / "service" / "registry.sqlite"
    opened(data_dir, tmp_path / "service", policy={"keep_days": 7.0})
    second = Running(
        data_dir, tmp_path / "service", policy={"keep_days": 30.0, "audit_days": 365.0}
    )
    try:
        assert [line for line in second.lines() if line["level"] == "warning"] == [
            {
                "at": second.lines()[0]["at"],
                "event": "the registry has another policy",
                "given": 30.0,
                "level": "warning",
                "setting": "keep_days",
                "used": 7.0,
            }
        ]
        assert main(["policy", "--keep-days", "90", "--keep-gib", "8", *data]) == 0
        printed = "--keep-days 90\n--audit-days 365\n--keep-gib 8\n--key-gib 2\n--lists-gib 4\n"
        assert capsys.readouterr().out == printed
        changed = Policy(keep_days=90.0, keep_bytes=8 << 30, key_bytes=2 << 30)
        second.container.database.learn()
        assert second.container.database.policy == changed == Database(place).policy
        assert main(["policy", "--key-gib", "9", *data]) == 2
        message = "ConfigError: --key-gib 9 is more than --keep-gib 8, of which it is a part.\n"
        assert capsys.readouterr().err == message
    finally:
        second.stop()


def test_a_notebooks_own_service_leaves_a_teams_results_and_audit_log_alone(
    data_dir, tmp_path, capsys
):
    from nbext import embedded

    team = Running(tmp_path, tmp_path / "service")
    segment = team.execute(body(1))
    team.stop()
    stored = {
        path: path.read_bytes() for path in (tmp_path / "service").rglob("*") if path.is_file()
    }
    notebook = embedded.start_service(tmp_path)
    try:
        rounds_of = notebook._generations
        assert rounds_of.newest.about.synthetic
        assert not notebook.log_path.is_relative_to(tmp_path)
        assert {
            path: path.read_bytes() for path in (tmp_path / "service").rglob("*") if path.is_file()
        } == stored
    finally:
        notebook.stop()
    assert main(["audit", "--data", str(tmp_path)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert (json.loads(line)["action"], json.loads(line)["target"]) == (
        "segment.execute",
        segment["id"],
    )
