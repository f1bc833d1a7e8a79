"""What the page asks for by messages: edits of the tree, and the hits for what is typed.

Each function takes the form and a message, and returns where the focus goes in the view that sent it, or nothing.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from nbext.core.strict_json import NotJson, parse
from nbext.core.untrusted_text import visible
from nbext.errors import NbextError, UsageError
from nbext.notebook.forms.builder import fields, filters, pickers
from nbext.notebook.forms.builder.tree import OTHER, Edits, Group, Line, Part, Tree, copied
from nbext.notebook.forms.form import Background, Form
from nbext.notebook.schema import SegmentSchema

# No field is named so: the error of a line that is written as JSON; and the number of the JSON of all lines.
_JSON = ""
WHOLE = -1
_MOST_TERM = 256
Asked = Mapping[str, Any]
Goto = dict[str, Any] | None


class Editing(Form):
    """A form whose conditions a page edits: `view` is what the page shows of a part, `changed` follows every edit."""

    grammar: SegmentSchema
    lines: Any
    edits: Edits
    # Runs the searches of the page; in other threads than the edits, which `editing` keeps apart.
    searches: Background
    editing: threading.RLock
    # What is wrong with each part, by its id: field, bound, what the service says of it.
    errors: dict[int, list[dict[str, str]]]
    # What was removed by the last edit, where, in words.
    removed: dict[str, Any] | None

    @abstractmethod
    def view(self, part: Part) -> dict[str, Any]:
        """Return what the page shows of a part."""

    @abstractmethod
    def publish(self) -> None:
        """Show the page what there is."""

    @abstractmethod
    def changed(self) -> None:
        """Show what changed, and count it."""

    @abstractmethod
    def start(self) -> None:
        """Run the query."""

    @abstractmethod
    def insert_cell(self, view: str | None = None) -> None:
        """Insert the cell that runs the query."""

    @abstractmethod
    def stop_counting(self) -> None:
        """Stop waiting for a count."""

    @abstractmethod
    def count_again(self) -> None:
        """Count what is there now, at once."""

    def _do(self, asked: Mapping[str, Any]) -> None:
        """Do what a message of the page asks for; say which part the view that sent it goes to."""
        act = ACTS.get(str(asked.get("op")))
        if act is None:
            return
        with self.editing:
            before = self.edits.now
            goto = act(self, asked)
            if self.edits.now is not before:
                self.changed()
            if goto is not None:
                self.lines.send({"view": asked.get("view"), **goto})

    def undo(self) -> None:
        """Take back the last step."""
        with self.editing:
            self.edits.undo()
            self.removed = None
            self.changed()

    def edit(self, tree: Tree, of: object = None) -> None:
        """Go to another tree, which undo takes back."""
        if self.edits.to(tree, of):
            self.removed = None

    def add(self, key: str, value: Any = None, into: int | None = None) -> Part:
        """Add a condition or a group at the end of a group, or after a line; open it."""
        if key in OTHER:
            part: Part = Group("any" if key == "any" else "all")
        elif key == "not":
            part = Group("all", negated=True)
        else:
            part = Line(key, {} if value is None else value)
        with self.editing:
            self.edit(self.edits.now.added(part, self.edits.now.root.id if into is None else into))
            self.lines.opened = [part.id]
            self.changed()
        return part


def _added(form: Editing, asked: Asked) -> Goto:
    key, value = str(asked["key"]), {}
    if asked.get("kind") == pickers.SAVED:
        return _added_query(form, str(asked["value"]), asked.get("into"))
    if kind := asked.get("kind"):
        # A contract was picked: the condition is the one that asks for such a contract first of all.
        key, name = next(
            (spec.name, one.name)
            for spec in form.grammar.conditions.values()
            for one in spec.fields
            if one.required and fields.offered(one) == kind
        )
        value = {name: asked["value"]}
    return {"goto": form.add(key, value, asked.get("into")).id}


def _added_query(form: Editing, name: str, into: int | None) -> Goto:
    """Add a saved query as a group; to a form without conditions as it is."""
    given, operator, _ = filters.parsed(pickers.saved(name))
    tree, now = (
        filters.read(given, operator, {spec.name for spec in form.grammar.scope}),
        form.edits.now,
    )
    if tree.scope != now.scope and (now.root.members or now.scope):
        own = (
            ", ".join(visible(f"{key}: {value}", 60) for key, value in tree.scope.items()) or "none"
        )
        raise UsageError(
            f"{name} was saved with other settings for all conditions ({own}): its wallets would not be "
            f"those that it found. `%nbext build {name}` opens it alone."
        )
    if not now.root.members:
        form.edit(tree)
        return {"goto": tree.root.members[0].id, "keep": True} if tree.root.members else None
    part = (
        tree.root.members[0]
        if len(tree.root.members) == 1
        else Group(tree.root.join, tree.root.members)
    )
    form.edit(now.added(part, now.root.id if into is None else into))
    return {"goto": part.id, "keep": True}


def _set(form: Editing, asked: Asked) -> None:
    tree, wanted, name = form.edits.now, int(asked["id"]), str(asked["field"])
    part = tree.find(wanted) if wanted else None
    value = fields.typed(fields.field_of(part, form.grammar, name), asked["value"])
    held = dict(tree.scope if part is None else part.value if isinstance(part, Line) else {})
    if value is fields.NOTHING:
        held.pop(name, None)
    else:
        held[name] = value
    _put(form, wanted, held, (wanted, name))


def _put(form: Editing, wanted: int, value: Any, of: object) -> None:
    tree = form.edits.now
    if not wanted:
        form.edit(Tree(tree.root, value), of)
    else:
        form.edit(
            tree.edited(wanted, lambda line: (Line(line.key, value, line.negated, line.id),)), of
        )


def _pick_list(form: Editing, asked: Asked) -> None:
    """Put a variable's wallets into a line, once the service has them."""
    wanted, name = int(asked["id"]), str(asked["value"])

    def store() -> None:
        found = pickers.stored(form.client, name)
        with form.editing:
            line = form.edits.now.find(wanted)
            kept = {k: v for k, v in getattr(line, "value", {}).items() if k not in ("in", "list")}
            _put(form, wanted, {**kept, **found}, None)
            form.changed()

    form.searches.schedule(store)


def _set_json(form: Editing, asked: Asked) -> None:
    wanted, text = int(asked["id"]), str(asked["value"])
    try:
        # Not the operators of a cell: {{...}} in a text that is pasted must not run.
        # An amount with a fraction becomes its text, which is exact.
        value = parse(text, fraction=str)
        if wanted:
            _put(form, wanted, value, (wanted, _JSON))
        else:
            given, operator, _ = filters.parsed(value)
            tree = filters.read(given, operator, {spec.name for spec in form.grammar.scope})
            form.edit(tree, "json")
    except (ValueError, NotJson, UsageError) as error:
        # While JSON is being typed it is mostly broken; the last whole value stays the query.
        form.errors[wanted or WHOLE] = [
            {"field": _JSON, "key": "", "detail": f"Not used: {visible(error, 200)}"}
        ]
        form.publish()
        return
    if form.errors.pop(wanted or WHOLE, None):
        form.publish()


def _remove(form: Editing, asked: Asked) -> Goto:
    tree, wanted = form.edits.now, int(asked["id"])
    parent = tree.parent(wanted)
    place = [member.id for member in parent.members].index(wanted)
    part = form.view(tree.find(wanted))
    words = part.get("label") or fields.JOIN_WORDS[part["join"]]
    form.edit(tree.edited(wanted, lambda _: ()))
    form.removed = {
        "parent": parent.id,
        "place": place,
        "words": f"{words} {part.get('words', '')}".strip(),
    }
    return {"goto": "removed"}


def _duplicate(form: Editing, asked: Asked) -> Goto:
    twin = copied(form.edits.now.find(int(asked["id"])))
    form.edit(form.edits.now.edited(int(asked["id"]), lambda part: (part, twin)))
    return {"goto": twin.id}


def _either(form: Editing, asked: Asked) -> Goto:
    """Add an empty condition like this one, in a group of both where their surroundings join otherwise."""
    tree, wanted = form.edits.now, int(asked["id"])
    line = tree.find(wanted)
    other = Line(line.key if isinstance(line, Line) else "", {})
    same = tree.parent(wanted).join == "any"
    form.edit(tree.added(other, wanted) if same else tree.wrapped(wanted, other))
    form.lines.opened = [other.id]
    return {"goto": other.id}


def _moved(form: Editing, asked: Asked) -> Goto:
    form.edit(form.edits.now.moved(int(asked["id"]), 1 if asked["by"] > 0 else -1))
    return {"goto": asked["id"], "keep": True}


def _wrapped(form: Editing, asked: Asked) -> Goto:
    form.edit(form.edits.now.wrapped(int(asked["id"])))
    return {"goto": asked["id"], "keep": True}


def _unwrapped(form: Editing, asked: Asked) -> Goto:
    first = form.edits.now.find(int(asked["id"]))
    form.edit(form.edits.now.unwrapped(first.id))
    return {"goto": first.members[0].id if isinstance(first, Group) and first.members else "add"}


def _negated(form: Editing, asked: Asked) -> None:
    form.edit(
        form.edits.now.edited(
            int(asked["id"]), lambda part: (replace(part, negated=not part.negated),)
        )
    )


def _joined(form: Editing, asked: Asked) -> None:
    form.edit(
        form.edits.now.edited(
            int(asked["id"]), lambda group: (replace(group, join=OTHER[group.join]),)
        )
    )


def _searched(form: Editing, asked: Asked) -> None:
    """Look for what was typed; the answer goes to the view that asked, under the number of its question."""
    term, kinds = str(asked["term"])[:_MOST_TERM], [str(one) for one in asked["kinds"]]
    chain = asked.get("chain") or form.edits.now.scope.get("chain")

    def search() -> None:
        answer = {"view": asked.get("view"), "answers": asked.get("number")}
        try:
            found: list[dict[str, Any]] = []
            for kind in kinds:
                contract = kind in ("token", "collection")
                some = (
                    pickers.contracts(form.client, kind, term, chain)
                    if contract
                    else pickers.named(kind)
                )
                found += [one for one in some if contract or term.lower() in one["label"].lower()]
            form.lines.send({**answer, "found": found})
        except NbextError as error:
            form.lines.send({**answer, "found": [], "error": visible(error, 200)})

    form.searches.schedule(search)


def _undone(form: Editing, asked: Asked) -> Goto:
    removed, before = form.removed, {part.id for part in form.edits.now.root.walk()}
    form.edits.undo()
    form.removed = None
    back = [part.id for part in form.edits.now.root.walk() if part.id not in before]
    return {"goto": back[0], "keep": True} if removed and back else None


def _redone(form: Editing, asked: Asked) -> None:
    form.edits.redo()
    form.removed = None


def _run(form: Editing, asked: Asked) -> None:
    form.once_typed(form.start)()


def _insert(form: Editing, asked: Asked) -> None:
    form.once_typed(lambda: form.insert_cell(str(asked["view"]) if asked.get("here") else None))()


ACTS: dict[str, Callable[[Editing, Asked], Goto]] = {
    "add": _added,
    "set": _set,
    "json": _set_json,
    "list": _pick_list,
    "search": _searched,
    "remove": _remove,
    "duplicate": _duplicate,
    "either": _either,
    "move": _moved,
    "wrap": _wrapped,
    "unwrap": _unwrapped,
    "negate": _negated,
    "join": _joined,
    "undo": _undone,
    "redo": _redone,
    "run": _run,
    "insert": _insert,
    "stop": lambda form, _: form.stop_counting(),
    "count": lambda form, _: form.count_again(),
}
