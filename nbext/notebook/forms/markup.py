"""HTML of tables, facts and code, for snapshots and for what views show. A stranger's text is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nbext.core.untrusted_text import MAX_SHOWN, html
from nbext.notebook.results.numbers import is_missing, rows_in_words
from nbext.notebook.results.tables import rows_html
from nbext.notebook.views.parts import MAX_MESSAGE

if TYPE_CHECKING:
    import pandas as pd

# A cell of a table has room for about so many characters where the form is narrow.
CUT = 16
LINE = 50
_NUMBER = re.compile(r"-?[\d,]+(?:\.(\d+))?")


def lines_html(text: object) -> str:
    """Return a text of several lines as HTML that shows it literally and keeps its line breaks."""
    return "<br>".join(html(line, MAX_MESSAGE) for line in str(text).splitlines())


def table_html(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    numbers: Sequence[int] = (),
    limit: int | None = MAX_SHOWN,
) -> str:
    """Return a table that shows every cell and head literally; the columns ``numbers`` are aligned at their points.

    Texts that were cut before have no ``limit``: a second cut would say a wrong length.
    """
    rows = list(rows)
    # A number's fraction is as wide as the longest one of its column, so that dust stands below dust.
    places = {
        at: max(
            (len(found[1] or "") for row in rows if (found := _NUMBER.fullmatch(str(row[at])))),
            default=0,
        )
        for at in numbers
    }

    def cell(at: int, value: object, tag: str) -> str:
        text, shown = str(value), html(value, limit)
        kind = ' class="nbext-number"' if at in numbers else ""
        # What does not fit into its cell is cut there, and whole in the title.
        title = f' title="{shown}"' if len(text) > CUT else ""
        digits = places.get(at) if tag == "td" else 0
        # One of more digits than a line has room for is cut on the screen, and on paper goes on in the next line.
        if digits and len(text) <= LINE and _NUMBER.fullmatch(text):
            whole, point, fraction = text.partition(".")
            width = f"width: {digits + 1}ch"
            shown = f'{whole}<span class="nbext-fraction" style="{width}">{point}{fraction}</span>'
        return f"<{tag}{kind}{title}>{shown}</{tag}>"

    def cells(values: Sequence[object], tag: str) -> str:
        return "".join(cell(at, value, tag) for at, value in enumerate(values))

    return cells_html(
        cells(heads, "th"),
        (cells(values, "td") for values in rows),
        ' tabindex="0" role="group" aria-label="Table"',
    )


def cells_html(heads: str, rows: Iterable[str], attributes: str = "") -> str:
    """Return a table of cells that are HTML already; ``attributes`` are those of the element that scrolls."""
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    return (
        f'<div class="nbext-scroll"{attributes}><table class="nbext-table mathjax_ignore tex2jax_ignore">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def bar_html(percent: float) -> str:
    """Return a bar of a cell: how much of the most."""
    return f'<div class="nbext-bar" style="width: {percent:.1f}%"></div>'


def facts_html(facts: Iterable[tuple[str, object]]) -> str:
    """Return names and values as a list that shows every value literally."""
    rows = "".join(
        f'<tr><th scope="row">{html(name)}</th><td>{html(value)}</td></tr>' for name, value in facts
    )
    return f'<table class="nbext-facts mathjax_ignore tex2jax_ignore"><tbody>{rows}</tbody></table>'


def code_html(text: str) -> str:
    """Return code that one click selects whole, ready to be copied."""
    # Line by line: html() shows a line break inside a text as an escape.
    shown = "\n".join(html(line, None) for line in text.split("\n"))
    return (
        '<pre class="nbext-code mathjax_ignore tex2jax_ignore" tabindex="0" role="group" aria-label="Code">'
        f"{shown}</pre>"
    )


ROWS = 8
NUMBERS = ("integer", "uint256", "float64")


def frame_html(frame: pd.DataFrame) -> str:
    """Return the first rows of a table, and how many rows there are in all."""
    if not len(frame):
        return "<p>No wallet matches.</p>"
    note = f"{min(ROWS, len(frame)):,} of {rows_in_words(len(frame))}"
    return f'{rows_html(frame.head(ROWS))}<div class="nbext-note">{note}</div>'


def is_repeated(column: Mapping[str, Any] | None) -> bool:
    """Return whether a column repeats exactly, in the smallest unit, what another says in the token's."""
    return bool(column and column.get("unit") == "raw" and column.get("decimals") is not None)


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
