"""A segment's conditions as a tree of parts, which edits replace and never change; undo and redo."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nbext.errors import UsageError

# How a group joins its parts, and the other way.
OTHER = {"all": "any", "any": "all"}
# Steps that undo goes back: each is a tree that shares what did not change with the next one.
MOST_STEPS = 500
_ids = itertools.count(1)


@dataclass(frozen=True)
class FilterPart:
    """A condition with its JSON value, or a group, ``all`` or ``any``, whose value is a tuple of parts.

    What is no condition of the grammar is a part too, as it is.
    """

    key: str
    value: Any
    negated: bool = False
    id: int = field(default_factory=lambda: next(_ids), compare=False)

    @property
    def members(self) -> tuple[FilterPart, ...]:
        """The parts of a group; none of a condition."""
        return self.value if self.is_group else ()

    @property
    def is_group(self) -> bool:
        """Whether it is a group: JSON has no tuples."""
        return isinstance(self.value, tuple)

    def walk(self) -> Iterator[FilterPart]:
        """Yield the part and all inside it, in order."""
        yield self
        for member in self.members:
            yield from member.walk()

    def copied(self) -> FilterPart:
        """Return the part as another one: every id in it is new."""
        value = tuple(one.copied() for one in self.members) if self.is_group else self.value
        return FilterPart(self.key, value, self.negated)

    def _with(self, wanted: int, parts: tuple[FilterPart, ...]) -> tuple[FilterPart, ...]:
        if self.id == wanted:
            return parts
        if not self.is_group:
            return (self,)
        inside = tuple(one for member in self.members for one in member._with(wanted, parts))
        return (replace(self, value=inside),)


@dataclass(frozen=True)
class Tree:
    """A query's conditions, and the keys that belong at the top of filters only."""

    root: FilterPart
    scope: Mapping[str, Any] = field(default_factory=dict)

    def find(self, wanted: int) -> FilterPart:
        """Return the part of an id; `UsageError` where it is gone, as in a view that is behind."""
        for part in self.root.walk():
            if part.id == wanted:
                return part
        raise UsageError("This condition is gone already.")

    def around(self, wanted: int) -> tuple[FilterPart, int]:
        """Return the group that a part is in, and its place there."""
        for group in self.root.walk():
            for place, member in enumerate(group.members):
                if member.id == wanted:
                    return group, place
        raise UsageError("This condition is gone already.")

    def instead(self, wanted: int, *parts: FilterPart) -> Tree:
        """Return the tree with other parts, or none, in place of one; of the root, with one."""
        self.find(wanted)
        (root,) = self.root._with(wanted, parts)
        return replace(self, root=root)

    def added(self, part: FilterPart, into: int | None) -> Tree:
        """Return the tree with a part at the end of a group, by default of the outermost, or after a line."""
        at = self.root if into is None else self.find(into)
        if at.is_group:
            return self.instead(at.id, replace(at, value=(*at.members, part)))
        return self.instead(at.id, at, part)

    def moved(self, wanted: int, by: int) -> Tree:
        """Return the tree with a part one place up (-1) or down (1): past a line, into a group, or out of its own."""
        part, (parent, place) = self.find(wanted), self.around(wanted)
        leaves = not 0 <= place + by < len(parent.members)
        if leaves and parent is self.root:
            return self
        without = self.instead(wanted)
        past = without.find((parent if leaves else parent.members[place + by]).id)
        if leaves or not past.is_group:
            return without.instead(past.id, *((part, past) if by < 0 else (past, part)))
        inner = (*past.members, part) if by < 0 else (part, *past.members)
        return without.instead(past.id, replace(past, value=inner))

    def wrapped(self, wanted: int, *also: FilterPart) -> Tree:
        """Return the tree with a part in a group of its own, which joins as its surroundings do not."""
        join = OTHER[self.around(wanted)[0].key]
        return self.instead(wanted, FilterPart(join, (self.find(wanted), *also)))


class Edits:
    """A tree, those before it, and those that were undone."""

    def __init__(self, tree: Tree) -> None:
        self.now = tree
        self.past: list[Tree] = []
        self.future: list[Tree] = []
        # What the last edit removed: where, and in words.
        self.removed: dict[str, Any] | None = None
        self._of: object = None

    def to(self, tree: Tree, of: object = None) -> None:
        """Go to another tree; typing ``of`` the same field goes on with one step."""
        if tree == self.now:
            return
        if of is None or of != self._of:
            self.past = [*self.past[1 - MOST_STEPS :], self.now]
        self.now, self.future, self._of, self.removed = tree, [], of, None

    def undo(self) -> None:
        """Go back one step, where there is one."""
        self._step(self.past, self.future)

    def redo(self) -> None:
        """Take back one undo, where there is one."""
        self._step(self.future, self.past)

    def _step(self, source: list[Tree], target: list[Tree]) -> None:
        self.removed = None
        if source:
            target.append(self.now)
            self.now, self._of = source.pop(), None
