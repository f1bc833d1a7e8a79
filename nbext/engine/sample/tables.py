"""The prepared tables of the sample's transfers, in the layout that every engine asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa

from nbext.engine.exact import split
from nbext.engine.layout import FOREVER, TABLES
from nbext.engine.sample.cast import CONTRACTS, ZERO, contract
from nbext.engine.sample.diary import Transfer
from nbext.engine.sample.known import KNOWN, Known
from nbext.engine.sample.slots import block, timestamp
from nbext.engine.sample.spam import SPAM

_TYPES = {"string": pa.string(), "boolean": pa.bool_(), "int32": pa.int32(), "int64": pa.int64()}
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Logged:
    """A transfer with its place in its chain."""

    contract: int
    block: int
    log_index: int
    sender: int
    recipient: int
    transfer: Transfer

    @property
    def changes(self) -> tuple[tuple[int, int], ...]:
        """Which wallet's balance changes by how much. Of an NFT, the zero address never owns any."""
        is_token = self.transfer.contract.standard == "ERC20"
        amount = self.transfer.value if is_token else self.transfer.count
        sides = ((self.sender, -amount, self.transfer.sender), (self.recipient, amount, self.transfer.recipient))
        return tuple((wallet, change) for wallet, change, address in sides if is_token or address != ZERO)


class Prepared:
    """Builds the tables; each method returns the rows of the table of its name, sorted."""

    def __init__(self, transfers: Sequence[Transfer]) -> None:
        self._transfers = transfers
        addresses = {side for t in transfers for side in (t.sender, t.recipient)}
        self._wallet = {address: rank for rank, address in enumerate(sorted(addresses))}
        order = sorted((*KNOWN, *SPAM), key=lambda known: (known.chain_id, known.address))
        self._contract = {known: number for number, known in enumerate(order)}

    @cached_property
    def logged(self) -> list[Logged]:
        """The transfers with block and log index, sorted by contract and time."""
        logs: dict[tuple[str, int], int] = defaultdict(int)
        rows = []
        for transfer in self._transfers:
            place = (transfer.contract.chain, transfer.slot)
            logs[place] += 1
            ids = self._wallet[transfer.sender], self._wallet[transfer.recipient]
            rows.append(
                Logged(self._contract[transfer.contract], block(*place), 3 * logs[place], *ids, transfer)
            )
        return sorted(rows, key=lambda row: (row.contract, row.block, row.log_index))

    def wallets(self) -> Iterable[Row]:
        contracts = {contract(name) for name in CONTRACTS}
        return ((rank, address, address in contracts) for address, rank in self._wallet.items())

    def balances(self) -> Iterable[Row]:
        sums: dict[tuple[int, int], int] = defaultdict(int)
        for log in self.logged:
            for wallet, change in log.changes:
                sums[log.contract, wallet] += change
        return sorted((*key, *split(total)) for key, total in sums.items() if total)

    def owners(self) -> Iterable[Row]:
        counts: dict[tuple[int, int, int], int] = defaultdict(int)
        for log in self.logged:
            if log.transfer.contract.standard != "ERC20":
                for wallet, change in log.changes:
                    counts[log.contract, log.transfer.value, wallet] += change
        return [(c, *split(item), wallet, n) for (c, item, wallet), n in sorted(counts.items()) if n]

    def history(self) -> Iterable[Row]:
        stood: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        sums: dict[tuple[int, int], int] = defaultdict(int)
        for log in self.logged:
            for wallet, change in log.changes:
                sums[log.contract, wallet] += change
                stood[log.contract, wallet][log.block] = sums[log.contract, wallet]
        return sorted(row for key, blocks in stood.items() for row in _periods(key, blocks))

    def transfers(self) -> Iterable[Row]:
        return (
            (r.contract, r.block, r.log_index, r.sender, r.recipient, *split(r.transfer.value), r.transfer.count)
            for r in self.logged
        )

    def activity(self) -> Iterable[Row]:
        seen: dict[tuple[int, int], list[Logged]] = defaultdict(list)
        for log in self.logged:
            for wallet in {log.sender, log.recipient}:
                seen[log.transfer.contract.chain_id, wallet].append(log)
        return sorted((*key, *_summary(logs)) for key, logs in seen.items())

    def blocks(self) -> Iterable[Row]:
        places = {(t.contract.chain_id, block(t.contract.chain, t.slot), t.slot) for t in self._transfers}
        return sorted((chain_id, number, timestamp(slot)) for chain_id, number, slot in places)

    def contracts(self) -> Iterable[Row]:
        holders: dict[int, int] = defaultdict(int)
        for number, _, *limbs in self.balances():
            holders[number] += limbs[0] >= 0
        moved: dict[int, int] = defaultdict(int)
        for log in self.logged:
            moved[log.contract] += 1
        for known, number in self._contract.items():
            yield (number, *_facts(known), None, None, None, holders[number], moved[number])

    def table(self, name: str) -> pa.Table:
        """Return one table in the layout's columns and types."""
        columns = list(zip(*getattr(self, name)(), strict=True))
        layout = TABLES[name].items()
        arrays = [_array(values, kind) for values, (_, kind) in zip(columns, layout, strict=True)]
        return pa.table(dict(zip(TABLES[name], arrays, strict=True)))


def _periods(key: tuple[int, int], blocks: dict[int, int]) -> Iterable[Row]:
    changed = [(0, 0)]
    for number, balance in blocks.items():
        if balance != changed[-1][1]:
            changed.append((number, balance))
    for (number, balance), (end, _) in pairwise([*changed[1:], (FOREVER, 0)]):
        yield (*key, number, end, *split(balance))


def _summary(logs: Sequence[Logged]) -> Row:
    blocks = [log.block for log in logs]
    days = {timestamp(log.transfer.slot) // 86_400 for log in logs}
    return min(blocks), max(blocks), len(logs), len(days)


def _facts(known: Known) -> Row:
    words = (known.standard, known.name, known.symbol, known.decimals)
    return (known.chain_id, known.address, *words, None, not known.spam, known.spam)


def _array(values: Sequence[Any], kind: str) -> pa.Array:
    if kind.startswith("decimal"):
        return pa.array([str(value) for value in values]).cast(pa.decimal128(38, 0))
    return pa.array(values, _TYPES[kind])
