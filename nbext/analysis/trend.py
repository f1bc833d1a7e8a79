"""How many wallets matched a segment at each of many times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from nbext.analysis import charts
from nbext.analysis.results import Result, result
from nbext.analysis.segments import client_of, counted, segment_of
from nbext.client import frames
from nbext.core.untrusted_text import quoted
from nbext.errors import ConfigError, ValidationError

if TYPE_CHECKING:
    from nbext.client import Client

MOST_POINTS = 1_000
SPAN = re.compile(r"([1-9][0-9]{0,5})([hdwy])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "y": 365 * 24}


def trend(
    segment: Any,
    *,
    every: str = "1w",
    since: str = "1y",
    amounts: bool | str | None = None,
    client: Client | None = None,
) -> Result:
    """Return how many wallets matched a segment through time, up to the data's last block.

    Parameters
    ----------
    segment
        Filters without ``asOf``, the table of a segment, its id, or the symbol or address of a contract.
    every, since
        The time between two points, and from the first to the last: ``12h``, ``30d``, ``4w``, ``1y`` (365 days).
    amounts
        Also add up what the wallets held, of our own service: of the token or collection of this symbol or address, or
        with ``True`` of the first that the segment names. By default where it has one ``token`` condition and no
        ``nft``. ``False`` does not, and of a large token takes a third of the time.
    client
        The client to ask; by default of the service that is set.

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
        ``amounts`` of a service that is not nbext's own.
    ValidationError
        A span that is none, more than 1,000 points, a segment with a time of its own, or one before the data begins;
        ``amounts`` of what the segment does not name.

    Source
    ------
    POST /counts; of a service that is not our own, one segment for each point.
    """
    import pandas as pd

    asked = segment_of(segment, client_of(client))
    if "asOf" in asked.filters:
        raise ValidationError.of(
            "/segment/asOf", "exclusive", "A trend sets asOf itself. Leave it out."
        )
    step, length = hours_of(every, "/every"), hours_of(since, "/since")
    if length // step >= MOST_POINTS:
        detail = f"These are more than {MOST_POINTS:,} points. Choose a longer step."
        raise ValidationError.of("/every", "range", detail)
    hours = range(length // step * step, -1, -step)
    points = [replace(asked, filters={**asked.filters, "asOf": f"{one}h"}) for one in hours]
    if amounts and not asked.client.is_ours:
        raise ConfigError(
            f"{asked.client.base_url} is not nbext's own service, the only one that adds up amounts."
        )
    summed = _has_one_token(asked.filters) if amounts is None else amounts
    with reaching_back(since):
        found = counted(points, [[place] for place in range(len(points))], amounts=summed)
    times = frames.column([one.get("timestamp") for one in found.as_of], "timestamp")
    blocks = pd.array([one.get("block") for one in found.as_of], dtype="Int64")
    table = pd.DataFrame(
        {"at": times, "block": blocks, "count": pd.array(found.counts, dtype="int64")}
    )
    sums = [one for one in found.held if one]
    if len(sums) == len(points):
        table["amount"] = frames.column([one["amount"] for one in sums], "float64")
        table["amount_raw"] = frames.column([one["amountRaw"] for one in sums], "uint256")
    about = found.about("trend", [asked])
    about.as_of = dict(found.as_of[-1])
    if last := about.as_of.get("timestamp"):
        # Opened later, a point is of the same time, whatever has come in meanwhile.
        points = [
            replace(asked, filters={**asked.filters, "asOf": before(last, one)}) for one in hours
        ]
    if "amount" in table:
        about.amounts = sums[-1]["symbol"]
    title = f"Wallets that {found.words[-1] or 'match'}"
    return result(
        table,
        about,
        lambda row, _: points[row],
        {"line": lambda made: charts.line(made, title, about)},
    )


@contextmanager
def reaching_back(since: str) -> Iterator[None]:
    """Name ``since`` in the error of a point that is before the data begins."""
    try:
        yield
    except ValidationError as error:
        first = error.errors[0]
        if first["code"] != "range" or not first["pointer"].endswith("/filters/asOf"):
            raise
        detail = f"{quoted(since)} reaches back too far. Choose a shorter span. {first['detail']}"
        raise ValidationError.of("/since", "range", detail) from None


def _has_one_token(filters: Mapping[str, Any]) -> bool:
    """Return whether the rows of filters have one balance, of a token."""
    return [kind for kind, _ in _balances(filters)] == ["token"]


def _balances(filters: Any) -> Iterator[tuple[str, Any]]:
    """Yield the conditions that give rows a balance or a count, by their kind."""
    for key, given in filters.items() if isinstance(filters, Mapping) else ():
        for one in given if isinstance(given, list | tuple) else [given]:
            if key in ("all", "any"):
                yield from _balances(one)
            elif key in ("token", "nft"):
                yield key, one


def before(timestamp: str, hours: int) -> str:
    """Return the time so many hours before another one."""
    return (datetime.fromisoformat(timestamp) - timedelta(hours=hours)).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )


def hours_of(span: str, pointer: str) -> int:
    """Return the hours of a span such as ``4w``."""
    found = SPAN.fullmatch(span) if isinstance(span, str) else None
    if found is None:
        detail = f'{quoted(span)} is not a span. Write one such as "12h", "30d" or "1y".'
        raise ValidationError.of(pointer, "type", detail)
    return int(found[1]) * _HOURS[found[2]]
