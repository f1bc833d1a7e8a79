"""The operator's commands, as they are typed."""

from __future__ import annotations

import re
import stat

import pytest

from nbext.cli import main
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


def test_a_key_is_shown_once_taken_at_once_and_ended_within_a_second(folder, capsys):
    data = ["--data", str(folder.folder)]
    code, out, _ = run(capsys, "keys", "add", "ada", "--scope", "read", "--rate", "5/second", *data)
    text = out.splitlines()[-1]
    assert code == 0
    assert re.fullmatch(r"nbx_[A-Za-z0-9_-]{43}", text)
    folder.container.keys._read_at = -10  # a service takes a new key within a second; the test does not wait for it
    assert folder.get("/about", headers={"x-api-key": text}).status_code == 200
    _, listed, _ = run(capsys, "keys", "list", *data)
    assert re.fullmatch(r"[0-9a-f]{12}  ada  read  5/second  \S+Z  in use\n", listed)
    assert text not in listed
    assert text.encode() not in (folder.folder / "service" / "registry.sqlite").read_bytes()
    assert run(capsys, "keys", "revoke", "ada", *data)[0] == 0
    folder.container.keys._read_at = -10
    assert folder.get("/about", headers={"x-api-key": text}).status_code == 401
    assert "revoked" in run(capsys, "keys", "list", *data)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["keys", "add", "a", "--scope", "raed"],
         "Unknown scope 'raed'. Did you mean 'read'? Allowed: read, execute, signup."),
        (["keys", "add", "a", "--rate", "often"], "'often' is not a rate. Write 600/minute, 10/second or 20000/day."),
        (["keys", "add", "a\nb"],
         r"'a\nb' cannot name a key. Use 1 to 64 letters, digits, spaces, dots, _ or -, and begin with a letter or"
         " digit."),
        (["keys", "revoke", "nobody"], "No key named 'nobody' is in use."),
        (["signups", "delete", "a@b.co"], "a@b.co has not signed up."),
    ],
)
def test_a_command_that_cannot_be_done_says_why(folder, capsys, words, message):
    code, out, err = run(capsys, *words, "--data", str(folder.folder))
    assert (code, out, err) == (2, "", f"ConfigError: {message}\n")


def test_a_name_is_in_use_once(folder, capsys):
    data = ["--data", str(folder.folder)]
    assert run(capsys, "keys", "add", "bob", *data)[0] == 0
    assert "in use" in run(capsys, "keys", "add", "bob", *data)[2]
    run(capsys, "keys", "revoke", "bob", *data)
    assert run(capsys, "keys", "add", "bob", *data)[0] == 0


def test_a_folder_without_a_service_is_not_made_by_looking(tmp_path, capsys):
    for words in (["keys", "list"], ["signups", "export"], ["check"], ["backup", str(tmp_path / "copy")]):
        code, _, err = run(capsys, *words, "--data", str(tmp_path / "nothing"))
        assert (code, "No service has run on" in err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_sign_ups_are_kept_once_exported_with_their_consent_and_forgotten(folder, capsys):
    for email in ("b@example.com", "a@example.com", "A@Example.com", "=cmd@example.com"):
        answer = folder.post("/v1/signup/newsletter", {"email": email})
        assert answer.status_code == 202
        assert answer.json() | {"email": ""} == {"email": "", "status": "recorded", "delivered": False}
    data = ["--data", str(folder.folder)]
    code, out, _ = run(capsys, "signups", "export", *data)
    rows = [line.split(",") for line in out.splitlines()]
    assert code == 0
    assert [row[0] for row in rows] == ["email", "b@example.com", "a@example.com", "'=cmd@example.com"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row[1]) for row in rows[1:])
    assert run(capsys, "signups", "delete", "A@example.com", *data)[0] == 0
    target = folder.folder / "out.csv"
    assert run(capsys, "signups", "export", "--to", str(target), *data)[0] == 0
    assert "a@example.com" not in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert "exists" in run(capsys, "signups", "export", "--to", str(target), *data)[2]


def test_a_backup_taken_while_the_service_runs_serves_the_same(folder, capsys, data_dir, tmp_path):
    segment = folder.execute()
    rows = folder.get(segment["links"]["csv"]).content
    copy = tmp_path / "copy"
    code, out, _ = run(capsys, "backup", str(copy), "--data", str(folder.folder))
    assert (code, out.split(" results")[0]) == (0, "1")
    assert run(capsys, "check", "--data", str(copy))[:2] == (0, "1 results checked: all intact.\n")
    other = Running(data_dir, copy / "service")
    try:
        assert other.get(segment["links"]["csv"]).content == rows
    finally:
        other.stop()
    assert "Name a new folder" in run(capsys, "backup", str(copy), "--data", str(folder.folder))[2]


def test_check_names_what_is_damaged_and_changes_nothing(folder, capsys):
    segment = folder.execute()
    kept = folder.container.store.get(segment["id"]).result
    path = folder.folder / "service" / "results" / kept.file
    path.write_bytes(path.read_bytes()[:-3])
    code, out, _ = run(capsys, "check", "--data", str(folder.folder))
    assert (code, out) == (
        1,
        f"segment {segment['id']}: result {kept.file} is missing or has another size\n1 results checked: 1 damaged.\n",
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
    assert run(capsys, "check", "--data", str(data))[:2] == (0, "1 results checked: all intact.\n")
    (generation,) = (data / "generations").iterdir()
    for name, spoil in {
        "tables.duckdb": lambda old: old[: len(old) // 2] + b"\x5a" * 20_000 + old[len(old) // 2 + 20_000 :],
        "manifest.json": lambda old: b'{"format": 1}',
    }.items():
        whole = (generation / name).read_bytes()
        (generation / name).write_bytes(spoil(whole))
        code, out, err = run(capsys, "check", "--data", str(data))
        assert (code, err, out.splitlines()[-1]) == (1, "", "1 results checked: 1 damaged.")
        assert out.startswith("chain data: ")
        (generation / name).write_bytes(whole)
    assert run(capsys, "check", "--data", str(data))[0] == 0
    assert segment["status"] == "completed"


def ingested(data):
    rows = ["token_address,from_address,to_address,value,transaction_hash,log_index,block_number"]
    rows += [f"0x{7:040x},0x{0:040x},0x{n:040x},{n},0x{n:064x},0,{n}" for n in range(1, 5_000)]
    (data / "transfers.csv").write_text("\n".join(rows) + "\n")
    assert main(["ingest", str(data / "transfers.csv"), "--chain", "1", "--data", str(data), "--quiet"]) == 0


@pytest.mark.parametrize("rate", ["600/minute;2/minute", "0/minute", "1 per 0 minute", "often"])
def test_a_rate_that_would_not_hold_as_it_is_written_is_refused(folder, capsys, rate):
    code, _, err = run(capsys, "keys", "add", "x", "--rate", rate, "--data", str(folder.folder))
    assert (code, err) == (2, f"ConfigError: {rate!r} is not a rate. Write 600/minute, 10/second or 20000/day.\n")


def test_files_and_folders_that_cannot_be_made_are_one_line(folder, capsys, tmp_path):
    data = ["--data", str(folder.folder)]
    assert run(capsys, "signups", "export", "--to", str(tmp_path / "no" / "x.csv"), *data)[1:] == (
        "", f"ConfigError: There is no folder {tmp_path / 'no'}.\n"
    )
    (tmp_path / "file").touch()
    code, out, err = run(capsys, "backup", str(tmp_path / "file" / "copy"), *data)
    assert (code, out) == (2, "")
    assert err == f"{tmp_path / 'file' / 'copy' / 'service' / 'results'}: Not a directory\n"
