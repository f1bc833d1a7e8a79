"""Segments compared: what they have in common, what each condition takes, how a token is spread over its holders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, combinations
from typing import TYPE_CHECKING, Any

import pandas as pd

from nbext.analysis import charts
from nbext.analysis.segments import (
    CommonCounts,
    Result,
    Segment,
    all_of,
    client_of,
    count_common,
    names_of,
    requests_of,
    result,
    scope_of,
    segment_of,
    share_columns,
)
from nbext.client import frames
from nbext.core.provenance import Provenance, warned
from nbext.core.rules import MAX_LIMIT
from nbext.errors import ValidationError

if TYPE_CHECKING:
    from nbext.client import Client


# So many have as many groups as one request counts.
MOST_IN_UPSET = 12
# Title, what the numbers are where the title does not say it, and their form.
_HEATMAPS = {
    "": ("Wallets that two segments have in common", "", "{:,.0f}"),
    "share": ("Share of a segment's wallets in another", "share of the row's wallets", "{:.0%}"),
    "lift": (
        "Wallets in two segments, compared with chance",
        "times as many as by chance",
        "{:.3g}",
    ),
}
_SHARES = {
    "holders": "string",
    "wallets": "integer",
    "amount": "float64",
    "amount_raw": "uint256",
    "share": "float64",
}


@warned
def overlap(
    segments: Any,
    *others: Any,
    share: bool = False,
    lift: bool = False,
    client: Client | None = None,
) -> Result:
    """Return how many wallets each two of some segments have in common.

    Parameters
    ----------
    segments
        Each as filters, the table of a segment, its id, or the symbol or address of a contract whose holders are
        meant: a list of them, one after the other, or with names of your own a dict of these.
    share
        Of the wallets of the row's segment, the share that is in the column's.
    lift
        How many times as many wallets are in both as would be if the two were independent, of all wallets that one of
        the segments sees.
    client
        The client to ask; by default of the service that is set. It has to be nbext's own.

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
    ConfigError
        The service is not nbext's own.

    Source
    ------
    POST /counts
    """
    names, given = _named([segments, *others] if others else segments)
    client = client_of(client, given[0], does="compares segments")
    if share and lift:
        raise ValidationError.of("/lift", "exclusive", "Ask for share or for lift, not for both.")
    each = [segment_of(one, client, f"/segments/{place}") for place, one in enumerate(given)]
    number = len(each)
    together = [group for size in (1, 2) for group in combinations(range(number), size)]
    found = count_common(each, together, pointer="/segments/{}")
    counts = dict(zip(together, found.counts, strict=True))
    names = names_of(names or given, each, found.words[:number])
    places = range(number)
    rows: list[list[float]] = [
        [counts[tuple(sorted({row, column}))] for column in places] for row in places
    ]
    if share or lift:
        everyones = None
        if lift:
            seen = [
                Segment({"any": _seen_on(found.chains), **scope}, client=client)
                for number, scope in enumerate(found.scopes)
                if scope not in found.scopes[:number]
            ]
            # Whom some of the segments see at another time, or leave out, is one of all wallets, too.
            all_seen = {"any": [one.saved() for one in seen], "exclude": []}
            everyone = seen[0] if len(seen) == 1 else Segment(all_seen, client=client)
            answer = count_common([everyone], [[0]])
            (everyones,) = answer.counts
            found.data.update(answer.data)
        rows = [[_part(rows, row, column, everyones) for column in places] for row in places]
    table = pd.DataFrame(rows, names, names, "float64" if share or lift else "int64")
    title, subject, form = _HEATMAPS["share" if share else "lift" if lift else ""]

    def cell(row: int, column: Any) -> Segment | None:
        if column is None:
            return None
        other = names.index(column)
        return each[row] if other == row else all_of([each[row], each[other]], alike=found.alike)

    def heatmap(made: Result) -> charts.Chart:
        charts.check_room(number, charts.MOST_IN_HEATMAP, "A heatmap", "segments", "/segments")
        return charts.heatmap(made, title, subject, Provenance.of(made), form=form)

    def upset(made: Result) -> charts.Chart:
        charts.check_room(number, MOST_IN_UPSET, "An UpSet plot", "segments", "/segments")
        # All of it of one answer: the table's may be of data before.
        counted = exactly(each)
        only = dict(enumerate(counted.counts, 1))

        def of_group(group: int, _: Any) -> Segment:
            # Filters with a column in them cannot be compared.
            inside, others = (
                [one for place, one in enumerate(each) if group >> place & 1 == has]
                for has in (1, 0)
            )
            return all_of(inside, but=others, alike=found.alike)

        sizes = [
            sum(many for group, many in only.items() if group >> place & 1) for place in places
        ]
        drawn = charts.upset(names, sizes, only, counted.about("overlap", each))
        return replace(drawn, of_cell=of_group)

    about = found.about("overlap", each)
    about.columns = share_columns(names) if share else []
    return result(table, about, cell, {"heatmap": heatmap, "upset": upset})


def _named(segments: Iterable[Any] | Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    if (
        isinstance(segments, str)
        or not isinstance(segments, Iterable)
        or hasattr(segments, "columns")
    ):
        raise ValidationError.of(
            "/segments", "type", "Give a list of segments, or a dict of them by name."
        )
    by_name = segments if isinstance(segments, Mapping) else {}
    names, given = list(map(str, by_name)), list(by_name.values() or segments)
    if not given:
        raise ValidationError.of("/segments", "size", "There is no segment to compare.")
    return names, given


def _part(rows: Sequence[Sequence[float]], row: int, column: int, everyone: int | None) -> float:
    both, one, other = rows[row][column], rows[row][row], rows[column][column]
    if not one or (everyone is not None and not other):
        return float("nan")
    return both / one if everyone is None else both * everyone / (one * other)


def exactly(segments: Sequence[Segment]) -> CommonCounts:
    """Return how many wallets are in some of the segments and in no other, in the order of the bits of their places."""
    groups = range(1, 2 ** len(segments))
    # Those that a group lacks follow the first that it has.
    counted = [
        sorted((at if group >> at & 1 else ~at for at in range(len(segments))), reverse=True)
        for group in groups
    ]
    return count_common(segments, counted)


@warned
def funnel(segment: Any, *, client: Client | None = None) -> Result:
    """Return the conditions of a segment that must all hold, in the order in which they are asked.

    Parameters
    ----------
    segment
        Filters, the table of a segment, its id, or the symbol or address of a contract. With the operator OR, and of
        one condition, the table has one row.
    client
        The client to ask; by default of the service that is set. It has to be nbext's own.

    Returns
    -------
    Result
        A row for each condition: ``condition`` str, its words; ``alone`` int64, the wallets that match it;
        ``remaining`` int64, those that match it and all before it. A condition under ``not`` takes wallets away.
        ``.segment(row, "alone")`` and ``.segment(row, "remaining")`` are these wallets; ``.chart()`` draws both.

    Raises
    ------
    ConfigError
        The service is not nbext's own.

    Source
    ------
    POST /funnel
    """
    client = client_of(client, segment, does="counts conditions")
    asked = segment_of(segment, client)
    found = client.funnel(asked.filters, asked.operator)
    members = [step["filters"] for step in found["steps"]]
    scope = scope_of(found["canonical"]["filters"])
    about = Provenance(
        operation="funnel",
        service=client.base_url,
        as_of=found["asOf"],
        warnings=[*found["warnings"], *asked.notes(found["fingerprint"])],
        segments=requests_of([asked]),
    )

    def matching(*some: dict[str, Any]) -> Segment:
        chains, inside = found["chains"], {"all": [*some]} if some[1:] else some[0]
        # A condition that is denied is taken from the wallets seen on all chains of the whole segment. These conditions
        # may name fewer: one on each chain is added that no wallet matches, so that all are seen here too.
        if chains != [scope["chain"]]:
            nobody = ({"all": [one, {"not": one}]} for one in _seen_on(chains))
            inside = {"any": [inside, *nobody]}
        return Segment({**inside, **scope}, client=client)

    def cell(row: int, column: Any) -> Segment | None:
        if column == "removed":
            # Of nobody for the first condition, which takes away none.
            return matching(*members[: max(row, 1)], {"not": members[row]})
        if column in charts.STEPS:
            return matching(*members[row if column == "alone" else 0 : row + 1])
        return None

    rows = [(step["words"], step["alone"], step["remaining"]) for step in found["steps"]]
    table = pd.DataFrame(rows, columns=["condition", "alone", "remaining"])
    table = table.astype({"condition": "str", "alone": "int64", "remaining": "int64"})

    def steps(made: Result) -> charts.Chart:
        words, alone, left = (made[name].tolist() for name in made)
        return charts.steps(words, alone, left, about)

    return result(table, about, cell, {"bars": steps})


def _seen_on(chains: Iterable[str]) -> list[dict[str, Any]]:
    """Return a condition for each chain, which all wallets match that the data has seen there."""
    return [{"activity": {"transfers": {"min": 0}, "chain": chain}} for chain in chains]


@warned
def concentration(token: Any, *, client: Client | None = None) -> Result:
    """Return how much of a token its largest holders have.

    Parameters
    ----------
    token
        The symbol or address of a token or a collection; or a segment (filters, a table, an id), of whose first
        token or collection the amounts are taken, which is said where it has several. Wallets that have nothing of it
        are no holders.
    client
        The client to ask; by default of the service that is set.

    Returns
    -------
    Result
        A row for the ``top 10``, ``top 100``, ``top 1 %`` and ``all`` holders: ``wallets`` int64; ``amount`` float64
        in the token's unit (missing where its decimals are unknown); ``amount_raw`` the exact sum in its smallest unit,
        of the dtype that a segment's amounts have; ``share`` float64 of all. ``attrs["nbext"]["gini"]`` is 0 where all
        hold the same, and near 1 where one holds all. ``.segment("top 10")`` is these wallets, ``.chart()`` the Lorenz
        curve. No holder: no rows.

    Raises
    ------
    ValidationError
        The segment's rows have no balance or count, or it has more than 10,000,000 wallets.

    Source
    ------
    The segment, all of its rows.
    """
    asked = segment_of(token, client_of(client, token), "/token")
    rows = asked.open(MAX_LIMIT)
    about = Provenance.of(rows)
    about.warnings = [*about.warnings, *asked.notes(about.fingerprint)]
    # Our own service says of each holding whose it is, and of a count of transfers or days nothing of the kind.
    amounts = [
        one
        for one in about.columns
        if one.get("type") in ("uint256", "integer")
        and ("address" in one or not asked.client.is_ours)
    ]
    if not amounts or about.truncated:
        why = (
            f"it has more than {MAX_LIMIT:,} wallets" if amounts else "its rows have no amount held"
        )
        raise ValidationError.of(
            "/token", "type", f"The concentration of this segment cannot be measured: {why}."
        )
    column = amounts[0]
    if amounts[1:]:
        names = " and ".join(str(one["name"]) for one in amounts)
        about.warnings = [*about.warnings, f"The rows have {names}: the first is measured."]
    # Whole numbers of any size: floats would lose the small holders beside the large. Who is in the segment for
    # something else may hold nothing, and less than that where transfers are missing.
    largest = sorted((one for one in map(int, rows[column["name"]]) if one > 0), reverse=True)
    sums = list(accumulate(largest))
    number = len(largest)
    # A count of NFTs has no decimals; where a token's are unknown, its amounts have no unit.
    decimals = column.get("decimals") if column["type"] == "uint256" else 0
    wanted = {"top 10": 10, "top 100": 100, "top 1 %": -(-number // 100), "all": number}
    groups = {name: min(most, number) for name, most in wanted.items() if number}
    records: list[dict[str, Any]] = [
        {
            "holders": name,
            "wallets": most,
            "amount": None if decimals is None else sums[most - 1] / 10**decimals,
            "amount_raw": str(sums[most - 1]),
            "share": sums[most - 1] / sums[-1],
        }
        for name, most in groups.items()
    ]
    table = frames.frame(records, _SHARES).set_index("holders")
    name = str(column.get("symbol") or column["name"])
    share = about.gini = gini(largest)
    about.operation = "concentration"
    # They are those of the rows.
    del about.columns

    def largest_of(most: int, _: Any = None) -> Segment:
        order = {**asked.filters, "orderBy": f"-{column['name']}"}
        return Segment(order, asked.operator, most, client=asked.client)

    return result(
        table,
        about,
        lambda row, _: largest_of(int(records[row]["wallets"])),
        {
            "lorenz": lambda _: replace(
                charts.lorenz(largest, name, share, about), of_cell=largest_of
            )
        },
    )


def gini(amounts: Sequence[int]) -> float:
    """Return the Gini coefficient of amounts above 0, from the largest down.

    >>> gini([5, 5]), gini([3, 1])
    (0.0, 0.25)
    """
    number = len(amounts)
    if not number:
        return float("nan")
    ranked = sum(rank * one for rank, one in zip(range(number, 0, -1), amounts, strict=True))
    return float(Fraction(2 * ranked, number * sum(amounts)) - Fraction(number + 1, number))
