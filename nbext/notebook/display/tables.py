"""How our tables are shown: nothing in a cell hides, runs or turns into maths; the data stays as it is.

Only tables and columns that carry our provenance (``attrs["nbext"]``) are shown this way, and those that show a strange
name which a service sent (`nbext.notebook.display.seen`), by formatters of this shell: no option of pandas is changed,
and no other table is touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import visible
from nbext.notebook.display.seen import Seen
from nbext.notebook.display.suspicious_names import flags

if TYPE_CHECKING:
    import pandas as pd
    from IPython.core.interactiveshell import InteractiveShell

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}\Z")


def shown(value: Any) -> Any:
    """Return a cell as it is shown: an address shortened, what hides as escapes, long text cut at 200.

    >>> shown("0xd8da6bf26964af9d7eed9e03e53415d37aa96045")
    '0xd8da6bf2…7aa96045'
    """
    if isinstance(value, tuple):  # a row's label of several levels
        return tuple(shown(part) for part in value)
    if isinstance(value, dict | list | set):
        # pandas would write the texts inside of them as they are.
        return visible(repr(value))
    if not isinstance(value, str):
        return value
    if _ADDRESS.match(value):
        return f"{value[:10]}…{value[-8:]}"
    return visible(value)


def shows_strange_names(table: pd.DataFrame | pd.Series[Any], seen: Seen) -> bool:
    """Say whether a strange name that a service sent is among what is shown: cells, index, and names of columns."""
    import pandas as pd

    if not seen:
        return False
    few = _few(table if isinstance(table, pd.DataFrame) else table.to_frame(), pd.get_option("display.max_rows"))
    labels = [part for label in (*few.columns, *few.index) for part in (label if isinstance(label, tuple) else [label])]
    return seen.holds_any(labels) or any(
        seen.holds_any(few.iloc[:, i]) for i, dtype in enumerate(few.dtypes) if dtype in ("str", "object", "category")
    )


def as_html(frame: pd.DataFrame) -> str | None:
    """Return a table as HTML in which ``$`` stays a dollar sign."""
    html = _drawn(frame, _pandas_html, "\n<p>{} rows × {} columns</p>")
    if html is None or html.endswith("</div>"):
        return html
    # pandas has the size inside of the element that its rules of style are for.
    table, _, size = html.rpartition("</div>")
    return f"{table}{size.lstrip()}\n</div>"


def as_text(frame: pd.DataFrame) -> str:
    """Return a table as plain text."""
    return _drawn(frame, repr, "\n\n[{} rows x {} columns]") or ""


def column_as_text(column: pd.Series[Any]) -> str:
    """Return a column as plain text."""
    # Its values are shown as pandas writes them, so that its footer stays true.
    return "\n".join(visible(line, None) for line in repr(column).split("\n"))


def _pandas_html(table: pd.DataFrame) -> str | None:
    # pandas-stubs does not know the method that front ends call.
    html: str | None = getattr(table, "_repr_html_")()  # noqa: B009
    return html


def _drawn(frame: pd.DataFrame, draw: Callable[[pd.DataFrame], str | None], size: str) -> str | None:
    import pandas as pd

    rows = pd.get_option("display.max_rows")
    few = _few(frame, rows)
    _mark_names(few)
    few.columns = few.columns.map(shown)
    few.index = few.index.map(shown) if len(few) else few.index
    with pd.option_context("display.html.use_mathjax", False, "display.show_dimensions", False):
        text = draw(few.map(shown))
    wanted = pd.get_option("display.show_dimensions")
    cut = rows is not None and 0 < rows < len(frame)
    return text + size.format(len(frame), frame.shape[1]) if text and (wanted is True or (wanted and cut)) else text


def _mark_names(few: pd.DataFrame) -> None:
    """Add a column that says which names pretend to be others, where one does. Only what is shown has it."""
    names = [column for column in ("name", "symbol") if list(few.columns).count(column) == 1]
    if not names or "name_flags" in few.columns:
        return
    found = ["; ".join(dict.fromkeys(filter(None, map(flags, row)))) for row in few[names].itertuples(index=False)]
    if any(found):
        few["name_flags"] = found


def _few(frame: pd.DataFrame, rows: int | None) -> pd.DataFrame:
    """Return as many of the first and last rows as pandas needs to leave out the others by itself."""
    import pandas as pd

    if not rows or len(frame) <= 2 * rows:
        return frame.copy()
    return pd.concat([frame.head(rows), frame.tail(rows)])


@dataclass
class Formatters:
    """The formatters of one shell, and what stood in their places before."""

    shell: InteractiveShell
    before: dict[tuple[str, str, str], Any]

    def remove(self) -> None:
        """Put back what stood there before."""
        for (mime, home, kind), old in self.before.items():
            formatter = _formatter(self.shell, mime)
            formatter.pop(f"{home}.{kind}", None)
            if old is not None:
                formatter.for_type_by_name(home, kind, old)


def install(shell: InteractiveShell, seen: Seen) -> Formatters:
    """Show our tables and their columns our way in this shell; pandas is not imported for it."""
    formatters = Formatters(shell, {})

    def literally(shown: Any) -> bool:
        if "nbext" in shown.attrs:
            # Also what came by a client of the user's own, without a magic.
            seen.learn(shown)
            return True
        return shows_strange_names(shown, seen)

    # By name, so that pandas need not be there yet.
    for mime, kind, home, ours in _PLACES:
        formatter = _formatter(shell, mime)
        old = formatter.pop(f"{home}.{kind}", None)
        formatters.before[mime, home, kind] = old
        formatter.for_type_by_name(home, kind, ours(old, literally))
    return formatters


def _formatter(shell: InteractiveShell, mime: str) -> Any:
    formatters: Any = shell.display_formatter
    return formatters.formatters[mime]


def _html_formatter(
    old: Callable[[Any], str | None] | None, literally: Callable[[Any], bool]
) -> Callable[[Any], str | None]:
    def format_html(frame: Any) -> str | None:
        if literally(frame):
            return as_html(frame)
        html: str | None = old(frame) if old is not None else frame._repr_html_()
        return html

    return format_html


def _text_formatter(draw: Callable[[Any], str]) -> Callable[..., Callable[..., None]]:
    def formatter(old: Callable[..., None] | None, literally: Callable[[Any], bool]) -> Callable[..., None]:
        def format_text(shown: Any, printer: Any, cycle: bool) -> None:
            if literally(shown):
                printer.text(draw(shown))
            elif old is not None:
                old(shown, printer, cycle)
            else:
                printer.text(repr(shown))

        return format_text

    return formatter


# Each type under the names that pandas 2 and pandas 3 give it.
_PLACES = (
    ("text/html", "DataFrame", "pandas", _html_formatter),
    ("text/html", "DataFrame", "pandas.core.frame", _html_formatter),
    ("text/plain", "DataFrame", "pandas", _text_formatter(as_text)),
    ("text/plain", "DataFrame", "pandas.core.frame", _text_formatter(as_text)),
    ("text/plain", "Series", "pandas", _text_formatter(column_as_text)),
    ("text/plain", "Series", "pandas.core.series", _text_formatter(column_as_text)),
)
