"""All transfers of the sample, from its fixed seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tests.sample_generator import airdrops, nfts, tokens
from tests.sample_generator.cast import digest
from tests.sample_generator.diary import Diary, Transfer
from tests.sample_generator.draw import Draw
from tests.sample_generator.market import Market
from tests.sample_generator.slots import block

NAME = "synthetic sample"
SEED = "2026-01-01"


# In this order, since transfers of one slot keep it.
STORIES: tuple[Callable[[Market, Draw], None], ...] = (
    tokens.traders,
    tokens.holders,
    tokens.whales,
    tokens.dormant,
    tokens.newcomers,
    tokens.bridgers,
    tokens.migration,
    tokens.oddities,
    airdrops.claims,
    airdrops.sybils,
    airdrops.spam,
    airdrops.largest_supply,
    nfts.pieces,
    nfts.items,
    tokens.closing,
)


@dataclass(frozen=True)
class Log:
    """A transfer with its place in its chain."""

    transfer: Transfer
    block: int
    log_index: int

    @property
    def transaction_hash(self) -> str:
        """A made-up hash; every transfer has a transaction of its own."""
        return "0x" + digest(
            f"transaction {self.transfer.contract.chain} {self.block} {self.log_index}"
        )


@cache
def written() -> tuple[Transfer, ...]:
    """Return every transfer in the order of time; each story has a seed of its own."""
    diary = Diary()
    for story in STORIES:
        draw = Draw(f"{SEED} {story.__name__}")
        story(Market(diary, draw), draw)
    return tuple(diary.transfers())


@cache
def logs() -> tuple[Log, ...]:
    """Return every transfer as its chain would have logged it, in the order of time."""
    seen: dict[tuple[str, int], int] = defaultdict(int)
    found = []
    for transfer in written():
        place = (transfer.contract.chain, transfer.slot)
        seen[place] += 1
        # Not every log of a block is a transfer.
        found.append(Log(transfer, block(*place), 3 * seen[place]))
    return tuple(found)
