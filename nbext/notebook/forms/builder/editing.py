"""The query that a page edits: its tree, what the page shows of it, and what the page asks for by messages."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from IPython.core.getipython import get_ipython

from nbext.core.provenance import Provenance
from nbext.core.strict_json import parse
from nbext.core.untrusted_text import visible
from nbext.errors import NbextError, UsageError, ValidationError
from nbext.notebook import session
from nbext.notebook.forms.builder import fields, filters
from nbext.notebook.forms.builder.tree import OTHER, Edits, FilterPart, Tree
from nbext.notebook.forms.form import Background, Form, Steps, has_cells
from nbext.notebook.forms.markup import number_text
from nbext.notebook.forms.variable import variables
from nbext.notebook.views.view import Asked, InputField, ViewPart

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
    """A form whose conditions a page edits; `changed` follows every edit.

    A message of the page whose ``op`` is NAME goes to ``do_NAME``, which returns where the focus goes in the view that
    sent it, or nothing.
    """

    def __init__(self, client: Any, query: Any) -> None:
        super().__init__(client)
        data = (client.about() if client.is_ours else {}).get("data")
        chains = data.get("chains") if isinstance(data, Mapping) else None
        held = [str(one.get("chain")) for one in chains or () if isinstance(one, Mapping)]
        self.grammar = fields.grammar_of(client.schema(), held)
        # Apart from counts, which it must not replace.
        self.searches = Background(self.failed, self.lock)
        # What is wrong with each part, by its id: field, bound, what the service says of it.
        self.errors: dict[int, list[dict[str, str]]] = {}
        tree, limit = (Tree(FilterPart("all", ())), None) if query is None else self.read(query)
        self.limit = InputField(
            "Rows, at most", str(limit or client.settings["limit"]), width="110px"
        )
        self.edits = Edits(tree)
        may = {"cells": has_cells(), "magics": get_ipython() is not None}
        spec = {**self.grammar.described(), **may}
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
        return "AND" if self.edits.now.root.key == "all" else "OR"

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
                json.dumps(given, default=str), self.grammar, now.scope.get(fields.ORDER)
            ),
            "json": filters.json_text(body),
            "cell": self.cell(),
            "undo": bool(self.edits.past),
            "redo": bool(self.edits.future),
            "removed": self.edits.removed,
            "scopeErrors": self.errors.get(0, []),
            "jsonError": "".join(one["detail"] for one in self.errors.get(WHOLE, ())),
        }
        self.lines.show(tree=tree)

    def node(self, part: FilterPart) -> dict[str, Any]:
        """Return what the page shows of a part."""
        shown = {"id": part.id, "not": part.negated, "errors": self.errors.get(part.id, [])}
        if part.is_group:
            shown |= {"join": part.key, "label": fields.JOIN_WORDS[part.key]}
            return {**shown, "members": [*map(self.node, part.members)]}
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
        with self.lock:
            before = self.edits.now
            goto = getattr(self, f"do_{asked['op']}")(asked)
            if self.edits.now is not before:
                self.changed()
            if goto is not None:
                self.lines.tell({"to": asked.get("from"), "op": "goto", **goto})

    def _part(self, asked: Asked) -> FilterPart:
        return self.edits.now.find(int(asked["id"]))

    def _instead(self, part: FilterPart, *parts: FilterPart) -> None:
        self.edits.to(self.edits.now.instead(part.id, *parts))

    def add(self, key: str, value: Any = None, into: int | None = None) -> FilterPart:
        """Add a condition or a group at the end of a group, or after a line; open it."""
        if key in (*OTHER, "not"):
            part = FilterPart("any" if key == "any" else "all", (), negated=key == "not")
        else:
            part = FilterPart(key, {} if value is None else value)
        with self.lock:
            self.edits.to(self.edits.now.added(part, into))
            self.lines.show(opened=[part.id])
            self.changed()
        return part

    def do_add(self, asked: Asked) -> Goto:
        """Add a condition or a group; the condition of a contract that was picked; or a saved query."""
        key, value, kind = str(asked["key"]), {}, asked.get("kind")
        if kind == SAVED:
            return self._add_saved(str(asked["value"]), asked.get("into"))
        if kind:
            # The condition is the one that asks for such a contract first of all.
            key, name = next(
                (spec.name, one.name)
                for spec in self.grammar.conditions.values()
                for one in spec.fields
                if one.required and one.picks == kind
            )
            value = {name: asked["value"]}
        return {"goto": self.add(key, value, asked.get("into")).id}

    def _add_saved(self, name: str, into: int | None) -> Goto:
        """Add a saved query as a group; to a form without conditions as it is."""
        here, now = session.current_session(), self.edits.now
        if here is None:
            raise UsageError("Saved queries need `%load_ext nbext`.")
        tree, _ = self.read(session.saved_query(here.data_dir, name))
        if tree.scope != now.scope and (now.root.members or now.scope):
            own = (
                ", ".join(visible(f"{key}: {value}", 60) for key, value in tree.scope.items())
                or "none"
            )
            raise UsageError(
                f"{name} was saved with other settings for all conditions ({own}): its wallets would not be "
                f"those that it found. `%nbext build {name}` opens it alone."
            )
        members = tree.root.members
        if not now.root.members:
            self.edits.to(tree)
            return {"goto": members[0].id, "keep": True} if members else None
        part = members[0] if len(members) == 1 else tree.root
        self.edits.to(now.added(part, into))
        return {"goto": part.id, "keep": True}

    def do_negate(self, asked: Asked) -> None:
        """Deny a part, or no longer."""
        part = self._part(asked)
        self._instead(part, replace(part, negated=not part.negated))

    def do_join(self, asked: Asked) -> None:
        """Have a group join its parts the other way."""
        group = self._part(asked)
        self._instead(group, replace(group, key=OTHER[group.key]))

    def do_move(self, asked: Asked) -> Goto:
        """Move a part up or down."""
        part = self._part(asked)
        self.edits.to(self.edits.now.moved(part.id, 1 if asked["by"] > 0 else -1))
        return {"goto": part.id, "keep": True}

    def do_duplicate(self, asked: Asked) -> Goto:
        """Add a copy of a part beside it."""
        part = self._part(asked)
        twin = part.copied()
        self._instead(part, part, twin)
        return {"goto": twin.id}

    def do_wrap(self, asked: Asked) -> Goto:
        """Put a part into a group of its own."""
        part = self._part(asked)
        self.edits.to(self.edits.now.wrapped(part.id))
        return {"goto": part.id, "keep": True}

    def do_unwrap(self, asked: Asked) -> Goto:
        """Put a group's parts in its place."""
        group = self._part(asked)
        if group.negated:
            raise UsageError(
                "NOT applies to the whole group. Switch it off before you take the group apart."
            )
        self._instead(group, *group.members)
        return {"goto": group.members[0].id if group.members else "add"}

    def do_either(self, asked: Asked) -> Goto:
        """Add an empty condition like this one, in a group of both where their surroundings join otherwise."""
        tree, part = self.edits.now, self._part(asked)
        other = FilterPart(part.key, {})
        same = tree.around(part.id)[0].key == "any"
        self.edits.to(tree.added(other, part.id) if same else tree.wrapped(part.id, other))
        self.lines.show(opened=[other.id])
        return {"goto": other.id}

    def do_remove(self, asked: Asked) -> Goto:
        """Remove a part, and say where it was."""
        part = self._part(asked)
        (parent, place), shown = self.edits.now.around(part.id), self.node(part)
        self._instead(part)
        words = f"{shown['label']} {shown.get('words', '')}"
        self.edits.removed = {"parent": parent.id, "place": place, "words": words.strip()}
        return {"goto": "removed"}

    def do_undo(self, _: Asked) -> Goto:
        """Go back one step; what was removed by it gets the focus."""
        removed, before = self.edits.removed, {part.id for part in self.edits.now.root.walk()}
        self.edits.undo()
        back = [part.id for part in self.edits.now.root.walk() if part.id not in before]
        return {"goto": back[0], "keep": True} if removed and back else None

    def do_redo(self, _: Asked) -> None:
        """Take back one undo."""
        self.edits.redo()

    def _put(self, at: int, value: Any, of: object = None) -> None:
        """Give a line another value, or for 0 the whole query other keys at its top."""
        tree = self.edits.now
        if at:
            self.edits.to(tree.instead(at, replace(tree.find(at), value=value)), of)
        else:
            self.edits.to(replace(tree, scope=value), of)

    def do_set(self, asked: Asked) -> None:
        """Give a field of a line, or for 0 of the whole query, what was typed or chosen."""
        at, name = int(asked["id"]), str(asked["field"])
        part = self._part(asked) if at else None
        specs = self.grammar.conditions[part.key].fields if part else self.grammar.scope
        spec = next(one for one in specs if one.name == name)
        held = dict(part.value if part else self.edits.now.scope)
        value = fields.typed(spec, asked["value"])
        held.pop(name, None)
        if value is not fields.NOTHING:
            held[name] = value
        self._put(at, held, (at, name))

    def do_list(self, asked: Asked) -> None:
        """Put a variable's wallets into a line, once the service has them."""
        at, value = int(asked["id"]), variables()[str(asked["value"])]

        def store() -> Steps:
            # Few are written out, many are stored with the service once.
            stored = yield lambda: self.client.execute_segment({"wallet": {"in": value}}, limit=0)
            found = (Provenance.of(stored).filters or {})["wallet"]
            held = self.edits.now.find(at).value
            self._put(at, {k: v for k, v in held.items() if k not in ("in", "list")} | found)
            self.changed()

        # Not in the place of a search, which the next one would take.
        Background(self.failed, self.lock).schedule(store)

    def do_json(self, asked: Asked) -> None:
        """Take the JSON of a line, or for 0 of the whole query."""
        at, text = int(asked["id"]), str(asked["value"])
        try:
            if at:
                self._put(at, parse(text, fraction=str), (at, _JSON))
            else:
                tree, limit = self.read(text)
                self.limit.type(str(limit) if limit else self.limit.value)
                self.edits.to(tree, "json")
        except (ValueError, NbextError) as error:
            # While JSON is being typed it is mostly broken; the last whole value stays the query.
            wrong = {"field": _JSON, "key": "", "detail": f"Not used: {visible(error, 200)}"}
            self.errors[at or WHOLE] = [wrong]
        else:
            if self.errors.pop(at or WHOLE, None) is None:
                return
        self.publish()

    def do_search(self, asked: Asked) -> None:
        """Look for what was typed; the answer goes to the view that asked, under the number of its question."""
        term, kinds = str(asked["term"])[:_MOST_TERM], [str(one) for one in asked["kinds"]]
        chain = asked.get("chain") or self.edits.now.scope.get("chain")

        def search() -> Steps:
            try:
                found = yield lambda: [
                    one for kind in kinds for one in hits(self.client, kind, term, chain)
                ]
                self.lines.answer(asked, found=found)
            except NbextError as error:
                self.lines.answer(asked, found=[], error=visible(error, 200))

        self.searches.schedule(search)

    def do_open(self, asked: Asked) -> None:
        """Have these lines open in all views."""
        self.lines.show(opened=asked["ids"], by=asked.get("from"))
