"""What each two of many segments have in common, and with which segments wallets are in at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from nbext.analysis import charts
from nbext.analysis.results import Result, result
from nbext.analysis.segments import (
    Counts,
    Segment,
    all_of,
    client_of,
    counted,
    names_of,
    segment_of,
)
from nbext.core.provenance import Provenance
from nbext.errors import ValidationError

if TYPE_CHECKING:
    from nbext.client import Client

# So many have as many groups as one request counts.
MOST_IN_UPSET = 12


def overlap(
    segments: Iterable[Any] | Mapping[str, Any],
    *,
    share: bool = False,
    lift: bool = False,
    client: Client | None = None,
) -> Result:
    """Return how many wallets each two of some segments have in common.

    Parameters
    ----------
    segments
        Each as filters, the table of a segment, its id, or the symbol or address of a contract whose holders are
        meant; with names of your own as a dict of these.
    share
        Of the wallets of the row's segment, the share that is in the column's.
    lift
        How many times as many wallets are in both as would be if the two were independent, of all wallets seen.
    client
        The client to ask; by default of the service that is set.

    Returns
    -------
    Result
        A square table, named by the segments on both axes: int64, the sizes on the diagonal; float64 with ``share``
        or ``lift``, missing where a segment is empty. ``.segment(row, column)`` is what two have in common,
        ``.chart()`` a heatmap of up to 30, ``.chart("upset")`` the groups of up to 12 segments.

    Raises
    ------
    ValidationError, AmbiguousSymbol
        Not a segment, or none; or both of ``share`` and ``lift``.

    Source
    ------
    POST /counts; of a service that is not our own, one segment for each count.
    """
    import pandas as pd

    client = client_of(client)
    names, given = _named(segments)
    if share and lift:
        raise ValidationError.of("/lift", "exclusive", "Ask for share or for lift, not for both.")
    each = [segment_of(one, client, f"/segments/{place}") for place, one in enumerate(given)]
    number = len(each)
    pairs = list(combinations(range(number), 2))
    together: list[Sequence[int]] = [*((place,) for place in range(number)), *pairs]
    everyone = Segment({"activity": {"transfers": {"min": 1}}, **each[0].scope()}, client=client)
    found = counted([*each, *[everyone] * lift], [*together, *[(number,)] * lift])
    counts = dict(zip(together, found.counts, strict=False))
    names = names_of(names or given, each, found.words[:number])
    rows = [
        [counts[tuple(sorted({row, column}))] for column in range(number)] for row in range(number)
    ]
    table = pd.DataFrame(rows, index=names, columns=names, dtype="int64")
    title, unit, form = "Wallets that two segments have in common", "wallets", "{:,.0f}"
    if share:
        title, unit, form = (
            "Share of a segment's wallets in another",
            "share of the row's wallets",
            "{:.0%}",
        )
    elif lift:
        title, unit, form = (
            "Wallets in two segments, compared with chance",
            "times as many as by chance",
            "{:.3g}",
        )
    if share or lift:
        parts = [
            [
                _part(rows, row, column, found.counts[-1] if lift else None)
                for column in range(number)
            ]
            for row in range(number)
        ]
        table = pd.DataFrame(parts, index=names, columns=names, dtype="float64")

    def heatmap(made: Result) -> charts.Chart:
        if number > charts.MOST_IN_HEATMAP:
            detail = (
                f"A heatmap has room for {charts.MOST_IN_HEATMAP} segments, and these are {number}."
            )
            raise ValidationError.of("/segments", "size", detail)
        return charts.heatmap(made, title, unit, Provenance.of(made), form, diagonal=not lift)

    return result(
        table,
        found.about("overlap", each),
        lambda row, column: (
            None
            if column is None
            else (
                each[row]
                if names.index(column) == row
                else all_of([each[row], each[names.index(column)]])
            )
        ),
        {"heatmap": heatmap, "upset": lambda made: _upset(each, names, made)},
    )


def _named(segments: Iterable[Any] | Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    if isinstance(segments, str) or hasattr(segments, "columns"):
        raise ValidationError.of(
            "/segments", "type", "Give a list of segments, or a dict of them by name."
        )
    names = list(map(str, segments)) if isinstance(segments, Mapping) else []
    given = list(segments.values()) if isinstance(segments, Mapping) else list(segments)
    if not given:
        raise ValidationError.of("/segments", "size", "There is no segment to compare.")
    return names, given


def _part(rows: Sequence[Sequence[int]], row: int, column: int, everyone: int | None) -> float:
    both, one, other = rows[row][column], rows[row][row], rows[column][column]
    if not one or (everyone is not None and not other):
        return float("nan")
    return both / one if everyone is None else both * everyone / (one * other)


def _upset(segments: Sequence[Segment], names: Sequence[str], made: Result) -> charts.Chart:
    if len(segments) > MOST_IN_UPSET:
        detail = (
            f"An UpSet plot has room for {MOST_IN_UPSET} segments, and these are {len(segments)}."
        )
        raise ValidationError.of("/segments", "size", detail)
    found, only = exactly(segments)
    sizes = [found.counts[place] for place in range(len(segments))]
    return charts.upset(names, sizes, only, Provenance.of(made))


def exactly(segments: Sequence[Segment]) -> tuple[Counts, dict[int, int]]:
    """Return how many wallets are in some of the segments and in no other, by the bits of their places."""
    places = range(len(segments))
    groups = [group for size in range(1, len(segments) + 1) for group in combinations(places, size)]
    found = counted(segments, groups)
    only = {
        sum(1 << place for place in group): count
        for group, count in zip(groups, found.counts, strict=True)
    }
    # Those in at least a group, less those that are in one more: place after place, this leaves exactly the group.
    for place in places:
        for group in only:
            if not group >> place & 1:
                only[group] -= only[group | 1 << place]
    return found, only
