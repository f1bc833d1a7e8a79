"""A segment's conditions as a tree: lines and groups, which edits replace and never change; undo and redo."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from nbext.errors import UsageError

Join = Literal["all", "any"]
OTHER: dict[Join, Join] = {"all": "any", "any": "all"}
# Steps that undo goes back: each is a tree that shares what did not change with the next one.
MOST_STEPS = 500
_ids = itertools.count(1)


@dataclass(frozen=True)
class Line:
    """A condition: its name and its JSON value. What is no condition of the grammar is a line too, as it is."""

    key: str
    value: Any
    negated: bool = False
    id: int = field(default_factory=lambda: next(_ids), compare=False)


@dataclass(frozen=True)
class Group:
    """Lines and groups of which all hold, or any."""

    join: Join
    members: tuple[Part, ...] = ()
    negated: bool = False
    id: int = field(default_factory=lambda: next(_ids), compare=False)

    def walk(self) -> Iterator[Part]:
        """Yield the members and all inside them, in order."""
        for member in self.members:
            yield member
            if isinstance(member, Group):
                yield from member.walk()


Part = Line | Group
Change = Callable[[Any], tuple[Part, ...]]


@dataclass(frozen=True)
class Tree:
    """A query's conditions, and the keys that belong at the top of filters only."""

    root: Group
    scope: Mapping[str, Any] = field(default_factory=dict)

    def find(self, wanted: int) -> Part:
        """Return the part of an id; `UsageError` where it is gone, as in a view that is behind."""
        for part in (self.root, *self.root.walk()):
            if part.id == wanted:
                return part
        raise UsageError("This condition is gone already.")

    def parent(self, wanted: int) -> Group:
        """Return the group that a part is in."""
        groups = (part for part in (self.root, *self.root.walk()) if isinstance(part, Group))
        for group in groups:
            if any(member.id == wanted for member in group.members):
                return group
        raise UsageError("This condition is gone already.")

    def edited(self, wanted: int, change: Change) -> Tree:
        """Return the tree with other parts in place of one; of the root, with the first of them as the root."""
        self.find(wanted)
        if wanted == self.root.id:
            (root,) = change(self.root)
            assert isinstance(root, Group)
            return replace(self, root=root)
        return replace(self, root=_edited(self.root, wanted, change))

    def added(self, part: Part, into: int | None) -> Tree:
        """Return the tree with a part at the end of a group, by default of the outermost, or after a line."""
        if into is None:
            into = self.root.id
        if isinstance(self.find(into), Group):
            return self.edited(
                into, lambda group: (replace(group, members=(*group.members, part)),)
            )
        return self.edited(into, lambda line: (line, part))

    def moved(self, wanted: int, by: int) -> Tree:
        """Return the tree with a part one place up (-1) or down (1): past a line, into a group, or out of its own."""
        part, parent = self.find(wanted), self.parent(wanted)
        place = [member.id for member in parent.members].index(wanted) + by
        without = self.edited(wanted, lambda _: ())
        past: Part = parent
        if 0 <= place < len(parent.members):
            past = parent.members[place]
            if isinstance(past, Group):
                inner = (*past.members, part) if by < 0 else (part, *past.members)
                return without.edited(past.id, lambda group: (replace(group, members=inner),))
        elif parent is self.root:
            return self
        return without.edited(past.id, lambda one: (part, one) if by < 0 else (one, part))

    def wrapped(self, wanted: int, *also: Part) -> Tree:
        """Return the tree with a part in a group of its own, which joins as its surroundings do not."""
        join = OTHER[self.parent(wanted).join]
        return self.edited(wanted, lambda part: (Group(join, (part, *also)),))

    def unwrapped(self, wanted: int) -> Tree:
        """Return the tree with a group's members in its place."""
        if self.find(wanted).negated:
            raise UsageError(
                "NOT applies to the whole group. Switch it off before you take the group apart."
            )
        return self.edited(wanted, lambda group: group.members)


def copied(part: Part) -> Part:
    """Return the part as another one: every id in it is new."""
    if isinstance(part, Line):
        return Line(part.key, part.value, part.negated)
    return Group(part.join, tuple(map(copied, part.members)), part.negated)


def _edited(group: Group, wanted: int, change: Change) -> Group:
    members: list[Part] = []
    for member in group.members:
        if member.id == wanted:
            members += change(member)
        else:
            members.append(_edited(member, wanted, change) if isinstance(member, Group) else member)
    return replace(group, members=tuple(members))


class Edits:
    """A tree, those before it, and those that were undone."""

    def __init__(self, tree: Tree) -> None:
        self.now = tree
        self.past: list[Tree] = []
        self.future: list[Tree] = []
        self._of: object = None

    def to(self, tree: Tree, of: object = None) -> bool:
        """Go to another tree; typing ``of`` the same field goes on with one step. Return whether anything changed."""
        if tree == self.now:
            return False
        if of is None or of != self._of:
            self.past = [*self.past[1 - MOST_STEPS :], self.now]
        self.now, self.future, self._of = tree, [], of
        return True

    def undo(self) -> None:
        """Go back one step, where there is one."""
        if self.past:
            self.future.append(self.now)
            self.now, self._of = self.past.pop(), None

    def redo(self) -> None:
        """Take back one undo, where there is one."""
        if self.future:
            self.past.append(self.now)
            self.now, self._of = self.future.pop(), None
