"""How many wallets hold how much: of amounts that are here, or counted by the service over all wallets; and as bars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from nbext.analysis.segments import Segment, count_common, scope_of
from nbext.core.uint256 import short_text
from nbext.core.untrusted_text import html
from nbext.notebook.forms.markup import bar_html, cells_html, text_of

# Up to this amount, whole numbers get a bar each.
MOST = 24
_BINS, _NARROW = 10, 1e-300
# Each has a ``name`` and a ``count``, and where it was made of numbers the bounds of the filter that takes them.
Bins = list[dict[str, Any]]


def ranges(values: np.ndarray[Any, Any], ends: Sequence[Any]) -> Iterator[Bins]:
    """Yield bins of finite numbers, of which the first ones may leave out some where floats are not exact.

    They are equally wide, but for amounts of which nearly all are small beside the largest: these grow. A ``max`` after
    < is not part of its bin. ``ends`` are the least and the largest, as a filter takes them.

    >>> next(ranges(np.array([0, *[5] * 9, 70_000.0]), ["0", "70000"]))[1]
    {'name': '1 to 10', 'min': '1', 'max': '< 10'}
    """
    # In numpy: a result may have a million rows.
    least, most = float(values.min()), float(values.max())
    # Counts of NFTs are small whole numbers, and 1 and 2 are different owners; wider bins would merge them.
    if most - least < MOST and abs(most) < 1e15 and (values == np.floor(values)).all():
        wholes = range(int(least), int(most) + 1)
        yield [{"name": f"{n:,}", "min": str(n), "max": str(n)} for n in wholes]
    # Each part by itself: the difference of the largest floats is none.
    width = most / _BINS - least / _BINS
    above = values[values > 0]
    # Again with an edge more at either end: a float may lie on one, and what it was made of, or its logarithm, beyond.
    for more in (0, 1) if width >= _NARROW else ():
        # Drawn so, numbers that are spread evenly would look as if they grew: only where equal bins would be one alone.
        if least >= 0 and most / 1000 >= above.min() and (above < most / 10).mean() > 0.8:
            first, last = math.floor(math.log10(above.min())), math.floor(math.log10(most)) + 1
            steps = (1, 2, 5) if last - first <= 4 else (1,)
            # A head has room for so many.
            powers = range(first - more, last + more, -(-(last - first) // MOST))
            written = [f"{step}e{power}" for power in powers for step in steps]
            written.append(f"1e{last + more}")
            zeros = len(above) < len(values)
        else:
            power, zeros = math.floor(math.log10(width)), False
            step = next((one for one in (1, 2, 5) if float(f"{one}e{power}") >= width), 10)
            low, high = (math.floor(end / float(f"{step}e{power}")) for end in (least, most))
            written = [f"{step * place}e{power}" for place in range(low - more, high + 2 + more)]
        # As a person types them: a press on a bar puts them into the fields.
        edges = [f"{Decimal(one):f}" for one in written]
        bins: Bins = [
            {
                "name": f"{short_text(float(low))} to {short_text(float(high))}",
                "min": low,
                "max": f"< {high}",
            }
            for low, high in itertools.pairwise(edges)
        ]
        # The largest may lie on the last edge.
        bins[-1]["max"] = edges[-1]
        yield [*[{"name": "0", "min": "0", "max": "0"}] * zeros, *bins]
    yield [{"name": short_text(least), "min": ends[0], "max": ends[1]}]


def trimmed(bins: Bins) -> Bins:
    """Return bins without the empty ones at both ends."""
    filled = [place for place, one in enumerate(bins) if one["count"]]
    return bins[filled[0] : filled[-1] + 1] if filled else []


# Powers of ten between which nearly all amounts of tokens fall; the first and the last bin are open.
AMOUNTS = tuple(f"1e{power}" for power in range(-3, 11))
COUNTS = ("1", "2", "3", "4", "5", "10", "20", "50", "100", "1000")


def holding(kind: str, about: Mapping[str, Any], **within: Any) -> dict[str, Any]:
    """Return the condition of holding a ``token`` or an ``nft`` with its address, and where known its chain."""
    # A stranger's service may leave it out, and pandas has NaN for it then.
    chain = text_of(about.get("chain"))
    return {kind: {kind: about["address"], **({"chain": chain} if chain else {}), **within}}


def counted(
    client: Any, filters: Mapping[str, Any], operator: str, column: Mapping[str, Any]
) -> tuple[Bins, list[str]]:
    """Return how many of a segment's wallets have how much, counted by our own service; and what it says of them.

    ``column`` is described as an answer does: address and chain of a token, or without decimals of a collection. Bins
    fall from edge to edge, without the empty ones at both ends.
    """
    base, decimals = Segment(filters, operator, client=client), column.get("decimals")
    is_nft, least = decimals is None, f"1e-{decimals}"
    # The amounts at which wallets are counted; the first is the least that is more than none.
    edges = COUNTS if is_nft else (least, *(one for one in AMOUNTS if float(one) > float(least)))
    kind, bounded = ("nft", "count") if is_nft else ("token", "balance")
    # The filter language takes no exponent.
    bounds = ({"min": int(edge) if is_nft else f"{Decimal(edge):f}"} for edge in edges)
    segments = [base]
    for bound in bounds:
        has = {**holding(kind, column, **{bounded: bound}), **scope_of(base.filters)}
        segments.append(Segment(has, client=client))
    common = count_common(segments, [[0], *([0, place] for place in range(1, len(segments)))])
    whole, *at_least = common.counts
    ends = [*map(float, edges), math.inf]
    found: Bins = []
    for (start, end), (more, less) in zip(
        itertools.pairwise(ends), itertools.pairwise([*at_least, 0]), strict=True
    ):
        if is_nft and end == start + 1:
            name = short_text(start)
        elif end == math.inf:
            name = f"{short_text(start)} or more"
        elif not found and start < 1:
            name = f"less than {short_text(end)}"
        else:
            name = f"{short_text(start)} to {short_text(end - is_nft)}"
        found.append({"name": name, "count": more - less})
    none = [{"name": "0", "count": whole - at_least[0]}] if whole > at_least[0] else []
    return [*none, *trimmed(found)], common.warnings


def bars_html(bins: Bins, head: str) -> str:
    """Return bins as a table with a bar in each row: text in every theme and on paper, and to screen readers."""
    most = max((one["count"] for one in bins), default=0) or 1
    rows = (
        f'<td class="nbext-bin">{html(one["name"])}</td>'
        f'<td class="nbext-track">{bar_html(max(100 * one["count"] / most, bool(one["count"]) / 2))}</td>'
        f'<td class="nbext-number">{one["count"]:,}</td>'
        for one in bins
    )
    heads = (
        f'<th scope="col">{html(head, 60)}</th><td class="nbext-track"></td>'
        f'<th scope="col" class="nbext-number">wallets</th>'
    )
    return cells_html(heads, rows)
