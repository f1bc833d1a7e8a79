"""All transfers of the sample, from its fixed seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from nbext.engine.sample import airdrops, nfts, tokens
from nbext.engine.sample.diary import Diary, Transfer
from nbext.engine.sample.draw import Draw
from nbext.engine.sample.market import Market

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
)


@cache
def written() -> tuple[Transfer, ...]:
    """Return every transfer in the order of time; each story has a seed of its own."""
    diary = Diary()
    for story in STORIES:
        draw = Draw(f"{SEED} {story.__name__}")
        story(Market(diary, draw), draw)
    return tuple(diary.transfers())
