"""How our tables are displayed: nothing in a cell hides, runs or turns into maths; the data stays unchanged.

Only tables and columns that carry our provenance (``attrs["nbext"]``) are displayed this way, and those that show a
suspicious name which a service sent. Formatters of this shell do it: no option of pandas is changed, and no other
table is touched.

Suspicious are names that pretend to be others: hidden characters, mixed scripts, look-alike letters. A session
remembers those that services sent. ``pd.concat``, ``groupby`` and others drop what a table carries about where it
comes from; a table that pandas made of ours is recognised by the suspicious names in it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import looks_like_address
from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import visible

if TYPE_CHECKING:
    import pandas as pd
    from IPython.core.interactiveshell import InteractiveShell

MAX_KEPT = 10_000
# Anything but plain letters, digits and marks, as a first sieve: millions of addresses do not pass it.
_SIEVE = r"[^ -~]|[$\\]"

# Scripts whose letters are taken for one another. Han, Kana or Hangul beside Latin is ordinary.
_ALIKE = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU")
# Letters of other scripts that look like a Latin one; compatibility forms (full-width, mathematical) fold by NFKC.
_LATIN_OF = str.maketrans(
    "АВЕЅІЈКМНОРСТУХЬавеѕіјкмнорстухԁԛԝһӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβεζηικνορτυχօսհ",
    "ABESIJKMHOPCTYXbabesijkmhopctyxdqwhlABEZHIKMNOPTYXabeznikvoptuxouh",
)


def displayed_cell(value: Any) -> Any:
    """Return a cell as it is displayed: an address shortened, hidden characters as escapes, long text cut at 200.

    >>> displayed_cell("0xd8da6bf26964af9d7eed9e03e53415d37aa96045")
    '0xd8da6bf2…7aa96045'
    """
    import pandas as pd

    if isinstance(value, tuple):  # a row's label of several levels
        return tuple(displayed_cell(part) for part in value)
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
    few = _few(
        table if isinstance(table, pd.DataFrame) else table.to_frame(),
        pd.get_option("display.max_rows"),
    )
    labels = [
        part
        for label in (*few.columns, *few.index)
        for part in (label if isinstance(label, tuple) else [label])
    ]
    texts = [i for i, dtype in enumerate(few.dtypes) if dtype in ("str", "object", "category")]
    return names.contains_any(labels) or any(names.contains_any(few.iloc[:, i]) for i in texts)


def as_html(frame: pd.DataFrame) -> str | None:
    """Return a table as HTML in which ``$`` stays a dollar sign."""
    # pandas-stubs does not declare the method that front ends call.
    drawn = _drawn(frame, methodcaller("_repr_html_"), "\n<p>{} rows × {} columns</p>")
    if drawn is None or drawn.endswith("</div>") or not _pandas_draws():
        return drawn
    # pandas puts the size inside of the element that its styles apply to.
    table, _, below = drawn.rpartition("</div>")
    return f"{table}{below.lstrip()}\n</div>"


def as_text(frame: pd.DataFrame) -> str:
    """Return a table as plain text."""
    return _drawn(frame, repr, "\n\n[{} rows x {} columns]") or ""


def column_as_text(column: pd.Series[Any]) -> str:
    """Return a column as plain text."""
    # Line by line over the text of pandas, so that its footer stays true.
    return "\n".join(visible(line, None) for line in repr(column).split("\n"))


def _drawn(
    frame: pd.DataFrame, draw: Callable[[pd.DataFrame], str | None], size: str
) -> str | None:
    import pandas as pd

    def whole(value: Any) -> Any:
        return (
            value if isinstance(value, str) and looks_like_address(value) else displayed_cell(value)
        )

    # A library that draws tables in pandas' place (itables, for one) gets all rows, and every address whole, to be
    # searched: of a part it would not say that it is one. It says itself what it leaves out.
    interactive = draw is not repr and not _pandas_draws()
    rows = None if interactive else pd.get_option("display.max_rows")
    few = _few(frame, rows)
    # A column of warnings, where a name pretends to be another.
    names = [column for column in ("name", "symbol") if list(few.columns).count(column) == 1]
    if names and "name_flags" not in few.columns:
        marks = [
            "; ".join(dict.fromkeys(filter(None, map(flags, row))))
            for row in few[names].itertuples(index=False)
        ]
        if any(marks):
            few["name_flags"] = marks
    few.columns = few.columns.map(displayed_cell)
    few.index = few.index.map(displayed_cell) if len(few) else few.index
    options: dict[str, Any] = {"display.html.use_mathjax": False, "display.show_dimensions": False}
    is_whole = Provenance.of(frame).whole
    if is_whole:
        options |= {
            "display.max_colwidth": None,
            "display.max_columns": None,
            "display.width": None,
        }
    with pd.option_context(*(part for option in options.items() for part in option)):
        cell = (
            partial(visible, limit=None) if is_whole else whole if interactive else displayed_cell
        )
        text = draw(few.map(cell))
    wanted = pd.get_option("display.show_dimensions")
    cut = rows is not None and 0 < rows < len(frame)
    return (
        text + size.format(len(frame), frame.shape[1])
        if text and (wanted is True or (wanted and cut))
        else text
    )


def _pandas_draws() -> bool:
    import pandas as pd

    return str(vars(pd.DataFrame)["_repr_html_"].__module__).startswith("pandas")


def _few(frame: pd.DataFrame, rows: int | None) -> pd.DataFrame:
    """Return the first and last rows, as many as pandas displays, so that millions of others are not copied."""
    import pandas as pd

    if not rows or len(frame) <= 2 * rows:
        return frame.copy()
    return pd.concat([frame.head(rows), frame.tail(rows)])


# MIME type, type of pandas, how it is drawn.
_DRAWN: tuple[tuple[str, str, Callable[[Any], str | None]], ...] = (
    ("text/html", "DataFrame", as_html),
    ("text/plain", "DataFrame", as_text),
    ("text/plain", "Series", column_as_text),
)


class Formatters:
    """The formatters of one shell that display our tables and their columns literally.

    They are installed by the name of the type, so that pandas need not be imported yet.
    """

    def __init__(self, shell: InteractiveShell, names: SuspiciousNames) -> None:
        display: Any = shell.display_formatter
        self._formatters = display.formatters
        self._before: dict[tuple[str, str], Any] = {}
        for mime, kind, draw in _DRAWN:
            old = self._before[mime, kind] = self._formatters[mime].pop(f"pandas.{kind}", None)
            drawn = _literal_formatter(draw, old, names)
            self._formatters[mime].for_type_by_name("pandas", kind, drawn)

    def remove(self) -> None:
        """Put back the formatters that were there before."""
        for (mime, kind), old in self._before.items():
            self._formatters[mime].pop(f"pandas.{kind}", None)
            if old is not None:
                self._formatters[mime].for_type_by_name("pandas", kind, old)


def _literal_formatter(
    draw: Callable[[Any], str | None], old: Any, names: SuspiciousNames
) -> Callable[..., Any]:
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


def flags(name: object) -> str:
    """Return what is suspicious about a name, or nothing.

    >>> flags("US\\u0414\\u0421")
    'mixed scripts: Cyrillic, Latin'
    >>> flags("\\u0405\\u041e\\u0405")
    "looks like 'SOS'"
    """
    if not isinstance(name, str) or name.isascii():
        return "hidden characters" if isinstance(name, str) and visible(name, None) != name else ""
    found = []
    if visible(name, None) != name:
        found.append("hidden characters")
    letters = (
        unicodedata.name(letter, "").partition(" ")[0] for letter in name if letter.isalpha()
    )
    scripts = sorted(set(letters).intersection(_ALIKE))
    if len(scripts) > 1:
        found.append(f"mixed scripts: {', '.join(script.title() for script in scripts)}")
    folded = unicodedata.normalize("NFKC", name).translate(_LATIN_OF)
    if folded.isascii() and any(character.isalnum() for character in folded):
        found.append(f"looks like {visible(folded)!r}")
    return "; ".join(found)


class SuspiciousNames:
    """The suspicious names of a session, up to a bound."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __len__(self) -> int:
        return len(self._names)

    def learn(self, table: pd.DataFrame | pd.Series[Any]) -> None:
        """Remember the suspicious names among a table's strings, and among the names of its columns."""
        import pandas as pd
        import pyarrow as pa
        import pyarrow.compute as pc

        frame = table if isinstance(table, pd.DataFrame) else table.to_frame()
        names = list(frame.columns)
        for i, dtype in enumerate(frame.dtypes):
            if dtype == "str":
                texts = pa.array(frame.iloc[:, i])
                # In Arrow, and each text once: a result may have a million rows, nearly all of them plain addresses.
                names += pc.unique(
                    texts.filter(pc.match_substring_regex(texts, _SIEVE))
                ).to_pylist()
        for name in names:
            # A dollar sign or a backslash would be displayed as maths.
            suspicious = isinstance(name, str) and ("$" in name or "\\" in name or flags(name))
            if suspicious and len(self._names) < MAX_KEPT:
                self._names.add(name)

    def contains_any(self, labels: Iterable[Any]) -> bool:
        """Return whether one of the values is a name that is remembered."""
        return any(isinstance(label, str) and label in self._names for label in labels)
