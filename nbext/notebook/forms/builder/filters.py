"""A segment's filters as a tree of parts: edited, undone and redone, read and written; the cell that runs them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nbext.core.provenance import Provenance
from nbext.core.rules import MAX_LIMIT, one_of
from nbext.core.strict_json import below, parse
from nbext.core.untrusted_text import visible
from nbext.core.wire import EXECUTE_KEYS
from nbext.errors import UsageError
from nbext.notebook.cell.body import laid_out

# How a group joins its parts, and the other way.
OTHER = {"all": "any", "any": "all"}
# Steps that undo goes back.
MOST_STEPS = 500
# The number of the part that holds the keys at the top of filters.
SCOPE = 0
_ids = itertools.count(1)
# A line of JSON is at most so long: a notebook's cell is about that wide.
WIDTH = 80
JOINS = {"AND": "all", "OR": "any"}


@dataclass
class FilterPart:
    """A condition with its JSON value, which an edit replaces whole; a copy with the same id is the same part.

    What is no condition of the grammar is a part too, as it is.
    """

    key: str
    value: Any
    negated: bool = False
    id: int = field(default_factory=lambda: next(_ids), compare=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> FilterPart:
        # Hundreds of steps share the values that did not change.
        is_group = isinstance(self, FilterGroup)
        return replace(self, value=deepcopy(self.value, memo) if is_group else self.value)

    @property
    def members(self) -> list[FilterPart]:
        """The parts inside it: a condition has none."""
        return self.value if isinstance(self, FilterGroup) else []

    def walk(self) -> Iterator[FilterPart]:
        """Yield the part and all inside it, in order."""
        yield self
        for member in self.members:
            yield from member.walk()

    def copied(self) -> FilterPart:
        """Return the part as another one: every id in it is new."""
        twin = deepcopy(self)
        for part in twin.walk():
            part.id = next(_ids)
        return twin


class FilterGroup(FilterPart):
    """A group, ``all`` or ``any``, whose value is the list of its parts."""

    value: list[FilterPart]


@dataclass
class Tree:
    """A query's conditions, and the keys that belong at the top of filters only."""

    root: FilterGroup
    scope: FilterPart = field(default_factory=lambda: FilterPart("", {}, id=SCOPE))

    def walk(self) -> Iterator[FilterPart]:
        """Yield every part, in order."""
        yield self.scope
        yield from self.root.walk()

    def find(self, wanted: int) -> FilterPart:
        """Return the part of an id; `UsageError` where it is gone, as in a view that is behind."""
        for part in self.walk():
            if part.id == wanted:
                return part
        raise UsageError("This condition is gone already.")

    def around(self, wanted: int) -> tuple[FilterPart, int, FilterPart]:
        """Return the group that a part is in, its place there, and the part; `UsageError` where it is gone."""
        for group in self.walk():
            for place, part in enumerate(group.members):
                if part.id == wanted:
                    return group, place, part
        raise UsageError("This condition is gone already.")

    def add(self, part: FilterPart, into: int | None = None) -> None:
        """Add a part at the end of a group, by default of the outermost."""
        group = self.root if into is None else self.find(into)
        group.value.append(part)

    def move(self, wanted: int, by: int) -> None:
        """Move a part one place up (-1) or down (1): past a line, into a group, or out of its own."""
        group, place, part = self.around(wanted)
        to = place + by
        if 0 <= to < len(group.members):
            del group.members[place]
            # It moved up to where the other one was, or the other one moved up to where it was.
            past = group.members[min(place, to)]
            if isinstance(past, FilterGroup):
                past.members.insert(0 if by > 0 else len(past.members), part)
            else:
                group.members.insert(to, part)
        elif group is not self.root:
            outer, at, _ = self.around(group.id)
            del group.members[place]
            outer.members.insert(at + (by > 0), part)


class Edits:
    """A tree that is edited in place, and its steps: as it was before, and what was undone."""

    def __init__(self, tree: Tree) -> None:
        self.now = tree
        self.steps = [deepcopy(tree)]
        self.at = 0
        self._of: object = None

    @property
    def step(self) -> Tree:
        """The tree as it was when it last changed, which no edit changes any more."""
        return self.steps[self.at]

    def settle(self, of: object = None) -> bool:
        """Make a step of what changed; return whether anything did. Typing ``of`` the same field goes on with one."""
        if self.now == self.step:
            return False
        goes_on = of is not None and of == self._of
        self.steps[self.at + (not goes_on) :] = [deepcopy(self.now)]
        del self.steps[: -MOST_STEPS - 1]
        self.at, self._of = len(self.steps) - 1, of
        return True

    def go(self, by: int) -> None:
        """Undo a step (-1) or take that back (1), where there is one."""
        self.at = min(max(self.at + by, 0), len(self.steps) - 1)
        self.now, self._of = deepcopy(self.step), None


def written(tree: Tree) -> tuple[dict[str, Any], dict[str, int]]:
    """Return a tree's filters, and whose value is at which JSON pointer, in the order of the filters."""
    places: dict[str, int] = {}
    return {**tree.scope.value, **_joined(tree.root, "/filters", places)}, places


def read(filters: Mapping[str, Any], operator: str, scope: Collection[str]) -> Tree:
    """Return filters as a tree; what is of no known form is a line with its JSON."""
    parts = {key: value for key, value in filters.items() if key not in scope}
    rest = {key: value for key, value in filters.items() if key in scope}
    root = FilterGroup(JOINS[operator], list(_split(parts)))
    return Tree(root, FilterPart("", rest, id=SCOPE))


def _joined(root: FilterGroup, pointer: str, places: dict[str, int]) -> dict[str, Any]:
    """Return a group as one object, and place each of its parts.

    Conditions of one name make a list. An object cannot hold two groups of one name: then all parts go into a list
    under ``all`` or ``any``, which means the same as the operator.
    """
    by_key: dict[str, list[FilterPart]] = {}
    for part in root.members:
        by_key.setdefault(_key(part), []).append(part)
    if any(len(same) > 1 for key, same in by_key.items() if key in OTHER):
        return {root.key: _listed(root.members, f"{pointer}/{root.key}", places)}
    made = {}
    for key, same in by_key.items():
        at, one = below(pointer, key), len(same) == 1
        values = [
            _value(part, at if one else f"{at}/{index}", places) for index, part in enumerate(same)
        ]
        made[key] = values[0] if one else values
    return made


def _listed(
    parts: Sequence[FilterPart], pointer: str, places: dict[str, int]
) -> list[dict[str, Any]]:
    return [_one(part, f"{pointer}/{index}", places) for index, part in enumerate(parts)]


def _one(part: FilterPart, pointer: str, places: dict[str, int]) -> dict[str, Any]:
    """Return a part as an object of one key."""
    key = _key(part)
    return {key: _value(part, below(pointer, key), places)}


def _key(part: FilterPart) -> str:
    return "not" if part.negated else part.key


def _value(part: FilterPart, pointer: str, places: dict[str, int]) -> Any:
    # Before what is inside: an error at a group's own pointer is the group's.
    places[pointer] = part.id
    if part.negated:
        return _one(replace(part, negated=False), pointer, places)
    if isinstance(part, FilterGroup):
        return _listed(part.members, pointer, places)
    return part.value


def _split(filters: Mapping[str, Any]) -> Iterator[FilterPart]:
    """Yield the children of an object as parts; the conditions of a list one by one."""
    for key, value in filters.items():
        many = isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)
        yield from map(partial(_part, key), value if many and key not in OTHER else [value])


def _part(key: str, value: Any) -> FilterPart:
    try:
        if key == "not":
            inner = _member(value)
            # NOT of a NOT: the outer one is that of a group of one.
            return replace(FilterGroup("all", [inner]) if inner.negated else inner, negated=True)
        if key in OTHER and isinstance(value, list) and value:
            return FilterGroup(key, list(map(_member, value)))
    except ValueError:
        # Wrong in a way that the service explains better than a form could.
        pass
    return FilterPart(key, value)


def _member(member: Any) -> FilterPart:
    """Return an object as one part: of several keys, the group ``all`` of them."""
    if not isinstance(member, Mapping) or not member:
        raise ValueError("a condition is an object")
    parts = list(_split(member))
    return parts[0] if len(parts) == 1 else FilterGroup("all", parts)


def parsed(query: Any) -> tuple[dict[str, Any], str, int | None]:
    """Return filters, operator and limit of a query: filters, a whole request body, or a segment's table."""
    # Loaded by the notebook's first query, and not by `%load_ext nbext`.
    from nbext.client.filters import remembered
    from nbext.client.validate import whole_number

    # A table says by its attrs which query it came from, so a result can be opened again and changed.
    about = vars(Provenance.of(query))
    given = about or query
    if isinstance(given, str):
        try:
            # Not the operators of a cell: {{...}} in a text that is pasted must not run.
            # An amount with a fraction becomes its text, which is exact.
            given = parse(given, fraction=str)
        except ValueError as error:
            raise UsageError(f"The query is not JSON: {error}") from None
    if not isinstance(given, Mapping):
        raise UsageError(
            "Expected filters, a request body, or a segment's table, such as %%segment_query returns."
        )
    body = given if isinstance(given.get("filters"), Mapping) else {"filters": given}
    if not about:
        body = {one_of(key, EXECUTE_KEYS, f"/{key}"): value for key, value in body.items()}
    limit = body.get("limit")
    if not about and limit is not None:
        limit = whole_number(limit, "/limit", 0, MAX_LIMIT)
    operator = one_of(body.get("operator") or "AND", JOINS, "/operator")
    # A limit of 0 only counts, which a builder does anyway; what a table says of its own may be a stranger's.
    given_limit = limit if isinstance(limit, int) and limit > 0 else None
    return remembered(body["filters"], by_id=True), operator, given_limit


def json_text(value: Any) -> str:
    """Return JSON for a cell: no hidden character in it, and nothing that a cell would take for a placeholder."""
    text = laid_out(value, WIDTH)
    # Only texts can hold two opening braces in a row, and a cell would take them for {{name}}.
    text = text.replace("{{", "{\\u007b")

    def escaped(found: re.Match[str]) -> str:
        return found[0] if visible(found[0]) == found[0] else json.dumps(found[0])[1:-1]

    return re.sub(r"[^\n -~]", escaped, text)


def cell_text(name: str, filters: Mapping[str, Any], operator: str, limit: int | None) -> str:
    """Return the cell that runs the query."""
    # Never the operator's own text, which may be a stranger's: "OR --to FILE" would be an option of the cell.
    words = ["%%segment_query", name, "--operator OR" * (operator == "OR")]
    words.append("" if limit is None else f"--limit {limit}")
    return " ".join(word for word in words if word) + "\n" + json_text(filters)
