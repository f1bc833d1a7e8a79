"""The builder's cards: a condition with its fields, and a group that holds conditions and groups."""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ipywidgets as w

from nbext.core.untrusted_text import html, visible
from nbext.notebook.completion.schema import ConditionSpec, FieldSpec, Grammar, encoded
from nbext.notebook.forms import filter_tree
from nbext.notebook.forms.widgets import (
    MAX_HELP,
    Field,
    box,
    button,
    choice_field,
    markup,
    row,
    text_field,
    visibility,
)

# What an input gives when it is empty: its field is left out of the query.
NOTHING = object()
_BLANK = ""
# So many fields of a condition are shown at once; the others wait behind a button, unless they are filled in.
FIRST_FIELDS = 3
PAUSE = 0.05
GROUP_WORDS = {"all": "All of these", "any": "Any of these", "not": "None of these"}

QUIET = "nbext-quiet nbext-small"
Changed = Callable[[], None]
Remove = Callable[[Any], None]


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
            return {key: encoded(text, spec.accepts) for key, text in typed.items() if text} or NOTHING
        given = self.fields[""].value
        if spec.shape in ("choice", "flag"):
            return NOTHING if given == _BLANK else given
        text = given.strip()
        if spec.shape == "list":
            return [encoded(one, spec.accepts) for one in re.split(r"[,\s]+", text) if one] or NOTHING
        return encoded(text, spec.accepts) if text else NOTHING

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
        if value not in known and self.spec.takes_others:
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


class Editor(ABC):
    """A card: its widget, the key that its value stands under, and where that value was placed."""

    key: str
    widget: w.Box

    def __init__(self, changed: Changed, remove: Remove) -> None:
        self.changed = changed
        self.pointer = ""
        self.trouble = markup()
        self.bin = button("Remove", lambda _: remove(self), classes=QUIET, tip="Remove this")

    @abstractmethod
    def value(self) -> Any:
        """Return its JSON value."""

    def place(self, pointer: str) -> None:
        """Take note of the JSON pointer of its value."""
        self.pointer = pointer

    def walk(self) -> Iterator[Editor]:
        """Yield this editor and all inside it."""
        yield self

    def missing(self) -> list[str]:
        """Return the labels of what must still be filled in."""
        return []

    def mark(self, pointer: str, detail: str) -> None:
        """Show what is wrong, at the field that the rest of a pointer names, else on the card."""
        self.trouble.value = f'<div class="nbext-error" role="alert">{html(detail, 500)}</div>'

    def unmark(self) -> None:
        """Show no error."""
        self.trouble.value = ""


class ConditionEditor(Editor):
    """One condition and its fields."""

    def __init__(self, spec: ConditionSpec, changed: Changed, remove: Remove) -> None:
        super().__init__(changed, remove)
        self.spec, self.key = spec, spec.name
        self.inputs = {field.name: Input(field, changed) for field in spec.fields}
        self.more = button("More options", lambda _: self.unfold(), classes=QUIET)
        rest = list(self.inputs.values())[FIRST_FIELDS:]
        self._rest = row(*(one.widget for one in rest))
        visibility(self._rest, False)
        visibility(self.more, bool(rest))
        head = markup(f'<span class="nbext-kind">{html(spec.label)}</span> <span>{html(spec.help, MAX_HELP)}</span>')
        self.widget = box(
            row(head, self.more, self.bin, classes="nbext-head"),
            row(*(one.widget for one in list(self.inputs.values())[:FIRST_FIELDS])),
            self._rest,
            self.trouble,
            classes="nbext-card",
        )

    def unfold(self) -> None:
        """Show all fields."""
        visibility(self._rest, True)
        visibility(self.more, False)

    def value(self) -> dict[str, Any]:
        """Return the condition as JSON."""
        given = {name: one.value() for name, one in self.inputs.items()}
        return {name: value for name, value in given.items() if value is not NOTHING}

    def show(self, value: Mapping[str, Any]) -> None:
        """Fill the fields in; Unfit where this card cannot give the condition back."""
        for name, one in value.items():
            if name not in self.inputs:
                raise Unfit(name)
            self.inputs[name].show(one)
        if set(value) & set(list(self.inputs)[FIRST_FIELDS:]):
            self.unfold()

    def missing(self) -> list[str]:
        return [one.spec.label for one in self.inputs.values() if one.missing()]

    def mark(self, pointer: str, detail: str) -> None:
        name, _, rest = pointer.strip("/").partition("/")
        if name not in self.inputs:
            super().mark(pointer, detail)
            return
        if name in list(self.inputs)[FIRST_FIELDS:]:
            self.unfold()
        self.inputs[name].mark(rest, detail)

    def unmark(self) -> None:
        super().unmark()
        for one in self.inputs.values():
            one.unmark()


class TextEditor(Editor):
    """A part that no card fits, as the JSON that it is: nothing of a query that is opened gets lost."""

    def __init__(self, key: str, value: Any, changed: Changed, remove: Remove) -> None:
        super().__init__(changed, remove)
        self.key, self._last = key, value
        head = markup(f'<span class="nbext-kind">{html(key, 60)}</span>')
        self.field = Field(w.Textarea(value=filter_tree.json_text(value), description="As JSON"), width="100%")
        self.field.changed(lambda _: self._read())
        self.widget = box(
            row(head, self.bin, classes="nbext-head"), self.field.widget, self.trouble, classes="nbext-card"
        )

    def _read(self) -> None:
        try:
            self._last = json.loads(self.field.value)
        except ValueError as error:
            self.field.error = f"not JSON: {error}"
            return
        self.field.error = ""
        self.changed()

    def value(self) -> Any:
        """Return the JSON value, as it last was one."""
        return self._last


class GroupEditor(Editor):
    """A group: how its members are joined, its members, and buttons that add some."""

    def __init__(
        self, key: str, grammar: Grammar, changed: Changed, remove: Remove, *, top: bool = False
    ) -> None:
        super().__init__(changed, remove)
        self.grammar, self.key = grammar, key
        self.children: list[Editor] = []
        pairs = [(GROUP_WORDS.get(name, name), name) for name in grammar.groups]
        self.kind = choice_field("Group", pairs, key, width="150px").changed(self._rename)
        self.body = box(classes="nbext-members")
        self.widget = box(
            *([] if top else [row(self.kind.widget, self.bin, classes="nbext-head")]),
            self.body, self.trouble, self._adders(), classes="nbext-top-group" if top else "nbext-card nbext-group",
        )  # fmt: skip

    def _rename(self, key: str) -> None:
        self.key = key
        self.changed()

    def _adders(self) -> w.Box:
        conditions = [
            button(f"+ {spec.label}", self._adding(spec.name), classes=QUIET, tip=spec.help)
            for spec in self.grammar.conditions.values()
        ]
        groups = [
            button(f"+ {GROUP_WORDS.get(name, name)}", self._adding(name), classes=f"{QUIET} nbext-dashed", tip=text)
            for name, text in self.grammar.groups.items()
        ]
        return row(*conditions, *groups, classes="nbext-adders")

    def _adding(self, key: str) -> Callable[[w.Button], None]:
        def pressed(_: w.Button) -> None:
            self.add(key)

        return pressed

    def add(self, key: str, value: Any = NOTHING) -> Editor:
        """Add a condition or a group, empty or of a query that is there already."""
        editor = self._made(key, value)
        self.children.append(editor)
        self._lay_out()
        return editor

    def _made(self, key: str, value: Any) -> Editor:
        if key in self.grammar.groups:
            try:
                members = [] if value is NOTHING else filter_tree.members(key, value)
            except ValueError:
                return TextEditor(key, value, self.changed, self._drop)
            group = GroupEditor(key, self.grammar, self.changed, self._drop)
            for child, inner in members:
                group.add(child, inner)
            return group
        if key in self.grammar.conditions:
            editor = ConditionEditor(self.grammar.conditions[key], self.changed, self._drop)
            # A query that is opened makes many at once; their messages need time to be taken in.
            time.sleep(0.0 if value is NOTHING else PAUSE)
            try:
                editor.show({} if value is NOTHING else value)
            except (Unfit, AttributeError):
                return TextEditor(key, value, self.changed, self._drop)
            return editor
        return TextEditor(key, value, self.changed, self._drop)

    def _drop(self, editor: Editor) -> None:
        self.children.remove(editor)
        self._lay_out()

    def _lay_out(self) -> None:
        self.body.children = tuple(child.widget for child in self.children)
        self.changed()

    def value(self) -> Any:
        """Return the members as the group's JSON value."""
        if self.key == "not":
            return filter_tree.denied(self.children, self.pointer)
        return filter_tree.listed(self.children, self.pointer)

    def walk(self) -> Iterator[Editor]:
        yield self
        for child in self.children:
            yield from child.walk()

    def missing(self) -> list[str]:
        inner = [label for child in self.children for label in child.missing()]
        return inner if self.children else [f"a condition in {GROUP_WORDS.get(self.key, self.key)!r}"]
