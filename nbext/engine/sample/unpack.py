"""Unpack the shipped tables of the sample into a folder, as a generation that engines open read-only."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path

import platformdirs

from nbext.core.atomic_files import is_intact, made_folder
from nbext.core.uint256 import LIMB_BASE, LIMB_DIGITS
from nbext.engine.query.amounts import KEY_DIGITS
from nbext.engine.schema import TABLES, sql_literal
from nbext.engine.storage import MANIFEST, TABLES_FILE
from nbext.errors import StorageError

PREPARED = Path(__file__).parent / "prepared"
_STEP = 10**KEY_DIGITS


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
        # What is not shipped: its blocks are made up, and have no hashes.
        made = {
            "sort_key": f"{sort_key_sql('hi', 'mid', 'lo')} AS sort_key",
            "hash": "NULL::VARCHAR AS hash",
        }
        for name in TABLES:
            # A literal, not a parameter: to bind one, DuckDB imports pandas, which takes six times as long as all this.
            path = sql_literal(PREPARED / f"{name}.parquet")
            columns = ", ".join(made.get(column, column) for column in TABLES[name])
            connection.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM read_parquet({path})")
    shutil.copyfile(PREPARED / MANIFEST, building / MANIFEST)


def sort_key_sql(hi: str, mid: str, lo: str) -> str:
    """Return DuckDB's SQL of the sort key of limbs in normal form: each table comes without it."""
    short = " ".join(
        f"WHEN {lo} < {10 ** (KEY_DIGITS + more)} THEN {more * _STEP} + ({lo}::HUGEINT // {10**more}::HUGEINT)::BIGINT"
        for more in range(LIMB_DIGITS - KEY_DIGITS + 1)
    )
    digits = _digits_sql(hi, mid, lo)
    long = (
        f"CASE WHEN length({digits}) <= {KEY_DIGITS} THEN ({digits})::BIGINT "
        f"ELSE (length({digits}) - {KEY_DIGITS}) * {_STEP} + left({digits}, {KEY_DIGITS})::BIGINT END"
    )
    return (
        f"CASE WHEN {hi} = 0 AND {mid} = 0 THEN CASE {short} END "
        f"WHEN {hi} < 0 THEN -({long}) ELSE {long} END::BIGINT"
    )


def _digits_sql(hi: str, mid: str, lo: str) -> str:
    """Return the SQL of the decimal digits of the magnitude, without leading zeros where it is not zero."""
    base, rest = f"{LIMB_BASE}::HUGEINT", f"({mid}::HUGEINT + ({lo} <> 0)::HUGEINT)"
    limbs = (
        f"CASE WHEN {hi} < 0 THEN -({hi}::HUGEINT) - ({rest} <> 0)::HUGEINT ELSE {hi}::HUGEINT END",
        f"CASE WHEN {hi} >= 0 THEN {mid}::HUGEINT WHEN {rest} = 0 THEN 0 ELSE {base} - {rest} END",
        f"CASE WHEN {hi} >= 0 OR {lo} = 0 THEN {lo}::HUGEINT ELSE {base} - {lo}::HUGEINT END",
    )
    return (
        "ltrim("
        + " || ".join(f"lpad(({limb})::VARCHAR, {LIMB_DIGITS}, '0')" for limb in limbs)
        + ", '0')"
    )
