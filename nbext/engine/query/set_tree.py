"""The wallets of a segment as a tree of sets: statements and stored lists, joined by and, or and not.

Conditions select wallets, or all but some (`Selection`), and `in_all`, `in_any` and ``~`` join what they select. Under
each is a tree without complements (`Leaf`, `Narrowed`, `Union`), whose leaves are fetched and combined as bitmaps
(`nbext.engine.query.bitmaps`).

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
class Narrowed:
    """The wallets of the first set that are in each set of ``inside`` and in none of ``outside``."""

    first: Tree
    inside: Sequence[Tree]
    outside: Sequence[Tree]


@dataclass(frozen=True)
class Union:
    """The wallets of all parts, each once."""

    parts: Sequence[Tree]


# The wallets that a statement selects, each once, or those of a stored list.
Leaf: TypeAlias = Sql | WalletList
Tree: TypeAlias = "Leaf | Narrowed | Union"


@dataclass(frozen=True)
class Selection:
    """The wallets of a tree, or with ``all_but`` every wallet seen that is not in it.

    ``loose``: it may include wallets that are not seen, because they were chosen by what they are and not by what they
    did; or those of a saved segment that looks at a later time.
    """

    these: Tree
    all_but: bool = False
    loose: bool = False

    def __invert__(self) -> Selection:
        """Return the wallets seen that are not selected."""
        return replace(self, all_but=not self.all_but)

    def among(self, seen: Selection, *, loose: bool = False) -> Selection:
        """Return these wallets where ``seen`` is what complements are taken from."""
        tree = self.these
        if self.all_but:
            tree = Narrowed(seen.tree, (), (tree,))
        elif self.loose:
            tree = Narrowed(tree, (seen.tree,), ())
        return Selection(tree, loose=loose)

    @property
    def tree(self) -> Tree:
        """The tree of what is no complement, as a whole segment is none."""
        assert not self.all_but, "a complement without the wallets that it is taken from"
        return self.these


def in_all(parts: Sequence[Selection]) -> Selection:
    """Return the wallets that are in every part."""
    inside = [one for one in parts if not one.all_but]
    outside = [one.these for one in parts if one.all_but]
    if not inside:
        return Selection(_union(outside), all_but=True, loose=any(one.loose for one in parts))
    # Sets of wallets that did something first: they are the smaller ones, and all of them are seen.
    inside.sort(key=lambda one: one.loose)
    first, *rest = (one.these for one in inside)
    these = Narrowed(first, rest, outside) if rest or outside else first
    return Selection(these, loose=all(one.loose for one in inside))


def in_any(parts: Sequence[Selection]) -> Selection:
    """Return the wallets that are in at least one part."""
    if any(one.all_but for one in parts):
        # De Morgan: in one of them, or seen and not in another, is seen and not (out of the one and in the other).
        return ~in_all([~one for one in parts])
    return Selection(_union([one.these for one in parts]), loose=any(one.loose for one in parts))


def _union(parts: list[Tree]) -> Tree:
    return parts[0] if len(parts) == 1 else Union(parts)


# Of a list of values.
_SHOWN = 20
_CLAUSE = re.compile(r" (?=FROM |WHERE |GROUP BY |HAVING |UNION ALL |LEFT JOIN |ANTI JOIN |JOIN )")


def formula_of(node: Tree, leaves: dict[str, tuple[int, Leaf]]) -> str:
    """Return how the leaves of a tree are combined, as ``1 and (2 or 3) and not 4``.

    New leaves are added to ``leaves``: by their texts, which name them wherever they are known, their numbers.
    """
    if isinstance(node, Union):
        return " or ".join(_member(part, leaves) for part in node.parts)
    if not isinstance(node, Narrowed):
        return str(leaves.setdefault(repr(node), (len(leaves) + 1, node))[0])
    # What is narrowed is read from left to right: it needs no brackets.
    narrowed = isinstance(node.first, Narrowed)
    first = formula_of(node.first, leaves) if narrowed else _member(node.first, leaves)
    inside = [_member(part, leaves) for part in node.inside]
    outside = [f"not {_member(part, leaves)}" for part in node.outside]
    return " and ".join([first, *inside, *outside])


def _member(node: Tree, leaves: dict[str, tuple[int, Leaf]]) -> str:
    text = formula_of(node, leaves)
    return f"({text})" if isinstance(node, Narrowed | Union) else text


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
