"""The widgets that forms are made of. A stranger's text reaches their HTML only through `nbext.core.untrusted_text`.

Each widget is a message to the front end, and so are its layout and its style. A socket drops what it cannot hold
(ZeroMQ: 1,000 messages), and a dropped message is a field that never appears. So widgets share layouts and styles,
hide by a class instead of by a layout of their own, and make their lines of help and errors when there are any.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ipywidgets as w
from ipywidgets.widgets.widget_description import DescriptionStyle
from ipywidgets.widgets.widget_string import HTMLStyle, TextStyle

from nbext.core.untrusted_text import MAX_SHOWN, html

# A service's error may be long, its help less so; tables cut at untrusted_text's own limit.
MAX_MESSAGE = 500
MAX_HELP = 400
# A cell of a table has room for about so many characters where the form is narrow.
CUT = 16
LINE = 50
_NUMBER = re.compile(r"-?[\d,]+(?:\.(\d+))?")
_shared: dict[tuple[Any, ...], Any] = {}
# Held while a widget is made that is made when needed: a click and the answer to a background request may need it at
# the same time, and of two inputs for one field the one on the page would be the one that is not read.
making = threading.RLock()


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


class Line:
    """A line of HTML at the end of a box; its widget is made when there is something to show."""

    def __init__(self, box: w.Box, value: str = "") -> None:
        self.box = box
        self.widget: w.HTML | None = None
        self.show(value)

    @property
    def value(self) -> str:
        """The HTML that is shown, or an empty text."""
        return "" if self.widget is None else str(self.widget.value)

    def show(self, value: str) -> None:
        """Show HTML instead of what was shown before; an empty text hides the line."""
        if value == self.value:
            return
        with making:
            if self.widget is None:
                self.widget = markup()
                self.box.children = (*self.box.children, self.widget)
        self.widget.value = value
        visibility(self.widget, bool(value))


class Field:
    """One field: an input with its label above it, and below it help or an error.

    ``label`` and ``help`` are our own words: front ends may typeset a label as maths.
    """

    def __init__(self, entry: w.Widget, *, help: str = "", width: str = "180px") -> None:  # noqa: A002
        self.entry = entry
        self._help = f'<div class="nbext-help">{html(help, MAX_HELP)}</div>' if help else ""
        self._error = ""
        self.widget: w.Box = box(entry, classes="nbext-field", width=width, flex="0 1 auto")
        self._below = Line(self.widget, self._help)

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
            self._below.show(error_html(text) if text else self._help)
            (self.widget.add_class if text else self.widget.remove_class)("nbext-wrong")

    def changed(self, seen: Callable[[Any], None]) -> Field:
        """Call ``seen`` with every new value; return the field."""
        self.entry.observe(lambda change: seen(change["new"]), names="value")
        return self

    def entered(self, pressed: Callable[[], None]) -> Field:
        """Call ``pressed`` when Enter is pressed in it; return the field."""
        self.entry.on_msg(
            lambda _, content, __: pressed() if content.get("event") == "submit" else None
        )
        return self


def text_field(label: str, value: str = "", *, placeholder: str = "", **options: Any) -> Field:
    """Return a field for a line of text, which reports every keystroke."""
    look = {"layout": shared(w.Layout), "style": shared(TextStyle)}
    # The zero-width space is ipywidgets' own placeholder: with an empty one, label and text lose their common line.
    return Field(
        w.Text(value=value, description=label, placeholder=placeholder or "\u200b", **look),
        **options,
    )


def choice_field(
    label: str, choices: Iterable[tuple[str, Any]], value: Any = None, **options: Any
) -> Field:
    """Return a field for one of several values, each as (what is shown, value)."""
    look = {"layout": shared(w.Layout), "style": shared(DescriptionStyle)}
    return Field(
        w.Dropdown(options=list(choices), value=value, description=label, **look), **options
    )


def error_html(text: object) -> str:
    """Return an error as HTML that screen readers announce."""
    return f'<div class="nbext-error" role="alert">{lines_html(text)}</div>'


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
    places = {
        index: max((_places(values[index]) for values in rows), default=0) for index in numbers
    }

    def cells(values: Sequence[object], tag: str) -> str:
        classes = [
            ' class="nbext-number"' if index in numbers else "" for index in range(len(values))
        ]
        # What does not fit into its cell is cut there, and whole in the title.
        titles = [
            f' title="{html(value, limit)}"' if len(str(value)) > CUT else "" for value in values
        ]
        texts = [
            _number_html(one, places.get(at, 0) if tag == "td" else 0, limit)
            for at, one in enumerate(values)
        ]
        return "".join(
            f"<{tag}{c}{t}>{v}</{tag}>" for c, t, v in zip(classes, titles, texts, strict=True)
        )

    body = "".join(f"<tr>{cells(values, 'td')}</tr>" for values in rows)
    return (
        '<div class="nbext-scroll" tabindex="0" role="group" aria-label="Table">'
        '<table class="nbext-table mathjax_ignore tex2jax_ignore">'
        f"<thead><tr>{cells(heads, 'th')}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _places(value: object) -> int:
    """Return how many digits a number has after its point."""
    found = _NUMBER.fullmatch(str(value))
    return len(found[1] or "") if found else 0


def _number_html(value: object, places: int, limit: int | None) -> str:
    """Return a value as HTML; a number's fraction is as wide as ``places`` digits, so that dust stands below dust."""
    # One of more digits than a line has room for is cut on the screen, and on paper goes on in the next line.
    if not places or len(str(value)) > LINE or not _NUMBER.fullmatch(str(value)):
        return html(value, limit)
    whole, point, fraction = str(value).partition(".")
    width = places + 1
    return f'{whole}<span class="nbext-fraction" style="width: {width}ch">{point}{fraction}</span>'


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
