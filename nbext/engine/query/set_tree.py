"""The wallets of a segment as a tree of sets: statements and stored lists, joined by and, or and not.

The language builds the tree (`Leaf`, `And`, `Or`, `Not`, `Among`). `normal_form` turns it into one without complements
(`Leaf`, `Narrowed`, `Union`), whose leaves are fetched and combined as bitmaps (`nbext.engine.query.bitmaps`).

The wallets seen are read only where something is complemented: ``A and not B`` never reads all wallets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from nbext.core.addresses import WIDTH
from nbext.errors import SegmentExpired

# The columns of a series' rows: the blocks between which each stood.
ENTERS, LEAVES = "enters", "leaves"


@dataclass(frozen=True)
class Sql:
    """A statement, and what it reads beside the data.

    Attributes
    ----------
    values
        By name, without the ``$``: an int of 64 bits, a Decimal where it is larger, a str, or a list of one of these.
    tables
        Arrow tables by the names under which the text reads them.
    """

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def timed(self) -> bool:
        """Whether its rows say between which blocks they stood."""
        return ENTERS in self.text


@dataclass(frozen=True)
class WalletList:
    """A stored list of wallets. Its file has the 20 bytes of each address, in order and each once."""

    id: str
    wallets: int
    path: Path = field(compare=False)

    def pieces(self, addresses: int = 1_000_000) -> Iterator[bytes]:
        """Yield the bytes of its addresses, so many addresses at a time."""
        try:
            with self.path.open("rb") as file:
                while piece := file.read(addresses * WIDTH):
                    yield piece
        except FileNotFoundError:
            raise SegmentExpired(
                f"The list of wallets {self.id} was deleted to make room before the segment ran. "
                "Execute the segment again."
            ) from None


@dataclass(frozen=True)
class Leaf:
    """The wallets that a statement selects, each once, or those of a stored list.

    ``loose``: they may include wallets that are not seen, because they were chosen by what they are and not by
    what they did.
    """

    wallets: Sql | WalletList
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
class Narrowed:
    """The wallets of the first set that are in each set of ``inside`` and in none of ``outside``."""

    first: Settled
    inside: Sequence[Settled]
    outside: Sequence[Settled]


@dataclass(frozen=True)
class Union:
    """The wallets of all parts, each once; ``disjoint`` where no wallet is in two of them."""

    parts: Sequence[Settled]
    disjoint: bool = False


Settled: TypeAlias = "Leaf | Narrowed | Union"
Tree: TypeAlias = "Settled | And | Or | Not | Among"


@dataclass(frozen=True)
class _Set:
    """A settled set, or with ``all_but`` every wallet seen that is not in it."""

    these: Settled
    all_but: bool = False
    loose: bool = False


def normal_form(tree: Tree, seen: Tree | None = None) -> Settled:
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


def leaves(node: Settled) -> Iterator[Leaf]:
    """Yield the leaves of a settled tree, in the order in which they are combined."""
    if isinstance(node, Leaf):
        yield node
        return
    parts = node.parts if isinstance(node, Union) else (node.first, *node.inside, *node.outside)
    for part in parts:
        yield from leaves(part)


def _set(tree: Tree) -> _Set:
    if isinstance(tree, Leaf | Narrowed | Union):
        return _Set(tree, loose=isinstance(tree, Leaf) and tree.loose)
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


def _union(parts: list[Settled]) -> Settled:
    return parts[0] if len(parts) == 1 else Union(parts)


# Of a list of values.
_SHOWN = 20
_CLAUSE = re.compile(r" (?=FROM |WHERE |GROUP BY |HAVING |UNION ALL |LEFT JOIN |ANTI JOIN |JOIN )")


def formula_of(node: Settled, leaves: list[Leaf]) -> str:
    """Return how the leaves of a tree are combined, as ``1 and (2 or 3) and not 4``; add new ones to ``leaves``."""
    if isinstance(node, Leaf):
        if node not in leaves:
            leaves.append(node)
        return str(leaves.index(node) + 1)
    if isinstance(node, Union):
        return " or ".join(_member(part, leaves) for part in node.parts)
    # What is narrowed is read from left to right: it needs no brackets.
    narrowed = isinstance(node.first, Narrowed)
    first = formula_of(node.first, leaves) if narrowed else _member(node.first, leaves)
    inside = [_member(part, leaves) for part in node.inside]
    outside = [f"not {_member(part, leaves)}" for part in node.outside]
    return " and ".join([first, *inside, *outside])


def _member(node: Settled, leaves: list[Leaf]) -> str:
    text = formula_of(node, leaves)
    return text if isinstance(node, Leaf) else f"({text})"


def spelled_out(sql: Sql) -> str:
    """Return a statement as it runs, a clause to a line, and its values below it."""
    lines, depth = [], 0
    for clause in _CLAUSE.split(sql.text):
        lines.append("  " * depth + clause)
        depth = max(0, depth + clause.count("(") - clause.count(")"))
    values = [f"-- ${name} = {_shown(value)}" for name, value in sql.values.items()]
    return "\n".join([*lines, *values])


def _shown(value: object) -> str:
    if not isinstance(value, list):
        return str(value)
    more = f", and {len(value) - _SHOWN:,} more" if len(value) > _SHOWN else ""
    return f"[{', '.join(map(str, value[:_SHOWN]))}{more}]"
