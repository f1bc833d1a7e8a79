"""A generation's tables as Parquet, for engines that cannot read a DuckDB file: written once, when first asked for."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from nbext.engine.schema import TABLES
from nbext.errors import StorageError

if TYPE_CHECKING:
    from nbext.engine.storage.generation import Generation

FOLDER = "parquet"
_TYPES = {"int32": "INTEGER", "int64": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN"}


def twin(generation: Generation) -> Path:
    """Return the folder with ``<table>.parquet`` for every table; the first call writes it, whole or not at all.

    Raises
    ------
    StorageError
        The folder of the generation cannot be written.
    """
    folder = generation.folder / FOLDER
    if folder.is_dir():
        return folder
    building = generation.folder / f".{FOLDER}-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        building.mkdir()
        _write(generation.tables, building)
        building.rename(folder)
    except (OSError, duckdb.Error) as error:
        # Another process may have been first: its twin is as good as ours.
        if not folder.is_dir():
            raise StorageError(f"the Parquet files of {generation.folder} cannot be written: {error}") from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder


def _write(tables: Path, building: Path) -> None:
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"ATTACH {_quoted(tables)} AS generation (READ_ONLY)")
        for name, columns in TABLES.items():
            # Each type is named: DuckDB writes a HUGEINT, were there one, as DOUBLE without a word.
            cast = ", ".join(f'"{column}"::{_TYPES.get(kind, kind)} AS "{column}"' for column, kind in columns.items())
            target = _quoted(building / f"{name}.parquet")
            connection.execute(f"COPY (SELECT {cast} FROM generation.{name}) TO {target} (FORMAT parquet)")


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
