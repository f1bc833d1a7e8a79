"""The operator's commands, as they are typed."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

import pytest

from nbext.cli import main
from nbext.engine.ingest.run import compact, ingest
from nbext.errors import ConfigError, DiskFull
from nbext.service import commands, container
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import KeyRing
from nbext.service.accounts.signups import SignUps
from nbext.service.container import REGISTRY_FILE
from nbext.settings import service_folder
from tests import slow
from tests.service.conftest import Running


@pytest.fixture
def folder(tmp_path, data_dir):
    """A data folder in which a service runs; its state is where ``nbext serve --data`` keeps it."""
    running = Running(data_dir, tmp_path / "service")
    running.folder = tmp_path
    yield running
    running.stop()


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    told = capsys.readouterr()
    return code, told.out, told.err


def refused(folder, text: str) -> None:
    """Wait until the service refuses a key; what it looked up it believes for a second."""
    for _ in range(200):
        if folder.get("/about", headers={"x-api-key": text}).status_code == 401:
            return
        time.sleep(0.05)
    raise AssertionError("the key is still accepted")


def test_a_key_is_shown_once_taken_at_once_and_ended_within_a_second(folder, capsys):
    data = ["--data", str(folder.folder)]
    code, out, _ = run(capsys, "keys", "add", "ada", "--scope", "read", "--rate", "5/second", *data)
    text = out.splitlines()[-1]
    assert code == 0
    assert re.fullmatch(r"nbx_[A-Za-z0-9_-]{43}", text)
    assert folder.get("/about", headers={"x-api-key": text}).status_code == 200
    _, listed, _ = run(capsys, "keys", "list", *data)
    assert re.fullmatch(r"[0-9a-f]{12}  ada  read  5/second  \S+Z  in use\n", listed)
    assert text not in listed
    assert text.encode() not in (folder.folder / "service" / "registry.sqlite").read_bytes()
    assert run(capsys, "keys", "revoke", "ada", *data)[0] == 0
    refused(folder, text)
    assert "revoked" in run(capsys, "keys", "list", *data)[1]


@pytest.mark.slow
def test_a_rotated_key_keeps_its_id_and_its_former_text_for_the_grace_that_is_given(folder, capsys):
    data = ["--data", str(folder.folder)]
    first = run(capsys, "keys", "add", "eve", *data)[1].splitlines()[-1]
    out = run(capsys, "keys", "rotate", "eve", "--grace", "1h", "--expires", "90d", *data)[
        1
    ].splitlines()
    second, listed = out[-1], run(capsys, "keys", "list", *data)[1]
    assert re.fullmatch(
        r"Rotated eve \([0-9a-f]{12}\)\. The former key is accepted for 1h more\.", out[0]
    )
    assert re.fullmatch(r"It expires \S+Z\.", out[1])
    assert re.fullmatch(
        r"[0-9a-f]{12}  eve  execute,read,signup  600/minute  \S+Z  in use until \S+Z\n", listed
    )
    for text in (first, second):
        assert folder.get("/about", headers={"x-api-key": text}).status_code == 200
    third = run(capsys, "keys", "rotate", "eve", "--grace", "0h", *data)[1].splitlines()[-1]
    refused(folder, first)
    refused(folder, second)
    assert folder.get("/about", headers={"x-api-key": third}).status_code == 200


def test_a_key_that_has_expired_is_refused_and_listed_as_such(folder, capsys):
    key, text = folder.container.keys.add("late", lasts=-1)
    assert (
        folder.get("/about", headers={"x-api-key": text.reveal()}).json()["code"] == "key-unknown"
    )
    listed = run(capsys, "keys", "list", "--data", str(folder.folder))[1]
    assert re.fullmatch(
        rf"{key.id}  late  execute,read,signup  600/minute  \S+Z  expired \S+Z\n", listed
    )


def test_rotating_twice_keeps_what_was_promised_and_an_expired_key_needs_a_new_end(folder, capsys):
    ring, data = folder.container.keys, ["--data", str(folder.folder)]
    key, first = ring.add("twice")
    second, third = (ring.rotate("twice", grace=86_400)[1] for _ in range(2))
    assert [ring.find(text.reveal()) for text in (first, second, third)] == [key] * 3
    fourth = ring.rotate("twice", grace=0)[1]
    texts = (first, second, third, fourth)
    assert [KeyRing(folder.container.database).find(text.reveal()) for text in texts] == [
        None,
        None,
        None,
        key,
    ]
    ring.add("over", lasts=-1)
    message = "ConfigError: The key 'over' has expired. Give it a new end: --expires 90d\n"
    assert run(capsys, "keys", "rotate", "over", *data) == (2, "", message)
    assert run(capsys, "keys", "rotate", "over", "--expires", "90d", *data)[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["keys", "add", "a", "--scope", "raed"],
            "Unknown scope 'raed'. Did you mean 'read'? Allowed: read, execute, signup, admin.",
        ),
        (
            ["keys", "add", "a", "--rate", "often"],
            "'often' is not a rate. Write 600/minute, 10/second or 20000/day.",
        ),
        (
            ["keys", "add", "a\nb"],
            r"'a\nb' cannot name a key. Use 1 to 64 letters, digits, spaces, dots, _ or -, and begin with a letter or"
            " digit.",
        ),
        (["keys", "add", "Owner"], "'Owner' looks like a key's id. Choose another name."),
        (
            ["keys", "add", "0123456789ab"],
            "'0123456789ab' looks like a key's id. Choose another name.",
        ),
        (["keys", "rotate", "nobody"], "No key in use has the name or id 'nobody'."),
        (["keys", "revoke", "nobody"], "No key in use has the name or id 'nobody'."),
        (["signups", "delete", "a@b.co"], "a@b.co has not signed up."),
        # What a script makes of a variable that is not set.
        (["audit", "--key", ""], "No key has the name or id ''."),
        (["policy", "--registry", ""], "A registry's URL is postgresql://user@host/database."),
        # What no registry can be asked for.
        (["keys", "revoke", "\udcff"], r"No key in use has the name or id '\udcff'."),
    ],
)
def test_a_command_that_cannot_be_done_says_why(folder, capsys, words, message):
    code, out, err = run(capsys, *words, "--data", str(folder.folder))
    assert (code, out, err) == (2, "", f"ConfigError: {message}\n")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["keys", "add", "a", "--expires", "soon"], "'soon'"),
        (["keys", "rotate", "a", "--grace", "1 day"], "'1 day'"),
        (["keys", "add", "a", "--expires", "-1d"], None),
        # What a script makes of a variable that is not set.
        (["keys", "add", "a", "--expires", ""], "''"),
        (["audit", "--since", ""], "''"),
        # A key that has ended when it is made.
        *(
            (["keys", "add", "a", "--expires", none], f"'{none}'")
            for none in ("0h", "0d", "00000w")
        ),
        (["keys", "rotate", "a", "--expires", "0h"], "'0h'"),
        (["keys", "rotate", "a", "--grace", "0d"], "'0d'"),
        (["audit", "--since", "0w"], "'0w'"),
    ],
)
def test_a_span_of_time_that_is_none_is_refused_with_its_option(folder, capsys, words, shown):
    with pytest.raises(SystemExit) as ended:
        main([*words, "--data", str(folder.folder)])
    said = f"{shown} is not a span of time. Write 12h, 90d or 4w."
    assert ended.value.code == 2
    expected = f"error: argument {words[-2]}: {said if shown else 'expected one argument'}\n"
    out, err = capsys.readouterr()
    assert (out, err.endswith(expected)) == ("", True)


def test_a_key_that_ends_at_once_is_none_that_never_ends(folder):
    ring = KeyRing(folder.container.database)
    texts = [ring.add("brief", lasts=0)[1], ring.rotate("brief", grace=0, lasts=0)[1]]
    assert [ring.find(text.reveal()) for text in texts] == [None, None]


def test_a_data_folder_without_a_name_is_not_the_current_one(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (["ingest", "a.csv"], ["sources"], ["remove", "--all"], ["check"], ["serve"]):
        assert run(capsys, *words, "--data", "") == (
            2,
            "",
            "ConfigError: The data folder has an empty name. Give one, such as /srv/nbext.\n",
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "The data folder has an empty name. Give one, such as /srv/nbext."),
        ("s3://b/x", "'s3://b/x' is a URL. The data folder is a path on this machine, such as "),
    ],
)
def test_python_refuses_a_data_folder_as_the_commands_do(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    for call in (lambda: ingest(["a.csv"], "ethereum", name), lambda: compact(name)):
        with pytest.raises(ConfigError) as caught:
            call()
        assert str(caught.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_in_use_once(folder, capsys):
    data = ["--data", str(folder.folder)]
    assert run(capsys, "keys", "add", "bob", *data)[0] == 0
    assert "in use" in run(capsys, "keys", "add", "bob", *data)[2]
    run(capsys, "keys", "revoke", "bob", *data)
    assert run(capsys, "keys", "add", "bob", *data)[0] == 0


def test_a_folder_without_a_service_is_not_made_by_looking(tmp_path, capsys):
    for words in (
        ["keys", "list"],
        ["signups", "export"],
        ["check"],
        ["backup", str(tmp_path / "copy")],
    ):
        code, _, err = run(capsys, *words, "--data", str(tmp_path / "nothing"))
        assert (code, "No service has run on" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_sign_ups_are_kept_once_exported_with_their_consent_and_forgotten(folder, capsys):
    for email in ("b@example.com", "a@example.com", "A@Example.com", "=cmd@example.com"):
        answer = folder.post("/v1/signup/newsletter", {"email": email})
        assert answer.status_code == 202
        assert answer.json() | {"email": ""} == {
            "email": "",
            "status": "recorded",
            "delivered": False,
        }
    data = ["--data", str(folder.folder)]
    code, out, _ = run(capsys, "signups", "export", *data)
    rows = [line.split(",") for line in out.splitlines()]
    assert code == 0
    assert [row[0] for row in rows] == [
        "email",
        "b@example.com",
        "a@example.com",
        "'=cmd@example.com",
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row[1]) for row in rows[1:])
    assert run(capsys, "signups", "delete", "A@example.com", *data)[0] == 0
    target = folder.folder / "out.csv"
    assert run(capsys, "signups", "export", "--to", str(target), *data)[0] == 0
    assert "a@example.com" not in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert "exists" in run(capsys, "signups", "export", "--to", str(target), *data)[2]


def test_sign_ups_of_a_notebooks_own_service_are_reached_as_all_that_it_stores_is(tmp_path, capsys):
    data = ["--data", str(tmp_path)]
    for notebook in (False, True):
        place = service_folder(tmp_path, notebook=notebook)
        place.mkdir(parents=True)
        with contextlib.closing(Database(place / REGISTRY_FILE, make=True)) as database:
            signups = SignUps(database)
            for email in ("both@example.com", f"notebook-{notebook}@example.com"):
                signups.record(email, "owner")

    def exported(*more: str) -> list[str]:
        lines = run(capsys, "signups", "export", *data, *more)[1].splitlines()[1:]
        return [line.partition(",")[0] for line in lines]

    assert exported() == ["both@example.com", "notebook-False@example.com"]
    assert run(capsys, "signups", "delete", "both@example.com", *data, "--notebook")[0] == 0
    assert exported() == ["both@example.com", "notebook-False@example.com"]
    assert exported("--notebook") == ["notebook-True@example.com"]


def test_each_command_reaches_a_notebooks_own_service(tmp_path, data_dir, capsys):
    own = ["--data", str(tmp_path), "--notebook"]
    place = service_folder(tmp_path, notebook=True)
    running = Running(data_dir, place)
    try:
        segment = running.execute()
        running.get(segment["links"]["csv"])
        running.container.audit.flush()
        assert run(capsys, "keys", "list", *own)[1].startswith("There are no keys.")
        told = [json.loads(line) for line in run(capsys, "audit", *own)[1].splitlines()]
        assert [line["action"] for line in told] == ["segment.execute", "segment.export"]
        assert run(capsys, "policy", "--keep-days", "3", *own)[1].startswith("--keep-days 3\n")
        assert "--audit-days 0\n" in run(capsys, "policy", "--audit-days", "0.0", *own)[1]
        copy = tmp_path / "copy"
        assert run(capsys, "backup", str(copy), *own)[1].startswith("1 result and the registry")
    finally:
        running.stop()
    assert run(capsys, "check", *own)[:2] == (
        0,
        f"Checked {place / REGISTRY_FILE} and no chain data, because none was ingested.\n"
        "1 results and 0 lists checked: all intact.\n",
    )
    with pytest.raises(SystemExit):
        run(capsys, "audit", *own, "--registry", "postgresql://x/y")
    assert "not allowed with argument --notebook" in capsys.readouterr().err
    assert not (tmp_path / "service").exists()


def test_a_backup_taken_while_the_service_runs_serves_the_same(folder, capsys, data_dir, tmp_path):
    segment = folder.execute()
    rows = folder.get(segment["links"]["csv"]).content
    listed = folder.session.post(
        f"{folder.url}/lists",
        data=b"x" * 20,
        headers={"Content-Type": "application/octet-stream"},
        timeout=60,
    ).json()
    copy = tmp_path / "copy"
    code, out, _ = run(capsys, "backup", str(copy), "--data", str(folder.folder))
    assert (code, out.split(" and ")[0]) == (0, "1 result")
    assert run(capsys, "check", "--data", str(copy))[:2] == (
        0,
        f"Checked {copy / 'service' / 'registry.sqlite'} and no chain data, because none was ingested.\n"
        "1 results and 1 lists checked: all intact.\n",
    )
    other = Running(data_dir, copy / "service")
    try:
        assert other.get(segment["links"]["csv"]).content == rows
        assert other.get(f"/lists/{listed['id']}").json() == listed
    finally:
        other.stop()
    assert "Name a new folder" in run(capsys, "backup", str(copy), "--data", str(folder.folder))[2]


def test_check_names_what_is_damaged_and_changes_nothing(folder, capsys):
    segment = folder.execute()
    kept = folder.container.segments.store.get(segment["id"]).result
    path = folder.folder / "service" / "results" / kept.file
    path.write_bytes(path.read_bytes()[:-3])
    lists = folder.container.segments.lists.folder
    for place, sent in enumerate((b"x" * 20, b"y" * 20)):
        headers = {"Content-Type": "application/octet-stream"}
        name = folder.session.post(
            f"{folder.url}/lists", data=sent, headers=headers, timeout=60
        ).json()["id"]
        if place:
            (lists / name).write_bytes(b"z" * 20)
    code, out, _ = run(capsys, "check", "--data", str(folder.folder))
    assert (code, out) == (
        1,
        f"segment {segment['id']}: result {kept.file} has other bytes than were written\n"
        f"list {name} has other bytes than were stored\n"
        f"Checked {folder.folder / 'service' / 'registry.sqlite'} and no chain data, because none was ingested.\n"
        "1 results and 2 lists checked: 2 damaged.\n",
    )
    assert path.exists()


def test_check_reads_the_registry_and_the_chain_data_too(folder, capsys):
    segment = folder.execute()
    data, registry = folder.folder, folder.folder / "service" / "registry.sqlite"
    folder.stop()
    kept = registry.read_bytes()
    registry.write_bytes(kept[:4096] + b"\x5a" * (len(kept) - 4096))
    code, out, err = run(capsys, "check", "--data", str(data))
    assert (code, err) == (1, "")
    assert out.startswith("registry: ")
    listed = run(capsys, "keys", "list", "--data", str(data))
    assert listed[2].startswith("StorageError: registry.sqlite cannot be used")
    registry.write_bytes(kept)
    ingested(data)
    capsys.readouterr()
    assert run(capsys, "check", "--data", str(data))[:2] == (
        0,
        f"Checked {registry} and the chain data.\n1 results and 0 lists checked: all intact.\n",
    )
    (generation,) = (data / "generations").iterdir()
    for name, spoil in {
        "tables.duckdb": lambda old: (
            old[: len(old) // 2] + b"\x5a" * 20_000 + old[len(old) // 2 + 20_000 :]
        ),
        "manifest.json": lambda old: b'{"format": 1}',
    }.items():
        whole = (generation / name).read_bytes()
        (generation / name).write_bytes(spoil(whole))
        code, out, err = run(capsys, "check", "--data", str(data))
        assert (code, err, out.splitlines()[-1]) == (
            1,
            "",
            "1 results and 0 lists checked: 1 damaged.",
        )
        assert out.startswith("chain data: ")
        (generation / name).write_bytes(whole)
    assert run(capsys, "check", "--data", str(data))[0] == 0
    assert segment["status"] == "completed"


def ingested(data):
    rows = ["token_address,from_address,to_address,value,transaction_hash,log_index,block_number"]
    rows += [f"0x{7:040x},0x{0:040x},0x{n:040x},{n},0x{n:064x},0,{n}" for n in range(1, 5_000)]
    (data / "transfers.csv").write_text("\n".join(rows) + "\n")
    assert (
        main(
            ["ingest", str(data / "transfers.csv"), "--chain", "1", "--data", str(data), "--quiet"]
        )
        == 0
    )


@pytest.mark.parametrize("rate", ["600/minute;2/minute", "0/minute", "1 per 0 minute", "often"])
def test_a_rate_that_would_not_hold_as_it_is_written_is_refused(folder, capsys, rate):
    code, _, err = run(capsys, "keys", "add", "x", "--rate", rate, "--data", str(folder.folder))
    assert (code, err) == (
        2,
        f"ConfigError: {rate!r} is not a rate. Write 600/minute, 10/second or 20000/day.\n",
    )


def test_files_and_folders_that_cannot_be_made_are_one_line(folder, capsys, tmp_path):
    data = ["--data", str(folder.folder)]
    assert run(capsys, "signups", "export", "--to", str(tmp_path / "no" / "x.csv"), *data)[1:] == (
        "",
        f"ConfigError: There is no folder {tmp_path / 'no'}.\n",
    )
    (tmp_path / "file").touch()
    code, out, err = run(capsys, "backup", str(tmp_path / "file" / "copy"), *data)
    assert (code, out) == (2, "")
    assert err == f"{tmp_path / 'file'}: File exists\n"


def test_a_first_result_that_is_being_written_is_no_damage(folder, capsys):
    folder.execute()
    (first,) = (folder.folder / "service" / "results").glob("*.arrow")
    whole = first.read_bytes()
    folder.stop()
    copy = folder.folder / "copy"
    for written, damaged in ((b"", 0), (whole[:5], 0), (whole[:-1], 0), (whole, 1)):
        shutil.rmtree(copy, ignore_errors=True)
        service = Running(copy, service_folder(copy))
        service.stop()
        (copy / "service" / "results" / "0.arrow").write_bytes(written)
        code, out, _ = run(capsys, "check", "--data", str(copy))
        assert (code, "names none of the 1 files" in out) == (damaged, bool(damaged)), out


def test_a_registry_that_is_missing_or_empty_is_not_intact_and_is_not_made(folder, capsys):
    data, registry = folder.folder, folder.folder / "service" / "registry.sqlite"
    folder.execute()
    folder.stop()
    ingested(data)
    # The data folder of a copy has chain data; the results are there, and nothing names them.
    lost = f"registry: {registry} names none of the 1 files in {data / 'service' / 'results'}"
    for spoil, damage in (
        (
            lambda: registry.write_bytes(b""),
            [
                "registry: registry.sqlite has no tables. It is not a registry, or a copy that was cut off.",
                lost,
            ],
        ),
        (registry.unlink, [lost]),
    ):
        for path in data.glob("service/registry.sqlite-*"):
            path.unlink()
        spoil()
        capsys.readouterr()
        code, out, _ = run(capsys, "check", "--data", str(data))
        assert (code, out.splitlines()) == (
            1,
            [
                *damage,
                f"Checked {registry} and the chain data.",
                f"0 results and 0 lists checked: {len(damage)} damaged.",
            ],
        )
    assert not registry.exists()


def test_a_full_disk_is_named_and_a_key_ends_on_it_with_the_room_kept_in_reserve(
    folder, capsys, monkeypatch
):
    assert run(capsys, "keys", "add", "ada", "--scope", "admin", "--data", str(folder.folder))[
        1
    ].splitlines()[1] == (
        "It can read and execute nothing: add --scope read and --scope execute, if it is for more than that."
    )
    reserve = folder.folder / "service" / "reserve"
    assert reserve.exists()
    # A disk has more than a megabyte free, wherever the tests run: here this is little.
    monkeypatch.setattr(container, "_RESERVE", 1 << 62)
    assert run(capsys, "keys", "revoke", "ada", "--data", str(folder.folder))[0] == 0
    assert not reserve.exists()

    def full(*_, **__):
        raise DiskFull("database or disk is full")

    monkeypatch.setattr(commands, "note", full)
    assert run(capsys, "keys", "add", "bob", "--data", str(folder.folder))[2] == (
        f"DiskFull: The disk of {folder.folder / 'service'} is full. Free some of it, and run the command again.\n"
    )


def test_a_backup_that_fails_leaves_nothing(folder, capsys, tmp_path):
    folder.execute()
    # A folder is where a result's file was: it fails in the middle, as on a full disk.
    (path,) = (folder.folder / "service" / "results").glob("*.arrow")
    path.unlink()
    path.mkdir()
    target = tmp_path / "backups" / "copy"
    assert run(capsys, "backup", str(target), "--data", str(folder.folder))[0] == 2
    assert list(target.parent.iterdir()) == []


@pytest.mark.parametrize("ends", slow.but_the_first([signal.SIGKILL, signal.SIGTERM]))
def test_a_backup_that_is_killed_leaves_nothing_that_the_next_one_does_not_take_away(
    folder, capsys, tmp_path, ends
):
    folder.execute()
    copies = tmp_path / "backups"
    # It has begun to copy results, and never comes to an end by itself.
    waits = "import shutil, sys, time; from nbext.cli import main; "
    waits += "shutil.copy2 = lambda *_: (print(flush=True), time.sleep(60)); sys.exit(main(sys.argv[1:]))"
    words = ["backup", str(copies / "first"), "--data", str(folder.folder)]
    process = subprocess.Popen([sys.executable, "-c", waits, *words], stdout=subprocess.PIPE)
    with process:
        assert process.stdout.readline() == b"\n"
        process.send_signal(ends)
        assert process.wait(30) != 0
    left = [each.name for each in copies.iterdir()]
    assert len(left) == (ends is signal.SIGKILL), left
    target = str(copies / "second")
    assert run(capsys, "backup", target, "--data", str(folder.folder))[0] == 0
    assert sorted(each.name for each in copies.iterdir()) == ["second"]
    assert sorted(each.name for each in (copies / "second").iterdir()) == ["service"]
