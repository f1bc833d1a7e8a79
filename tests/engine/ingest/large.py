"""A data folder of so many transfers that what comes later is added beside its base, at the default constants."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import duckdb

from nbext.core.chains import chain_of
from nbext.engine import storage
from nbext.engine.ingest import ingest
from nbext.engine.ingest.derive import append

# On a chain of its own, between two wallets of its own: what others are asked about does not see it.
CHAIN = chain_of("polygon")
TOKEN, WALLETS = "0x" + "90d1" * 10, ("0x" + "ba" * 20, "0x" + "5e" * 20)


def begin(folder: Path) -> Path:
    """Make a data folder of such a base alone."""
    return shutil.copytree(_made(), folder)


def grow(folder: Path) -> None:
    """Add as many rows of its chain beside the base as it may have there: with one more it is compacted."""
    manifest = storage.current_generation(folder).manifest
    room = append.FOLDED * manifest["tables"]["transfers"] - manifest.get("added", 0)
    rows = _rows(folder.parent / "more.parquet", append.LEAST, int(room / (1 - append.FOLDED)))
    assert ingest([rows], CHAIN.id, folder).rebuilt is None


@cache
def _made() -> Path:
    made = Path(tempfile.mkdtemp(prefix="nbext-large-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    ingest([_rows(made / "base.parquet", 0, append.LEAST)], CHAIN.id, made / "data")
    return made / "data"


def _rows(path: Path, first: int, count: int) -> Path:
    duckdb.sql(f"""
        COPY (SELECT '{TOKEN}' AS token_address, 0 AS value, n // 5000 AS block_number, n % 5000 AS log_index,
            if(n % 2 = 0, '{WALLETS[0]}', '{WALLETS[1]}') AS from_address,
            if(n % 2 = 0, '{WALLETS[1]}', '{WALLETS[0]}') AS to_address,
            '0x' || sha256(n::VARCHAR) AS transaction_hash
        FROM range({first}, {first + count}) AS _(n)) TO '{path}'""")
    return path
