"""What a dataset (`nbext.engine.query.answers`) is asked and answers: questions, their results, what the data holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbext.core.rules import NFT_STANDARDS
from nbext.errors import NbextError, QueryCancelled, QueryTimeout, ResourceLimit

if TYPE_CHECKING:
    import pyarrow as pa

    from nbext.engine.query.rows import ColumnKind, Rows
    from nbext.engine.query.set_tree import Selection
    from nbext.engine.query.sql import SqlBuilder

# How soon a cancelled question is noticed, in seconds.
TICK = 0.05
# Rows times columns of one answer, which take up to 3 GB of the disk while they are made.
MOST_VALUES = 100_000_000
# More than anybody reads of a plan: 200 conditions have megabytes of it.
MOST_EXPLAINED = 100_000


@dataclass(frozen=True)
class Compared:
    """How many of some holders' balances the contract itself said to be as in the data, at a block.

    ``supply`` and ``minted`` are the supply that the contract said and that of the data, where they differ; ``strayed``
    of ``ids`` token ids have another owner than it said. ``cause`` is why: ``unlogged`` where the contract moves
    balances without a transfer, ``left out`` where the node that the data was fetched from left logs out, ``unknown``
    where it is one of these.
    """

    block: int
    equal: int
    of: int
    cause: str | None = None
    supply: int | None = None
    minted: int | None = None
    strayed: int = 0
    ids: int = 0

    @property
    def differs(self) -> bool:
        """Whether answers about the contract have to say so."""
        return self.equal < self.of or self.cause is not None


@dataclass(frozen=True)
class ChainExtent:
    """What the data holds of one chain; ``last_timestamp`` is the last block's, in seconds since 1970, or None, and
    ``last_hash`` its hash, or None.

    ``gaps`` are ranges of blocks without a row, both ends included, on a chain nearly every block of which has one.
    ``differing`` are the contracts that said of holders other balances than the data has. ``covered`` are contracts of
    which the data has every transfer of some ranges of blocks, both ends included: there a gap means nothing.
    ``snapshots`` are contracts whose balances begin with a holder snapshot, and its block.
    """

    chain_id: int
    first_block: int
    last_block: int
    last_timestamp: int | None
    gaps: tuple[tuple[int, int], ...] = ()
    differing: Mapping[str, Compared] = field(default_factory=dict)
    covered: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    snapshots: Mapping[str, int] = field(default_factory=dict)
    last_hash: str | None = None

    def unknown_at(self, block: int | None) -> str | None:
        """Return a line of the contracts whose balances are not known yet at a block, if there are some; None: now."""
        later = [start for start in self.snapshots.values() if block is not None and block < start]
        if not later:
            return None
        return (
            f"Balances of {len(later):,} contract{'s' * (len(later) != 1)} begin with a snapshot of holders, the "
            f"last of block {max(later):,}: nothing is known before."
        )

    def covers(self, contract: str, first: int, last: int) -> bool:
        """Return whether the data is known to have every transfer of a contract in a range of blocks."""
        return any(start <= first and last <= end for start, end in self.covered.get(contract, ()))

    def uncovered(self, contract: str, first: int) -> list[tuple[int, int]]:
        """Return the blocks from one on to the chain's last that are not known to be complete, of a contract of which
        some are.
        """
        found = []
        for start, end in self.covered.get(contract, ()):
            if start > first:
                found.append((first, start - 1))
            first = max(first, end + 1)
        return (
            [*found, (first, self.last_block)]
            if contract in self.covered and first <= self.last_block
            else found
        )


@dataclass(frozen=True)
class DataAbout:
    """Whose data this is. ``fingerprint`` changes when any row of it does."""

    name: str
    synthetic: bool
    fingerprint: str
    engine: str
    chains: tuple[ChainExtent, ...]

    def unknown_at(self, blocks: Mapping[int, int | None]) -> list[str]:
        """Return the line of each chain that has contracts whose balances are not known yet at its block."""
        return [line for one in self.chains if (line := one.unknown_at(blocks.get(one.chain_id)))]


@dataclass(frozen=True)
class Contract:
    """What is known of one contract; None where nothing is.

    ``inferred``: its standard is what its transfers look like, for no file states it. ``unseen`` token ids left a
    wallet that never received them, of ``ids`` in all (0 where that is not counted), because mints are missing.
    ``below_zero`` is how many wallets have a balance below zero at the end of some block, because transfers are
    missing, also where later ones hide it; ``burned`` is the sort key (`nbext.engine.query.amounts`) of what the
    address 0x...dEaD holds. ``size`` is about the sum of the balances without their signs, where one of them has more
    than 28 digits, or where a wallet ever owned more of a collection than 64 bits hold; else 0.
    """

    contract: int
    chain_id: int
    address: str
    standard: str | None
    name: str | None = None
    symbol: str | None = None
    decimals: int | None = None
    logo: str | None = None
    verified: bool | None = None
    spam: bool | None = None
    deployer: str | None = None
    deployed_block: int | None = None
    total_supply: int | None = None
    holders: int | None = None
    transfers: int | None = None
    inferred: bool | None = None
    unseen: int | None = None
    below_zero: int | None = None
    ids: int = 0
    burned: int = 0
    size: float = 0.0

    @property
    def is_nft(self) -> bool:
        """Whether it is a collection of NFTs: its amounts are counts, and its tokens have ids."""
        return self.standard in NFT_STANDARDS

    @property
    def is_counted(self) -> bool:
        """Whether its amounts are counts that 64 bits hold."""
        return self.is_nft and not self.size


@dataclass(frozen=True)
class ExactColumn:
    """A column that is returned after the address.

    Attributes
    ----------
    values
        Writes the statement of ``wallet`` and the value: an integer, of an amount the limbs; of a match, its set.
    holders
        How many wallets it has at most: a small column is read whole, and kept for the next question.
    size
        The size that a column of amounts has at least (`nbext.core.uint256.amount_type`), whichever rows are
        returned.
    sort_keys
        Of amounts, writes the statement of ``wallet`` and their sort keys, by which rows are ordered.
    """

    name: str
    kind: ColumnKind
    values: Callable[[SqlBuilder], Any]
    holders: int = MOST_VALUES
    size: float = 0.0
    sort_keys: Callable[[SqlBuilder], str] | None = None


@dataclass(frozen=True)
class Order:
    """How rows are ordered: by a column, as its place among the question's, ties by address; None: by the address."""

    column: int | None = None
    descending: bool = False


@dataclass(frozen=True)
class Question:
    """A compiled segment.

    Attributes
    ----------
    wallets
        Writes what selects the matching wallets: a tree of sets (`nbext.engine.query.set_tree`), each a statement.
    columns
        Each exact column (``nbext.core.wire.Column``). A wallet that is not in it has 0, or misses it.
    order
        By address, where nothing else is asked.
    floats
        The columns of floats, each answered before the exact column that it is divided from: the name of that one, and
        what it is divided by; 0 where nobody knows that.
    """

    wallets: Callable[[SqlBuilder], Selection]
    columns: Sequence[ExactColumn] = ()
    order: Order = Order()
    floats: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """How many columns the rows have, the address among them."""
        return 1 + len(self.columns) + len(self.floats)


@dataclass(frozen=True)
class QueryResult:
    """How many wallets match, and the first rows of them in the question's order, stored until they are closed."""

    matched: int
    stored: Rows

    @property
    def rows(self) -> pa.Table:
        """All of the rows in memory."""
        return self.stored.table()


@dataclass
class Cancel:
    """Asked for by the caller, looked at by the engine; ``deadline`` is time.monotonic() seconds."""

    asked: threading.Event = field(default_factory=threading.Event)
    deadline: float | None = None

    def reason(self) -> NbextError | None:
        """Return why the question should end now, or None."""
        if self.asked.is_set():
            return QueryCancelled("The segment was cancelled.")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return QueryTimeout(
                "The segment ran past its time limit. Narrow it, or raise the service's --query-seconds."
            )
        return None

    def check(self) -> None:
        """Raise that reason: called between the steps that no engine can interrupt, such as compiling a condition."""
        if reason := self.reason():
            try:
                raise reason
            finally:
                # Else this frame refers to its own error: see `DuckDataset.do`.
                del reason


def check_size(rows: int, question: Question) -> None:
    """Refuse an answer of more values than `MOST_VALUES`."""
    columns = question.width
    if rows * columns > MOST_VALUES:
        raise ResourceLimit(
            f"The answer would have {rows * columns:,} values: {rows:,} rows of {columns:,} columns. The service "
            f"returns at most {MOST_VALUES:,}. Lower the limit to {MOST_VALUES // columns:,}, or name fewer tokens "
            "and collections."
        )


def ended(running: Future[Any], cancel: Cancel | None) -> NbextError | None:
    """Wait until a question that runs in another thread ends; return None then, or why it should be ended now."""
    # Without a way to cancel there is nothing to look at in between: one wait, no wake-ups.
    while not wait([running], TICK if cancel else None).done:
        if cancel and (reason := cancel.reason()):
            return reason
    return None


def cut(text: str) -> str:
    """Return a text of `Answers.explained`, cut where nobody reads on."""
    more = len(text) - MOST_EXPLAINED
    return text if more <= 0 else f"{text[:MOST_EXPLAINED]}\n... and {more:,} more characters"
