"""The parts that forms are made of. Texts of others reach a widget's HTML only through `nbext.core.untrusted_text`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ipywidgets as w

from nbext.core.untrusted_text import html

# Errors of a service may be long; tables cut sooner.
MAX_MESSAGE = 500
MAX_HELP = 400


def lines_html(text: object) -> str:
    """Return a text of several lines as HTML that shows it literally, its line breaks kept."""
    return "<br>".join(html(line, MAX_MESSAGE) for line in str(text).splitlines())


# Widgets are made with all they have: each change afterwards is a message of its own, and where a thousand of
# them wait on their way to the front end, the rest is dropped, and parts of a form with them.


def box(*children: w.Widget, kind: type[w.Box] = w.VBox, classes: str = "", **layout: str) -> w.Box:
    """Return a box of the widgets, with CSS classes."""
    return kind(children, _dom_classes=tuple(classes.split()), layout=w.Layout(**layout))


def row(*children: w.Widget, classes: str = "") -> w.Box:
    """Return the widgets side by side; they wrap where there is no room."""
    return box(*children, kind=w.HBox, classes=f"nbext-row {classes}")


def beside(wide: w.Box, narrow: w.Box) -> w.Box:
    """Return two columns, the second one narrower; they stand one below the other where there is no room."""
    wide.layout = w.Layout(flex="3 1 520px", min_width="0")
    narrow.layout = w.Layout(flex="1 1 300px", min_width="0")
    return w.Box((wide, narrow), layout=w.Layout(flex_flow="row wrap", align_items="flex-start", grid_gap="8px 20px"))


def with_classes(widget: w.DOMWidget, classes: str) -> Any:
    """Give the widget CSS classes; return it."""
    for name in classes.split():
        widget.add_class(name)
    return widget


def markup(value: str = "", classes: str = "", *, shown: bool = True) -> w.HTML:
    """Return a widget of HTML: of our own words, and of others' only after `html`."""
    return w.HTML(value, _dom_classes=tuple(classes.split()), layout=w.Layout(display=None if shown else "none"))


def button(
    label: str, pressed: Callable[[w.Button], None], *, classes: str = "nbext-quiet", tip: str | None = None
) -> w.Button:
    """Return a button; its label is shown as text by every front end."""
    style = "primary" if "nbext-main" in classes else ""
    made = w.Button(description=label, tooltip=tip, button_style=style, _dom_classes=tuple(classes.split()))
    made.on_click(pressed)
    return made


def visibility(widget: w.DOMWidget, shown: bool) -> None:
    """Show the widget, or hide it from sight, keyboard and screen readers alike."""
    widget.layout.display = None if shown else "none"


class Field:
    """One field: a label that belongs to its input, the input, and below it help or an error.

    ``label`` and ``help`` are our own words: front ends may set maths in a label.
    """

    def __init__(self, entry: w.Widget, *, help: str = "", width: str = "180px", classes: str = "") -> None:  # noqa: A002
        self.entry = entry
        self._help = help
        self._error = ""
        self._below = markup(self._words(), shown=bool(help))
        self.widget: w.Box = box(entry, self._below, classes=f"nbext-field {classes}", width=width, flex="0 1 auto")

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
        if text != self._error:
            self._error = text
            self._show()

    def changed(self, seen: Callable[[Any], None]) -> Field:
        """Call ``seen`` with every new value; return the field."""
        self.entry.observe(lambda change: seen(change["new"]), names="value")
        return self

    def entered(self, pressed: Callable[[], None]) -> Field:
        """Call ``pressed`` when Enter is pressed in it; return the field."""
        self.entry.on_msg(lambda _, content, __: pressed() if content.get("event") == "submit" else None)
        return self

    def _words(self) -> str:
        if self._error:
            return f'<div class="nbext-error" role="alert">{lines_html(self._error)}</div>'
        return f'<div class="nbext-help">{html(self._help, MAX_HELP)}</div>' * bool(self._help)

    def _show(self) -> None:
        self._below.value = self._words()
        visibility(self._below, bool(self._below.value))
        (self.widget.add_class if self._error else self.widget.remove_class)("nbext-wrong")


def text_field(label: str, value: str = "", *, placeholder: str = "", **options: Any) -> Field:
    """Return a field for a line of text; it says so at every keystroke."""
    return Field(w.Text(value=value, description=label, placeholder=placeholder or "\u200b"), **options)


def choice_field(label: str, choices: Iterable[tuple[str, Any]], value: Any = None, **options: Any) -> Field:
    """Return a field for one of several values, each as (what is shown, value)."""
    pairs = list(choices)
    return Field(w.Dropdown(options=pairs, value=value, description=label), **options)


def table_html(heads: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[int] = ()) -> str:
    """Return a table; every cell and head is shown literally. ``numbers``: the columns set to the right."""

    def cells(values: Sequence[object], tag: str) -> str:
        classes = [' class="nbext-number"' if index in numbers else "" for index in range(len(values))]
        return "".join(f"<{tag}{c}>{html(v)}</{tag}>" for c, v in zip(classes, values, strict=True))

    body = "".join(f"<tr>{cells(values, 'td')}</tr>" for values in rows)
    return (
        '<div class="nbext-scroll"><table class="nbext-table mathjax_ignore tex2jax_ignore">'
        f"<thead><tr>{cells(heads, 'th')}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts_html(facts: Iterable[tuple[str, object]]) -> str:
    """Return names and values as a list; every value is shown literally."""
    rows = "".join(f'<tr><th scope="row">{html(name)}</th><td>{html(value)}</td></tr>' for name, value in facts)
    return f'<table class="nbext-facts mathjax_ignore tex2jax_ignore"><tbody>{rows}</tbody></table>'


def code_html(text: str) -> str:
    """Return code that one click selects whole, ready to be copied."""
    shown = "\n".join(html(line, None) for line in text.split("\n"))
    return (
        '<pre class="nbext-code mathjax_ignore tex2jax_ignore" tabindex="0" role="group" aria-label="Code">'
        f"{shown}</pre>"
    )
