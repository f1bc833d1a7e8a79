"""The wallets of a segment as a tree of sets: leaves of Ibis tables, joined by and, or and not.

The language builds the tree (`Leaf`, `And`, `Or`, `Not`, `Among`). `normal_form` turns it into one without complements
(`Leaf`, `Narrowed`, `Union`), which each engine combines in its own way: DuckDB fetches the leaves and combines them as
bitmaps (`nbext.engine.duckdb.bitmaps`), Spark gets `as_one_table`, one statement.

The wallets seen are read only where something is complemented: ``A and not B`` never reads all wallets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    import ibis.expr.types as ir

Wallets = TypeVar("Wallets")  # what a leaf holds: an Ibis table, or the statement compiled from it
Compiled = TypeVar("Compiled")
Part = TypeVar("Part")


@dataclass(frozen=True)
class Leaf(Generic[Wallets]):
    """The wallets of one table, whose one column is ``wallet``, each once.

    ``loose``: they may include wallets that are not seen, because they were chosen by what they are and not by
    what they did.
    """

    wallets: Wallets
    loose: bool = False


@dataclass(frozen=True)
class And:
    """The wallets that are in every child."""

    children: Sequence[Tree]


@dataclass(frozen=True)
class Or:
    """The wallets that are in at least one child."""

    children: Sequence[Tree]


@dataclass(frozen=True)
class Not:
    """The wallets seen that are not in the child."""

    child: Tree


@dataclass(frozen=True)
class Among:
    """The child's wallets where ``seen`` is what its complements are taken from.

    ``loose``: they may include wallets that the tree around this one does not see, as a saved segment that looks at
    a later time does.
    """

    child: Tree
    seen: Tree
    loose: bool = False


@dataclass(frozen=True)
class Narrowed(Generic[Wallets]):
    """The wallets of the first set that are in each set of ``inside`` and in none of ``outside``."""

    first: Settled[Wallets]
    inside: Sequence[Settled[Wallets]]
    outside: Sequence[Settled[Wallets]]


@dataclass(frozen=True)
class Union(Generic[Wallets]):
    """The wallets of all parts, each once; ``disjoint`` where no wallet is in two of them."""

    parts: Sequence[Settled[Wallets]]
    disjoint: bool = False


Tree: TypeAlias = "Leaf[ir.Table] | And | Or | Not | Among"
Settled: TypeAlias = "Leaf[Wallets] | Narrowed[Wallets] | Union[Wallets]"


@dataclass(frozen=True)
class _Set:
    """A settled set, or with ``all_but`` every wallet seen that is not in it."""

    these: Settled[ir.Table]
    all_but: bool = False
    loose: bool = False


def normal_form(tree: Tree, seen: Tree | None = None) -> Settled[ir.Table]:
    """Return the tree without complements; ``seen`` is what the top's complements are taken from.

    A tree that `Among` is around, as a segment's is, needs none.
    """
    one = _set(tree)
    if not (one.all_but or (one.loose and seen)):
        return one.these
    assert seen is not None, "a complement without the wallets that it is taken from"
    if one.all_but:
        return Narrowed(normal_form(seen), (), (one.these,))
    return Narrowed(one.these, (normal_form(seen),), ())


def as_one_table(node: Settled[ir.Table]) -> ir.Table:
    """Build the one table of a settled tree: semi joins, anti joins and unions, which every engine has."""
    if isinstance(node, Leaf):
        return node.wallets
    if isinstance(node, Union):
        return folded(
            lambda left, right: left.union(right), list(map(as_one_table, node.parts))
        ).distinct()
    kept = as_one_table(node.first)
    if node.inside:
        inside = list(map(as_one_table, node.inside))
        kept = kept.semi_join(
            folded(lambda left, right: left.semi_join(right, "wallet"), inside), "wallet"
        )
    if node.outside:
        outside = list(map(as_one_table, node.outside))
        kept = kept.anti_join(folded(lambda left, right: left.union(right), outside), "wallet")
    return kept


def folded(join: Callable[[Part, Part], Part], parts: Sequence[Part]) -> Part:
    """Join parts pair by pair: an expression of 200 in a row is nested 200 deep, past what Python recurses."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(folded(join, parts[:middle]), folded(join, parts[middle:]))


def mapped(node: Settled[Wallets], change: Callable[[Wallets], Compiled]) -> Settled[Compiled]:
    """Return a settled tree of the same form with other leaves, changed in the order in which they are combined."""
    return replaced(node, lambda wallets: Leaf(change(wallets)))


def replaced(
    node: Settled[Wallets], change: Callable[[Wallets], Settled[Compiled]]
) -> Settled[Compiled]:
    """Return a settled tree with a set in the place of each leaf."""
    if isinstance(node, Leaf):
        return change(node.wallets)
    if isinstance(node, Union):
        return Union([replaced(part, change) for part in node.parts], node.disjoint)
    return Narrowed(
        replaced(node.first, change),
        [replaced(part, change) for part in node.inside],
        [replaced(part, change) for part in node.outside],
    )


def _set(tree: Tree) -> _Set:
    if isinstance(tree, Leaf):
        return _Set(tree, loose=tree.loose)
    if isinstance(tree, Among):
        return _Set(normal_form(tree.child, tree.seen), loose=tree.loose)
    if isinstance(tree, Not):
        one = _set(tree.child)
        return replace(one, all_but=not one.all_but)
    sets = [_set(child) for child in tree.children]
    if isinstance(tree, And):
        return _every(sets)
    if any(one.all_but for one in sets):
        # De Morgan: in one of them, or seen and not in another, is seen and not (out of the one and in the other).
        outside = _every([replace(one, all_but=not one.all_but) for one in sets])
        return replace(outside, all_but=not outside.all_but)
    return _Set(_union([one.these for one in sets]), loose=any(one.loose for one in sets))


def _every(sets: list[_Set]) -> _Set:
    inside = [one for one in sets if not one.all_but]
    outside = [one.these for one in sets if one.all_but]
    if not inside:
        return _Set(_union(outside), all_but=True, loose=any(one.loose for one in sets))
    # Sets of wallets that did something first: they are the smaller ones, and all of them are seen.
    inside.sort(key=lambda one: one.loose)
    first, *rest = (one.these for one in inside)
    these = Narrowed(first, rest, outside) if rest or outside else first
    return _Set(these, loose=all(one.loose for one in inside))


def _union(parts: list[Settled[ir.Table]]) -> Settled[ir.Table]:
    return parts[0] if len(parts) == 1 else Union(parts)
