"""Bins for amounts that span many powers of ten."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

MOST = 24


def spread(amounts: Sequence[float]) -> tuple[int, list[float], list[int]]:
    """Return how many amounts are zero, the edges of bins over the others, and how many fall into each.

    Edges are powers of ten, and 2 and 5 times those where that makes no more than 24 bins.
    """
    above = [amount for amount in amounts if amount > 0]
    zeros = sum(1 for amount in amounts if amount == 0)
    if not above:
        return zeros, [], []
    first, last = math.floor(math.log10(min(above))), math.floor(math.log10(max(above))) + 1
    steps = (1.0, 2.0, 5.0) if 3 * (last - first) <= MOST else (1.0,)
    edges = [step * 10.0**power for power in range(first, last) for step in steps] + [10.0**last]
    counts = [0] * (len(edges) - 1)
    for amount in above:
        counts[min(max(bisect_right(edges, amount) - 1, 0), len(counts) - 1)] += 1
    return _trimmed(zeros, edges, counts)


def _trimmed(zeros: int, edges: list[float], counts: list[int]) -> tuple[int, list[float], list[int]]:
    """Leave out the empty bins at both ends."""
    filled = [index for index, count in enumerate(counts) if count]
    low, high = filled[0], filled[-1] + 1
    return zeros, edges[low : high + 1], counts[low:high]
