"""Unpack the shipped tables of the sample into a folder, as a generation that engines open read-only."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path

import platformdirs

from nbext.core.atomic_files import is_intact, made_folder
from nbext.engine.query.amounts import as_amounts
from nbext.engine.schema import LIMBS, TABLES, sql_literal
from nbext.engine.storage import MANIFEST, TABLES_FILE
from nbext.errors import StorageError

PREPARED = Path(__file__).parent / "prepared"


def ensure_sample(data_dir: Path) -> Path:
    """Return the folder of the sample's tables: one for all data folders, in the user's cache.

    The folder holds ``tables.duckdb`` and ``manifest.json``, and another sample or layout has a folder of
    another name. It appears whole or not at all, is made again where it is damaged, and processes that make it at
    the same time end with the same folder. Where the cache cannot be written, the folder is in the data folder.

    Raises
    ------
    StorageError
        Neither the cache nor the data folder can be written.
    """
    version = _version()
    name = f"sample-{version}"
    places = (Path(platformdirs.user_cache_dir("nbext", appauthor=False)), data_dir)
    # Made once by whoever can write: reading needs no right to write, neither here nor for DuckDB.
    for place in places:
        if is_intact(place / name, version):
            return place / name
    import duckdb

    failures = []
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            made_folder(place / name, version, _fill)
        except (OSError, duckdb.Error) as error:
            failures.append(error)
        else:
            return place / name
    raise StorageError(f"the sample data cannot be written to {data_dir}: {failures[-1]}")


def _version() -> str:
    manifest = (PREPARED / MANIFEST).read_text("utf-8")
    return sha256(f"{manifest} {TABLES}".encode()).hexdigest()[:12]


def _fill(building: Path) -> None:
    import duckdb

    with duckdb.connect(str(building / TABLES_FILE)) as connection:
        # In a notebook DuckDB draws one into the cell when a statement takes two seconds, as on a busy machine.
        connection.execute("SET enable_progress_bar = false")
        for name, columns in TABLES.items():
            # A literal, not a parameter: to bind one, DuckDB imports pandas, which takes six times as long as all this.
            rows = f"read_parquet({sql_literal(PREPARED / f'{name}.parquet')})"
            if "sort_key" in columns:  # each table comes without it
                others = [one for one in columns if one not in (*LIMBS, "sort_key")]
                rows = f"({as_amounts(rows, ', '.join(others))})"
            # Its blocks are made up, and have no hashes.
            shown = ("NULL::VARCHAR AS hash" if one == "hash" else one for one in columns)
            connection.execute(f"CREATE TABLE {name} AS SELECT {', '.join(shown)} FROM {rows}")
    shutil.copyfile(PREPARED / MANIFEST, building / MANIFEST)
