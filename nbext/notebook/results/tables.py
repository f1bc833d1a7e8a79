"""How our tables are displayed: nothing in a cell hides, runs or turns into maths; the data stays unchanged.

Only tables and columns that carry our provenance (``attrs["nbext"]``) are displayed this way, and those that show a
suspicious name which a service sent. Formatters of this shell do it: no option of pandas is changed, and no other
table is touched.

Suspicious are names that pretend to be others: hidden characters, mixed scripts, look-alike letters. A session
remembers those that services sent. ``pd.concat``, ``groupby`` and others drop what a table carries about where it
comes from; a table that pandas made of ours is recognised by the suspicious names in it.
"""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from decimal import InvalidOperation
from itertools import chain
from numbers import Number
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import looks_like_address
from nbext.core.provenance import Provenance
from nbext.core.uint256 import units_text
from nbext.core.untrusted_text import MAX_SHOWN, html, visible
from nbext.notebook.results.numbers import size_in_words, value_text

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
# How much of an address is seen at either end.
_BEGIN, _END = 10, 8
# Labels of rows and columns say which one, as ids do: 2024 is not 2,024.
_LABEL = "id"
_MONO = "var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,monospace))"
_DIGITS = re.compile(r"-?[\d,]+(\.\d+)?")
# Small, as it goes along with each table. An address is whole in the page, so that it can be searched and copied, and
# cut to the eye alone. JupyterLab's own rules, which put all texts to the right, have two classes.
_STYLE = (
    ".nbext-result{overflow-x:auto;padding-top:.3em}.nbext-result p{margin:.3em 0;font-size:90%;opacity:.8}"
    ".nbext-result table.nbext-rows td,.nbext-result table.nbext-rows th{text-align:left;padding:.25em .7em;"
    "white-space:nowrap;max-width:24em;overflow:hidden;text-overflow:ellipsis;unicode-bidi:isolate}"
    ".nbext-result table.nbext-rows .n{text-align:right}"
    f"table.nbext-rows td.n,table.nbext-rows td.a{{font-family:{_MONO}}}"
    ".nbext-rows td.a span{user-select:all}.nbext-rows td.a i{font-size:0}"
    '.nbext-rows td.a i::after{content:"\\2026";font-size:var(--jp-ui-font-size1,13px)}'
    "table.nbext-whole td{white-space:normal;max-width:none}"
    # On paper nothing can be scrolled.
    "@media print{.nbext-result table.nbext-rows :is(td,th){font-size:10px;white-space:normal}}"
)


def displayed_cell(value: Any, column: str = "", limit: int | None = MAX_SHOWN) -> str:
    """Return a cell as it is displayed: an address shortened, hidden characters as escapes, long text cut.

    >>> displayed_cell("0xd8da6bf26964af9d7eed9e03e53415d37aa96045"), displayed_cell(1047.3333333)
    ('0xd8da6bf2…7aa96045', '1,047.33')
    """
    if isinstance(value, str):
        if looks_like_address(value):
            return f"{value[:_BEGIN]}…{value[-_END:]}"
        return visible(value, limit)
    if isinstance(value, tuple):  # a label of several levels
        return ", ".join(displayed_cell(part, column, limit) for part in value)
    if is_missing(value):
        return ""
    return value_text(value, column) or visible(value, limit)


def is_missing(value: Any) -> bool:
    """Return whether a value is unknown: None, NA, NaT or NaN."""
    import pandas as pd

    # Of a list, isna would answer for each member.
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


def shows_suspicious_names(frame: pd.DataFrame, names: SuspiciousNames) -> bool:
    """Return whether a suspicious name that a service sent is displayed, in cells, index or headings."""
    if not names:
        return False
    few, _ = _cut(frame)
    labels = [
        part
        for label in (*few.columns, *few.index, *few.columns.names, *few.index.names)
        for part in (label if isinstance(label, tuple) else [label])
    ]
    # Texts have half a dozen types: whatever is no number may be one.
    cells = (values for _, values in few.select_dtypes(exclude="number").items())
    # A list in a cell has no place in a set.
    shown = (one for one in chain(labels, *cells) if isinstance(one, str))
    return not names.isdisjoint(shown)


def as_html(frame: pd.DataFrame) -> str | None:
    """Return a table as HTML, by pandas or by what draws in its place."""
    import pandas as pd

    drawer = str(vars(pd.DataFrame)["_repr_html_"].__module__)
    return rows_html(frame) if drawer.startswith("pandas") else _drawn_by_another(frame)


def rows_html(frame: pd.DataFrame) -> str:
    """Return a table as HTML: points below one another, addresses that one click selects whole, no maths."""
    shown = _Shown(frame)
    lines = [
        "".join(cells) for cells in zip(*(one.cells_html() for one in shown.columns), strict=True)
    ]
    if shown.gap is not None:
        lines.insert(shown.gap, f'<td colspan="{len(shown.columns)}">…</td>')
    heads = "".join(
        ('<th class="n">' if one.is_number else "<th>") + f"{html(one.head, None)}</th>"
        for one in shown.columns
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    pads = sorted({pad for column in shown.columns for pad in column.pads} - {0})
    room = "".join(
        f".nbext-result table.nbext-rows td.p{pad}{{padding-right:calc(.7em + {pad}ch)}}"
        for pad in pads
    )
    kind = "nbext-rows nbext-whole" if shown.is_whole else "nbext-rows"
    note = f"<p>{html(shown.note, None)}</p>" if shown.note else ""
    return (
        f'<div class="nbext-result" tabindex="0" role="group" aria-label="Table"><style>{_STYLE}{room}</style>'
        f'<table class="dataframe {kind} tex2jax_ignore mathjax_ignore"><thead><tr>'
        f"{heads}</tr></thead><tbody>{body}</tbody></table>{note}</div>"
    )


def as_text(frame: pd.DataFrame) -> str:
    """Return a table as plain text. What a line has no room for goes on below, beside the first column again."""
    shown = _Shown(frame)
    columns = [one.lines(shown.gap) for one in shown.columns]
    width = sys.maxsize if shown.is_whole else _width()
    blocks, taken = [], columns[:1]
    for one in columns[1:]:
        # One column beside the first at least, however wide it is.
        if len(taken) > 1 and sum(len(each[0]) + 2 for each in [*taken, one]) > width + 2:
            blocks.append(taken)
            taken = columns[:1]
        taken.append(one)
    texts = (
        "\n".join("  ".join(line).rstrip() for line in zip(*block, strict=True))
        for block in [*blocks, taken]
    )
    return "\n\n".join(filter(None, [*texts, shown.note]))


class _Column:
    """A column as it is drawn: texts of its head and cells, what each says in full, and how they are aligned."""

    def __init__(
        self,
        head: Any,
        values: list[Any],
        limit: int | None,
        unit: str = "",
        exact: Sequence[str] = (),
    ) -> None:
        import pandas as pd

        # What numbers are is known by the unit, else by the name.
        name = unit if unit == "share" or not isinstance(head, str) else head
        self.values, self.head = values, displayed_cell(head, _LABEL)
        known = [value for value in values if not is_missing(value)]
        self.is_number = bool(values) and all(
            isinstance(value, Number) and not isinstance(value, bool) for value in known
        )
        full = [displayed_cell(value, name, limit) for value in values]
        widest = None if self.is_number or limit is None else pd.get_option("display.max_colwidth")
        self.cells = [
            text if widest is None or len(text) <= widest else f"{text[: widest - 1]}…"
            for text in full
        ]
        self.exact = exact or [
            repr(value) if isinstance(value, float) and text else text
            for value, text in zip(values, full, strict=True)
        ]
        # By how many characters a fraction is shorter than the longest one: points stand below one another.
        after = [
            len(found[1] or "") if (found := _DIGITS.fullmatch(one)) else -1 for one in self.cells
        ]
        self.pads = [max(after) - one if self.is_number and one >= 0 else 0 for one in after]

    def cells_html(self) -> Iterator[str]:
        """Return the cells."""
        for value, text, exact, pad in zip(
            self.values, self.cells, self.exact, self.pads, strict=True
        ):
            title = f' title="{html(exact, None)}"' if exact not in (text, "") else ""
            if self.is_number:
                room = f" p{pad}" if pad else ""
                yield f'<td class="n{room}"{title}>{text}</td>'
            elif isinstance(value, str) and looks_like_address(value):
                middle = f"<i>{value[_BEGIN:-_END]}</i>"
                yield f'<td class="a"><span>{value[:_BEGIN]}{middle}{value[-_END:]}</span></td>'
            else:
                yield f"<td{title}>{html(text, None)}</td>"

    def lines(self, gap: int | None) -> list[str]:
        """Return the head and the cells as texts of one width."""
        texts = [text + " " * pad for text, pad in zip(self.cells, self.pads, strict=True)]
        if gap is not None:
            texts.insert(gap, "…")
        width = max(map(len, [self.head, *texts]))
        side = str.rjust if self.is_number else str.ljust
        return [side(text, width) for text in [self.head, *texts]]


class _Shown:
    """What is drawn of a table: columns, after how many rows some are left out, and what is said below."""

    def __init__(self, frame: pd.DataFrame) -> None:
        import pandas as pd

        about = Provenance.of(frame)
        self.is_whole = about.whole
        limit = None if self.is_whole else MAX_SHOWN
        few, self.gap = _cut(frame)
        few = _with_flags(few)
        names = list(few.columns)
        # Once by their values in the token's unit; what is exact is said where a value is pointed at.
        texts = [one for one in names if isinstance(one, str) and names.count(one) == 1]
        folded = [one for one in texts if one.endswith("_raw") and one[:-4] in texts]
        kept = (place for place, one in enumerate(names) if one not in folded)
        # What went wrong is read first.
        places = sorted(kept, key=lambda place: names[place] != "error")
        most = None if self.is_whole else pd.get_option("display.max_columns") or None
        self.columns = [_Column(name, values, limit) for name, values in _labels(frame, few)]
        stated = about.described()
        for place in places[:most]:
            name, raw = names[place], f"{names[place]}_raw"
            decimals = stated.get(raw, {}).get("decimals")
            is_exact = raw in folded and isinstance(decimals, int)
            exact = [_exact(one, decimals) for one in few[raw]] if is_exact else ()
            unit = str(stated.get(str(name), {}).get("unit"))
            values = few.iloc[:, place].tolist()
            self.columns.append(_Column(name, values, limit, unit, exact))
        said = []
        if self.gap is not None or not len(frame):
            said.append(size_in_words(frame))
        if self.gap is not None:
            said.append(f"the first {self.gap} and the last {len(few) - self.gap} are shown")
        if places[:most] != places:
            said.append(f"{len(places) - len(places[:most]):,} more columns are not shown")
        if folded:
            said.append(f"exact amounts: {', '.join(visible(one, 60) for one in folded)}")
        self.note = "; ".join(said)


def _exact(raw: Any, decimals: Any) -> str:
    try:
        return "" if is_missing(raw) else units_text(str(raw), decimals)
    except InvalidOperation:  # what a reader wrote there
        return visible(raw)


def _labels(frame: pd.DataFrame, few: pd.DataFrame) -> list[tuple[Any, list[Any]]]:
    """Return the names and texts of a table's index, unless it only counts the rows."""
    import pandas as pd

    index = few.index
    if isinstance(frame.index, pd.RangeIndex) and frame.index.start == 0:
        return []
    return [
        (
            index.names[level] or "",
            [displayed_cell(one, _LABEL) for one in index.get_level_values(level)],
        )
        for level in range(index.nlevels)
    ]


def _cut(frame: pd.DataFrame) -> tuple[pd.DataFrame, int | None]:
    """Return the rows that are shown, as many as pandas shows, and how many stand above those that are left out."""
    import pandas as pd

    most = pd.get_option("display.max_rows")
    if not most or len(frame) <= most:
        return frame.copy(), None
    half = max(1, min(pd.get_option("display.min_rows") or most, most) // 2)
    return pd.concat([frame.head(half), frame.tail(half)]), half


def _with_flags(few: pd.DataFrame) -> pd.DataFrame:
    """Add a column of warnings, where a name pretends to be another."""
    names = [column for column in ("name", "symbol") if list(few.columns).count(column) == 1]
    if names and "name_flags" not in few.columns:
        marks = [
            "; ".join(dict.fromkeys(filter(None, map(flags, row))))
            for row in few[names].itertuples(index=False)
        ]
        if any(marks):
            few["name_flags"] = marks
    return few


def _width() -> int:
    """Return how many characters a line has: pandas knows by this option that it is in a terminal."""
    import pandas as pd

    if pd.get_option("display.max_columns") == 0:
        return shutil.get_terminal_size().columns
    return pd.get_option("display.width") or sys.maxsize


def _drawn_by_another(frame: pd.DataFrame) -> str | None:
    """Return what a library draws in pandas' place (itables, for one) of all rows; it says itself what it leaves out.

    Texts are literal, addresses whole, to be searched, and numbers are numbers.
    """
    import pandas as pd

    def literal(value: Any) -> Any:
        # Inside of lists and arrays strings would stay as they are; a list in Parquet becomes an array.
        if isinstance(value, str):
            return value if looks_like_address(value) else visible(value)
        return value if pd.api.types.is_scalar(value) else visible(value)

    few = _with_flags(frame.copy()).map(literal)
    few.columns = few.columns.map(lambda one: displayed_cell(one, _LABEL))
    drawn: str | None = methodcaller("_repr_html_")(few)  # pandas-stubs lacks it
    return drawn


def column_as_text(column: pd.Series[Any]) -> str:
    """Return a column as plain text."""
    # Line by line over the text of pandas, so that its footer stays true.
    return "\n".join(visible(line, None) for line in repr(column).split("\n"))


# MIME type, type of pandas, how it is drawn.
_DRAWN: tuple[tuple[str, str, Callable[[Any], str | None]], ...] = (
    ("text/html", "DataFrame", as_html),
    ("text/plain", "DataFrame", as_text),
    ("text/plain", "Series", column_as_text),
)


def display_literally(shell: InteractiveShell, names: SuspiciousNames, undo: ExitStack) -> None:
    """Have a shell display our tables and their columns literally; ``undo`` puts back what it had before.

    By the name of the type, so that pandas need not be imported yet.
    """
    display: Any = shell.display_formatter
    for mime, kind, draw in _DRAWN:
        formatter, name = display.formatters[mime], f"pandas.{kind}"
        old = formatter.pop(name, None)
        formatter.for_type_by_name("pandas", kind, _literal_formatter(draw, old, names))
        # Where there was none, IPython changes nothing. What is added last is undone first.
        undo.callback(formatter.for_type_by_name, "pandas", kind, old)
        undo.callback(formatter.pop, name, None)


def _literal_formatter(
    draw: Callable[[Any], str | None], old: Any, names: SuspiciousNames
) -> Callable[..., Any]:
    """Return a formatter for IPython, which passes a printer to those of text/plain alone."""

    def format_table(table: Any, *printer_and_cycle: Any) -> Any:
        ours, frame = "nbext" in table.attrs, table.to_frame() if table.ndim == 1 else table
        if ours:
            # Here too, because a client of the user's own returns tables without a magic.
            names.learn(frame)
        literally = ours or shows_suspicious_names(frame, names)
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
    if not isinstance(name, str):
        return ""
    found = ["hidden characters"] * (visible(name, None) != name)
    letters = (
        unicodedata.name(letter, "").partition(" ")[0] for letter in name if letter.isalpha()
    )
    scripts = sorted(set(letters).intersection(_ALIKE))
    if len(scripts) > 1:
        found.append(f"mixed scripts: {', '.join(script.title() for script in scripts)}")
    folded = unicodedata.normalize("NFKC", name).translate(_LATIN_OF)
    if folded != name and folded.isascii() and any(map(str.isalnum, folded)):
        found.append(f"looks like {visible(folded)!r}")
    return "; ".join(found)


class SuspiciousNames(set[str]):
    """The suspicious names of a session, up to a bound."""

    def learn(self, frame: pd.DataFrame) -> None:
        """Remember the suspicious names among a table's strings, and among the names of its columns."""
        import pyarrow as pa
        import pyarrow.compute as pc

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
            if suspicious and len(self) < MAX_KEPT:
                self.add(name)
