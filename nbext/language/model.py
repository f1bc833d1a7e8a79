"""What a segment is, at each step: the query as it was asked, and the plan that it means on some data.

A query is a tree of conditions with values as their fields' kinds read them. A plan is a tree of
resolved leaves: contracts instead of symbols, blocks instead of times, raw integers instead of amounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from nbext.core.chains import Chain
    from nbext.core.operations import AsOf, Column, FileType, Operator
    from nbext.engine.dataset import Contract
    from nbext.language.times import Time


@dataclass(frozen=True)
class Bounds:
    """Inclusive bounds of an amount (Decimal) or a count (int); None where none was given."""

    min: Decimal | int | None = None
    max: Decimal | int | None = None


@dataclass(frozen=True)
class Span:
    """Inclusive bounds in time."""

    after: Time | None = None
    before: Time | None = None


@dataclass(frozen=True)
class Asked:
    """One condition of a query: its name, what its fields were read as, and where it stands."""

    name: str
    values: Mapping[str, Any]
    pointer: str


@dataclass(frozen=True)
class Joined:
    """Conditions joined by ``all`` or ``any``."""

    by: Literal["all", "any"]
    children: tuple[Asked | Joined | Negated, ...]


@dataclass(frozen=True)
class Negated:
    """Conditions that do not hold."""

    child: Asked | Joined | Negated


@dataclass(frozen=True)
class Scope:
    """The keys beside the conditions: None where none was given."""

    chain: Chain | None = None
    as_of: Time | None = None
    exclude: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Query:
    """A request that is well formed: its tree, its scope and its other fields."""

    operator: Operator
    root: Joined
    scope: Scope
    limit: int
    file_type: FileType


@dataclass(frozen=True)
class Range:
    """Resolved bounds in raw integers: ``low`` is always set; ``none_too`` also takes wallets with nothing."""

    low: int
    high: int | None
    none_too: bool


@dataclass(frozen=True)
class Amounts(Range):
    """Bounds of an amount, which may need all of uint256: compared limb by limb."""


@dataclass(frozen=True)
class Blocks:
    """Inclusive bounds in blocks."""

    first: int | None = None
    last: int | None = None


# No data reaches this block.
NO_BLOCKS = Blocks(first=2**62 - 1)


@dataclass(frozen=True)
class Holding:
    """token, nft: the wallet's balance of a contract, or its count of some token ids.

    ``at`` is a block where history is asked, None for the end of the data. ``since`` is the block from
    which on the balance never fell below the low bound.
    """

    contract: Contract
    within: Amounts
    ids: tuple[int, ...] = ()
    at: int | None = None
    since: int | None = None


@dataclass(frozen=True)
class Owning:
    """collections: how many collections (of a list, or of the chain) the wallet owns from."""

    chain_id: int
    of: tuple[Contract, ...]
    within: Range
    at: int | None = None


@dataclass(frozen=True)
class Moving:
    """transfer: how many, and how much in all, of the transfers that fit.

    ``none_too`` of ``count`` holds for the whole leaf. Only blocks up to the plan's are looked at.
    """

    chain_id: int
    direction: str
    contract: Contract | None
    counterparty: tuple[str, ...]
    amount: Amounts | None
    total: Amounts | None
    count: Range
    blocks: Blocks


@dataclass(frozen=True)
class Acting:
    """activity: when a wallet was first and last seen on a chain, how often, on how many days."""

    chain_id: int
    first: Blocks
    last: Blocks
    transfers: Range | None
    days: Range | None
    none_too: bool
    at: int | None = None


@dataclass(frozen=True)
class Being:
    """wallet: the wallet itself."""

    among: tuple[str, ...] | None
    contract: bool | None


@dataclass(frozen=True)
class Seen:
    """The wallets with a transfer on a chain, up to a block where history is asked."""

    chain_id: int
    at: int | None = None


@dataclass(frozen=True)
class Saved:
    """A whole segment, with the wallets it sees and excludes.

    As part of another, ``name`` is its id, and ``loose`` says that it may hold wallets the other does not see.
    """

    node: Node
    seen: tuple[Seen, ...]
    exclude: tuple[str, ...]
    name: str = ""
    loose: bool = False


@dataclass(frozen=True)
class All:
    """Every child holds."""

    children: tuple[Node, ...]


@dataclass(frozen=True)
class Some:
    """At least one child holds."""

    children: tuple[Node, ...]


@dataclass(frozen=True)
class Not:
    """The child does not hold."""

    child: Node


Leaf = Holding | Owning | Moving | Acting | Being | Saved
Node = Leaf | All | Some | Not


@dataclass(frozen=True)
class Plan:
    """A segment as it is meant on some data, ready to be compiled.

    Attributes
    ----------
    whole
        The tree, the wallets it sees and the addresses it excludes.
    shown
        The contracts that give the rows a column each, in order, and the block they are looked at.
    columns
        The rows' columns: ``address``, then one for each of ``shown``.
    canonical
        The query with all names resolved, JSON-able: two queries that mean the same have the same.
    leaves
        Each condition, in the order of the query.
    """

    whole: Saved
    shown: tuple[tuple[Contract, int | None], ...]
    columns: list[Column]
    chain: Chain
    as_of: AsOf
    operator: Operator
    limit: int
    file_type: FileType
    canonical: dict[str, Any]
    words: str
    leaves: tuple[Leaf, ...]
    warnings: list[str]
