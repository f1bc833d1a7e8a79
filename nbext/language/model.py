"""What a segment is, at each step: the query as it was asked, and the plan that it means on some data.

A query is a tree of conditions whose values are read (`Query`). A plan is a tree of resolved conditions (`Plan`):
contracts instead of symbols, blocks instead of times, raw integers instead of amounts. Every `Node` of a plan says
itself in words and builds its wallets; the conditions are in `nbext.language.conditions`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from nbext.engine.query import history
from nbext.engine.query.set_tree import Among, And, Leaf, Not, Or, Tree
from nbext.language.describe import excluding

if TYPE_CHECKING:
    from nbext.core.chains import Chain
    from nbext.core.wire import AsOf, Column, FileType, Operator
    from nbext.engine.dataset import Tables
    from nbext.engine.query.bounds import Amounts
    from nbext.language.columns import RowOrder, ShownColumn


@dataclass(frozen=True)
class Bounds:
    """Inclusive bounds of an amount (Decimal) or a count (int); None where none was given."""

    min: Decimal | int | None = None
    max: Decimal | int | None = None


@dataclass(frozen=True)
class Time:
    """A time as it was written: exactly one of ``timestamp`` (seconds since 1970), ``back`` (seconds) and ``block``.

    ``day``: it was written as a date alone, and means the last second of that day.
    """

    text: str
    timestamp: int | None = None
    back: int | None = None
    block: int | None = None
    day: bool = False

    def shown(self) -> str:
        """Return the time as a message shows it."""
        return repr(self.text) if self.block is None else f"block {self.block:,}"

    def written(self) -> str:
        """Return a time that is not a block as words show it beside its block."""
        return self.text if self.back is None else f"{self.text} before the last block"


@dataclass(frozen=True)
class Span:
    """Inclusive bounds in time."""

    after: Time | None = None
    before: Time | None = None


@dataclass(frozen=True)
class ParsedCondition:
    """One condition of a query: its name, what its fields were read as, and where it is in the body.

    ``kinds`` has every field that the condition takes, given or not: what is looked up depends on it, not on names.
    """

    name: str
    values: Mapping[str, Any]
    pointer: str
    kinds: Mapping[str, str]


@dataclass(frozen=True)
class ParsedGroup:
    """Conditions joined by ``all`` or ``any``."""

    name: Literal["all", "any"]
    children: tuple[ParsedCondition | ParsedGroup | ParsedNot, ...]


@dataclass(frozen=True)
class ParsedNot:
    """Conditions that do not hold."""

    name: ClassVar = "not"
    child: ParsedCondition | ParsedGroup | ParsedNot


Parsed = ParsedCondition | ParsedGroup | ParsedNot


@dataclass(frozen=True)
class Scope:
    """The keys beside the conditions: None where none was given."""

    chain: Chain | None = None
    as_of: Time | None = None
    exclude: tuple[str, ...] | None = None
    order_by: str | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Query:
    """A request that is well formed: its tree, its scope and its other fields."""

    operator: Operator
    root: ParsedGroup
    scope: Scope
    limit: int
    file_type: FileType


class Node(ABC):
    """A condition of a plan, or conditions joined."""

    @abstractmethod
    def words(self) -> str:
        """Return what it asks of a wallet, as the end of "wallets that ..."."""

    def denied(self) -> str:
        """Return that it does not hold, in words."""
        return f"not ({self.words()})"

    @abstractmethod
    def wallets(self, tables: Tables) -> Tree:
        """Build the wallets that satisfy it. Its values are Ibis scalars by then (`nbext.engine.query.parameters`)."""

    def least_balances(self) -> Iterator[tuple[tuple[int, int | None], Amounts]]:
        """Yield the least balance of every wallet that satisfies it, by the contract and the block."""
        yield from ()

    def burned(self) -> tuple[str, ...]:
        """Return the contracts, by name, of which the burn address holds what is asked; none where it is no match."""
        return ()


@dataclass(frozen=True)
class AllOf(Node):
    """Every child holds."""

    children: tuple[Node, ...]

    def words(self) -> str:
        """Return the children's words."""
        return _joined_words(self.children, " and ")

    def wallets(self, tables: Tables) -> Tree:
        """Build the wallets of which every child holds."""
        return And([child.wallets(tables) for child in self.children])

    def least_balances(self) -> Iterator[tuple[tuple[int, int | None], Amounts]]:
        """Yield those of every child: all of them hold."""
        for child in self.children:
            yield from child.least_balances()

    def burned(self) -> tuple[str, ...]:
        """Return those of all children, where each has some."""
        held = [child.burned() for child in self.children]
        return tuple(name for names in held for name in names) if all(held) else ()


@dataclass(frozen=True)
class AnyOf(Node):
    """At least one child holds."""

    children: tuple[Node, ...]

    def words(self) -> str:
        """Return the children's words."""
        return _joined_words(self.children, " or ")

    def wallets(self, tables: Tables) -> Tree:
        """Build the wallets of which a child holds."""
        return Or([child.wallets(tables) for child in self.children])

    def burned(self) -> tuple[str, ...]:
        """Return those of any child."""
        return tuple(name for child in self.children for name in child.burned())


@dataclass(frozen=True)
class NoneOf(Node):
    """The child does not hold."""

    child: Node

    def words(self) -> str:
        """Return the child's words, denied."""
        return self.child.denied()

    def wallets(self, tables: Tables) -> Tree:
        """Build the wallets seen of which the child does not hold."""
        return Not(self.child.wallets(tables))


@dataclass(frozen=True)
class SeenWallets:
    """The wallets with a transfer on a chain, or with a part in a snapshot; where history is asked, up to a block."""

    chain_id: int
    at: int | None = None

    def wallets(self, tables: Tables) -> Tree:
        """Build these wallets."""
        activity, contracts, held = tables["activity"], tables["contracts"], tables["history"]
        activity = activity.filter(activity.chain_id == self.chain_id)
        if self.at is None:
            return Leaf(activity.select("wallet"))
        # A wallet first seen later had not been seen at that block, unless an NFT that it sent later was its own from
        # the beginning: else an OR with a complement would lose a wallet that another of its branches returns.
        nfts = contracts.filter(contracts.chain_id == self.chain_id, contracts.standard == "ERC721")
        held = history.standing(held.filter(held.lo > 0), self.at).semi_join(nfts, "contract")
        first = Leaf(history.members(history.until(activity, "first_block", self.at)))
        return Or([first, Leaf(history.members(held).distinct())])


@dataclass(frozen=True)
class Segment(Node):
    """A whole segment: its tree, the wallets it sees and the addresses it excludes.

    ``loose``: as part of another segment, it may hold wallets that the other does not see.
    """

    node: Node
    seen: tuple[SeenWallets, ...]
    exclude: tuple[str, ...]
    loose: bool = False

    def words(self) -> str:
        """Return what it asks, and whom it leaves out."""
        return self.node.words() + excluding(self.exclude)

    def wallets(self, tables: Tables) -> Tree:
        """Build its wallets: complements are taken from the wallets that it sees, whatever it is part of."""
        # Its own seen wallets, not those of a segment around it: a saved segment means the same wherever it is named.
        tree = Among(
            self.node.wallets(tables), Or([one.wallets(tables) for one in self.seen]), self.loose
        )
        excluded: Any = self.exclude
        # An empty list of addresses never became a scalar.
        return (
            tree
            if isinstance(excluded, tuple)
            else And([tree, Not(Leaf(history.listed(excluded, tables)))])
        )


@dataclass(frozen=True)
class Plan:
    """A segment as it is meant on some data, ready to be compiled.

    Attributes
    ----------
    whole
        The tree, the wallets it sees and the addresses it excludes.
    shown
        What the rows show of each wallet, in order: balances, then facts of its activity.
    columns
        The rows' columns: ``address``, then one for each of ``shown``.
    order
        The order of the rows; None for that of their addresses.
    canonical
        The query with all names resolved, JSON-able: two queries that mean the same have the same.
    leaves
        Each condition, in the order of the query.
    """

    whole: Segment
    shown: tuple[ShownColumn, ...]
    columns: list[Column]
    order: RowOrder | None
    chain: Chain
    as_of: AsOf
    operator: Operator
    limit: int
    file_type: FileType
    canonical: dict[str, Any]
    words: str
    leaves: tuple[Node, ...]
    warnings: list[str]


def _joined_words(children: tuple[Node, ...], word: str) -> str:
    if len(children) == 1:
        return children[0].words()
    # Brackets around a group inside a group: "a and b or c" can be read in two ways.
    return word.join(
        f"({one.words()})" if isinstance(one, AllOf | AnyOf) else one.words() for one in children
    )
