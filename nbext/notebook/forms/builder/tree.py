"""A segment's conditions as a tree of parts, and the steps that its edits go through: undo and redo."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from nbext.errors import UsageError

# How a group joins its parts, and the other way.
OTHER = {"all": "any", "any": "all"}
# Steps that undo goes back.
MOST_STEPS = 500
# The number of the part that holds the keys at the top of filters.
SCOPE = 0
_ids = itertools.count(1)


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
        """Add a part at the end of a group, by default of the outermost, or after a line."""
        at = self.root if into is None else self.find(into)
        if isinstance(at, FilterGroup):
            at.members.append(part)
        else:
            group, place, _ = self.around(at.id)
            group.members.insert(place + 1, part)

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
