"""A segment's table as HTML, every cell shown literally; and its way into the notebook's variables and history."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import InvalidOperation
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from nbext.core.provenance import Provenance
from nbext.core.uint256 import units_text
from nbext.core.untrusted_text import visible
from nbext.errors import UsageError
from nbext.notebook import session
from nbext.notebook.cell.request import SegmentQuery
from nbext.notebook.forms.widgets import table_html, text_field
from nbext.notebook.results.deliver import checked_name

if TYPE_CHECKING:
    import pandas as pd

ROWS = 8
# A table of more columns than this is cut, and says so: the page would scroll sideways past its own note.
COLUMNS = 12
NUMBERS = ("integer", "uint256", "float64")


def frame_html(frame: pd.DataFrame) -> str:
    """Return the first rows of a table, amounts in their tokens' units alone, and how many rows there are in all."""
    if not len(frame):
        return "<p>No wallet matches.</p>"
    known = {str(column.get("name")): column for column in Provenance.of(frame).columns}
    shown = [i for i, name in enumerate(frame.columns) if not is_repeated(known.get(str(name)))]
    names = [str(frame.columns[i]) for i in shown[:COLUMNS]]
    heads = [
        f"{name} ({known[name]['symbol']})" if is_amount(known.get(name)) else name
        for name in names
    ]
    numbers = [i for i, name in enumerate(names) if known.get(name, {}).get("type") in NUMBERS]
    rows = [
        [in_words(value, known.get(name)) for name, value in zip(names, values, strict=True)]
        for values in frame.iloc[:ROWS, shown[:COLUMNS]].itertuples(index=False, name=None)
    ]
    left_out = f", {len(shown) - COLUMNS:,} more columns" if len(shown) > COLUMNS else ""
    units = (
        "; exact amounts are in the columns ..._raw of the variable"
        if len(shown) < len(frame.columns)
        else ""
    )
    note = f'<div class="nbext-note">{len(rows):,} of {len(frame):,} rows{left_out}{units}</div>'
    return table_html(heads, rows, numbers) + note


def is_amount(column: Mapping[str, Any] | None) -> bool:
    """Return whether a column's amounts are in the token's unit, so that its symbol goes with them."""
    return bool(column and column.get("unit") == "token" and column.get("symbol"))


def is_repeated(column: Mapping[str, Any] | None) -> bool:
    """Return whether a column repeats exactly, in the smallest unit, what another says in the token's."""
    return bool(column and column.get("unit") == "raw" and column.get("decimals") is not None)


def in_words(value: Any, column: Mapping[str, Any] | None) -> str:
    """Return a cell of the table as text: numbers with all their digits, thousands set apart."""
    if is_missing(value):
        return ""
    if (column or {}).get("type") not in NUMBERS:
        return text_of(value)
    # By way of text: a uint256 has 78 digits, a float 16.
    try:
        return units_text(str(value), 0)
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
    return (
        f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else text_of(value)
    )


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


class Variable:
    """The field that names the notebook's variable for a result. What else it holds is replaced when asked twice."""

    def __init__(self, name: str, *, width: str) -> None:
        self.field = text_field("Variable", name, width=width).changed(lambda _: self._say(""))
        self._warned: tuple[str, Any] | None = None

    def checked(self) -> str | None:
        """Return the name, as Python reads it; None where a variable may not have it, and then the field says why."""
        try:
            return checked_name(self.field.value.strip(), variables())
        except UsageError as error:
            self._say(str(error))
            return None

    def name(self) -> str | None:
        """Return the name to write to; None where the field says why not.

        That of another value than a table of nbext is refused when it is first asked for.
        """
        name, known = self.checked(), variables()
        if name is None:
            return None
        held = known.get(name)
        said = self._warned is not None and self._warned[0] == name and self._warned[1] is held
        if name in known and not said and not Provenance.of(held):
            self._warned = (name, held)
            kind = type(held).__name__
            self._say(
                f"{name} holds a value already (type {visible(kind)}). Press again to replace it."
            )
            return None
        self._say("")
        return name

    def _say(self, error: str) -> None:
        self.field.error = error
        if error:
            self.field.entry.focus()

    def assign(self, name: str, value: Any) -> None:
        """Assign the value to the notebook's variable of that name."""
        variables()[checked_name(name)] = value


def variables() -> dict[str, Any]:
    """Return the notebook's variables; raise `UsageError` where there is no notebook."""
    shell = get_ipython()
    if shell is None:
        raise UsageError("This is not IPython: there is no notebook whose variable could be set.")
    names: dict[str, Any] = shell.user_ns
    return names


def add_to_history(query: SegmentQuery, frame: pd.DataFrame) -> None:
    """Add a query that ran to the notebook's history, where nbext is loaded in it."""
    if here := session.current_session():
        here.history.add(query, frame)
