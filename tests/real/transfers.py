"""Transfers as chains have them, the same for a seed."""

from __future__ import annotations

import csv
import random
from bisect import bisect
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.engine.ingest.reading_back import ZERO, transaction

COLUMNS = (
    *("token_address", "from_address", "to_address", "value", "transaction_hash"),
    *("log_index", "block_number", "block_timestamp"),
)
FIRST_BLOCK, FIRST_TIME, IN_A_BLOCK = 15_000_000, 1_655_000_000, 150
COINS, COLLECTIONS, EARLIER = 2_000, 600, 5_000
# So many contracts of each kind are new on a day.
NEW_COINS, NEW_COLLECTIONS = 20, 10


def coin(n: int) -> str:
    """The address of an ERC20."""
    return f"0x20{n:038x}"


def collection(n: int) -> str:
    """The address of an ERC721."""
    return f"0x72{n:038x}"


class Chain:
    """A chain that goes on; `rows` are its next ones."""

    def __init__(self, wallets: int, seed: int = 1) -> None:
        self._draw, self._wallets = random.Random(seed), wallets
        self._written = self._days = 0
        # Popularity falls as one over the rank.
        self._popular = {
            count: list(accumulate(1 / rank for rank in range(1, count + 1)))
            for count in (COINS, COLLECTIONS)
        }
        self._owners: dict[tuple[int, int], str] = {}
        self._minted: dict[int, int] = {}

    def _rank(self, count: int) -> int:
        weights = self._popular[count]
        return bisect(weights, self._draw.random() * weights[-1])

    def _wallet(self) -> str:
        return f"0xaa{int(self._wallets * self._draw.random() ** 3):038x}"

    def _contract(self, known: int, new: int) -> int:
        if self._days and self._draw.random() < 0.03:
            return known + self._draw.randrange(self._days * new)
        return self._rank(known)

    def _coin(self) -> tuple[Any, ...]:
        n, amount = self._contract(COINS, NEW_COINS), int(10 ** self._draw.uniform(3, 9))
        # Every twelfth counts whole pieces, every fifth has six decimals.
        places = 0 if n % 12 == 7 else 3 if n % 5 == 0 else 15
        return coin(n), self._wallet(), self._wallet(), str(amount * 10**places)

    def _item(self) -> tuple[Any, ...]:
        n = self._contract(COLLECTIONS, NEW_COLLECTIONS)
        earlier = EARLIER if n < COLLECTIONS and n % 3 else 0
        supply, recipient = earlier + self._minted.get(n, 0), self._wallet()
        if not supply or self._draw.random() < 0.25:
            item, sender = supply, ZERO
            self._minted[n] = self._minted.get(n, 0) + 1
        else:
            item = self._draw.randrange(supply)
            sender = self._owners.get((n, item)) or self._wallet()
        self._owners[n, item] = recipient
        return collection(n), sender, recipient, str(item)

    def row(self) -> tuple[Any, ...]:
        """Return the next transfer."""
        block, index = divmod(self._written, IN_A_BLOCK)
        what = self._item() if self._draw.random() < 0.15 else self._coin()
        seconds = (FIRST_TIME + 12 * block) * 1_000_000
        # Two logs of a transaction.
        tx = transaction(self._written // 2 + 1)
        self._written += 1
        return *what, tx, index, FIRST_BLOCK + block, seconds

    def write(self, path: Path, count: int) -> Path:
        """Write the next rows, as a day of them, as ethereum-etl does."""
        columns = zip(*(self.row() for _ in range(count)), strict=True)
        table = pa.table(dict(zip(COLUMNS, map(list, columns), strict=True)))
        time = table["block_timestamp"].cast(pa.timestamp("us", tz="UTC"))
        pq.write_table(table.set_column(7, "block_timestamp", time), path)
        self._days += 1
        return path


def popular_contracts(path: Path) -> Path:
    """Write what ethereum-etl says of the more popular contracts: the other standards are inferred."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["address", "is_erc20", "is_erc721"])
        out.writerows([coin(n), "true", "false"] for n in range(int(COINS * 0.6)))
        out.writerows([collection(n), "false", "true"] for n in range(int(COLLECTIONS * 0.6)))
    return path
