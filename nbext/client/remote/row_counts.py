"""How many rows an answer says there are, held against how many came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbext.client.remote.field_names import ABOUT, COUNTS, RETURNED, TOTALS, bare, places
from nbext.errors import ProtocolError


def stated(document: Any, headers: Mapping[str, str]) -> dict[str, int]:
    """Return the numbers of rows that the answer states, as ``returned``, ``total`` and ``count``."""
    found: dict[str, int] = {}
    header = headers.get("X-Total-Count", "").strip()
    if header.isascii() and header.isdigit():
        found["total"] = int(header[:18])
    for _, place in places(document):
        for about in (place, *(v for k, v in place.items() if bare(k) in ABOUT and isinstance(v, Mapping))):
            for name, value in about.items():
                kind = _kind(bare(name))
                if kind and type(value) is int:
                    found.setdefault(kind, value)
    return found


def _kind(name: str) -> str | None:
    if name in RETURNED:
        return "returned"
    if name in TOTALS:
        return "total"
    return "count" if name in COUNTS else None


def check(came: int, told: Mapping[str, int], limit: int | None, *, is_page: bool = False) -> None:
    """Hold the rows that came against what was stated and asked for.

    ``is_page``: there may be more rows than came, such as in a search.

    Raises
    ------
    ProtocolError
        Fewer or more rows came than the answer states, or more than were asked for.
    """
    if limit and came > limit:
        raise ProtocolError(f"at most {limit:,} rows were asked for, and {came:,} came.")
    if "returned" in told and told["returned"] != came:
        raise ProtocolError(f"the service states {told['returned']:,} rows, and {came:,} came.")
    for name in ("total", "count"):
        if name not in told:
            continue
        expected = told[name]
        # A limit keeps fewer rows than match.
        kept = limit is not None and came == min(limit, expected)
        if not (came == expected or kept or (is_page and came < expected)):
            raise ProtocolError(f"the service states {expected:,} rows, and {came:,} came.")
