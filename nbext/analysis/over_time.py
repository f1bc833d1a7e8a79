"""A segment through time: how many matched, who joined and left, and which cohorts stayed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
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
    segment_of,
    share_columns,
)
from nbext.client import frames
from nbext.client.filters import from_python
from nbext.core.addresses import ZERO_ADDRESS
from nbext.core.provenance import Provenance, warned
from nbext.core.rules import MAX_LIMIT, one_of
from nbext.core.times import time_text
from nbext.core.untrusted_text import quoted
from nbext.errors import ConfigError, ValidationError

if TYPE_CHECKING:
    from nbext.client import Client


MOST_POINTS = 1_000
SPAN = re.compile(r"([1-9][0-9]{0,5})([hdwy])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "y": 365 * 24}
STATUSES = ("joined", "left", "stayed")
PERIODS = {"day": "D", "week": "W", "month": "M", "quarter": "Q"}
COHORTS = ("held", "seen")
# A cohort and a moment for each: as many segments as one request compares.
MOST_PERIODS = 60


@warned
def trend(
    segment: Any,
    *,
    every: str = "1w",
    since: str | date = "1y",
    amounts: bool | str | None = None,
    client: Client | None = None,
) -> Result:
    """Return how many wallets matched a segment through time, up to the data's last block.

    Parameters
    ----------
    segment
        Filters without ``asOf``, the table of a segment, its id, or the symbol or address of a contract.
    every
        The time between two points: ``12h``, ``30d``, ``4w``, ``1y`` (365 days).
    since
        The time from the first to the last, or, as ``2025-01-31``, when to begin. Data that begins later is taken from
        there on, with a note.
    amounts
        Also add up what the wallets held: of the token or collection of this symbol or address, or
        with ``True`` of the first that the segment names. By default where it has one ``token`` condition and no
        ``nft``. ``False`` does not, and of a large token takes a third of the time.
    client
        The client to ask; by default of the service that is set. It has to be nbext's own.

    Returns
    -------
    Result
        A row for each point, the oldest first: ``at`` datetime64[s, UTC] and ``block`` Int64, the last block until then
        and its time (missing where the service does not say); ``count`` int64. Where amounts are added up, also
        what its wallets held together: ``amount`` float64 in the token's unit, missing where its decimals are unknown,
        and ``amount_raw`` the exact sum; ``attrs["nbext"]["amounts"]`` has the symbol. ``.segment(row)`` is the
        segment as of that point, ``.chart()`` a line.

    Raises
    ------
    ConfigError
        The service is not nbext's own.
    ValidationError
        A span that is none, more than 1,000 points, a segment with a time of its own, or one before the data begins;
        ``amounts`` of what the segment does not name.

    Source
    ------
    POST /counts
    """
    asked = _timeless(segment, client_of(client, segment, does="counts through time"), "A trend")
    step = hours_of(every, "/every")
    wanted, most, note = _hours_since(asked, since)
    length = min(wanted, most)
    if length // step >= MOST_POINTS:
        longer = f"{length // (24 * MOST_POINTS) + 1}d"
        detail = (
            f"These are more than {MOST_POINTS:,} points. Choose a longer step, such as "
            f'every="{longer}" (on a line --every {longer}).'
        )
        raise ValidationError.of("/every", "range", detail)
    hours = range(length // step * step, -1, -step)
    points = [asked.at(f"{one}h") for one in hours]
    if amounts is None:
        # Where rows have one balance, of a token.
        amounts = list(_balances(asked.filters)) == ["token"]
    found = count_common(points, [[place] for place in range(len(points))], amounts=amounts)
    times = frames.typed_column([one.get("timestamp") for one in found.as_of], "timestamp")
    blocks = pd.array([one.get("block") for one in found.as_of], dtype="Int64")
    table = pd.DataFrame(
        {"at": times, "block": blocks, "count": pd.array(found.counts, dtype="int64")}
    )
    sums = [one for one in found.held if one]
    if len(sums) == len(points):
        table["amount"] = frames.typed_column([one["amount"] for one in sums], "float64")
        table["amount_raw"] = frames.typed_column([one["amountRaw"] for one in sums], "uint256")
    about = found.about("trend", [asked])
    about.warnings = [*about.warnings, *[note] * (wanted // step > most // step)]
    about.as_of = dict(found.as_of[-1])
    if last := about.as_of.get("timestamp"):
        # Opened later, a point is of the same time, whatever has come in meanwhile.
        points = [asked.at(before(last, one)) for one in hours]
    if "amount" in table:
        about.amounts = sums[-1]["symbol"]
    subject = f"those that {found.words[-1]}"
    return result(
        table,
        about,
        lambda row, _: points[row],
        {"line": lambda made: charts.line(made, subject, about)},
    )


def _timeless(segment: Any, client: Client, what: str) -> Segment:
    """Return the segment; refuse one with a time of its own, and a notebook's."""
    asked, pinned = segment_of(segment, client), client.settings["as_of"]
    if "asOf" in asked.filters or pinned:
        out = f"Unset the setting as_of, which is {quoted(pinned)}." if pinned else "Leave it out."
        detail = f"{what} sets asOf itself. {out}"
        raise ValidationError.of("/segment/asOf", "exclusive", detail)
    return asked


def _balances(filters: Any) -> Iterator[str]:
    """Yield the kinds of the conditions that give rows a balance or a count."""
    for key, given in filters.items() if isinstance(filters, Mapping) else ():
        for one in given if isinstance(given, list | tuple) else [given]:
            if key in ("all", "any"):
                yield from _balances(one)
            elif key in ("token", "nft"):
                yield key


def before(timestamp: str, hours: int) -> str:
    """Return the time so many hours before another one."""
    return str(time_text(datetime.fromisoformat(timestamp) - timedelta(hours=hours)))


def _hours_since(asked: Segment, since: Any, chain: str = "") -> tuple[int, int, str]:
    """Return the hours from a time, and from a chain's beginning, to its last block, and what to say of a cut.

    The chain is the segment's own where none is given.
    """
    chain = chain or count_common([asked], [[0]]).scopes[0]["chain"]
    since = from_python(since, "/since")
    extents = asked.client.about()["data"]["chains"]
    extent = next((one for one in extents if one["chain"] == chain and one["lastTimestamp"]), None)
    begin = None
    if extent is not None:
        # Any condition does, and this one counts fast: what is asked for is the block's time.
        scope = {"exclude": [], "chain": chain, "asOf": extent["firstBlock"]}
        one = Segment({"wallet": {"in": [ZERO_ADDRESS]}, **scope}, client=asked.client)
        begin = count_common([one], [[0]]).as_of[0]["timestamp"]
    if extent is None or begin is None:
        wanted = hours_of(since, "/since")
        return wanted, wanted, ""
    end = datetime.fromisoformat(extent["lastTimestamp"])
    try:
        wanted = _hours(datetime.fromisoformat(since), end)
    except (TypeError, ValueError):
        wanted = hours_of(since, "/since")
    if wanted < 0:
        late = f"{quoted(since)} is after the end of the data: {chain} ends at {extent['lastTimestamp']}."
        raise ValidationError.of("/since", "range", late)
    most = _hours(datetime.fromisoformat(begin), end)
    note = f"The data of {chain} begins at {begin}, and {quoted(since)} reaches back further: this is all of it."
    return wanted, most, note


def _hours(begin: datetime, end: datetime) -> int:
    return (end - (begin if begin.tzinfo else begin.replace(tzinfo=UTC))) // timedelta(hours=1)


def hours_of(span: str, pointer: str) -> int:
    """Return the hours of a span such as ``4w``."""
    found = SPAN.fullmatch(span) if isinstance(span, str) else None
    if found is None:
        detail = (
            f'{quoted(span)} is not a span. Write one such as "12h", "30d" or "1y"'
            f"{', or a date such as 2025-01-31' * (pointer == '/since')}."
        )
        raise ValidationError.of(pointer, "type", detail)
    return int(found[1]) * _HOURS[found[2]]


@warned
def changes(
    segment: Any, since: str | int | date = "30d", *, client: Client | None = None
) -> Result:
    """Return the wallets of a segment now and at an earlier time, and what happened to each in between.

    Parameters
    ----------
    segment
        Filters without ``asOf``, ``orderBy`` and ``columns``, the table of a segment, its id, or the symbol or address
        of a contract. Of a table and an id the latter two do not count.
    since
        A span before the data's last block (``12h``, ``30d``, ``4w``, ``1y``); or, as in ``asOf``, a date, a time or
        a block. A span before the data begins ends there, with a note.
    client
        The client to ask; by default of the service that is set. It has to be nbext's own.

    Returns
    -------
    Result
        A row for each wallet, ordered by address: ``address`` str; ``status`` str, ``joined``, ``left`` or ``stayed``;
        and each balance or count of the segment's rows twice, ``<COLUMN>_then`` and ``<COLUMN>_now``, with the
        segment's dtypes; 0 where the wallet held none, also where it does not match. Joined less left is the change
        of the segment's count. ``attrs["nbext"]`` has the blocks, ``then`` and ``as_of`` (now), and how many wallets
        have each status. ``.segment(row)`` is all wallets with that row's status, ``.chart()`` draws the counts.

    Raises
    ------
    ValidationError
        A segment with a time of its own, filters with ``orderBy`` or ``columns``, a ``since`` that is no time or before
        the data begins, or more than 10,000,000 wallets.
    ConfigError
        The service is not nbext's own.

    Source
    ------
    POST /changes
    """
    client = client_of(client, segment, does="compares times")
    asked = _timeless(segment, client, "changes")
    if asked.known.filters:
        # Of rows that are there, wallets and balances are compared, in no other order than that of their addresses.
        kept = {key: one for key, one in asked.filters.items() if key not in ("orderBy", "columns")}
        asked = replace(asked, filters=kept)
    hours, cut, since = 0, list[str](), from_python(since, "/since")
    if isinstance(since, str) and SPAN.fullmatch(since):
        # `asOf` knows no years.
        wanted, most, note = _hours_since(asked, since)
        hours, cut = min(wanted, most), [note] * (wanted > most)
        since = f"{hours}h"
    rows = client.segment_changes(asked.filters, asked.operator, since)
    said = Provenance.of(rows)
    if said.truncated:
        detail = f"changes compares at most {MAX_LIMIT:,} wallets."
        raise ValidationError.of("/segment", "size", detail)
    as_of, table = said.as_of or {}, _compared(rows)
    # Both fixed, whatever comes in.
    if hours and as_of.get("timestamp"):
        since = before(as_of["timestamp"], hours)
    now, then = asked.at(as_of["block"]), asked.at(since)
    joined, left, stayed = (int((table["status"] == one).sum()) for one in STATUSES)
    # Those about a column's values begin with its name.
    warnings = dict.fromkeys(
        line.removeprefix("then_").removeprefix("now_") for line in said.warnings
    )
    about = Provenance(
        operation="changes",
        service=client.base_url,
        as_of=as_of,
        then=said.since,
        warnings=[*warnings, *asked.notes(said.fingerprint), *cut],
        joined=joined,
        left=left,
        stayed=stayed,
        segments=requests_of((then, now)),
    )
    parts = {
        "then": ([then], []),
        "now": ([now], []),
        "joined": ([now], [then]),
        "left": ([then], [now]),
        "stayed": ([then, now], []),
    }

    def cell(row: int, column: Any) -> Segment:
        these, others = parts[str(column or table["status"].iloc[row])]
        return all_of(these, but=others)

    (name,) = names_of([segment], [asked])
    return result(table, about, cell, {"bars": lambda made: _chart(made, name)})


def _compared(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the wallets with their status, and what they held then and now."""
    names = pd.Series(("left", "joined", "stayed"), dtype=frames.TEXT)
    status = names.take(rows["then_matches"] + 2 * rows["now_matches"] - 1)
    columns = {"address": rows["address"], "status": status.reset_index(drop=True)}
    for one in rows.columns.drop("now_matches"):
        name = one.removeprefix("now_")
        if name != one:
            columns |= {f"{name}_{when}": rows[f"{when}_{name}"] for when in ("then", "now")}
    return pd.DataFrame(columns)


def _chart(made: Result, name: str) -> charts.Chart:
    about = Provenance.of(made)
    moments = [
        str(when.get("timestamp") or f"block {when['block']:,}")
        for when in (about.then, about.as_of)
        if when
    ]
    subject = f"{charts.shortened(name)} from {' to '.join(moments)}"
    counts = {
        "then": about.left + about.stayed,
        "left": about.left,
        "joined": about.joined,
        "now": about.joined + about.stayed,
    }
    return charts.bars(
        list(counts),
        list(counts.values()),
        "Who joined and who left",
        subject,
        about,
        cells=[(0, name) for name in counts],
    )


@warned
def retention(
    segment: Any,
    by: str = "month",
    *,
    cohort: str = "held",
    since: str | date = "1y",
    client: Client | None = None,
) -> Result:
    """Return cohorts of wallets, and the share of each that matches a segment, period after period.

    Parameters
    ----------
    segment
        Filters without ``asOf``, the table of a segment, its id, or the symbol or address of a contract.
    by
        ``day``, ``week``, ``month`` or ``quarter``, in UTC. The last one ends with the data; data that ends at the very
        beginning of a period ends with the period before it.
    cohort
        ``held``: the wallets that match at the end of the period, and did at the end of none before it; in the first
        are all that match at its end. ``seen``: the wallets with their first transfer in the period, on the chain that
        ``columns`` describe them on.
    since
        How long before the data's last block the first period lies: ``90d``, ``26w``, ``1y``; or a date in it. Data
        that begins later is taken from there on, with a note.
    client
        The client to ask; by default of the service that is set. It has to be nbext's own.

    Returns
    -------
    Result
        A row for each cohort, named by its period: ``wallets`` int64; ``month 0``, ``month 1``, ... (or
        ``week 0``) float64, the share of them that matches at the end of that period and of those after it, missing
        where these have not come. ``.segment(row, column)`` is these wallets, ``.chart()`` the triangle as a heatmap.

    Raises
    ------
    ConfigError
        The service is not nbext's own, or its data has no block times.
    ValidationError
        A segment with a time of its own, more than 60 periods, or a first one before the data begins.

    Source
    ------
    POST /counts, once for the block at which the data ends and once for all cohorts. A cell of ``held``, once it is
    opened, also stores each period's segment without rows, because it names them.
    """
    asked = _timeless(segment, client_of(client, segment, does="compares cohorts"), "retention")
    by, cohort = one_of(by, PERIODS, "/by"), one_of(cohort, COHORTS, "/cohort")
    now = count_common([asked], [[0]])
    (last,) = now.as_of
    if last["timestamp"] is None:
        raise ConfigError("The data has no block times: its periods are not known.")
    end = pd.Timestamp(last["timestamp"]).tz_localize(None)
    wanted, most, note = _hours_since(asked, since, now.scopes[0]["chain"])
    begin = end - pd.Timedelta(hours=min(wanted, most))
    # A period of which the data has one instant would be a cohort of nobody.
    periods = list(pd.period_range(begin, end - pd.Timedelta(1, "ns"), freq=PERIODS[by]))
    number = len(periods)
    if number > MOST_PERIODS:
        detail = (
            f"By {by} these are {number:,} periods. At most {MOST_PERIODS} are compared. "
            f"{_fewer_periods(periods, MOST_PERIODS)}"
        )
        raise ValidationError.of("/since", "range", detail)
    # A date is the whole day; the last period ends where the data does, whatever is added meanwhile.
    ends = [*(str(one.end_time.date()) for one in periods[:-1]), last["block"]]
    moments = list(map(asked.at, ends))
    cells = [(row, later) for row in range(number) for later in range(row, number)]
    if cohort == "held":
        # In a cohort are those that match at the end of a period, and did at none before it.
        first = [[row, *(~before for before in range(row))] for row in range(number)]
        seen, ends_at = list[Segment](), 0
    else:
        first, ends_at = [[row] for row in range(number)], number
        seen = _seen(asked, periods, now)
    together = [dict.fromkeys([*first[row], ends_at + later]) for row, later in cells]
    found = count_common([*seen, *moments], [*first, *map(list, together)])
    sizes, counts = found.counts[:number], dict(zip(cells, found.counts[number:], strict=True))
    names = list(map(str, periods))
    if cohort == "held":
        # A week is named by both of its ends.
        names[0] = f"until {names[0].rpartition('/')[2]}"
    table = pd.DataFrame({"wallets": sizes}, index=pd.Index(names, name="cohort"), dtype="int64")
    for step in range(number):
        shares = [
            counts[row, row + step] / size if size and row + step < number else float("nan")
            for row, size in enumerate(sizes)
        ]
        table[f"{by} {step}"] = shares
    about = found.about("retention", [asked])
    about.columns = share_columns(table.columns[1:])
    if pd.Period(end - pd.Timedelta(hours=wanted), PERIODS[by]) < periods[0]:
        about.warnings = [*about.warnings, note]
    about.as_of = dict(last)
    subject = f"those that {found.words[-1]}"
    fewer = _fewer_periods(periods, charts.MOST_IN_HEATMAP)

    def cell(row: int, column: Any) -> Segment | None:
        later = row + (list(table.columns).index(column) - 1 if column else 0)
        if later >= number:
            return None
        these = seen[row] if seen else all_of([moments[row]], but=moments[:row])
        return these if column in (None, "wallets") else all_of([these, moments[later]])

    return result(table, about, cell, {"heatmap": lambda made: _heatmap(made, subject, fewer)})


def _fewer_periods(periods: list[pd.Period], most: int) -> str:
    """Return what to write for at most so many periods: a longer one, which leaves out nothing, or a later begin."""
    first, last = periods[0].start_time, periods[-1].end_time
    since = periods[-most:][0].start_time.date()
    words = f'since="{since}" (on a line --since {since})'
    for by, freq in PERIODS.items():
        if len(pd.period_range(first, last, freq=freq)) <= most:
            return f'Write by="{by}" (on a line --by {by}), or {words}.'
    return f"Write {words}."


def _seen(asked: Segment, periods: list[pd.Period], now: CommonCounts) -> list[Segment]:
    """Return for each period the segment of the wallets with their first transfer in it; ``now`` is of all."""
    spans = [
        {"after": str(one.start_time.date()), "before": str(one.end_time.date())} for one in periods
    ]
    # The last one goes on until the data ends.
    del spans[-1]["before"]
    scope = {**now.scopes[0], "asOf": now.as_of[0]["block"]}
    return [
        Segment({"activity": {"first": span, "chain": now.chains[0]}, **scope}, client=asked.client)
        for span in spans
    ]


def _heatmap(made: Result, subject: str, fewer: str) -> charts.Chart:
    charts.check_room(
        len(made), charts.MOST_IN_HEATMAP, "A heatmap", "cohorts", "/since", instead=fewer
    )
    table = made.drop(columns="wallets")
    table.index = [
        f"{name} ({size:,})" for name, size in zip(made.index, made["wallets"], strict=True)
    ]
    title, about = "Share of each cohort that matches", Provenance.of(made)
    return charts.heatmap(table, title, subject, about, form="{:.0%}", square=False)
