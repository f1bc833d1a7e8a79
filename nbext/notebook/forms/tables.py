"""A segment's table as HTML, every cell shown literally; and its way into the notebook's variables and history."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import InvalidOperation
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from nbext.core.uint256 import units_text
from nbext.errors import UsageError
from nbext.notebook import session
from nbext.notebook.cell.request import Query
from nbext.notebook.forms.widgets import table_html
from nbext.notebook.results.deliver import checked_name

if TYPE_CHECKING:
    import pandas as pd

ROWS = 8
# A table of more columns than this is cut, and says so: the page would scroll sideways past its own note.
COLUMNS = 12
_NUMBERS = ("integer", "uint256")


def frame_html(frame: pd.DataFrame) -> str:
    """Return the first rows of a table, amounts in their tokens' units, and how many rows there are in all."""
    if not len(frame):
        return "<p>No wallet matches.</p>"
    known = {str(column.get("name")): column for column in provenance(frame).get("columns") or []}
    names = [str(name) for name in frame.columns[:COLUMNS]]
    heads = [f"{name} ({known[name]['symbol']})" if is_amount(known.get(name)) else name for name in names]
    numbers = [i for i, name in enumerate(names) if known.get(name, {}).get("type") in _NUMBERS]
    rows = [
        [in_units(value, known.get(name)) for name, value in zip(names, values, strict=True)]
        for values in frame.iloc[:ROWS, :COLUMNS].itertuples(index=False, name=None)
    ]
    left_out = f", {len(frame.columns) - COLUMNS:,} more columns" if len(frame.columns) > COLUMNS else ""
    units = "; amounts in tokens (in the smallest unit in the variable)" if any(map(scale, known.values())) else ""
    note = f'<div class="nbext-note">{len(rows):,} of {len(frame):,} rows{left_out}{units}</div>'
    return table_html(heads, rows, numbers) + note


def is_amount(column: Mapping[str, Any] | None) -> bool:
    """Return whether a column's amounts can be written in the token's unit."""
    return bool(column and isinstance(column.get("decimals"), int) and column["decimals"] and column.get("symbol"))


def scale(column: Mapping[str, Any] | None) -> int:
    """Return how many decimals a column's amounts must still be shifted by; `nbext.to_units` may have done so."""
    return int(column["decimals"]) if column and is_amount(column) and column.get("unit") != "token" else 0


def in_units(value: Any, column: Mapping[str, Any] | None) -> str:
    """Return a cell of the table as text: amounts exactly, in the token's unit where that is known."""
    if is_missing(value):
        return ""
    if (column or {}).get("type") not in _NUMBERS:
        return text_of(value)
    # By way of text: a uint256 has 78 digits, a float 16.
    try:
        return units_text(str(value), scale(column))
    except InvalidOperation:
        return text_of(value)


def is_missing(value: Any) -> bool:
    """Return whether a value is unknown: None, NA, NaT or NaN."""
    import pandas as pd

    # Of a list, isna would answer for each member.
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


def text_of(value: object) -> str:
    """Return the value as text; an unknown one as an empty text."""
    return "" if is_missing(value) else str(value)


def number_text(value: object) -> str:
    """Return a whole number with thousands separators, any other value as it is."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else text_of(value)


def count_text(value: Any) -> str:
    """Return a count with thousands separators; anything that is no number, as it is."""
    if is_missing(value) or isinstance(value, bool):
        return ""
    try:
        return f"{int(value):,}"
    except (TypeError, ValueError):
        return str(value)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows, each as a dict."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def provenance(frame: pd.DataFrame) -> dict[str, Any]:
    """Return where a table came from, as its ``attrs["nbext"]`` records it."""
    known = frame.attrs.get("nbext", {})
    # attrs are the user's to change; a form that is opened on such a table must not fail.
    return known if isinstance(known, dict) else {}


def assign(name: str, value: Any) -> None:
    """Assign the value to the notebook's variable of that name, if a variable may have it."""
    shell = get_ipython()
    if shell is None:
        raise UsageError("This is not IPython: there is no notebook whose variable could be set.")
    shell.user_ns[checked_name(name)] = value


def add_to_history(query: Query, frame: pd.DataFrame) -> None:
    """Add a query that ran to the notebook's history, where nbext is loaded in it."""
    if here := session.current():
        here.history.add(query, provenance(frame))
