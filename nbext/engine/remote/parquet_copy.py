"""A generation's tables as Parquet, for engines that cannot read a DuckDB file: written once, when first asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from nbext.core.atomic_files import whole_folder
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
    try:
        with whole_folder(folder) as building:
            _write(generation.tables, building)
    except (OSError, duckdb.Error) as error:
        raise StorageError(f"the Parquet files of {generation.folder} cannot be written: {error}") from None
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
