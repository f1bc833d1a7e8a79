"""The sample appears in a data folder whole, once, whoever asks first."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys

import duckdb
import pytest

from nbext.engine.open import open_dataset
from nbext.engine.sample.unpack import PREPARED, ensure_sample
from nbext.engine.schema import TABLES
from nbext.errors import StorageError

# DuckDB's own words for the layout's types.
TYPES = {
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "decimal(38,0)": "DECIMAL(38,0)",
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A user's cache in which nothing is yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nbext"


def test_the_folder_holds_every_table_of_the_layout_with_its_columns_and_rows(tmp_path):
    folder = ensure_sample(tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    with duckdb.connect(str(folder / "tables.duckdb"), read_only=True) as connection:
        for name, columns in TABLES.items():
            described = connection.execute(f"DESCRIBE {name}").fetchall()
            assert {row[0]: row[1] for row in described} == {
                c: TYPES[kind] for c, kind in columns.items()
            }
            assert connection.execute(f"SELECT count(*) FROM {name}").fetchone() == (
                manifest["tables"][name],
            )
    assert (manifest["name"], manifest["synthetic"], manifest["format"]) == (
        "synthetic sample",
        True,
        8,
    )


def test_every_data_folder_shares_the_folder_of_the_first(tmp_path):
    folder = ensure_sample(tmp_path / "data")
    written = (folder / "tables.duckdb").stat().st_mtime_ns
    assert ensure_sample(tmp_path / "other") == folder
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache"]
    assert (folder / "tables.duckdb").stat().st_mtime_ns == written


@pytest.mark.slow
def test_processes_that_ask_at_the_same_time_end_with_one_whole_folder(tmp_path, cache):
    code = (
        "import pathlib, sys; from nbext.engine.sample.unpack import ensure_sample; "
        "print(ensure_sample(pathlib.Path(sys.argv[1])).name)"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    names = {process.communicate()[0].strip() for process in started}
    assert names == {ensure_sample(tmp_path).name}
    assert [path.name for path in cache.iterdir()] == [*names]


def test_a_folder_that_lost_its_tables_is_made_again(tmp_path):
    folder = ensure_sample(tmp_path)
    (folder / "tables.duckdb").unlink()
    assert (ensure_sample(tmp_path) / "tables.duckdb").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tables.duckdb", "manifest.json"])
def test_a_folder_whose_bytes_have_changed_is_made_again(tmp_path, name):
    folder = ensure_sample(tmp_path)
    path = folder / name
    # Of the manifest, a digit of a chain's last block.
    at = path.read_bytes().find(b"24136000") if name == "manifest.json" else 20_000
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with contextlib.closing(open_dataset(tmp_path)) as dataset:
        assert dataset.about.chains[0].last_block == 24136000
    assert ensure_sample(tmp_path) == folder
    if name == "manifest.json":
        assert path.read_bytes() == whole


def test_a_sample_that_may_only_be_read_is_used_as_it_is(tmp_path, cache):
    folder = ensure_sample(tmp_path / "data")
    for path in (*folder.iterdir(), folder, cache):
        path.chmod(path.stat().st_mode & 0o555)
    try:
        with contextlib.closing(open_dataset(tmp_path / "data")) as dataset:
            assert (
                dataset.catalog.contract(1, "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984").symbol
                == "UNI"
            )
        assert ensure_sample(tmp_path / "other") == folder
    finally:
        cache.chmod(0o755)
        folder.chmod(0o755)


def test_a_cache_that_cannot_be_written_leaves_the_sample_in_the_data_folder(tmp_path, cache):
    cache.parent.write_text("")
    folder = ensure_sample(tmp_path / "data")
    assert folder.parent == tmp_path / "data"
    assert ensure_sample(tmp_path / "data") == folder


def test_two_folders_that_cannot_be_written_are_said_to_be_such(tmp_path, cache):
    cache.parent.write_text("")
    (tmp_path / "data").write_text("")
    with pytest.raises(StorageError, match=r"the sample data cannot be written to .*data"):
        ensure_sample(tmp_path / "data")


def test_what_is_shipped_is_small():
    assert sum(path.stat().st_size for path in PREPARED.iterdir()) < 2_200_000
