"""How our tables are displayed: nothing in a cell hides, runs or turns into maths; the data stays unchanged.

Only tables and columns that carry our provenance (``attrs["nbext"]``) are displayed this way, and those that show a
suspicious name which a service sent. Formatters of this shell do it: no option of pandas is changed, and no other
table is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import looks_like_address
from nbext.core.untrusted_text import visible
from nbext.notebook.display.suspicious_names import SuspiciousNames, flags

if TYPE_CHECKING:
    import pandas as pd
    from IPython.core.interactiveshell import InteractiveShell



def shown(value: Any) -> Any:
    """Return a cell as it is displayed: an address shortened, hidden characters as escapes, long text cut at 200.

    >>> shown("0xd8da6bf26964af9d7eed9e03e53415d37aa96045")
    '0xd8da6bf2…7aa96045'
    """
    import pandas as pd

    if isinstance(value, tuple):  # a row's label of several levels
        return tuple(shown(part) for part in value)
    if not isinstance(value, str):
        # pandas would print the strings inside of lists and arrays unchanged; a list in Parquet becomes an array.
        return value if pd.api.types.is_scalar(value) else visible(value)
    if looks_like_address(value):
        return f"{value[:10]}…{value[-8:]}"
    return visible(value)


def shows_suspicious_names(table: pd.DataFrame | pd.Series[Any], names: SuspiciousNames) -> bool:
    """Return whether a suspicious name that a service sent is displayed, in cells, index or headings."""
    import pandas as pd

    if not names:
        return False
    few = _few(table if isinstance(table, pd.DataFrame) else table.to_frame(), pd.get_option("display.max_rows"))
    labels = [part for label in (*few.columns, *few.index) for part in (label if isinstance(label, tuple) else [label])]
    texts = [i for i, dtype in enumerate(few.dtypes) if dtype in ("str", "object", "category")]
    return names.contains_any(labels) or any(names.contains_any(few.iloc[:, i]) for i in texts)


def as_html(frame: pd.DataFrame) -> str | None:
    """Return a table as HTML in which ``$`` stays a dollar sign."""
    html = _drawn(frame, _pandas_html, "\n<p>{} rows × {} columns</p>")
    if html is None or html.endswith("</div>"):
        return html
    # pandas puts the size inside of the element that its styles apply to.
    table, _, size = html.rpartition("</div>")
    return f"{table}{size.lstrip()}\n</div>"


def as_text(frame: pd.DataFrame) -> str:
    """Return a table as plain text."""
    return _drawn(frame, repr, "\n\n[{} rows x {} columns]") or ""


def column_as_text(column: pd.Series[Any]) -> str:
    """Return a column as plain text."""
    # Line by line over the text of pandas, so that its footer stays true.
    return "\n".join(visible(line, None) for line in repr(column).split("\n"))


def _pandas_html(table: pd.DataFrame) -> str | None:
    # pandas-stubs does not declare the method that front ends call.
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
    """Add a column of warnings to what is displayed, where a name pretends to be another."""
    names = [column for column in ("name", "symbol") if list(few.columns).count(column) == 1]
    if not names or "name_flags" in few.columns:
        return
    found = ["; ".join(dict.fromkeys(filter(None, map(flags, row)))) for row in few[names].itertuples(index=False)]
    if any(found):
        few["name_flags"] = found


def _few(frame: pd.DataFrame, rows: int | None) -> pd.DataFrame:
    """Return the first and last rows, as many as pandas displays, so that millions of others are not copied."""
    import pandas as pd

    if not rows or len(frame) <= 2 * rows:
        return frame.copy()
    return pd.concat([frame.head(rows), frame.tail(rows)])


# MIME type, type, how it is drawn. Each type has two names, those that pandas 2 and pandas 3 give it.
_DRAWN: tuple[tuple[str, str, tuple[str, ...], Callable[[Any], str | None]], ...] = (
    ("text/html", "DataFrame", ("pandas", "pandas.core.frame"), as_html),
    ("text/plain", "DataFrame", ("pandas", "pandas.core.frame"), as_text),
    ("text/plain", "Series", ("pandas", "pandas.core.series"), column_as_text),
)


@dataclass
class Formatters:
    """The formatters of one shell, and those that they replaced."""

    shell: InteractiveShell
    before: dict[tuple[str, str, str], Any]

    def remove(self) -> None:
        """Put back the formatters that were there before."""
        for (mime, home, kind), old in self.before.items():
            formatter = _formatter(self.shell, mime)
            formatter.pop(f"{home}.{kind}", None)
            if old is not None:
                formatter.for_type_by_name(home, kind, old)


def install(shell: InteractiveShell, names: SuspiciousNames) -> Formatters:
    """Display our tables and their columns literally in this shell; pandas is not imported for it."""
    formatters = Formatters(shell, {})
    for mime, kind, homes, draw in _DRAWN:
        formatter = _formatter(shell, mime)
        for home in homes:
            old = formatter.pop(f"{home}.{kind}", None)
            formatters.before[mime, home, kind] = old
            # By the name of the type, so that pandas need not be imported yet.
            formatter.for_type_by_name(home, kind, _literal_formatter(draw, old, names))
    return formatters


def _formatter(shell: InteractiveShell, mime: str) -> Any:
    formatters: Any = shell.display_formatter
    return formatters.formatters[mime]


def _literal_formatter(draw: Callable[[Any], str | None], old: Any, names: SuspiciousNames) -> Callable[..., Any]:
    """Return a formatter for IPython, which passes a printer to those of text/plain alone."""

    def format_table(table: Any, *printer_and_cycle: Any) -> Any:
        ours = "nbext" in table.attrs
        if ours:
            # Here too, because a client of the user's own returns tables without a magic.
            names.learn(table)
        literally = ours or shows_suspicious_names(table, names)
        if not literally and old is not None:
            return old(table, *printer_and_cycle)
        if not printer_and_cycle:
            return draw(table) if literally else table._repr_html_()
        return printer_and_cycle[0].text(draw(table) if literally else repr(table))

    return format_table
