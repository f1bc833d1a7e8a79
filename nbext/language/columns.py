"""The columns of a segment's rows: their names and types, the tables that they are read from, and the rows' order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ibis

from nbext.core.constants import MAX_COLUMN_SYMBOL
from nbext.engine.query import exact, history
from nbext.engine.query.set_tree import joined, settled
from nbext.language.describe import chain_name, decimals_of

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.core.wire import Column
    from nbext.engine.dataset import Contract, Tables
    from nbext.engine.query.bounds import Amounts


@dataclass(frozen=True)
class BalanceColumn:
    """The wallets' balances of a contract; ``at`` is a block where history is asked.

    ``least`` is a balance that every matching wallet has, where the conditions say so.
    """

    contract: Contract
    at: int | None
    least: Amounts | None = None

    def values(self, name: str, tables: Tables) -> ir.Table:
        """Build ``wallet`` and the balance."""
        held = self._held(tables)
        balance = held.size if self.contract.is_nft else exact.column(exact.of(held))
        return history.members(held, **{name: balance})

    def sort_keys(self, tables: Tables) -> ir.Table:
        """Build ``wallet`` and what orders the balances: sizes decide nearly always, limbs where they are equal."""
        return self._held(tables).select(
            "wallet", *(["size"] if self.contract.is_nft else ["size", "hi", "mid", "lo"])
        )

    def _held(self, tables: Tables) -> ir.Table:
        held, least = history.balances(self.contract, self.at, tables), self.least
        if least is not None:
            # Smaller balances are no matching wallet's; not to read them halves the work, or better.
            low: Any = least.low
            held = held.filter(held.size >= low.size)
        return held


@dataclass(frozen=True)
class ActivityColumn:
    """A fact of the wallets' activity on a chain; ``fact`` is one of `FACTS`."""

    fact: str
    chain_id: int
    at: int | None

    def values(self, name: str, tables: Tables) -> ir.Table:
        """Build ``wallet`` and the fact."""
        facts = self.sort_keys(tables)
        made = exact.time if FACTS[self.fact][1] == "timestamp" else exact.optional
        return facts.select(
            "wallet", **{name: made(facts.fact) if self.may_be_missing else facts.fact}
        )

    @property
    def may_be_missing(self) -> bool:
        """Whether a wallet may be without it: who was not seen has no time of it, but 0 transfers."""
        return self.fact != "transfers"

    def sort_keys(self, tables: Tables) -> ir.Table:
        """Build ``wallet`` and ``fact``, an integer: of a time, the seconds since 1970."""
        values: Any = self
        activity = tables["activity"].filter(tables["activity"].chain_id == values.chain_id)
        if values.at is not None:
            activity = history.activity(values.chain_id, values.at, tables)
        column, kind = FACTS[self.fact]
        if kind != "timestamp":
            return activity.select("wallet", fact=activity[column].cast("int64"))
        blocks = tables["blocks"].filter(tables["blocks"].chain_id == values.chain_id)
        seen = activity.select("wallet", block=activity[column])
        return seen.join(blocks, "block").select("wallet", fact=blocks.timestamp)


@dataclass(frozen=True)
class MatchColumn:
    """Whether the wallets are in a segment, a `nbext.language.model.Segment`: 1, or 0."""

    # That module knows the columns, so this one cannot know it.
    whole: Any

    def values(self, name: str, tables: Tables) -> ir.Table:
        """Build ``wallet`` and 1."""
        return joined(settled(self.whole.wallets(tables))).select(
            "wallet", **{name: ibis.literal(1, "int64")}
        )


# What ``columns`` takes -> its column of the table ``activity``, and its type in an answer.
FACTS = {
    "firstSeen": ("first_block", "timestamp"),
    "lastSeen": ("last_block", "timestamp"),
    "transfers": ("transfers", "integer"),
    "activeDays": ("active_days", "integer"),
}
ShownColumn = BalanceColumn | ActivityColumn | MatchColumn


@dataclass(frozen=True)
class RowOrder:
    """The order of the rows: by a column of `described`, ties by address."""

    column: int
    descending: bool


def described(shown: Sequence[ShownColumn]) -> list[Column]:
    """Return ``address`` and each column as an answer describes it: ``<SYMBOL>_count`` of NFTs, two of an amount.

    These are ``<SYMBOL>_balance`` in the token's unit, where its decimals are known, and ``<SYMBOL>_balance_raw``.
    Where two contracts' would be equal (engines compare names without regard to case), both get their chain, and
    where they still are, their address. That done, no ``_raw`` is another contract's: the names without it differ.
    """
    contracts = [one.contract for one in shown if isinstance(one, BalanceColumn)]
    names = iter(_names(contracts))
    found: list[Column] = [{"name": "address", "type": "string"}]
    for one in shown:
        if isinstance(one, ActivityColumn):
            kind: Any = FACTS[one.fact][1]
            found.append({"name": one.fact, "type": kind, "chain": chain_name(one.chain_id)})
            continue
        if isinstance(one, MatchColumn):
            found.append({"name": "matches", "type": "integer"})
            continue
        contract = one.contract
        column: Column = {
            "name": next(names),
            "type": "integer",
            "symbol": contract.symbol,
            "chain": chain_name(contract.chain_id),
            "address": contract.address,
        }
        if contract.is_nft:
            found.append(column)
            continue
        column["decimals"] = decimals = decimals_of(contract)
        if decimals is not None:
            found.append({**column, "type": "float64", "unit": "token"})
        found.append({**column, "name": f"{column['name']}_raw", "type": "uint256", "unit": "raw"})
    return found


def _names(contracts: Sequence[Contract]) -> list[str]:
    # Longer only where needed: "UNI_balance" is what people type, and the chain is nearly always the same.
    names, parts = list[str](), [1] * len(contracts)
    # Each round makes a name longer: symbols may be chosen so that a longer name is another contract's short one.
    for _ in range(2 * len(contracts) + 1):
        names = [_name(one, length) for one, length in zip(contracts, parts, strict=True)]
        alike = Counter(map(str.casefold, names))
        if len(alike) == len(names):
            break
        # Names that are already their own stay as they are.
        parts = [
            length + (alike[name.casefold()] > 1) for name, length in zip(names, parts, strict=True)
        ]
    return names


def _name(contract: Contract, parts: int) -> str:
    # A symbol is a stranger's text; a column's name goes into SQL, CSV headers and Python attributes.
    symbol = (
        re.sub(r"[^A-Za-z0-9_]", "", contract.symbol or "")[:MAX_COLUMN_SYMBOL]
        or contract.address[:10]
    )
    chain = chain_name(contract.chain_id).replace("-", "_")
    kind = "count" if contract.is_nft else "balance"
    return "_".join([*(symbol, chain, contract.address)[:parts], kind])
