"""A data folder in which one token is light to ask for and another takes ten seconds: a million transfers."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tests.engine.hand_made import balance, contract, generation

LIGHT = {"filters": {"token": {"token": "LIGHT", "balance": {"min": "5"}}}, "limit": 100}
# Every wallet that moved any of it, by the exact sum of what it moved.
HEAVY = {"filters": {"transfer": {"token": "HEAVY", "direction": "any", "total": {"min": "2"}}}, "limit": 100}
_TRANSFERS = 1_000_000


def make(data_dir: Path) -> None:
    """Write the folder: each of the heavy token's transfers is between two wallets of their own."""
    contracts = [contract(1, symbol="LIGHT", decimals=0), contract(2, symbol="HEAVY", decimals=0)]
    folder = generation(data_dir, {"contracts": contracts, "balances": [balance(1, n, n) for n in range(1, 20)]})
    with duckdb.connect(folder / "tables.duckdb") as tables:
        tables.execute("DELETE FROM wallets")
        tables.execute(
            f"INSERT INTO wallets SELECT n, printf('0x%040x', n), false FROM range({2 * _TRANSFERS}) made(n)"
        )
        tables.execute(
            f"INSERT INTO transfers SELECT 2, n // 100, n, n, {_TRANSFERS} + n, 0, 0, 1 + n % 7, 1"
            f" FROM range({_TRANSFERS}) made(n)"
        )
