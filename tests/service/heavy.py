"""A data folder in which one token is light to ask for and another takes half a minute: a million transfers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import duckdb

from tests.engine.hand_made import balance, contract, generation

LIGHT = {"filters": {"token": {"token": "LIGHT", "balance": {"min": "5"}}}, "limit": 100}
# After each of many blocks, every wallet that moved some of it, by the exact sum of what it moved.
HEAVY = {
    "operator": "OR",
    "filters": {
        "transfer": [
            {"token": "HEAVY", "direction": "any", "total": {"min": "2"}, "after": block}
            for block in range(120)
        ]
    },
    "limit": 100,
}
_TRANSFERS = 1_000_000


def make(data_dir: Path) -> None:
    """Write the folder: each of the heavy token's transfers is between two wallets of their own."""
    contracts = [contract(1, symbol="LIGHT", decimals=0), contract(2, symbol="HEAVY", decimals=0)]
    folder = generation(
        data_dir, {"contracts": contracts, "balances": [balance(1, n, n) for n in range(1, 20)]}
    )
    with duckdb.connect(folder / "tables.duckdb") as tables:
        tables.execute("DELETE FROM wallets")
        tables.execute(
            f"INSERT INTO wallets SELECT n, printf('0x%040x', n), false FROM range({2 * _TRANSFERS}) made(n)"
        )
        tables.execute(
            f"INSERT INTO transfers SELECT 2, n // 100, n, n, {_TRANSFERS} + n, 0, 0, 1 + n % 7, 1"
            f" FROM range({_TRANSFERS}) made(n)"
        )
    # A file that has other rows than the manifest says is of another generation, and refused; so is a manifest that is
    # not the one of `current`.
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(
        json.dumps(manifest | {"tables": manifest["tables"] | {"transfers": _TRANSFERS}})
    )
    (data_dir / "current").write_text(
        f"{folder.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n"
    )


def make_wide(data_dir: Path, *, wallets: int = 1_000_000, whole: int = 12) -> None:
    """Write a folder of 200 tokens T0, T1, ...; each wallet holds more than 1e26 of the ``whole`` first ones."""
    contracts = [contract(number, symbol=f"T{number}", decimals=18) for number in range(200)]
    folder = generation(data_dir, {"contracts": contracts})
    with duckdb.connect(folder / "tables.duckdb") as tables:
        tables.execute("DELETE FROM wallets")
        tables.execute(
            f"INSERT INTO wallets SELECT n, printf('0x%040x', n), false FROM range({wallets}) made(n)"
        )
        for number in range(200):
            held = wallets if number < whole else 10
            # mid * 10**26 + lo, and the sort key of that (engine/query/amounts.py).
            tables.execute(
                f"INSERT INTO balances SELECT {number}, n, 0, 1000000 + n, n, 16 * 10**17 + (1000000 + n) * 10**10"
                f" FROM range({held}) made(n)"
            )
            tables.execute(f"UPDATE contracts SET holders = {held} WHERE contract = {number}")


FIRST = 10**12


def holders(data_dir: Path, number: int) -> None:
    """Write a folder in which so many wallets hold BIG, of 18 decimals: wallet n has `amount_sql` of it."""
    folder = generation(
        data_dir, {"contracts": [contract(1, symbol="BIG", decimals=18, holders=number)]}
    )
    with duckdb.connect(folder / "tables.duckdb") as tables:
        tables.execute("DELETE FROM wallets")
        # Above the burn addresses.
        tables.execute(
            f"INSERT INTO wallets SELECT n, printf('0x%040x', {FIRST} + n), false FROM range({number}) made(n)"
        )
        tables.execute(
            # The size of 23 digits, as `nbext.engine.query.amounts` says it.
            f"INSERT INTO balances SELECT 1, n, 0, 0, lo, 600000000000000000 + (lo // 1000000)::BIGINT FROM"
            f" (SELECT n, {amount_sql('n')} AS lo FROM range({number}) made(n)) ORDER BY n"
        )


def amount_sql(wallet: str) -> str:
    """Return the SQL of what a wallet of `holders` has: 23 digits, all of which count."""
    return f"(10000000000000000000000::HUGEINT + {wallet}::HUGEINT * 7919000000001)"
