"""What an engine offers to the rooms before it: a dataset that can be looked up and asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from nbext.core.constants import NFT_STANDARDS
from nbext.errors import NbextError, QueryCancelled, QueryTimeout

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from nbext.engine.query.set_tree import Tree

# How soon a cancelled question is noticed, in seconds.
TICK = 0.05
Tables = Mapping[str, "ir.Table"]
# What can be bound to a statement; a tuple is one array, so its length is no part of the statement.
Value = int | str | tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True)
class ChainExtent:
    """What the data holds of one chain; ``last_timestamp`` is seconds since 1970, or None."""

    chain_id: int
    first_block: int
    last_block: int
    last_timestamp: int | None


@dataclass(frozen=True)
class DataAbout:
    """Whose data this is. ``fingerprint`` changes when any row of it does."""

    name: str
    synthetic: bool
    fingerprint: str
    engine: str
    chains: tuple[ChainExtent, ...]


@dataclass(frozen=True)
class Contract:
    """What is known of one contract; None where nothing is."""

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

    @property
    def is_nft(self) -> bool:
        """Whether it is a collection of NFTs: its amounts are counts, and its tokens have ids."""
        return self.standard in NFT_STANDARDS


@dataclass(frozen=True)
class Found:
    """One hit of a search, with how well it fits (1.0 is best)."""

    contract: Contract
    score: float


class Catalog(Protocol):
    """The contracts of the data."""

    def contract(self, chain_id: int, address: str) -> Contract | None:
        """Return the contract at that (lower-case) address, or None."""

    def by_symbol(self, chain_id: int, symbol: str, *, nft: bool) -> Sequence[Contract]:
        """Return the contracts that bear the symbol (any case), verified ones first."""

    def symbols(self, chain_id: int, *, nft: bool) -> Sequence[str]:
        """Return the symbols known on that chain, for suggestions."""

    def search(
        self, chain_id: int, term: str, *, standards: Sequence[str], limit: int, offset: int
    ) -> tuple[int, Sequence[Found]]:
        """Return how many contracts match, and one page of them, best first. The term is literal text."""


class Clock(Protocol):
    """Turns times into blocks, chain by chain."""

    def last(self, chain_id: int) -> tuple[int, int | None]:
        """Return the chain's last block and its timestamp (None where the data has no times)."""

    def block_at(self, chain_id: int, timestamp: int) -> int | None:
        """Return the last block at or before the time; None where the data cannot tell."""

    def timestamp_of(self, chain_id: int, block: int) -> int | None:
        """Return the block's time; None where the data has none."""


@dataclass(frozen=True)
class Question:
    """A compiled segment, its values kept apart from its shape.

    Attributes
    ----------
    shape
        Questions of one shape differ only in ``values``: an engine may keep what it compiled.
    wallets
        Builds the matching wallets: a tree of sets (`nbext.engine.query.set_tree`), which each engine combines in
        its own way.
    columns
        Builds a table of ``wallet`` and one column for each column that is returned after the address
        (``nbext.core.operations.Column``): a count, or an amount as `nbext.engine.query.exact.column`. A wallet that
        is not in it has 0.
    values
        The values of the scalars that both builders get, in order. An int within 64 bits is an int64
        scalar, a larger one decimal(38,0) (limbs), a str string; a tuple of them is an array scalar,
        for long lists: ``scalar.unnest().name("address").as_table()`` is a table to join.
    """

    shape: str
    wallets: Callable[[Tables, Sequence[ir.Scalar]], Tree]
    columns: Callable[[Tables, Sequence[ir.Scalar]], Sequence[ir.Table]]
    values: tuple[Value, ...] = ()
    # How many wallets are in each column, where that is known: a small column is read faster whole than joined.
    holders: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Answer:
    """How many wallets match, and the first rows of them by address."""

    matched: int
    rows: pa.Table


@dataclass
class Cancel:
    """Asked for by the caller, looked at by the engine; ``deadline`` is time.monotonic() seconds."""

    asked: threading.Event = field(default_factory=threading.Event)
    deadline: float | None = None


def ended(running: Future[Any], cancel: Cancel | None) -> NbextError | None:
    """Wait until a question that runs in another thread ends; return None then, or why it should be ended now."""
    # Without a way to cancel there is nothing to look at in between: one wait, no wake-ups.
    while not wait([running], TICK if cancel else None).done:
        if cancel and cancel.asked.is_set():
            return QueryCancelled("The segment was cancelled.")
        if cancel and cancel.deadline is not None and time.monotonic() >= cancel.deadline:
            advice = "Narrow it, or raise the service's --query-seconds."
            return QueryTimeout(f"The segment ran past its time limit. {advice}")
    return None


class Dataset(Protocol):
    """One immutable generation of data, open for questions. Safe to use from several threads."""

    about: DataAbout
    catalog: Catalog
    clock: Clock

    def ask(self, question: Question, *, limit: int, cancel: Cancel | None = None) -> Answer:
        """Answer a question. ``limit=0`` only counts.

        Raises
        ------
        QueryCancelled, QueryTimeout, ResourceLimit
        """

    def explain(self, question: Question, *, limit: int) -> Mapping[str, Any]:
        """Return ``{"sql": ..., "plan": ...}``: the statements that answer the question, and their plans."""

    def close(self) -> None:
        """Give back files and memory."""
