"""A plan's values, taken out of its shape: a tree of leaves with slots where the values were."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nbext.core.uint256 import LIMB_BASE, Limbs, split
from nbext.engine.dataset import Contract, Value
from nbext.engine.query import sort_key
from nbext.language.model import Amounts


@dataclass(frozen=True)
class Slot:
    """The place of one value. Its type is part of the shape: engines keep compiled shapes."""

    index: int
    type: str


@dataclass(frozen=True)
class Ids:
    """Token ids: those of one limb as one list, so that their number is no part of the shape; the others as limbs."""

    small: Any
    large: tuple[Limbs, ...]


@dataclass
class Slots:
    """Values in the order in which they were taken out."""

    values: list[Value] = field(default_factory=list)

    def take(self, value: Value) -> Slot:
        """Put a value away and return its slot."""
        self.values.append(value)
        return Slot(len(self.values) - 1, _type(value))

    def emptied(self, tree: Any) -> Any:
        """Return the tree with a slot in place of each value. Words that shape the query stay."""
        if isinstance(tree, Contract):
            # Of a contract, only which one it is and its standard matter to the query.
            return Contract(self.emptied(tree.contract), 0, "", tree.standard)
        if isinstance(tree, Amounts):
            low: Any = self._bound(sort_key.lower(tree.low))
            high: Any = None if tree.high is None else self._bound(sort_key.upper(tree.high))
            return Amounts(low, high, tree.none_too)
        if isinstance(tree, tuple) and tree and isinstance(tree[0], int):
            return self._ids(tree)
        if (isinstance(tree, int) and not isinstance(tree, bool)) or _is_texts(tree):
            return self.take(tree)
        return _rebuilt(tree, self.emptied)

    def _bound(self, bound: sort_key.Bound) -> sort_key.Bound:
        return sort_key.Bound(self._limbs(bound.limbs), self.take(bound.size), bound.sharp)

    def _ids(self, ids: tuple[int, ...]) -> Ids:
        # Nearly all ids fit one limb, which an engine can look up in a list; the rest are compared one by one.
        small = tuple(one for one in ids if one < LIMB_BASE)
        large = tuple(self._limbs(split(one)) for one in ids if one >= LIMB_BASE)
        return Ids(self.take(small) if small else None, large)

    def _limbs(self, amount: Limbs) -> Limbs:
        return Limbs(*(self.take(limb) for limb in amount))


def filled(tree: Any, scalars: Any) -> Any:
    """Return the tree with each slot replaced by its scalar."""
    if isinstance(tree, Slot):
        return scalars[tree.index]
    return _rebuilt(tree, lambda part: filled(part, scalars))


def _is_texts(tree: Any) -> bool:
    return isinstance(tree, tuple) and bool(tree) and isinstance(tree[0], str)


def _rebuilt(tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Limbs):
        return Limbs(*map(change, tree))
    if isinstance(tree, tuple):
        return tuple(map(change, tree))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        parts = {one.name: change(getattr(tree, one.name)) for one in dataclasses.fields(tree)}
        return type(tree)(**parts)
    return tree


def _type(value: Value) -> str:
    if isinstance(value, tuple):
        return f"array<{max((_type(one) for one in value), key=len)}>"
    if isinstance(value, str):
        return "string"
    return "int64" if -(2**63) <= value < 2**63 else "decimal(38,0)"
