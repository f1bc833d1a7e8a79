"""Bins for a segment's amounts, and pictures of them where matplotlib is installed (the ``plot`` extra)."""

from __future__ import annotations

import base64
import importlib.util
import io
import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import html, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NAMES = 14
# Up to this amount, whole numbers get a bar each.
MOST = 24
_SHORT = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
BLUE, GREY = "#1f77b4", "#9aa5b1"


def available() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def histogram(bins: Sequence[tuple[str, int]], title: str) -> str:
    """Return upright bars, one for each bin, as an HTML picture with its words for screen readers."""
    figure, axes = _figure(2.6)
    positions = range(len(bins))
    drawn = axes.bar(positions, [count for _, count in bins], color=BLUE, width=0.92)
    axes.bar_label(drawn, [f"{count:,}" if count else "" for _, count in bins], padding=2, fontsize=8)
    many = len(bins) > 8
    # More names than these would overlap.
    step = -(-len(bins) // MOST_NAMES)
    names = [label for label, _ in bins][::step]
    axes.set_xticks(positions[::step], names, rotation=30 * many, ha="right" if many else "center")
    axes.set_xlabel(visible(title, 60), parse_math=False, fontsize=8)
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    spoken = ", ".join(f"{label}: {count} wallets" for label, count in bins)
    return _html(figure, f"{title}: {spoken}")


def bars(labels: Sequence[str], values: Sequence[int], title: str) -> str:
    """Return horizontal bars, the last one in its own colour, as an HTML picture."""
    figure, axes = _figure(0.7 + 0.36 * len(values))
    positions = range(len(values))
    colours = [GREY] * (len(values) - 1) + [BLUE]
    drawn = axes.barh(positions, values, color=colours, height=0.62)
    axes.bar_label(drawn, [f"{value:,}" for value in values], padding=4, fontsize=8)
    axes.set_yticks(positions, [visible(label, 48) for label in labels], parse_math=False, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    spoken = ", ".join(f"{label}: {value}" for label, value in zip(labels, values, strict=True))
    return _html(figure, f"{title}: {spoken}")


def _figure(height: float) -> tuple[Figure, Any]:
    # Not through pyplot, which keeps every figure, and shows it a second time in notebooks with inline plots.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _html(figure: Figure, words: str) -> str:
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=144)
    # Inside the HTML: a picture in a file of its own would be missing from the saved notebook.
    data = base64.b64encode(written.getvalue()).decode("ascii")
    source = f"data:image/png;base64,{data}"
    return f'<img class="nbext-picture" src="{source}" alt="{html(words, 400)}" style="width: 560px">'


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
