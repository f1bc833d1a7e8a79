"""The sample appears in a data folder whole, once, whoever asks first."""

from __future__ import annotations

import json
import subprocess
import sys

import duckdb
import pytest

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


def test_the_folder_holds_every_table_of_the_layout_with_its_columns_and_rows(tmp_path):
    folder = ensure_sample(tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    with duckdb.connect(str(folder / "tables.duckdb"), read_only=True) as connection:
        for name, columns in TABLES.items():
            described = connection.execute(f"DESCRIBE {name}").fetchall()
            assert {row[0]: row[1] for row in described} == {c: TYPES[kind] for c, kind in columns.items()}
            assert connection.execute(f"SELECT count(*) FROM {name}").fetchone() == (manifest["tables"][name],)
    assert (manifest["name"], manifest["synthetic"], manifest["format"]) == ("synthetic sample", True, 1)


def test_a_second_call_returns_the_same_folder_and_writes_nothing(tmp_path):
    folder = ensure_sample(tmp_path)
    written = (folder / "tables.duckdb").stat().st_mtime_ns
    assert ensure_sample(tmp_path) == folder
    assert (folder / "tables.duckdb").stat().st_mtime_ns == written


def test_processes_that_ask_at_the_same_time_end_with_one_whole_folder(tmp_path):
    code = ("import pathlib, sys; from nbext.engine.sample.unpack import ensure_sample; "
            "print(ensure_sample(pathlib.Path(sys.argv[1])).name)")
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    names = {process.communicate()[0].strip() for process in started}
    assert names == {ensure_sample(tmp_path).name}
    assert [path.name for path in tmp_path.iterdir()] == [*names]


def test_a_folder_that_lost_its_tables_is_made_again(tmp_path):
    folder = ensure_sample(tmp_path)
    (folder / "tables.duckdb").unlink()
    assert (ensure_sample(tmp_path) / "tables.duckdb").is_file()


def test_a_data_folder_that_is_a_file_is_said_to_be_one_that_cannot_be_written(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(StorageError, match=r"the sample data cannot be written to .*data"):
        ensure_sample(tmp_path / "data")


def test_what_is_shipped_is_small():
    assert sum(path.stat().st_size for path in PREPARED.iterdir()) < 2_200_000
