"""How a token is spread over its holders: the shares of the largest, the Gini coefficient, the Lorenz curve."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from nbext.analysis import charts
from nbext.analysis.results import Result, result
from nbext.analysis.segments import Segment, client_of, segment_of
from nbext.client import frames
from nbext.core.constants import MAX_LIMIT
from nbext.core.provenance import Provenance
from nbext.errors import ValidationError

if TYPE_CHECKING:
    from nbext.client import Client

_TYPES = {
    "holders": "string",
    "wallets": "integer",
    "amount": "float64",
    "amount_raw": "uint256",
    "share": "float64",
}


def concentration(token: Any, *, client: Client | None = None) -> Result:
    """Return how much of a token its largest holders have.

    Parameters
    ----------
    token
        The symbol or address of a token or a collection; or a segment (filters, a table, an id), of whose first
        token or collection the amounts are taken.
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
        The segment has no amounts, or more than 10,000,000 wallets.

    Source
    ------
    The segment, all of its rows.
    """
    asked = segment_of(token, client_of(client), "/token")
    rows = asked.open(MAX_LIMIT)
    about = Provenance.of(rows)
    amounts = [
        one
        for one in about.columns
        if one.get("unit") == "raw" or one.get("type") in ("uint256", "integer")
    ]
    if not amounts or about.truncated:
        why = f"it has more than {MAX_LIMIT:,} wallets" if amounts else "its rows have no amount"
        raise ValidationError.of(
            "/token", "type", f"The concentration of this segment cannot be measured: {why}."
        )
    column = amounts[0]
    # Whole numbers of any size: floats would lose the small holders beside the large.
    largest = sorted((int(one) for one in rows[column["name"]]), reverse=True)
    sums = list(accumulate(largest))
    number = len(largest)
    # A count of NFTs has no decimals; where a token's are unknown, its amounts have no unit.
    decimals = column.get("decimals") if column["type"] == "uint256" else 0
    groups = {"top 10": 10, "top 100": 100, "top 1 %": -(-number // 100), "all": number}
    records: list[dict[str, Any]] = [
        {
            "holders": name,
            "wallets": most,
            "amount": None if decimals is None else sums[most - 1] / 10**decimals,
            "amount_raw": str(sums[most - 1]),
            "share": sums[most - 1] / sums[-1],
        }
        for name, most in ((name, min(most, number)) for name, most in groups.items())
        if number
    ]
    table = frames.frame(records, _TYPES).set_index("holders")
    name = str(column.get("symbol") or column["name"])
    share = about.gini = gini(largest)
    about.operation = "concentration"
    # They are those of the rows.
    del about.columns

    def cell(row: int, _: Any) -> Segment:
        order = {**asked.filters, "orderBy": f"-{column['name']}"}
        return Segment(order, asked.operator, int(records[row]["wallets"]), client=asked.client)

    return result(
        table, about, cell, {"lorenz": lambda made: charts.lorenz(largest, name, share, about)}
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
