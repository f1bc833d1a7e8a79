"""Bins for a segment's amounts: whole numbers by themselves, others by powers of ten."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

# Up to this amount, whole numbers get a bar each.
MOST = 24
_SHORT = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def spread(amounts: Sequence[float]) -> list[tuple[str, int]]:
    """Return bins in words, and how many of the amounts fall into each.

    >>> spread([1, 1, 3])
    [('1', 2), ('2', 0), ('3', 1)]
    >>> spread([0, 0.5, 70.0, 7000.0])
    [('0', 1), ('0.1 to 1', 1), ('1 to 10', 0), ('10 to 100', 1), ('100 to 1k', 0), ('1k to 10k', 1)]
    """
    if not amounts:
        return []
    # Counts of NFTs are small whole numbers, and 1 and 2 are different owners; powers of ten would merge them.
    if max(amounts) <= MOST and all(amount == int(amount) and amount >= 0 for amount in amounts):
        counted = Counter(int(amount) for amount in amounts)
        return [(str(value), counted[value]) for value in range(min(counted), max(counted) + 1)]
    zeros = sum(1 for amount in amounts if amount <= 0)
    edges, counts = _by_powers([amount for amount in amounts if amount > 0])
    named = [f"{short(low)} to {short(high)}" for low, high in itertools.pairwise(edges)]
    return [("0", zeros)] * bool(zeros) + list(zip(named, counts, strict=True))


def short(amount: float) -> str:
    """Return an edge of a bin as a few characters.

    >>> short(20_000.0), short(0.5), short(1e-18)
    ('20k', '0.5', '1e-18')
    """
    for unit, letter in _SHORT:
        if unit <= amount < 1e15:
            return f"{amount / unit:g}{letter}"
    return f"{amount:g}"


def _by_powers(above: Sequence[float]) -> tuple[list[float], list[int]]:
    """Return edges at powers of ten (and 2 and 5 times those where these are few), and the counts between them."""
    first, last = math.floor(math.log10(min(above))), math.floor(math.log10(max(above))) + 1
    steps = (1.0, 2.0, 5.0) if last - first <= 3 else (1.0,)
    # Written as text and read back: 10.0**-2 * 5 is not the number 0.05.
    edges = [float(f"{step}e{power}") for power in range(first, last) for step in steps] + [float(f"1e{last}")]
    counts = [0] * (len(edges) - 1)
    for amount in above:
        # Clamped: log10 of an amount just below a power of ten rounds up, past the last edge.
        counts[min(max(bisect_right(edges, amount) - 1, 0), len(counts) - 1)] += 1
    filled = [index for index, count in enumerate(counts) if count]
    return edges[filled[0] : filled[-1] + 2], counts[filled[0] : filled[-1] + 1]
