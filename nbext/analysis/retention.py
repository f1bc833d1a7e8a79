"""Of the wallets that were new in each period, how many match a segment at the end of that period and of each later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nbext.analysis import charts
from nbext.analysis.results import Result, result
from nbext.analysis.segments import Segment, all_of, client_of, counted, segment_of
from nbext.analysis.trend import hours_of, reaching_back
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import quoted
from nbext.errors import ConfigError, ValidationError

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client import Client

PERIODS = {"day": "D", "week": "W", "month": "M", "quarter": "Q"}
COHORTS = ("held", "seen")
# A cohort and a moment for each: as many segments as one request compares.
MOST_PERIODS = 60


def retention(
    segment: Any,
    by: str = "month",
    *,
    cohort: str = "held",
    since: str = "1y",
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
        are all that match at its end. ``seen``: the wallets with their first transfer, on the segment's chain, in the
        period.
    since
        How long before the data's last block the first period lies: ``90d``, ``26w``, ``1y``.
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
    POST /counts; for ``held`` also each period's segment, stored without rows, because the cohorts name them.
    """
    import pandas as pd

    client = client_of(client)
    asked = segment_of(segment, client)
    _check(asked, by, cohort)
    last = Provenance.of(asked.open(0)).as_of or {}
    if last["timestamp"] is None:
        raise ConfigError("The data has no block times: its periods are not known.")
    end = pd.Timestamp(last["timestamp"]).tz_localize(None)
    begin = end - pd.Timedelta(hours=hours_of(since, "/since"))
    # A period of which the data has one instant would be a cohort of nobody.
    periods = list(pd.period_range(begin, end - pd.Timedelta(1, "ns"), freq=PERIODS[by]))
    number = len(periods)
    if number > MOST_PERIODS:
        detail = f"These are {number:,} periods. At most {MOST_PERIODS} are compared."
        raise ValidationError.of("/since", "range", detail)
    # A date is the whole day; the last period ends where the data does, whatever is added meanwhile.
    ends = [*(str(one.end_time.date()) for one in periods[:-1]), last["block"]]
    moments = [replace(asked, filters={**asked.filters, "asOf": one}) for one in ends]
    cells = [(row, later) for row in range(number) for later in range(row, number)]
    with reaching_back(since):
        cohorts = _joined(moments) if cohort == "held" else _seen(asked, periods, last["block"])
        found = counted(
            [*cohorts, *moments],
            [*([row] for row in range(number)), *([row, number + later] for row, later in cells)],
        )
    sizes, counts = found.counts[:number], dict(zip(cells, found.counts[number:], strict=True))
    names = list(map(str, periods))
    if cohort == "held":
        # A week is named by both of its ends.
        names[0] = f"until {names[0].rpartition('/')[2]}"
    table = pd.DataFrame({"wallets": sizes}, index=pd.Index(names, name="cohort"), dtype="int64")
    for step in range(number):
        shares = [
            counts.get((row, row + step), 0) / size
            if size and row + step < number
            else float("nan")
            for row, size in enumerate(sizes)
        ]
        table[f"{by} {step}"] = pd.array(shares, dtype="float64")
    about = found.about("retention", [asked])
    about.as_of = dict(last)
    title = f"Share of each cohort that matches: {found.words[-1] or 'the segment'}"

    def cell(row: int, column: Any) -> Segment | None:
        later = row + (list(table.columns).index(column) - 1 if column else 0)
        if column in (None, "wallets"):
            return cohorts[row]
        return all_of([cohorts[row], moments[later]]) if later < number else None

    return result(table, about, cell, {"heatmap": lambda made: _heatmap(made, title)})


def _check(asked: Segment, by: str, cohort: str) -> None:
    if not asked.client.is_ours:
        raise ConfigError(
            f"{asked.client.base_url} is not nbext's own service, the only one that compares cohorts."
        )
    if "asOf" in asked.filters:
        raise ValidationError.of(
            "/segment/asOf", "exclusive", "retention sets asOf itself. Leave it out."
        )
    for name, given, allowed in (("by", by, PERIODS), ("cohort", cohort, COHORTS)):
        if given not in allowed:
            raise ValidationError.of(
                f"/{name}", "choice", f"{quoted(given)} is not one of: {', '.join(allowed)}."
            )


def _joined(moments: list[Segment]) -> list[Segment]:
    """Return for each moment the segment of those that match then, and at none of the moments before."""
    saved = [one.saved() for one in moments]
    cohorts = []
    for place, one in enumerate(saved):
        before = [{"not": {"any": saved[:place]}}] if place else []
        # Whom each leaves out it says itself.
        filters = {
            "all": [one, *before],
            **moments[place].scope(),
            "asOf": moments[-1].filters["asOf"],
            "exclude": [],
        }
        cohorts.append(Segment(filters, client=moments[place].client))
    return cohorts


def _seen(asked: Segment, periods: list[pd.Period], block: int) -> list[Segment]:
    """Return for each period the segment of the wallets with their first transfer in it."""
    spans = [
        {"after": str(one.start_time.date()), "before": str(one.end_time.date())} for one in periods
    ]
    # The last one goes on until the data ends.
    del spans[-1]["before"]
    return [
        Segment({"activity": {"first": span}, **asked.scope(), "asOf": block}, client=asked.client)
        for span in spans
    ]


def _heatmap(made: Result, title: str) -> charts.Chart:
    if len(made) > charts.MOST_IN_HEATMAP:
        detail = (
            f"A heatmap has room for {charts.MOST_IN_HEATMAP} cohorts, and these are {len(made)}."
        )
        raise ValidationError.of("/since", "size", detail)
    table = made.drop(columns="wallets")
    table.index = [
        f"{name} ({size:,})" for name, size in zip(made.index, made["wallets"], strict=True)
    ]
    return charts.heatmap(
        table, title, "share of the cohort's wallets", Provenance.of(made), "{:.0%}"
    )
