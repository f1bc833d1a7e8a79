"""What filters of a table's columns mean as a segment: its own conditions, and one more for each filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nbext.analysis.segments import SCOPE
from nbext.core.addresses import looks_like_address
from nbext.core.provenance import Provenance
from nbext.errors import UsageError
from nbext.notebook.forms.builder import filters
from nbext.notebook.forms.builder.tree import Group, Line, Tree
from nbext.notebook.forms.explorer.columns import Column, day_or_instant
from nbext.notebook.forms.tables import is_repeated

# Columns of a wallet's activity, and the field of the condition that asks for them.
_FACTS = {
    "firstSeen": "first",
    "lastSeen": "last",
    "transfers": "transfers",
    "activeDays": "activeDays",
}
_SIDES = {"min": "after", "max": "before"}
Asked = Sequence[tuple[Column, Mapping[str, str]]]


def as_tree(known: Provenance, asked: Asked) -> tuple[Tree, list[str]]:
    """Return the segment that a table is of, narrowed by filters; and the columns whose filter is no condition.

    Raises
    ------
    UsageError
        The table is not a segment's.
    """
    given, operator = known.filters, str(known.operator or "AND").upper()
    if not isinstance(given, Mapping) or operator not in filters.JOINS:
        raise UsageError(
            "This table does not say which segment it is of: only a segment's filters become conditions."
        )
    tree = filters.read(given, operator, SCOPE)
    found = [(column.name, _line(column, bounds, given)) for column, bounds in asked]
    lines = tuple(line for _, line in found if line is not None)
    # Whatever matched so far, and the new conditions too.
    before = (
        tree.root.members if tree.root.join == "all" or len(tree.root.members) < 2 else (tree.root,)
    )
    return Tree(Group("all", (*before, *lines)), tree.scope), [
        name for name, line in found if line is None
    ]


def _line(column: Column, bounds: Mapping[str, str], given: Mapping[str, Any]) -> Line | None:
    about, chain = (
        column.about,
        {"chain": column.about["chain"]} if column.about.get("chain") else {},
    )
    if column.kind == "address":
        address = bounds["text"].strip().lower()
        return (
            Line("wallet", {"in": [address]})
            if column.name == "address" and looks_like_address(address)
            else None
        )
    if column.name in _FACTS and chain and not about.get("address"):
        return Line("activity", {_FACTS[column.name]: _within(column, bounds, int), **chain})
    if not about.get("address") or column.kind != "number":
        return None
    # A wallet that holds none is a row with 0 here; without a lower bound the condition would leave it out.
    if about.get("unit") is None:
        return Line(
            "nft",
            {"nft": about["address"], **chain, "count": {"min": 0, **_within(column, bounds, int)}},
        )
    unit = {} if is_repeated(about) else {"unit": "raw"}
    balance = {"min": "0", **_within(column, bounds, str)}
    return Line("token", {"token": about["address"], **chain, "balance": balance, **unit})


def _within(
    column: Column, bounds: Mapping[str, str], kind: type[int] | type[str]
) -> dict[str, Any]:
    given = {side: text for side, text in bounds.items() if text}
    if column.kind == "time":
        return {
            _SIDES[side]: f"{day_or_instant(text, side, column.name):%Y-%m-%dT%H:%M:%SZ}"
            for side, text in given.items()
        }
    return {side: kind(column.amount(text, side)) for side, text in given.items()}
