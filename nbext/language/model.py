"""What a segment is, at each step: the query as it was asked, and the plan that it means on some data.

A query is a tree of conditions whose values are read (`ParsedQuery`). A plan is a tree of resolved conditions (`Plan`):
contracts instead of symbols, blocks instead of times, raw integers instead of amounts. Every `PlanNode` of a plan says
itself in words and builds its wallets; the conditions are in `nbext.language.conditions`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from nbext.core.rules import MAX_COLUMN_SYMBOL
from nbext.engine.query.amounts import KEY_DIGITS, sort_key
from nbext.engine.query.set_tree import Selection, in_all, in_any
from nbext.language.describe import chain_name, decimals_of, excluding

if TYPE_CHECKING:
    from nbext.core.chains import Chain
    from nbext.core.wire import AsOf, Column, FileType, Operator
    from nbext.engine.dataset import Contract
    from nbext.engine.query.rows import ColumnKind
    from nbext.engine.query.sql import SqlBuilder
    from nbext.language.fields import Time


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
    """Conditions joined by ``all`` or ``any``; or the one that does ``not`` hold."""

    name: Literal["all", "any", "not"]
    children: tuple[ParsedCondition | ParsedGroup, ...]


Parsed = ParsedCondition | ParsedGroup


@dataclass(frozen=True)
class QueryScope:
    """The keys beside the conditions, in the order of ``SCOPE``: None where none was given."""

    chain: Chain | None = None
    as_of: Time | None = None
    exclude: tuple[str, ...] | None = None
    order_by: str | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ParsedQuery:
    """A request that is well formed: its tree, its scope and its other fields."""

    operator: Operator
    root: ParsedGroup
    scope: QueryScope
    limit: int
    file_type: FileType


# The least balance of every wallet, by the contract and the block.
LeastBalances = Iterator[tuple[tuple[int, int | None], int]]


class PlanNode(ABC):
    """A condition of a plan, or conditions joined."""

    @abstractmethod
    def words(self) -> str:
        """Return what it asks of a wallet, as the end of "wallets that ..."."""

    def denied(self) -> str:
        """Return that it does not hold, in words."""
        return f"not ({self.words()})"

    @abstractmethod
    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return the wallets that satisfy it: a tree of sets, each a statement."""

    def least_balances(self) -> LeastBalances:
        """Yield the least balance of every wallet that satisfies it, by the contract and the block."""
        yield from ()

    def most(self) -> int | None:
        """Return how many wallets satisfy it at most, or None where nobody knows before they are counted."""
        return None

    def burned(self) -> tuple[str, ...]:
        """Return the contracts, by name, of which the burn address holds what is asked; none where it is no match."""
        return ()


@dataclass(frozen=True)
class _Joined(PlanNode):
    """Conditions joined by a word."""

    children: tuple[PlanNode, ...]
    word: ClassVar[str]

    def words(self) -> str:
        """Return the children's words."""
        # Brackets around a group inside a group: "a and b or c" can be read in two ways.
        is_one = len(self.children) == 1
        return self.word.join(
            [
                f"({one.words()})" if isinstance(one, _Joined) and not is_one else one.words()
                for one in self.children
            ]
        )


class AllOf(_Joined):
    """Every child holds."""

    word = " and "

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return the wallets of which every child holds."""
        return in_all([child.wallets(sql) for child in self.children])

    def least_balances(self) -> LeastBalances:
        """Yield those of every child: all of them hold."""
        for child in self.children:
            yield from child.least_balances()

    def most(self) -> int | None:
        """Return the least of the children's."""
        each = [child.most() for child in self.children]
        return min((known for known in each if known is not None), default=None)

    def burned(self) -> tuple[str, ...]:
        """Return those of all children, where each has some."""
        held = [child.burned() for child in self.children]
        return tuple(name for names in held for name in names) if all(held) else ()


class AnyOf(_Joined):
    """At least one child holds."""

    word = " or "

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return the wallets of which a child holds."""
        return in_any([child.wallets(sql) for child in self.children])

    def most(self) -> int | None:
        """Return the sum of the children's, where each is known."""
        each = [child.most() for child in self.children]
        known = [most for most in each if most is not None]
        return sum(known) if len(known) == len(each) else None

    def burned(self) -> tuple[str, ...]:
        """Return those of any child."""
        return tuple(name for child in self.children for name in child.burned())


@dataclass(frozen=True)
class NoneOf(PlanNode):
    """The child does not hold."""

    child: PlanNode

    def words(self) -> str:
        """Return the child's words, denied."""
        return self.child.denied()

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return the wallets seen of which the child does not hold."""
        return ~self.child.wallets(sql)


@dataclass(frozen=True)
class SeenWallets:
    """The wallets that the data shows on a chain; where history is asked, those that it shows by a block."""

    chain_id: int
    at: int | None = None

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return these wallets."""
        if self.at is None:
            return self.whose("true", sql)
        activity = sql.standing(
            sql.table("activity", chain_id=self.chain_id), self.at, "seen_block", None
        )
        return sql.leaf(f"SELECT {sql.wallet(self.at)} FROM {activity}")

    def whose(self, test: str, sql: SqlBuilder) -> Selection:
        """Return those whose ``activity`` as it is now passes a test.

        Of a base and a delta each is read alone, and so is whom the delta has anew. Of 2.9 million wallets, 350,000 of
        them anew, that takes 26 ms, and one statement that joins them 185.
        """
        layers, key = sql.layers, sql.equal(chain_id=self.chain_id)
        if layers is None:
            return sql.leaf(f"SELECT wallet FROM activity WHERE {key} AND {test}")
        base, anew, delta = (
            sql.leaf(f"SELECT wallet FROM {rows}")
            for rows in (
                f"{layers.base}.main.activity WHERE {key} AND {test}",
                f"{layers.delta}.stale.activity WHERE {key}",
                f"{layers.delta}.main.activity WHERE {key} AND {test}",
            )
        )
        return in_any([in_all([base, ~anew]), delta])


@dataclass(frozen=True)
class SegmentNode(PlanNode):
    """A whole segment: its tree, the wallets it sees and the addresses it excludes.

    ``loose``: as part of another segment, it may hold wallets that the other does not see.
    """

    node: PlanNode
    seen: tuple[SeenWallets, ...]
    exclude: tuple[str, ...]
    loose: bool = False

    def words(self) -> str:
        """Return what it asks, and whom it leaves out."""
        return self.node.words() + excluding(self.exclude)

    def most(self) -> int | None:
        """Return how many its tree has at most."""
        return self.node.most()

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return its wallets: complements are taken from the wallets that it sees, whatever it is part of."""
        # Its own seen wallets, not those of a segment around it: a saved segment means the same wherever it is named.
        seen = in_any([one.wallets(sql) for one in self.seen])
        found = self.node.wallets(sql).among(seen, loose=self.loose)
        if not self.exclude:
            return found
        excluded = sql.leaf(f"SELECT wallet FROM {sql.wallets_at(self.exclude)}")
        return in_all([found, ~excluded])


# A count as it is: from some point on, its sort key is another number.
_COUNT = f"CASE WHEN sort_key < {10**KEY_DIGITS} THEN sort_key ELSE lo END AS number"


@dataclass(frozen=True)
class BalanceColumn:
    """The wallets' balances of a contract; ``at`` is a block where history is asked.

    ``least`` is a balance that every matching wallet has, where the conditions say so. ``share_of`` is the supply that
    each comes with its share of, 0 where nobody knows it; None where no share is asked for.
    """

    contract: Contract
    at: int | None
    least: int | None = None
    share_of: int | None = None

    @property
    def kind(self) -> ColumnKind:
        """Whether it is of counts or of amounts."""
        return "count" if self.contract.is_counted else "amount"

    def values(self, sql: SqlBuilder) -> str:
        """Return the statement of ``wallet`` and the count, or the limbs of the amount."""
        value = _COUNT if self.contract.is_counted else "hi, mid, lo"
        return f"SELECT {sql.wallet(self.at)}, {value} FROM {self._held(sql)}"

    def sort_keys(self, sql: SqlBuilder) -> str:
        """Return the statement of ``wallet`` and the sort keys of amounts, which nearly always decide their order."""
        return f"SELECT wallet, sort_key FROM {self._held(sql)}"

    def _held(self, sql: SqlBuilder) -> str:
        held = sql.held(self.at, contract=self.contract.contract)
        # Smaller balances are no matching wallet's; not to read them halves the work, or better.
        return (
            held
            if self.least is None
            else f"{held} WHERE sort_key >= {sql.value(sort_key(self.least))}"
        )


@dataclass(frozen=True)
class FactColumn:
    """One of `FACTS`: a column of rows of which each wallet has one; the contract that its amounts are of."""

    fact: str
    chain_id: int
    rows: Callable[[SqlBuilder], str]
    contract: Contract | None = None

    @property
    def kind(self) -> ColumnKind:
        """What the fact is: who was not seen has no time of it, but 0 transfers."""
        return FACTS[self.fact][1]

    def values(self, sql: SqlBuilder) -> str:
        """Return the statement of ``wallet`` and the fact: limbs, or an integer; of a time, the seconds since 1970."""
        rows, (column, kind) = self.rows(sql), FACTS[self.fact]
        if kind != "time":
            return f"SELECT wallet, {column} FROM {rows}"
        blocks = sql.table("blocks", chain_id=self.chain_id)
        return (
            f"SELECT wallet, timestamp AS fact FROM {rows} AS a "
            f"JOIN {blocks} AS b ON a.{column} = b.block"
        )

    def sort_keys(self, sql: SqlBuilder) -> str:
        """Return the statement of ``wallet`` and the rank of an amount among those above none, to order rows by."""
        above = "count(nullif(hi + mid + lo, 0)) OVER (ORDER BY hi, mid, lo)"
        return f"SELECT wallet, {above} AS sort_key FROM ({self.values(sql)})"


@dataclass(frozen=True)
class MatchColumn:
    """Whether the wallets are in a segment: 1, or 0."""

    whole: SegmentNode
    kind: ClassVar[ColumnKind] = "match"

    def values(self, sql: SqlBuilder) -> Selection:
        """Return the wallets that are in it."""
        return self.whole.wallets(sql)


# What ``columns`` takes beside `SHARE` -> its column of the table ``activity``, or of what a transfer condition sums up
# (`TRANSFERRED`), and what it is.
FACTS: dict[str, tuple[str, ColumnKind]] = {
    "firstSeen": ("first_block", "time"),
    "lastSeen": ("last_block", "time"),
    "transfers": ("transfers", "count"),
    "activeDays": ("active_days", "number"),
    "transferred": ("hi, mid, lo", "amount"),
    "transferCount": ("transfers", "count"),
    "firstTransfer": ("first_block", "time"),
    "lastTransfer": ("last_block", "time"),
}
TRANSFERRED = tuple(FACTS)[4:]
SHARE: Final = "share"
ShownColumn = BalanceColumn | FactColumn | MatchColumn


def describe_columns(shown: Sequence[ShownColumn]) -> list[Column]:
    """Return ``address`` and each column as an answer describes it: ``<SYMBOL>_count`` of NFTs, two of an amount.

    These are ``<SYMBOL>_balance`` in the token's unit, where its decimals are known, and ``<SYMBOL>_balance_raw``.
    Before the exact one comes ``<SYMBOL>_share`` where that is asked for.
    Where two contracts' would be equal (engines compare names without regard to case), both get their chain, and
    where they still are, their address. That done, no ``_raw`` is another contract's: the names without it differ.
    """
    contracts = [one.contract for one in shown if isinstance(one, BalanceColumn)]
    names, shares = iter(_names(contracts)), iter(_names(contracts, SHARE))
    found: list[Column] = [{"name": "address", "type": "string"}]
    for one in shown:
        if isinstance(one, MatchColumn):
            found.append({"name": "matches", "type": "integer"})
            continue
        if isinstance(one, FactColumn):
            kind: Any = "timestamp" if one.kind == "time" else "integer"
            fact: Column = {"name": one.fact, "type": kind, "chain": chain_name(one.chain_id)}
            found += (
                [fact]
                if one.contract is None
                else _amount({**fact, "symbol": one.contract.symbol}, one.contract)
            )
            continue
        contract, share = one.contract, next(shares)
        column: Column = {
            "name": next(names),
            "type": "integer",
            "symbol": contract.symbol,
            "chain": chain_name(contract.chain_id),
            "address": contract.address,
        }
        exact = [column] if contract.is_counted else _amount(column, contract)
        if one.share_of is not None:
            supply = str(one.share_of) if one.share_of else None
            exact.insert(
                -1, {**column, "name": share, "type": "float64", "unit": SHARE, "supply": supply}
            )
        found += exact
    return found


def _amount(column: Column, contract: Contract) -> list[Column]:
    """Return the columns of an amount: of floats where the token's decimals are known, and the exact one."""
    decimals = 0 if contract.is_nft else decimals_of(contract)
    exact: Column = {**column, "type": "uint256", "decimals": decimals, "unit": "raw"}
    if contract.is_nft:
        return [exact]
    exact["name"] += "_raw"
    if decimals is None:
        return [exact]
    return [{**exact, "name": column["name"], "type": "float64", "unit": "token"}, exact]


def _names(contracts: Sequence[Contract], ending: str | None = None) -> list[str]:
    parts: list[tuple[str, str, str]] = []
    for contract in contracts:
        # A symbol is a stranger's text; a column's name goes into SQL, CSV headers and Python attributes.
        symbol = re.sub(r"[^A-Za-z0-9_]", "", contract.symbol or "")[:MAX_COLUMN_SYMBOL]
        chain = chain_name(contract.chain_id).replace("-", "_")
        parts.append((symbol or contract.address[:10], chain, contract.address))
    # Longer only where needed: "UNI_balance" is what people type, and the chain is nearly always the same.
    names, lengths = list[str](), [1] * len(contracts)
    # Each round makes a name longer: symbols may be chosen so that a longer name is another contract's short one.
    for _ in range(2 * len(contracts) + 1):
        names = [
            "_".join((*part[:length], ending or ("count" if contract.is_nft else "balance")))
            for part, length, contract in zip(parts, lengths, contracts, strict=True)
        ]
        alike = Counter(map(str.casefold, names))
        if len(alike) == len(names):
            break
        # Names that are already their own stay as they are.
        lengths = [
            length + (alike[name.casefold()] > 1)
            for name, length in zip(names, lengths, strict=True)
        ]
    return names


@dataclass(frozen=True)
class Plan:
    """A segment as it is meant on some data, ready to be compiled.

    Attributes
    ----------
    whole
        The tree, the wallets it sees and the addresses it excludes.
    shown
        What the rows show of each wallet, in order: balances, then other facts.
    columns
        The rows' columns: ``address``, then one for each of ``shown``.
    order
        The column that orders the rows, ``-`` in front for the largest first; None for their addresses.
    canonical
        The query with all names resolved, JSON-able: two queries that mean the same have the same.
    leaves
        Each condition, in the order of the query.
    """

    whole: SegmentNode
    shown: tuple[ShownColumn, ...]
    columns: list[Column]
    order: str | None
    chain: Chain
    as_of: AsOf
    limit: int
    canonical: dict[str, Any]
    words: str
    leaves: tuple[PlanNode, ...]
    warnings: list[str]
