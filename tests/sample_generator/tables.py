"""The prepared tables of the sample's transfers, in the layout that every engine asks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from nbext.core.uint256 import split
from nbext.engine.sample.known import KNOWN, Known
from nbext.engine.schema import FOREVER, TABLES
from tests.sample_generator.cast import CONTRACTS, ZERO, contract
from tests.sample_generator.slots import timestamp
from tests.sample_generator.spam import SPAM
from tests.sample_generator.transfers import Log

_TYPES = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "decimal(38,0)": pa.decimal128(38, 0),
}
Row = tuple[Any, ...]


def shipped(name: str) -> dict[str, str]:
    """Return the columns of a table that are shipped: a size is made of its limbs when it is unpacked."""
    return {column: kind for column, kind in TABLES[name].items() if column != "size"}


class Prepared:
    """Builds the tables; each method returns the rows of the table of its name, sorted."""

    def __init__(self, logs: Sequence[Log]) -> None:
        order = sorted((*KNOWN, *SPAM), key=lambda known: (known.chain_id, known.address))
        self._contract = {known: number for number, known in enumerate(order)}
        # The rank among all addresses, as ingest counts it.
        addresses = {side for log in logs for side in (log.transfer.sender, log.transfer.recipient)}
        self._wallet = {address: rank for rank, address in enumerate(sorted(addresses))}
        self._logs = sorted(logs, key=lambda log: (self._contract[log.transfer.contract], log.block, log.log_index))

    def _changes(self) -> Iterable[tuple[int, int, int, Log]]:
        """Yield contract, wallet and amount of every change of a balance, contract by contract in the order of time."""
        for log in self._logs:
            transfer, number = log.transfer, self._contract[log.transfer.contract]
            amount = transfer.value if transfer.contract.standard == "ERC20" else transfer.count
            if amount == 0 or transfer.sender == transfer.recipient:
                continue
            # The zero address owes what was minted of an ERC20, but never owned an NFT.
            if transfer.contract.standard == "ERC20" or transfer.sender != ZERO:
                yield number, self._wallet[transfer.sender], -amount, log
            yield number, self._wallet[transfer.recipient], amount, log

    def wallets(self) -> Iterable[Row]:
        contracts = {contract(name) for name in CONTRACTS}
        return ((rank, address, address in contracts) for address, rank in self._wallet.items())

    def balances(self) -> Iterable[Row]:
        sums: dict[tuple[int, int], int] = defaultdict(int)
        for number, wallet, change, _ in self._changes():
            sums[number, wallet] += change
        return sorted((*key, *split(total)) for key, total in sums.items() if total)

    def owners(self) -> Iterable[Row]:
        counts: dict[tuple[int, int, int], int] = defaultdict(int)
        for number, wallet, change, log in self._changes():
            if log.transfer.contract.standard != "ERC20":
                counts[number, log.transfer.value, wallet] += change
        return [(number, *split(item), wallet, n) for (number, item, wallet), n in sorted(counts.items()) if n]

    def history(self) -> Iterable[Row]:
        stood: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for number, wallet, change, log in self._changes():
            before = stood[number, wallet]
            before.append((log.block, change + (before[-1][1] if before else 0)))
        return (
            (*key, start, end, *split(balance))
            for key, balances in sorted(stood.items())
            for (start, balance), (end, _) in pairwise([*balances, (FOREVER, 0)])
        )

    def transfers(self) -> Iterable[Row]:
        for log in self._logs:
            transfer = log.transfer
            sides = self._wallet[transfer.sender], self._wallet[transfer.recipient]
            place = self._contract[transfer.contract], log.block, log.log_index
            count = None if transfer.contract.standard == "ERC20" else transfer.count
            yield (*place, *sides, *split(transfer.value), count)

    def activity(self) -> Iterable[Row]:
        seen: dict[tuple[int, int], list[Log]] = defaultdict(list)
        for log in self._logs:
            for address in {log.transfer.sender, log.transfer.recipient}:
                seen[log.transfer.contract.chain_id, self._wallet[address]].append(log)
        return sorted((*key, *_summary(logs)) for key, logs in seen.items())

    def blocks(self) -> Iterable[Row]:
        places = {(log.transfer.contract.chain_id, log.block, log.transfer.slot) for log in self._logs}
        return sorted((chain_id, number, timestamp(slot)) for chain_id, number, slot in places)

    def contracts(self) -> Iterable[Row]:
        # A balance below zero, which only the zero address has, has a negative first limb.
        holders = Counter(number for number, _, hi, *_ in self.balances() if hi >= 0)
        moved = Counter(self._contract[log.transfer.contract] for log in self._logs)
        for known, number in self._contract.items():
            yield (number, *_facts(known), None, None, None, holders[number], moved[number])

    def rows(self, name: str) -> list[Row]:
        """Return the rows of one table, in its order."""
        return list(getattr(self, name)())


def arrow(name: str, rows: Sequence[Row]) -> pa.Table:
    """Return rows as an Arrow table in the layout's columns and types, those that are shipped."""
    columns = zip(shipped(name).items(), zip(*rows, strict=True), strict=True)
    return pa.table({column: pa.array(values, _TYPES[kind]) for (column, kind), values in columns})


def _summary(logs: Sequence[Log]) -> Row:
    blocks = [log.block for log in logs]
    days = {timestamp(log.transfer.slot) // 86_400 for log in logs}
    return min(blocks), max(blocks), len(logs), len(days)


def _facts(known: Known) -> Row:
    words = (known.standard, known.name, known.symbol, known.decimals)
    return (known.chain_id, known.address, *words, None, not known.spam, known.spam)
