"""The first rows of a segment's table as HTML, every cell shown literally."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import InvalidOperation
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from nbext.core.uint256 import units_text
from nbext.errors import ConfigError, UsageError
from nbext.notebook import session
from nbext.notebook.cell.request import Query
from nbext.notebook.forms.widgets import table_html
from nbext.notebook.results.deliver import checked_name

if TYPE_CHECKING:
    import pandas as pd

ROWS = 8
# A table of more columns than this is cut, and says so.
COLUMNS = 12


def frame_html(frame: pd.DataFrame) -> str:
    """Return the first rows of a table, amounts in their tokens' units, and how many rows there are in all."""
    if not len(frame):
        return "<p>No wallet matches.</p>"
    known = {str(column.get("name")): column for column in about(frame).get("columns") or []}
    names = [str(name) for name in frame.columns[:COLUMNS]]
    heads = [f"{name} ({known[name]['symbol']})" if is_amount(known.get(name)) else name for name in names]
    numbers = [i for i, name in enumerate(names) if known.get(name, {}).get("type") in ("integer", "uint256")]
    rows = [
        [in_units(value, known.get(name)) for name, value in zip(names, values, strict=True)]
        for values in frame.iloc[:ROWS, :COLUMNS].itertuples(index=False, name=None)
    ]
    left_out = f", {len(frame.columns) - COLUMNS:,} more columns" if len(frame.columns) > COLUMNS else ""
    units = "; amounts in tokens, in the variable in the smallest unit" if any(map(scale, known.values())) else ""
    note = f'<div class="nbext-note">{len(rows):,} of {len(frame):,} rows{left_out}{units}</div>'
    return table_html(heads, rows, numbers) + note


def is_amount(column: Mapping[str, Any] | None) -> bool:
    """Say whether a column's amounts can be written in the token's unit."""
    return bool(column and isinstance(column.get("decimals"), int) and column["decimals"] and column.get("symbol"))


def scale(column: Mapping[str, Any] | None) -> int:
    """Return by how many decimals a column's amounts are still to be divided: `nbext.to_units` may have done so."""
    return int(column["decimals"]) if column and is_amount(column) and column.get("unit") != "token" else 0


def in_units(value: Any, column: Mapping[str, Any] | None) -> str:
    """Return a cell of the table as text: amounts exactly, in the token's unit where that is known."""
    if is_missing(value):
        return ""
    if (column or {}).get("type") not in ("integer", "uint256"):
        return shown(value)
    try:
        return units_text(str(value), scale(column))
    except InvalidOperation:
        return shown(value)


def is_missing(value: object) -> bool:
    """Say whether a value is unknown: None, NA or NaN."""
    import pandas as pd

    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def shown(value: object) -> str:
    """Return the value as text; an unknown one as an empty text."""
    return "" if is_missing(value) else str(value)


def count_text(value: Any) -> str:
    """Return a count with its thousands set apart; what is no number, as it is."""
    if is_missing(value) or isinstance(value, bool):
        return ""
    try:
        return f"{int(value):,}"
    except (TypeError, ValueError):
        return str(value)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows, each as a dict."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def about(frame: pd.DataFrame) -> dict[str, Any]:
    """Return what a table says of where it came from."""
    known = frame.attrs.get("nbext", {})
    return known if isinstance(known, dict) else {}


def keep(name: str, value: Any) -> None:
    """Put the value into the notebook's variable of that name.

    Raises
    ------
    UsageError
        The name cannot name a variable, or there is no notebook.
    """
    shell = get_ipython()
    if shell is None:
        raise UsageError("there is no notebook whose variable could be set: this is not IPython.")
    shell.user_ns[checked_name(name)] = value


def note(query: Query, frame: pd.DataFrame) -> None:
    """Note a query that ran in the history of the notebook, where nbext is loaded in it."""
    try:
        here = session.current()
    except ConfigError:
        return
    here.history.add(query, about(frame))
