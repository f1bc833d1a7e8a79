"""Bins for a segment's amounts: whole numbers by themselves, others by powers of ten."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

# Up to this amount, whole numbers get a bar each.
MOST = 24
Bins = list[tuple[str, int]]
_SHORT = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def spread(amounts: Sequence[float] | np.ndarray[Any, Any]) -> Bins:
    """Return bins in words, and how many of the amounts (finite numbers) fall into each.

    >>> spread([1, 1, 3])
    [('1', 2), ('2', 0), ('3', 1)]
    >>> spread([0, 0.5, 70.0, 7000.0])
    [('0', 1), ('0.1 to 1', 1), ('1 to 10', 0), ('10 to 100', 1), ('100 to 1k', 0), ('1k to 10k', 1)]
    """
    # In numpy: a result may have a million rows.
    values = np.asarray(amounts, dtype="float64")
    if not len(values):
        return []
    # Counts of NFTs are small whole numbers, and 1 and 2 are different owners; powers of ten would merge them.
    least, most = values.min(), values.max()
    if least >= 0 and most <= MOST and bool((values == np.floor(values)).all()):
        counted = np.bincount(values.astype("int64"))
        return [(str(value), int(counted[value])) for value in range(int(least), len(counted))]
    below, zeros = int((values < 0).sum()), int((values == 0).sum())
    named = [("below 0", below)] * bool(below) + [("0", zeros)] * bool(zeros)
    if most <= 0:
        return named
    edges, counts = _by_powers(values[values > 0])
    names = [f"{short(low)} to {short(high)}" for low, high in itertools.pairwise(edges)]
    return named + list(zip(names, counts, strict=True))


def short(amount: float) -> str:
    """Return an edge of a bin as a few characters.

    >>> short(20_000.0), short(0.5), short(1e-18)
    ('20k', '0.5', '1e-18')
    """
    for unit, letter in _SHORT:
        if unit <= amount < 1e15:
            return f"{amount / unit:g}{letter}"
    return f"{amount:g}"


def _by_powers(above: np.ndarray[Any, Any]) -> tuple[list[float], list[int]]:
    """Return edges at powers of ten (and 2 and 5 times those where these are few), and the counts between them."""
    first, last = math.floor(math.log10(above.min())), math.floor(math.log10(above.max())) + 1
    steps = (1.0, 2.0, 5.0) if last - first <= 3 else (1.0,)
    # Written as text and read back: 10.0**-2 * 5 is not the number 0.05.
    edges = [float(f"{step}e{power}") for power in range(first, last) for step in steps] + [
        float(f"1e{last}")
    ]
    # Clipped: log10 of an amount just below a power of ten rounds up, past the last edge.
    places = np.clip(np.searchsorted(edges, above, "right") - 1, 0, len(edges) - 2)
    counts = np.bincount(places, minlength=len(edges) - 1).tolist()
    filled = [index for index, count in enumerate(counts) if count]
    return edges[filled[0] : filled[-1] + 2], counts[filled[0] : filled[-1] + 1]
