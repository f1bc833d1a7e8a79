"""``token``: wallets by their balance of an ERC20 token; and the part that it shares with ``nft``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from nbext.engine.query.amounts import Range, row_at_least, sort_key
from nbext.engine.query.set_tree import Selection, in_all
from nbext.language import describe
from nbext.language.conditions.condition import (
    CHAIN,
    HELD_SINCE,
    UNIT,
    USDC,
    Condition,
    bounds_json,
)
from nbext.language.fields import Field

if TYPE_CHECKING:
    from nbext.engine.dataset import Contract
    from nbext.engine.query.sql import SqlBuilder
    from nbext.language.lookup import Context
    from nbext.language.model import LeastBalances, ParsedCondition


@dataclass(frozen=True)
class HoldingCondition(Condition):
    """A wallet's balance of a contract lies within bounds.

    ``at`` is a block where history is asked, None for the end of the data. ``since`` is the block from which on the
    balance never fell below the lower bound, which is 0 where wallets with nothing match, too. ``quantity`` is the
    field that has the bounds.
    """

    quantity: ClassVar[str]
    contract: Contract
    within: Range
    at: int | None = None
    since: int | None = None

    @classmethod
    def resolve(cls, asked: ParsedCondition, context: Context) -> Self:
        """Return the contract, its balance in the smallest unit, and its times as blocks."""
        chain = context.chain(asked)
        contract = context.contract(asked, cls.name, chain)
        within = context.amounts(asked, cls.quantity, contract)
        context.warn_of_every_wallet(asked, cls.quantity)
        moment = context.held_at(asked, chain, contract)
        return cls(contract, within, moment, context.since(asked, chain, contract))

    @property
    def least(self) -> int:
        """The lower bound."""
        return self.within.low or 0

    def shown(self) -> tuple[Contract, int | None] | None:
        """Return the contract: the rows get a column of its balances."""
        return self.contract, self.at

    def burned(self) -> tuple[str, ...]:
        """Return the contract where the burn address's balance of it now lies within the bounds."""
        held, high = self.contract.burned, self.within.high
        fits = sort_key(self.least) <= held and (high is None or held <= sort_key(high))
        now = self.at is None and self.since is None
        return (describe.contract_name(self.contract),) if held > 0 and fits and now else ()

    def most(self) -> int | None:
        """Return how many hold the contract now, where that is asked."""
        return None if not self.least or self.at is not None else self.contract.holders

    def least_balances(self) -> LeastBalances:
        """Yield the lower bound, where there is one."""
        if self.least:
            yield (self.contract.contract, self.at), self.least

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return the wallets whose balance lies within bounds, and never fell below the lower one since a block."""
        wallet, fits = sql.wallet(self.at), " AND ".join(self.within.holds_by(row_at_least, sql))
        holders = f"SELECT {wallet} FROM {self._held(sql)} WHERE"
        # A wallet with nothing has no row: it is found by not being found outside the bounds.
        holding = sql.leaf(f"{holders} {fits if self.least else f'NOT ({fits})'}")
        holding = holding if self.least else ~holding
        if self.since is None:
            return holding
        # Sets instead of one aggregate over the whole history: each reads only the rows that decide it.
        sets, rows = [holding], self._held(sql, self.since)
        enough = row_at_least(sql, self.least)
        # A wallet that never held any has no history, and never fell below 0.
        if self.least:
            # Who first received any after that block never fell below, but did not hold at the block itself.
            begun = f"from_block <= {sql.value(self.since)}"
            sets.append(sql.leaf(f"SELECT {wallet} FROM {rows} WHERE {begun} AND {enough}"))
        # A balance that another of the same block replaced was never the balance at the end of a block.
        below = f"from_block < to_block AND NOT {enough}"
        return in_all([*sets, ~sql.leaf(f"SELECT {wallet} FROM {rows} WHERE {below}")])

    def _held(self, sql: SqlBuilder, since: int | None = None) -> str:
        """Return the balances that stand, or stood at the block asked for; with ``since``, at any from that one on."""
        return sql.held(self.at, since, contract=self.contract.contract)

    def _held_words(self, text: str) -> str:
        text += describe.on_chain(self.contract.chain_id, self.at)
        if self.since is None:
            return text
        low = f" {describe.unit_of(self.contract)(self.least)} or more" if self.least > 1 else ""
        return f"{text}, and held{low} at every block since {describe.block_phrase(self.since)}"


@dataclass(frozen=True)
class TokenCondition(HoldingCondition):
    """A wallet's balance of an ERC20 token lies within bounds."""

    name = "token"
    help = (
        "Wallets that hold an ERC20 token. Without balance: more than none. With max alone: some, and at most "
        "that. Only an explicit min of 0 also takes wallets that hold none."
    )
    fields = (
        Field(
            "token",
            "token",
            "The token's address, or its symbol.",
            required=True,
            examples=("USDC", USDC),
        ),
        CHAIN,
        Field(
            "balance",
            "amounts",
            "How much the wallet holds, bounds included.",
            unit="token",
            examples=({"min": "1000"}, {"min": "0", "max": "0.5"}),
        ),
        UNIT,
        HELD_SINCE,
    )
    examples = (
        {"token": "USDC", "balance": {"min": "1000"}, "heldSince": "90d"},
        {"token": USDC, "chain": "ethereum"},
    )
    denials = (("hold ", "do not hold "),)
    quantity = "balance"

    def canonical(self) -> dict[str, Any]:
        """Return it with the token's address and raw amounts."""
        return {
            "token": self.contract.address,
            "chain": describe.chain_name(self.contract.chain_id),
            "balance": bounds_json(self.within, str),
            "unit": "raw",
            "heldSince": self.since,
        }

    def words(self) -> str:
        """Return it as "hold at least 5 UNI on ethereum"."""
        name, unit = describe.contract_name(self.contract), describe.unit_of(self.contract)
        return self._held_words(f"hold {describe.amount_phrase(self.within, name, unit)}")
