"""What the tables must hold, replayed with Python's integers, one log at a time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from tests.engine.ingest.reading_back import ZERO

FOREVER = 2**62


class Log(NamedTuple):
    """One transfer, in ethereum-etl's columns."""

    token_address: str
    from_address: str
    to_address: str
    value: int
    transaction_hash: str
    log_index: int
    block_number: int


@dataclass
class Replay:
    """Balances, owners and history of one kind of contract."""

    balances: dict
    owners: dict
    history: list


def tokens(logs):
    """Replay ERC20 logs: exact sums, self-transfers and zeros leave no row."""
    balance = defaultdict(int)
    stood = defaultdict(list)
    for log in sorted(logs, key=lambda log: (log.block_number, log.log_index)):
        if log.from_address == log.to_address or log.value == 0:
            continue
        for holder, change in ((log.from_address, -log.value), (log.to_address, log.value)):
            key = (log.token_address, holder)
            balance[key] += change
            stood[key].append((log.block_number, balance[key]))
    return Replay({key: amount for key, amount in balance.items() if amount}, {}, _intervals(stood))


def collections(logs, first_block):
    """Replay ERC721 logs: an id is its last recipient's; whoever sends it first had it before the data."""
    owners, count = {}, defaultdict(int)
    stood = defaultdict(list)
    ordered = sorted(logs, key=lambda log: (log.block_number, log.log_index))
    for log in ordered:
        key = (log.token_address, log.value)
        if key not in owners and log.from_address != ZERO:
            owners[key] = log.from_address
            count[log.token_address, log.from_address] += 1
        owners.setdefault(key, None)
    stood.update({key: [(first_block, n)] for key, n in count.items()})
    for log in ordered:
        key = (log.token_address, log.value)
        before, owners[key] = owners[key], log.to_address
        if before == log.to_address:
            continue
        for holder, change in ((before, -1), (log.to_address, 1)):
            if holder is not None:
                count[log.token_address, holder] += change
                stood[log.token_address, holder].append(
                    (log.block_number, count[log.token_address, holder])
                )
    return Replay(
        {key: n for key, n in count.items() if n}, owners, _intervals(_at_block_ends(stood))
    )


def _at_block_ends(stood):
    """Return only the counts that stood at the end of a block, and of these only those that differ."""
    ended = {}
    for key, steps in stood.items():
        last = dict(steps).items()
        before = [0, *(n for _, n in last)]
        ended[key] = [step for step, was in zip(last, before, strict=False) if step[1] != was]
    return {key: steps for key, steps in ended.items() if steps}


def _intervals(stood):
    rows = []
    for (contract, holder), steps in stood.items():
        ends = [block for block, _ in steps[1:]] + [FOREVER]
        rows += [
            (contract, holder, block, end, amount)
            for (block, amount), end in zip(steps, ends, strict=True)
        ]
    return rows
