"""A data folder of so many transfers that what comes later is added to it, beside its base, at the default constants."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import duckdb

from nbext.core.chains import chain_of
from nbext.engine.ingest import ingest
from nbext.engine.ingest.derive import append

# On a chain of its own, between two wallets of its own: what others are asked about does not see it.
CHAIN = chain_of("polygon")
TOKEN, WALLETS = "0x" + "90d1" * 10, ("0x" + "ba" * 20, "0x" + "5e" * 20)


def begin(folder: Path) -> Path:
    """Make a folder with such data in it."""
    return shutil.copytree(_made(), folder)


@cache
def _made() -> Path:
    made = Path(tempfile.mkdtemp(prefix="nbext-large-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    path = made / "large.parquet"
    duckdb.sql(f"""
        COPY (SELECT '{TOKEN}' AS token_address, 0 AS value, n // 5000 AS block_number, n % 5000 AS log_index,
            if(n % 2 = 0, '{WALLETS[0]}', '{WALLETS[1]}') AS from_address,
            if(n % 2 = 0, '{WALLETS[1]}', '{WALLETS[0]}') AS to_address,
            '0x' || sha256(n::VARCHAR) AS transaction_hash
        FROM range({append.LEAST}) AS _(n)) TO '{path}'""")
    ingest([path], CHAIN.id, made / "data")
    return made / "data"
