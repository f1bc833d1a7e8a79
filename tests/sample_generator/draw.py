"""Random choices that come out the same on every machine and every Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A stream of choices, fixed by its seed.

    Python promises to keep only ``random()`` of a seeded generator the same between versions, so every
    choice is made of it with exact arithmetic: no logarithms or powers, which differ between C libraries.
    """

    def __init__(self, seed: str) -> None:
        self._next = random.Random(f"nbext synthetic sample: {seed}").random

    def below(self, end: int) -> int:
        """Return one of 0, 1, ... end - 1."""
        return int(self._next() * end)

    def between(self, first: int, last: int) -> int:
        """Return a whole number from first to last, both possible."""
        return first + self.below(last - first + 1)

    def chance(self, percent: int) -> bool:
        """Say yes in that many cases of a hundred."""
        return self.below(100) < percent

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """Return so many different items, in random order."""
        # Shuffled only as far as needed. random.sample may change between versions of Python.
        pool = list(items)
        for place in range(min(count, len(pool))):
            other = place + self.below(len(pool) - place)
            pool[place], pool[other] = pool[other], pool[place]
        return pool[:count]

    def tail(self, least: int, most: int) -> int:
        """Return a number with a heavy tail: half of them under twice the least, a few near the most."""
        return min(most, int(least / (1.0 - self._next())))
