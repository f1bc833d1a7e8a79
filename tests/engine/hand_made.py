"""Generations written by hand, for tests: a few rows in the layout's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from nbext.core.uint256 import split
from nbext.engine import storage
from nbext.engine.query.amounts import sort_key
from nbext.engine.schema import TABLES

# Wallet n stands at this address; the ranks of the addresses are the wallets.
ADDRESSES = [f"0x{n:040x}" for n in range(100)]
CHAINS = [{"chain_id": 1, "first_block": 100, "last_block": 900, "last_timestamp": 1_700_009_000}]


def amount(value: int) -> dict[str, Any]:
    """Return an amount as the columns of a row."""
    limbs = {limb: Decimal(number) for limb, number in split(value)._asdict().items()}
    return {**limbs, "sort_key": sort_key(value)}


def balance(contract: int, wallet: int, value: int) -> dict[str, Any]:
    """Return a row of ``balances``."""
    return {"contract": contract, "wallet": wallet, **amount(value)}


def contract(number: int, **known: Any) -> dict[str, Any]:
    """Return a row of ``contracts``; what is not given is null."""
    blank = dict.fromkeys(TABLES["contracts"])
    return {
        **blank,
        "contract": number,
        "chain_id": 1,
        "address": f"0x{number:040x}",
        "standard": "ERC20",
        **known,
    }


def generation(
    data_dir: Path, rows: Mapping[str, Sequence[Mapping[str, Any]]], chains: Any = None
) -> Path:
    """Write a generation of the given rows, make it the current one of the folder, and return its folder."""
    folder = storage.create_building(data_dir)
    wallets = [
        {"wallet": n, "address": address, "is_contract": False}
        for n, address in enumerate(ADDRESSES)
    ]
    with duckdb.connect(folder / "tables.duckdb") as connection:
        for name, columns in TABLES.items():
            fields = ", ".join(
                f'"{column}" {kind.replace("string", "varchar")}'
                for column, kind in columns.items()
            )
            connection.execute(
                f'CREATE TABLE "{name}" ({fields.replace("int32", "int").replace("int64", "bigint")})'
            )
            given = rows.get(name, wallets if name == "wallets" else [])
            if given:
                incoming = pa.table({column: [row[column] for row in given] for column in columns})
                connection.register("incoming", incoming)
                connection.execute(f'INSERT INTO "{name}" SELECT * FROM incoming')
                connection.unregister("incoming")
    manifest = {
        "fingerprint": "abcdef",
        "name": "hand-made",
        "synthetic": True,
        "created_at": "2021-01-01T00:00:00Z",
        "chains": CHAINS if chains is None else chains,
        "tables": {name: len(rows.get(name, [])) for name in TABLES},
        "files": [],
    }
    return storage.publish(data_dir, folder, manifest).folder
