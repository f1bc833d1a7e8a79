"""The query that a page edits: its tree, what the page shows of it, and what the page asks for by messages."""

from __future__ import annotations

import json
import re
import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from IPython.core.getipython import get_ipython

from nbext.core.provenance import Provenance
from nbext.core.strict_json import NotJson, parse
from nbext.core.untrusted_text import visible
from nbext.errors import NbextError, UsageError, ValidationError
from nbext.notebook import session
from nbext.notebook.forms.builder import fields, filters
from nbext.notebook.forms.builder.tree import OTHER, Edits, Group, Line, Part, Tree, copied
from nbext.notebook.forms.form import Background, Form, has_cells
from nbext.notebook.forms.markup import number_text
from nbext.notebook.forms.variable import variables
from nbext.notebook.schema import ORDER, segment_schema
from nbext.notebook.views.view import Asked, ViewPart

# So many hits of a kind fit below a field.
MOST = 8
# The kind of a query that `%nbext save` put away.
SAVED = "saved"
_CUT = 60
_SEARCHED = {"token": "token", "collection": "nft"}
_SYMBOL = re.compile(r"\w{1,32}\Z")


def hits(client: Any, kind: str, term: str, chain: str | None) -> list[dict[str, Any]]:
    """Return what a term fits, of a kind: what the field will hold, and what is shown of each.

    Of tokens and collections what the service finds; of the notebook's segments, lists of wallets and saved queries
    those whose name contains the term.
    """
    if kind not in _SEARCHED:
        return [
            {"kind": kind, "value": value, "label": label, "name": visible(name, _CUT)}
            for value, label, name in _named(kind)
            if term.lower() in label.lower()
        ]
    rows = client.search_nfts(term, chain, type=_SEARCHED[kind], limit=MOST).to_dict("records")
    symbols = Counter(str(row.get("symbol")).lower() for row in rows)

    def is_plain(row: Mapping[str, Any]) -> bool:
        # A symbol that two contracts have, or spam, would be answered with a question: their address is not.
        symbol = str(row.get("symbol"))
        named = isinstance(row.get("symbol"), str) and _SYMBOL.match(symbol)
        return bool(named) and row.get("possibleSpam") is not True and symbols[symbol.lower()] == 1

    return [
        {
            "kind": kind,
            "value": row["symbol"] if is_plain(row) else str(row.get("address")),
            "label": visible(row.get("symbol"), _CUT),
            "name": visible(row.get("name"), _CUT),
            "verified": row.get("verified") is True,
            "spam": row.get("possibleSpam") is True,
            "holders": visible(
                (held := number_text(row.get("ownerCount"))) and f"{held} holders", _CUT
            ),
        }
        for row in rows
    ]


def _named(kind: str) -> Iterable[tuple[str, str, str]]:
    """Yield value, label and name of the notebook's variables and history, each value once; or of saved queries."""
    if kind == SAVED:
        here = session.current_session()
        names = session.saved_names(here.data_dir) if here else []
        return [(name, name, "a saved query") for name in names]
    found = dict(_lists() if kind == "list" else _segments())
    return [(value, label, value) for value, label in found.items()]


def _tables() -> Iterator[tuple[str, Provenance]]:
    here = session.current_session()
    for run in reversed(here.history.runs if here else ()):
        yield f"history {run.number}", run.about
    for name, value in list(variables().items()):
        if (
            hasattr(value, "columns")
            and not name.startswith("_")
            and (known := Provenance.of(value))
        ):
            yield name, known


def _segments() -> Iterator[tuple[str, str]]:
    for name, known in _tables():
        if isinstance(found := known.segment_id, str):
            matched = known.matched
            size = f" ({matched:,} wallets)" if isinstance(matched, int) else ""
            yield found, visible(name, _CUT) + size


def _lists() -> Iterator[tuple[str, str]]:
    for _, known in _tables():
        for one, words in (known.lists or {}).items():
            yield str(one), visible(words, _CUT)
    for name, value in list(variables().items()):
        if not name.startswith("_") and (count := _wallets(value)):
            yield f"${name}", f"{visible(name, _CUT)} ({count:,} wallets)"


def _wallets(value: Any) -> int:
    """Return how many wallets a variable names, as far as its first value shows: a frame, a column, a set, a list."""
    if Provenance.of(value).segment_id:
        return 0
    if hasattr(value, "columns"):
        value = value["address"] if "address" in list(map(str, value.columns)) else ()
    if not isinstance(value, list | tuple | set | frozenset) and not hasattr(value, "to_list"):
        return 0
    first = next(iter(value), None)
    return len(value) if isinstance(first, str) and re.fullmatch(r"0x[0-9a-fA-F]{40}", first) else 0


# No field is named so: the error of a line that is written as JSON; and the number of the JSON of all lines.
_JSON = ""
WHOLE = -1
_MOST_TERM = 256
Goto = dict[str, Any] | None


class Editing(Form):
    """A form whose conditions a page edits; `changed` follows every edit."""

    def __init__(self, client: Any, query: Any) -> None:
        super().__init__(client)
        self.grammar = segment_schema(client.schema())
        # In other threads than the edits, which `editing` keeps apart: a pick that the service stores first ends
        # while something else is typed.
        self.searches = Background(self.failed)
        self.editing = threading.RLock()
        # What is wrong with each part, by its id: field, bound, what the service says of it.
        self.errors: dict[int, list[dict[str, str]]] = {}
        # What was removed by the last edit, where, in words.
        self.removed: dict[str, Any] | None = None
        tree, self.given_limit = (Tree(Group("all")), None) if query is None else self.read(query)
        self.edits = Edits(tree)
        data = (client.about() if client.is_ours else {}).get("data")
        chains = data.get("chains") if isinstance(data, Mapping) else None
        held = [str(one.get("chain")) for one in chains or () if isinstance(one, Mapping)]
        may = {"cells": has_cells(), "magics": get_ipython() is not None}
        spec = {**fields.described(self.grammar, held), **may}
        self.lines = ViewPart("lines", self.do, spec=spec, tree={}, counted={}, opened=[])

    @abstractmethod
    def cell(self) -> str:
        """Return the cell that runs this query."""

    @abstractmethod
    def changed(self) -> None:
        """Show what changed, and count it."""

    # What is read of the tree

    def read(self, query: Any) -> tuple[Tree, int | None]:
        """Return filters, a request body or a segment's table as a tree, and its limit."""
        given, operator, limit = filters.parsed(query)
        return filters.read(given, operator, {spec.name for spec in self.grammar.scope}), limit

    @property
    def operator(self) -> str:
        """AND or OR, between the lines."""
        return "AND" if self.edits.now.root.join == "all" else "OR"

    def filters(self) -> dict[str, Any]:
        """Return the filters as they are now."""
        return filters.written(self.edits.now)[0]

    def missing(self) -> str:
        """Return which required fields are empty, as one sentence, or an empty text."""
        labels = [label for _, _, label in fields.missing(self.edits.now, self.grammar)]
        return f"Still to fill in: {', '.join(dict.fromkeys(labels))}." if labels else ""

    def publish(self) -> None:
        """Show the page what there is."""
        now, given = self.edits.now, self.filters()
        body = given if self.operator == "AND" else {"operator": self.operator, "filters": given}
        scope: dict[str, Any] = {}
        for name, value in now.scope.items():
            scope |= fields.inputs_of(self.grammar.scope, {name: value}) or {}
        tree = {
            "root": self.node(now.root),
            "scope": scope,
            "orders": fields.orders(
                json.dumps(given, default=str), self.grammar, now.scope.get(ORDER)
            ),
            "json": filters.json_text(body),
            "cell": self.cell(),
            "undo": bool(self.edits.past),
            "redo": bool(self.edits.future),
            "removed": self.removed,
            "scopeErrors": self.errors.get(0, []),
            "jsonError": "".join(one["detail"] for one in self.errors.get(WHOLE, ())),
        }
        self.lines.show(tree=tree)

    def node(self, part: Part) -> dict[str, Any]:
        """Return what the page shows of a part."""
        shown = {"id": part.id, "not": part.negated, "errors": self.errors.get(part.id, [])}
        if isinstance(part, Group):
            return {
                **shown,
                "join": part.join,
                "members": [self.node(member) for member in part.members],
            }
        spec = self.grammar.conditions.get(part.key)
        inputs = fields.inputs_of(spec.fields, part.value) if spec else None
        written = filters.json_text(part.value)
        return {
            **shown,
            "key": part.key,
            "label": spec.label if spec else visible(part.key, 60),
            "fields": inputs,
            "words": fields.in_words(spec, part.value) if spec and inputs is not None else "",
            "json": written if inputs is None else "",
            "short": visible(written, 80),
        }

    def mark(self, error: ValidationError) -> None:
        """Show each error beside the field that it is about; what is about none, in the form."""
        # Pointers are those of the last writing, which is the query that the service answered.
        places = filters.written(self.edits.now)[1]
        for pointer, detail in ((one["pointer"], one["detail"]) for one in error.errors):
            # The innermost of the parts around the pointer; with the slash, /any/1 is not taken for a part of /any/10.
            around = [place for place in places if f"{pointer}/".startswith(f"{place}/")]
            near = max(around, key=len, default="/filters")
            wanted = places.get(near, 0)
            name, key = (*pointer.removeprefix(near).strip("/").split("/"), "")[:2]
            if not wanted and name not in {spec.name for spec in self.grammar.scope}:
                self.say(f"{pointer}: {detail}", "bad")
                continue
            self.errors.setdefault(wanted, []).append(
                {"field": name, "key": key, "detail": visible(detail, 500)}
            )

    # Edits

    def do(self, asked: Asked) -> None:
        """Do what a message of the page asks for; say which part the view that sent it goes to."""
        op = str(asked.get("op"))
        with self.editing:
            before, goto = self.edits.now, None
            if op in RESHAPED:
                tree, goto = RESHAPED[op](before, int(asked["id"]), asked)
                self.edit(tree)
            elif op in ACTS:
                goto = ACTS[op](self, asked)
            if self.edits.now is not before:
                self.changed()
            if goto is not None:
                self.lines.tell({"to": asked.get("from"), "op": "goto", **goto})

    def edit(self, tree: Tree, of: object = None) -> None:
        """Go to another tree, which undo takes back."""
        if self.edits.to(tree, of):
            self.removed = None

    def put(self, at: int, value: Any, of: object) -> None:
        """Give a line another value, or for 0 the whole query other keys at its top."""
        tree = self.edits.now
        if at:
            tree = tree.edited(at, lambda line: (Line(line.key, value, line.negated, line.id),))
        else:
            tree = Tree(tree.root, value)
        self.edit(tree, of)

    def add(self, key: str, value: Any = None, into: int | None = None) -> Part:
        """Add a condition or a group at the end of a group, or after a line; open it."""
        if key in OTHER:
            part: Part = Group("any" if key == "any" else "all")
        elif key == "not":
            part = Group("all", negated=True)
        else:
            part = Line(key, {} if value is None else value)
        with self.editing:
            self.edit(self.edits.now.added(part, into))
            self.lines.show(opened=[part.id])
            self.changed()
        return part


def _duplicate(tree: Tree, at: int, _: Asked) -> tuple[Tree, Goto]:
    twin = copied(tree.find(at))
    return tree.edited(at, lambda part: (part, twin)), {"goto": twin.id}


def _unwrap(tree: Tree, at: int, _: Asked) -> tuple[Tree, Goto]:
    members = getattr(tree.find(at), "members", ())
    return tree.unwrapped(at), {"goto": members[0].id if members else "add"}


# Edits of the tree alone: each returns the other tree, and where the focus goes in the view that sent it, or nothing.
RESHAPED: dict[str, Callable[[Tree, int, Asked], tuple[Tree, Goto]]] = {
    "duplicate": _duplicate,
    "move": lambda tree, at, asked: (
        tree.moved(at, 1 if asked["by"] > 0 else -1),
        {"goto": at, "keep": True},
    ),
    "wrap": lambda tree, at, _: (tree.wrapped(at), {"goto": at, "keep": True}),
    "unwrap": _unwrap,
    "negate": lambda tree, at, _: (
        tree.edited(at, lambda part: (replace(part, negated=not part.negated),)),
        None,
    ),
    "join": lambda tree, at, _: (
        tree.edited(at, lambda group: (replace(group, join=OTHER[group.join]),)),
        None,
    ),
}


def _add(form: Editing, asked: Asked) -> Goto:
    key, value, kind = str(asked["key"]), {}, asked.get("kind")
    if kind == SAVED:
        return _add_saved(form, str(asked["value"]), asked.get("into"))
    if kind:
        # A contract was picked: the condition is the one that asks for such a contract first of all.
        key, name = next(
            (spec.name, one.name)
            for spec in form.grammar.conditions.values()
            for one in spec.fields
            if one.required and fields.offered(one) == kind
        )
        value = {name: asked["value"]}
    return {"goto": form.add(key, value, asked.get("into")).id}


def _add_saved(form: Editing, name: str, into: int | None) -> Goto:
    """Add a saved query as a group; to a form without conditions as it is."""
    here, now = session.current_session(), form.edits.now
    if here is None:
        raise UsageError("Saved queries need `%load_ext nbext`.")
    tree, _ = form.read(session.saved_query(here.data_dir, name))
    if tree.scope != now.scope and (now.root.members or now.scope):
        own = (
            ", ".join(visible(f"{key}: {value}", 60) for key, value in tree.scope.items()) or "none"
        )
        raise UsageError(
            f"{name} was saved with other settings for all conditions ({own}): its wallets would not be "
            f"those that it found. `%nbext build {name}` opens it alone."
        )
    members = tree.root.members
    if not now.root.members:
        form.edit(tree)
        return {"goto": members[0].id, "keep": True} if members else None
    part = members[0] if len(members) == 1 else Group(tree.root.join, members)
    form.edit(now.added(part, into))
    return {"goto": part.id, "keep": True}


def _set(form: Editing, asked: Asked) -> None:
    tree, at, name = form.edits.now, int(asked["id"]), str(asked["field"])
    part = tree.find(at) if at else None
    value = fields.typed(fields.field_of(part, form.grammar, name), asked["value"])
    held = dict(tree.scope if part is None else part.value if isinstance(part, Line) else {})
    held.pop(name, None)
    if value is not fields.NOTHING:
        held[name] = value
    form.put(at, held, (at, name))


def _pick_list(form: Editing, asked: Asked) -> None:
    """Put a variable's wallets into a line, once the service has them."""
    at, name = int(asked["id"]), str(asked["value"])

    def store() -> None:
        value = variables()[name]
        # Few are written out, many are stored with the service once.
        stored = form.client.execute_segment({"wallet": {"in": value}}, limit=0)
        found = (Provenance.of(stored).filters or {})["wallet"]
        with form.editing:
            line = form.edits.now.find(at)
            kept = {k: v for k, v in getattr(line, "value", {}).items() if k not in ("in", "list")}
            form.put(at, {**kept, **found}, None)
            form.changed()

    form.searches.schedule(store)


def _set_json(form: Editing, asked: Asked) -> None:
    at, text = int(asked["id"]), str(asked["value"])
    try:
        # Not the operators of a cell: {{...}} in a text that is pasted must not run.
        # An amount with a fraction becomes its text, which is exact.
        value = parse(text, fraction=str)
        if at:
            form.put(at, value, (at, _JSON))
        else:
            form.edit(form.read(value)[0], "json")
    except (ValueError, NotJson, UsageError) as error:
        # While JSON is being typed it is mostly broken; the last whole value stays the query.
        form.errors[at or WHOLE] = [
            {"field": _JSON, "key": "", "detail": f"Not used: {visible(error, 200)}"}
        ]
        form.publish()
        return
    if form.errors.pop(at or WHOLE, None):
        form.publish()


def _remove(form: Editing, asked: Asked) -> Goto:
    tree, at = form.edits.now, int(asked["id"])
    parent, part = tree.parent(at), form.node(tree.find(at))
    words = part.get("label") or fields.JOIN_WORDS[part["join"]]
    form.edit(tree.edited(at, lambda _: ()))
    form.removed = {
        "parent": parent.id,
        "place": [member.id for member in parent.members].index(at),
        "words": f"{words} {part.get('words', '')}".strip(),
    }
    return {"goto": "removed"}


def _either(form: Editing, asked: Asked) -> Goto:
    """Add an empty condition like this one, in a group of both where their surroundings join otherwise."""
    tree, at = form.edits.now, int(asked["id"])
    other = Line(getattr(tree.find(at), "key", ""), {})
    same = tree.parent(at).join == "any"
    form.edit(tree.added(other, at) if same else tree.wrapped(at, other))
    form.lines.show(opened=[other.id])
    return {"goto": other.id}


def _search(form: Editing, asked: Asked) -> None:
    """Look for what was typed; the answer goes to the view that asked, under the number of its question."""
    term, kinds = str(asked["term"])[:_MOST_TERM], [str(one) for one in asked["kinds"]]
    chain = asked.get("chain") or form.edits.now.scope.get("chain")

    def search() -> None:
        try:
            found = [one for kind in kinds for one in hits(form.client, kind, term, chain)]
            form.lines.answer(asked, found=found)
        except NbextError as error:
            form.lines.answer(asked, found=[], error=visible(error, 200))

    form.searches.schedule(search)


def _undo(form: Editing, _: Asked) -> Goto:
    removed, before = form.removed, {part.id for part in form.edits.now.root.walk()}
    form.edits.undo()
    form.removed = None
    back = [part.id for part in form.edits.now.root.walk() if part.id not in before]
    return {"goto": back[0], "keep": True} if removed and back else None


def _redo(form: Editing, _: Asked) -> None:
    form.edits.redo()
    form.removed = None


ACTS: dict[str, Callable[[Any, Asked], Goto]] = {
    "add": _add,
    "set": _set,
    "json": _set_json,
    "list": _pick_list,
    "search": _search,
    "remove": _remove,
    "either": _either,
    "undo": _undo,
    "redo": _redo,
    "open": lambda form, asked: form.lines.show(opened=asked["ids"], by=asked.get("from")),
    "run": lambda form, _: form.start(),
    "insert": lambda form, asked: form.insert_cell(asked),
    "stop": lambda form, _: form.stop_counting(),
    "count": lambda form, _: form.count_again(),
}
