"""Inputs made from field specifications: one, or two for a pair of bounds, each with its label, help and error."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from nbext.core.untrusted_text import html, visible
from nbext.notebook.forms.schema import FieldSpec, encoded
from nbext.notebook.forms.widgets import MAX_HELP, Field, box, choice_field, markup, row, text_field, visibility

# What an input gives when it is empty: its field is left out of the query.
NOTHING = object()
_BLANK = ""


class Unfit(ValueError):
    """An input cannot show this value."""


class Input:
    """The input of one field of a condition."""

    def __init__(self, spec: FieldSpec, changed: Callable[[], None]) -> None:
        self.spec = spec
        self.fields = self._made()
        for field in self.fields.values():
            field.changed(lambda _: changed())
        self.widget = self._laid_out()

    @property
    def labelled(self) -> str:
        """The label, marked where the field must be given."""
        return self.spec.label + " *" * self.spec.required

    def _made(self) -> dict[str, Field]:
        spec = self.spec
        if spec.shape == "pair":
            return {
                key: text_field(f"{spec.label}, {key}", placeholder=_example(spec, key), width="120px")
                for key in spec.keys
            }
        if spec.shape == "choice":
            unsaid = "(the segment's)" if spec.name == "chain" else "(any)"
            blank = f"({visible(spec.default, 60)})" if spec.default else unsaid
            pairs = [(blank, _BLANK), *((visible(choice, 60), choice) for choice in spec.choices)]
            return {"": choice_field(self.labelled, pairs, _BLANK, help=spec.help, width="160px")}
        if spec.shape == "flag":
            either: list[tuple[str, Any]] = [("(either)", _BLANK), ("yes", True), ("no", False)]
            return {"": choice_field(self.labelled, either, _BLANK, help=spec.help, width="160px")}
        width = "300px" if spec.shape == "list" else "190px"
        help_text = spec.help + " Separate several by commas." * (spec.shape == "list")
        return {"": text_field(self.labelled, placeholder=_example(spec), help=help_text, width=width)}

    def _laid_out(self) -> Any:
        if self.spec.shape != "pair":
            return self.fields[""].widget
        help_line = markup(f'<div class="nbext-help">{html(self.spec.help, MAX_HELP)}</div>')
        bounds = row(*(field.widget for field in self.fields.values()))
        return box(bounds, help_line, classes="nbext-field", width="250px")

    def value(self) -> Any:
        """Return the JSON value of what was typed, or NOTHING."""
        spec = self.spec
        if spec.shape == "pair":
            typed = {key: field.value.strip() for key, field in self.fields.items()}
            return {key: encoded(text, spec.schema) for key, text in typed.items() if text} or NOTHING
        given = self.fields[""].value
        if spec.shape in ("choice", "flag"):
            return NOTHING if given == _BLANK else given
        text = given.strip()
        if spec.shape == "list":
            return [encoded(one, spec.schema) for one in re.split(r"[,\s]+", text) if one] or NOTHING
        return encoded(text, spec.schema) if text else NOTHING

    def show(self, value: Any) -> None:
        """Show a value of a query that is there already.

        Raises
        ------
        Unfit
            This input cannot give that value back.
        """
        if self.spec.shape == "pair" and isinstance(value, Mapping) and set(value) <= set(self.spec.keys):
            for key, one in value.items():
                self.fields[key].entry.value = _text(one)
        elif self.spec.shape in ("choice", "flag"):
            self._choose(value)
        elif self.spec.shape == "list" and isinstance(value, list | str):
            self.fields[""].entry.value = ", ".join(map(_text, value if isinstance(value, list) else [value]))
        elif self.spec.shape == "text":
            self.fields[""].entry.value = _text(value)
        given = self.value()
        if given is NOTHING or not _alike(given, value):
            raise Unfit(self.spec.name)

    def _choose(self, value: Any) -> None:
        entry = self.fields[""].entry
        known = [one for _, one in entry.options]
        # A chain may bear more names than the schema lists.
        if value not in known and len(self.spec.schema.get("anyOf", ())) > 1:
            entry.options = (*entry.options, (visible(_text(value), 60), value))
        elif value not in known:
            raise Unfit(self.spec.name)
        entry.value = value

    def missing(self) -> bool:
        """Say whether it must be given and is not."""
        return self.spec.required and self.value() is NOTHING

    def mark(self, pointer: str, detail: str) -> None:
        """Show what is wrong, at the bound that the rest of a pointer names."""
        key = pointer.strip("/").split("/")[0]
        (self.fields.get(key) or next(iter(self.fields.values()))).error = detail

    def unmark(self) -> None:
        """Show no error."""
        for field in self.fields.values():
            field.error = ""


class ScopeBar:
    """The inputs for the keys that stand at the top of filters only."""

    def __init__(self, specs: tuple[FieldSpec, ...], changed: Callable[[], None]) -> None:
        self.inputs = {spec.name: Input(spec, changed) for spec in specs}
        self.widget = row(*(one.widget for one in self.inputs.values()), classes="nbext-top")

    def value(self) -> dict[str, Any]:
        """Return the keys that are given."""
        given = {name: one.value() for name, one in self.inputs.items()}
        return {name: value for name, value in given.items() if value is not NOTHING}

    def show(self, value: bool) -> None:
        """Show the bar, or hide it."""
        visibility(self.widget, value)


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unfit(str(value)[:40])
    return str(value)


def _alike(given: Any, value: Any) -> bool:
    """Say whether two values are one to the service: a number and its digits are, and one value and a list of it."""
    if isinstance(given, dict) and isinstance(value, Mapping):
        return given.keys() == value.keys() and all(_alike(given[key], value[key]) for key in given)
    if isinstance(given, list):
        others = value if isinstance(value, list) else [value]
        return len(given) == len(others) and all(map(_alike, given, others))
    return given == value or (not isinstance(value, bool) and str(given) == str(value))


def _example(spec: FieldSpec, key: str | None = None) -> str:
    for example in spec.examples:
        one = example.get(key) if key is not None and isinstance(example, Mapping) else example
        if isinstance(one, list):
            one = ", ".join(str(member) for member in one[:2])
        if one is not None and not isinstance(one, Mapping):
            return f"e.g. {visible(one, 60)}"
    return ""
