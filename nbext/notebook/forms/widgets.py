"""The widgets and tables that forms are made of. A stranger's text reaches HTML only through `untrusted_text`.

Each widget is a message to the front end, and so are its layout and its style. A socket drops what it cannot hold
(ZeroMQ: 1,000 messages), and a dropped message is a field that never appears. So widgets share layouts and styles,
and hide by a class instead of by a layout of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import InvalidOperation
from typing import TYPE_CHECKING, Any

import ipywidgets as w
from IPython.core.getipython import get_ipython
from ipywidgets.widgets.widget_description import DescriptionStyle
from ipywidgets.widgets.widget_string import HTMLStyle, TextStyle

from nbext.core.provenance import Provenance
from nbext.core.uint256 import units_text
from nbext.core.untrusted_text import MAX_SHOWN, html, visible
from nbext.errors import UsageError
from nbext.notebook import session
from nbext.notebook.cell.request import SegmentQuery
from nbext.notebook.results.deliver import checked_name
from nbext.notebook.results.numbers import is_missing

if TYPE_CHECKING:
    import pandas as pd

# A service's error may be long, its help less so; tables cut at untrusted_text's own limit.
MAX_MESSAGE = 500
MAX_HELP = 400
# A cell of a table has room for about so many characters where the form is narrow.
CUT = 16
LINE = 50
_NUMBER = re.compile(r"-?[\d,]+(?:\.(\d+))?")
_shared: dict[tuple[Any, ...], Any] = {}


def shared(kind: type[w.Widget], **traits: str) -> Any:
    """Return the one layout or style that has these traits."""
    key = (kind, *sorted(traits.items()))
    made = _shared.get(key)
    # Widget.close_all() closes it with all others; a closed one would leave its next user without a view.
    if made is None or made.comm is None:
        made = _shared[key] = kind(**traits)
    return made


def box(*children: w.Widget, kind: type[w.Box] = w.VBox, classes: str = "", **layout: str) -> w.Box:
    """Return a box of the widgets, with CSS classes."""
    return kind(children, _dom_classes=tuple(classes.split()), layout=shared(w.Layout, **layout))


def row(*children: w.Widget, classes: str = "") -> w.Box:
    """Return the widgets side by side; they wrap where there is no room."""
    return box(*children, kind=w.HBox, classes=f"nbext-row {classes}")


def markup(value: str = "", classes: str = "") -> w.HTML:
    """Return a widget of HTML: our own words, and a stranger's only after `html`."""
    return w.HTML(
        value, _dom_classes=tuple(classes.split()), layout=shared(w.Layout), style=shared(HTMLStyle)
    )


def button(
    label: str,
    pressed: Callable[[w.Button], object],
    *,
    classes: str = "nbext-quiet",
    tip: str | None = None,
) -> w.Button:
    """Return a button; every front end shows its label as text, never as HTML."""
    made = w.Button(
        description=label,
        tooltip=tip,
        button_style="primary" if "nbext-main" in classes else "",
        _dom_classes=tuple(classes.split()),
        layout=shared(w.Layout),
        style=shared(w.ButtonStyle),
    )
    made.on_click(pressed)
    return made


def visibility(widget: w.DOMWidget, shown: bool) -> None:
    """Show the widget, or hide it from sight, keyboard and screen readers alike."""
    (widget.remove_class if shown else widget.add_class)("nbext-hidden")


class InputField:
    """One field: an input with its label above it, and below it help or an error.

    ``label`` and ``help`` are our own words: front ends may typeset a label as maths.
    """

    def __init__(self, entry: w.Widget, *, help: str = "", width: str = "180px") -> None:  # noqa: A002
        self.entry = entry
        self._help = f'<div class="nbext-help">{html(help, MAX_HELP)}</div>' if help else ""
        self._error = ""
        self._below = markup()
        self.widget = box(entry, self._below, classes="nbext-field", width=width, flex="0 1 auto")
        self._say(self._help)

    @property
    def value(self) -> Any:
        """What is typed or chosen."""
        return self.entry.value

    @property
    def error(self) -> str:
        """What is wrong with it, or an empty text."""
        return self._error

    @error.setter
    def error(self, text: str) -> None:
        # Every keystroke unmarks all fields: setting what is set already must not send a message per field.
        if text != self._error:
            self._error = text
            # Screen readers announce an alert.
            alert = f'<div class="nbext-error" role="alert">{lines_html(text)}</div>'
            self._say(alert if text else self._help)
            (self.widget.add_class if text else self.widget.remove_class)("nbext-wrong")

    def _say(self, below: str) -> None:
        self._below.value = below
        visibility(self._below, bool(below))

    def changed(self, seen: Callable[[Any], None]) -> InputField:
        """Call ``seen`` with every new value; return the field."""
        self.entry.observe(lambda change: seen(change["new"]), names="value")
        return self

    def entered(self, pressed: Callable[[], None]) -> InputField:
        """Call ``pressed`` when Enter is pressed in it; return the field."""
        self.entry.on_msg(
            lambda _, content, __: pressed() if content.get("event") == "submit" else None
        )
        return self


def text_field(label: str, value: str = "", *, placeholder: str = "", **options: Any) -> InputField:
    """Return a field for a line of text, which reports every keystroke."""
    look = {"layout": shared(w.Layout), "style": shared(TextStyle)}
    # The zero-width space is ipywidgets' own placeholder: with an empty one, label and text lose their common line.
    return InputField(
        w.Text(value=value, description=label, placeholder=placeholder or "\u200b", **look),
        **options,
    )


def choice_field(
    label: str, choices: Iterable[tuple[str, Any]], value: Any = None, **options: Any
) -> InputField:
    """Return a field for one of several values, each as (what is shown, value)."""
    look = {"layout": shared(w.Layout), "style": shared(DescriptionStyle)}
    return InputField(
        w.Dropdown(options=list(choices), value=value, description=label, **look), **options
    )


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
    about = [known.get(name, {}) for name in names]
    numbers = [i for i, column in enumerate(about) if column.get("type") in NUMBERS]
    heads = [
        f"{name} ({column['symbol']})"
        if column.get("unit") == "token" and column.get("symbol")
        else name
        for name, column in zip(names, about, strict=True)
    ]

    def text(place: int, value: Any) -> str:
        # By way of text: a uint256 has 78 digits, a float 16.
        with suppress(InvalidOperation):
            if place in numbers and not is_missing(value):
                return units_text(str(value), 0)
        return text_of(value)

    rows = [
        [text(place, value) for place, value in enumerate(values)]
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
