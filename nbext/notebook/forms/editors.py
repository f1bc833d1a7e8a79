"""The builder's cards: a field's input, a condition with its fields, a group that holds conditions and groups."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import ipywidgets as w

from nbext.core.untrusted_text import html, visible
from nbext.notebook.completion import schema
from nbext.notebook.completion.schema import ORDER, ConditionSpec, FieldSpec, Grammar, encoded
from nbext.notebook.forms import filter_tree
from nbext.notebook.forms.widgets import (
    MAX_HELP,
    Field,
    Line,
    box,
    button,
    choice_field,
    error_html,
    making,
    markup,
    row,
    several_field,
    text_field,
    visibility,
)

# The value of an empty input: its field is left out of the query.
NOTHING = object()
_BLANK = ""
_WAYS = (("largest", "-"), ("smallest", ""))
# A condition shows this many fields at first. The others wait behind a button unless they are filled in: a transfer
# has eleven, and a screen of empty inputs hides the two that matter.
FIRST_FIELDS = 3
GROUP_WORDS = {"all": "All of these", "any": "Any of these", "not": "None of these"}
QUIET = "nbext-quiet nbext-small"
Changed = Callable[[], None]
Remove = Callable[[Any], None]


class Unfit(ValueError):
    """An input cannot show this value."""


class Input:
    """The input of one field of a condition: one widget, or one for each bound of a pair.

    Its widgets are made by `build`; before that its value is NOTHING, and it costs the front end nothing.
    """

    def __init__(self, spec: FieldSpec, changed: Changed) -> None:
        self.spec = spec
        self.changed = changed
        self.fields: dict[str, Field] = {}
        self.widget: w.Box | None = None
        self._offering = False

    def build(self) -> w.Box:
        """Return its widget, made at the first call."""
        with making:
            if self.widget is None:
                pair = self.spec.shape == "pair"
                self.fields = {key: self._bound(key) for key in self.spec.keys} if pair else {"": self._single()}
                inputs = [field.changed(lambda _: self._was_changed()).widget for field in self.fields.values()]
                if pair:
                    help_line = markup(f'<div class="nbext-help">{html(self.spec.help, MAX_HELP)}</div>')
                    self.widget = box(row(*inputs), help_line, classes="nbext-field", width="250px")
                else:
                    self.widget = inputs[0]
        return self.widget

    def _single(self) -> Field:
        spec = self.spec
        label = spec.label + " *" * spec.required
        if spec.shape == "choice":
            unset = "(the segment's)" if spec.name == "chain" else "(any)"
            blank = f"({visible(spec.default, 60)})" if spec.default else unset
            pairs = [(blank, _BLANK), *((visible(choice, 60), choice) for choice in spec.choices)]
            return choice_field(label, pairs, _BLANK, help=spec.help, width="160px")
        if spec.shape == "flag":
            either: list[tuple[str, Any]] = [("(either)", _BLANK), ("yes", True), ("no", False)]
            return choice_field(label, either, _BLANK, help=spec.help, width="160px")
        if spec.shape == "several":
            return several_field(label, spec.choices, help=spec.help, width="160px")
        if spec.shape == "order":
            return choice_field(label, [("(address)", _BLANK)], _BLANK, help=spec.help, width="220px")
        is_list = spec.shape == "list"
        help_text = spec.help + " Separate several by commas." * is_list
        return text_field(label, placeholder=_example(spec), help=help_text, width="300px" if is_list else "190px")

    def _was_changed(self) -> None:
        if not self._offering:
            self.changed()

    def _bound(self, key: str) -> Field:
        return text_field(f"{self.spec.label}, {key}", placeholder=_example(self.spec, key), width="120px")

    def value(self) -> Any:
        """Return the JSON value of what was typed, or NOTHING."""
        spec = self.spec
        if not self.fields:
            return NOTHING
        if spec.shape == "pair":
            typed = {key: field.value.strip() for key, field in self.fields.items()}
            return {key: encoded(text, spec.accepts) for key, text in typed.items() if text} or NOTHING
        given = self.fields[""].value
        if spec.shape == "several":
            return list(given) or NOTHING
        if spec.shape in ("choice", "flag", "order"):
            return NOTHING if given == _BLANK else given
        text = given.strip()
        if spec.shape == "list":
            # Addresses are pasted from sheets and chats: commas, blanks and line breaks all separate them.
            return [encoded(one, spec.accepts) for one in re.split(r"[,\s]+", text) if one] or NOTHING
        return encoded(text, spec.accepts) if text else NOTHING

    def show(self, value: Any) -> None:
        """Show a value of an existing query; raise Unfit where this input cannot give that value back."""
        self.build()
        if self.spec.shape == "pair" and isinstance(value, Mapping) and set(value) <= set(self.spec.keys):
            for key, one in value.items():
                self.fields[key].entry.value = _text(one)
        elif self.spec.shape in ("choice", "flag", "order"):
            self._choose(value)
        elif self.spec.shape == "several" and isinstance(value, list) and set(value) <= set(self.spec.choices):
            self.fields[""].entry.value = tuple(value)
        elif self.spec.shape == "list" and isinstance(value, list | str):
            self.fields[""].entry.value = ", ".join(map(_text, value if isinstance(value, list) else [value]))
        elif self.spec.shape == "text":
            self.fields[""].entry.value = _text(value)
        # Read back what the input now holds: only a value that survives the round trip may be edited here. The
        # others stay JSON, so that opening a query and inserting its cell never changes what it asks.
        given = self.value()
        if given is NOTHING or not _alike(given, value):
            raise Unfit(self.spec.name)

    def _choose(self, value: Any) -> None:
        entry = self.fields[""].entry
        known = [one for _, one in entry.options]
        if value not in known and not (self.spec.takes_others and isinstance(value, str | int)):
            raise Unfit(self.spec.name)
        if value not in known:
            entry.options = (*entry.options, (visible(_text(value), 60), value))
        entry.value = value

    def offer(self, columns: Iterable[str]) -> None:
        """Offer these columns to order by, beside what is chosen."""
        if not self.fields:
            return
        entry = self.fields[""].entry
        chosen = entry.value
        ways = [(f"{name}, {way} first", sign + name) for name in columns for way, sign in _WAYS]
        options = [("(address)", _BLANK), *(way for way in ways if way[1] != "address")]
        options += [] if chosen in [value for _, value in options] else [(visible(chosen, 60), chosen)]
        if tuple(options) != tuple(entry.options):
            # New options choose the first of them, which nobody did.
            self._offering = True
            entry.options, entry.value = options, chosen
            self._offering = False

    def mark(self, pointer: str, detail: str) -> None:
        """Show an error at the bound that the rest of a pointer names, else at the first one."""
        self.build()
        key = pointer.strip("/").split("/")[0]
        (self.fields.get(key) or next(iter(self.fields.values()))).error = detail

    def unmark(self) -> None:
        """Show no error."""
        for field in self.fields.values():
            field.error = ""


class ScopeBar:
    """The inputs for the keys that belong at the top of filters only."""

    def __init__(self, specs: tuple[FieldSpec, ...], changed: Changed) -> None:
        self.inputs = {spec.name: Input(spec, changed) for spec in specs}
        self.widget = row(classes="nbext-top")

    def value(self) -> dict[str, Any]:
        """Return the keys that are given."""
        return _given(self.inputs)

    def offer(self, filters: str) -> None:
        """Offer the columns that the rows of some filters have, where they can be ordered by one."""
        if ORDER in self.inputs and self.inputs[ORDER].spec.shape == "order":
            facts = self.inputs["columns"].spec.choices if "columns" in self.inputs else ()
            self.inputs[ORDER].offer(schema.columns(filters, facts))

    def unfold(self) -> None:
        """Show the inputs."""
        self.widget.children = [one.build() for one in self.inputs.values()]


class Editor(ABC):
    """A card: its widget, the key of its value, and the JSON pointer at which the value was last written."""

    key: str
    label: str
    widget: w.Box

    def __init__(self, changed: Changed, remove: Remove) -> None:
        self.changed = changed
        self.pointer = ""
        self.remove_button = button("Remove", lambda _: remove(self), classes=QUIET, tip="Remove this")

    def lay_out(self, *children: w.Widget, classes: str = "nbext-card") -> None:
        """Make the card of the widgets, with room for an error below them."""
        self.widget = box(*children, classes=classes)
        self.error = Line(self.widget)

    @abstractmethod
    def value(self) -> Any:
        """Return its JSON value."""

    def place(self, pointer: str) -> None:
        """Remember the JSON pointer of its value: the service names errors by pointers."""
        self.pointer = pointer

    def walk(self) -> Iterator[Editor]:
        """Yield this editor and all inside it."""
        yield self

    def missing(self) -> list[str]:
        """Return the labels of required fields that are empty."""
        return []

    def mark(self, pointer: str, detail: str) -> None:
        """Show an error at the field that the rest of a pointer names, else on the card."""
        self.error.show(error_html(detail))

    def unmark(self) -> None:
        """Show no error."""
        self.error.show("")


class ConditionEditor(Editor):
    """One condition and its fields."""

    def __init__(self, spec: ConditionSpec, changed: Changed, remove: Remove) -> None:
        super().__init__(changed, remove)
        self.spec, self.key, self.label = spec, spec.name, spec.label
        self.inputs = {field.name: Input(field, changed) for field in spec.fields}
        self.rest = list(self.inputs)[FIRST_FIELDS:]
        self.more = button("More options", lambda _: self.unfold(), classes=QUIET)
        visibility(self.more, bool(self.rest))
        head = markup(f'<span class="nbext-kind">{html(spec.label)}</span> <span>{html(spec.help, MAX_HELP)}</span>')
        first = [self.inputs[name].build() for name in self.inputs if name not in self.rest]
        self.fields = row(*first)
        self.lay_out(row(head, self.more, self.remove_button, classes="nbext-head"), self.fields)

    def unfold(self) -> None:
        """Show all fields."""
        self.fields.children = [one.build() for one in self.inputs.values()]
        visibility(self.more, False)

    def value(self) -> dict[str, Any]:
        """Return the condition as JSON."""
        return _given(self.inputs)

    def show(self, value: Any) -> None:
        """Fill the fields in; raise Unfit where this card cannot give the value back."""
        if not isinstance(value, Mapping) or not set(value) <= set(self.inputs):
            raise Unfit(self.key)
        for name, one in value.items():
            self.inputs[name].show(one)
        if set(value) & set(self.rest):
            self.unfold()

    def missing(self) -> list[str]:
        return [one.spec.label for one in self.inputs.values() if one.spec.required and one.value() is NOTHING]

    def mark(self, pointer: str, detail: str) -> None:
        name, _, rest = pointer.strip("/").partition("/")
        if name not in self.inputs:
            super().mark(pointer, detail)
            return
        # An error on a field that is folded away would mark nothing that anybody sees.
        if name in self.rest:
            self.unfold()
        self.inputs[name].mark(rest, detail)

    def unmark(self) -> None:
        super().unmark()
        for one in self.inputs.values():
            one.unmark()


class TextEditor(Editor):
    """A part that fits no card, as JSON text: nothing of a query that is opened gets lost."""

    def __init__(self, key: str, value: Any, changed: Changed, remove: Remove) -> None:
        super().__init__(changed, remove)
        self.key, self.label, self._last = key, key, value
        head = markup(f'<span class="nbext-kind">{html(key, 60)}</span>')
        self.field = Field(w.Textarea(value=filter_tree.json_text(value), description="As JSON"), width="100%")
        self.field.changed(lambda _: self._read())
        self.lay_out(row(head, self.remove_button, classes="nbext-head"), self.field.widget)

    def _read(self) -> None:
        try:
            self._last = json.loads(self.field.value)
        except ValueError as error:
            # While JSON is being typed it is mostly broken; the last whole value stays part of the query.
            self.field.error = f"Not JSON: {error}"
            return
        self.field.error = ""
        self.changed()

    def value(self) -> Any:
        """Return the JSON value, as it last was one."""
        return self._last


class GroupEditor(Editor):
    """A group: how its members are joined, its members, and buttons that add some."""

    def __init__(self, key: str, grammar: Grammar, changed: Changed, remove: Remove, *, top: bool = False) -> None:
        super().__init__(changed, remove)
        self.grammar, self.key, self.label = grammar, key, GROUP_WORDS.get(key, key)
        self.children: list[Editor] = []
        # What was removed last, and where it was: a line with Undo stands in its place.
        self.removed: tuple[int, Editor] | None = None
        self.gone = Gone(self.undo)
        self.body = box(classes="nbext-members")
        if top:
            self.lay_out(self.body, self._adders(), classes="nbext-top-group")
        else:
            pairs = [(GROUP_WORDS.get(name, name), name) for name in grammar.groups]
            kind = choice_field("Group", pairs, key, width="150px").changed(self._rename)
            head = row(kind.widget, self.remove_button, classes="nbext-head")
            self.lay_out(head, self.body, self._adders(), classes="nbext-card nbext-group")

    def _rename(self, key: str) -> None:
        self.key, self.label = key, GROUP_WORDS.get(key, key)
        self.changed()

    def _adders(self) -> w.Box:
        conditions = [self._adder(name, one.label, one.help) for name, one in self.grammar.conditions.items()]
        groups = [
            self._adder(name, GROUP_WORDS.get(name, name), text, f"{QUIET} nbext-dashed")
            for name, text in self.grammar.groups.items()
        ]
        return row(*conditions, *groups, classes="nbext-adders")

    def _adder(self, key: str, label: str, tip: str, classes: str = QUIET) -> w.Button:
        return button(f"+ {label}", lambda _: self.add(key), classes=classes, tip=tip)

    def add(self, key: str, value: Any = NOTHING) -> Editor:
        """Add an empty condition or group."""
        return self.add_all([(key, value)])[-1]

    def add_all(self, parts: Iterable[tuple[str, Any]]) -> list[Editor]:
        """Add conditions and groups of an existing query, and lay the group out once."""
        added = [self._made(key, value) for key, value in parts]
        # Laid out once for all: each change of a box's children is a message with the whole list of them.
        self.children += added
        self.removed = None
        self._lay_out()
        return added

    def _made(self, key: str, value: Any) -> Editor:
        try:
            if key in self.grammar.groups:
                members = [] if value is NOTHING else filter_tree.members(key, value)
                group = GroupEditor(key, self.grammar, self.changed, self._drop)
                group.add_all(members)
                return group
            if spec := self.grammar.conditions.get(key):
                condition = ConditionEditor(spec, self.changed, self._drop)
                condition.show({} if value is NOTHING else value)
                return condition
        except ValueError:
            # Wrong in a way that the service explains better than a card could.
            pass
        # Of a newer grammar, too: what no card fits stays as the JSON that it is.
        return TextEditor(key, value, self.changed, self._drop)

    def _drop(self, editor: Editor) -> None:
        self.removed = self.children.index(editor), editor
        self.children.remove(editor)
        self._lay_out()
        self.gone.undo.focus()

    def undo(self) -> None:
        """Put what was removed last back where it was."""
        if self.removed:
            self.children.insert(*self.removed)
            self.removed = None
            self._lay_out()

    def _lay_out(self) -> None:
        shown = [child.widget for child in self.children]
        if self.removed:
            place, editor = self.removed
            shown.insert(place, self.gone.line(editor))
        self.body.children = shown
        self.changed()

    def value(self) -> Any:
        """Return the members as the group's JSON value."""
        write = filter_tree.denied if self.key == "not" else filter_tree.listed
        return write(self.children, self.pointer)

    def walk(self) -> Iterator[Editor]:
        yield self
        for child in self.children:
            yield from child.walk()

    def missing(self) -> list[str]:
        inner = [label for child in self.children for label in child.missing()]
        return inner if self.children else [f"a condition in {self.label!r}"]


class Gone:
    """The line in place of what was removed.

    As high as the head of a card, and without a button where that has one: the second click of a double click on
    Remove would fall on the next card's.
    """

    def __init__(self, undo: Callable[[], None]) -> None:
        self.text = markup()
        self.undo = button("Undo", lambda _: undo(), classes=QUIET, tip="Put it back")
        self.widget = row(self.undo, self.text, classes="nbext-card nbext-head")

    def line(self, editor: Editor) -> w.Box:
        """Return the line for an editor."""
        self.text.value = f'<span role="status">Removed: {html(editor.label, 60)}</span>'
        return self.widget


def _given(inputs: Mapping[str, Input]) -> dict[str, Any]:
    """Return the values of the inputs that hold one."""
    values = {name: one.value() for name, one in inputs.items()}
    return {name: value for name, value in values.items() if value is not NOTHING}


def _text(value: Any) -> str:
    # A float is refused: its text may differ from what the query holds.
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unfit(str(value)[:40])
    return str(value)


def _alike(given: Any, value: Any) -> bool:
    """Return whether two values are one to the service: a number and its digits are, a value and a list of it too."""
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
