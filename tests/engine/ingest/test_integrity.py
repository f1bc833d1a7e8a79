"""What is stored is verified before anything is built on it, and never left half done."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nbext.engine import storage
from nbext.engine.open import open_dataset
from nbext.engine.spark.session import parquet_files
from nbext.errors import StorageError
from tests import full_disk
from tests.engine.ingest import large
from tests.engine.ingest.conftest import write_csv
from tests.engine.ingest.reading_back import Tables, take


@pytest.mark.parametrize("place", ["front", "middle", "end"])
def test_flipped_bytes_are_found_by_the_check_and_by_what_is_built_on_them(tmp_path, log, place):
    data = tmp_path / "data"
    take(data, write_csv(tmp_path / "one.csv", [log(0, n, 10**20) for n in range(1, 20)]))
    path = storage.current_generation(data).tables
    start = {"front": 5000, "middle": path.stat().st_size // 2, "end": path.stat().st_size - 64}[
        place
    ]
    whole = path.read_bytes()
    path.write_bytes(
        whole[:start] + bytes(byte ^ 1 for byte in whole[start : start + 64]) + whole[start + 64 :]
    )
    says = f"{path} is damaged: its SHA-256 is not the one in manifest.json"
    assert list(storage.damage_of(data)) == [
        f"chain data: {says}. Restore the data folder from a copy, or ingest the files into a new one."
    ]
    before = sorted(data.rglob("*"))
    with pytest.raises(StorageError, match=re.escape(says)):
        take(data, write_csv(tmp_path / "two.csv", [log(0, 1, 5)]))
    assert sorted(data.rglob("*")) == before


@pytest.mark.parametrize("name", ["tables.duckdb", "delta.duckdb"])
def test_a_file_of_another_generation_is_not_answered_from(tmp_path, log, name):
    data, others = tmp_path / "data", 0
    if name == "delta.duckdb":
        large.begin(data)
        others = storage.current_generation(data).manifest["tables"]["transfers"]
    days = [[log(0, n, 10**20, block=block) for n in range(1, 20)] for block in (100, 101, 102)]
    take(data, write_csv(tmp_path / "0.csv", days[0]))
    for day in (1, 2):
        take(data, write_csv(tmp_path / f"{day}.csv", days[day][:4]))
    open_dataset(data).close()
    served = storage.current_generation(data).folder
    before = next(path for path in served.parent.iterdir() if path != served)
    (served / name).unlink()  # it may be one file with the other's
    shutil.copyfile(before / name, served / name)
    with pytest.raises(
        StorageError,
        match=f"is damaged: it has {others + 23:,} transfers, and its manifest says {others + 27:,}[.] Restore",
    ):
        open_dataset(data)


def test_a_flipped_bit_anywhere_in_the_manifest_or_in_what_names_it_is_one_error(tmp_path, log):
    data = tmp_path / "data"
    take(data, write_csv(tmp_path / "one.csv", [log(0, n, 10**20) for n in range(1, 5)]))
    for path in (storage.current_generation(data).folder / storage.MANIFEST, data / "current"):
        whole = path.read_bytes().rstrip()
        for at in range(len(whole)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] + b"\n")
            with pytest.raises(StorageError):
                storage.current_generation(data)
        path.write_bytes(whole + b"\n")
    assert list(storage.damage_of(data)) == []
    # The name alone.
    (data / "current").write_text(storage.current_generation(data).folder.name + "\n")
    with pytest.raises(StorageError, match="is damaged"):
        storage.current_generation(data)


def test_files_for_engines_elsewhere_whose_bytes_have_changed_are_made_again(tmp_path, log):
    data = tmp_path / "data"
    take(data, write_csv(tmp_path / "one.csv", [log(0, n, 10**20) for n in range(1, 5)]))
    served = storage.current_generation(data)
    path = parquet_files(served) / "wallets.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    assert [line.split(" has ")[0] for line in storage.damage_of(data)] == [
        f"chain data: {path.parent}"
    ]
    assert parquet_files(served) == path.parent
    assert path.read_bytes() == whole
    assert list(storage.damage_of(data)) == []


# A disk that is full, as a process sees it that may write no file larger than this.
CRAMPED = """
import resource, signal, sys
from nbext.engine.ingest import ingest
from nbext.errors import StorageError
from tests.engine.ingest.conftest import log, write_csv  # noqa: F401  log is a fixture
from tests.engine.ingest.reading_back import Tables, take, wallet
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
try:
    ingest([sys.argv[2]], "ethereum", sys.argv[3])
except StorageError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_run_that_did_not_finish_leaves_nothing_behind(tmp_path, log):
    data = tmp_path / "data"
    take(data, write_csv(tmp_path / "one.csv", [log(0, 1, 10**20)]))
    before = {path: path.stat().st_size for path in data.rglob("*")}
    path = write_csv(tmp_path / "two.csv", [log(0, 2, 10**20)])
    for most in ("0", "300000"):
        command = [sys.executable, "-c", CRAMPED, most, str(path), str(data)]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "cannot be written: " in ended.stdout
        assert {path: path.stat().st_size for path in data.rglob("*")} == before


def test_a_generation_that_is_named_stays_where_the_disk_fails_to_say_that_the_name_lasts(
    tmp_path, log, monkeypatch
):
    data = tmp_path / "data"
    take(data, write_csv(tmp_path / "one.csv", [log(0, 1, 10**20)]))
    before = (data / "current").read_text()
    fsync = os.fsync

    def failing(handle):
        if (
            Path(f"/proc/self/fd/{handle}").readlink() == data
            and (data / "current").read_text() != before
        ):
            raise OSError(errno.EIO, "Input/output error")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", failing)
    report = take(data, write_csv(tmp_path / "two.csv", [log(0, 2, 10**20)]))
    assert (
        report.generation
        == storage.current_generation(data).folder.name
        == (data / "current").read_text().split()[0]
    )
    with Tables(data) as tables:
        assert set(tables.balances().values()) == {-2 * 10**20, 10**20}


@pytest.mark.slow
def test_a_generation_that_cannot_be_removed_yet_fails_no_run_and_goes_later(tmp_path, log):
    data = tmp_path / "data"
    take(data, write_csv(tmp_path / "0.csv", [log(0, 1, 10**20)]))
    first = storage.current_generation(data).folder
    with full_disk.mounted(first / "busy"):
        for day in (1, 2, 3):
            assert take(data, write_csv(tmp_path / f"{day}.csv", [log(0, 1, 10**20)])).changed
        assert first.exists()
    take(data, write_csv(tmp_path / "4.csv", [log(0, 1, 10**20)]))
    assert not first.exists()
