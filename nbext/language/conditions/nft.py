"""``nft``: wallets by how many NFTs of a collection they own, or of some of its token ids."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from nbext.core.untrusted_text import visible
from nbext.engine.query import history
from nbext.engine.query.amounts import AmountRange
from nbext.language import describe
from nbext.language.conditions.condition import BAYC, CHAIN, HELD_SINCE, bounds_json
from nbext.language.conditions.token import HoldingCondition
from nbext.language.fields import MAX_TOKEN_IDS, Field

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.dataset import Tables
    from nbext.language.lookup import Context
    from nbext.language.model import ParsedCondition


@dataclass(frozen=True)
class NftCondition(HoldingCondition):
    """A wallet's number of NFTs of a collection, or of some of its token ids, lies within bounds."""

    ids: tuple[int, ...] = ()

    name = "nft"
    help = (
        "Wallets that own NFTs of a collection. Without count: at least one. Only an explicit min of 0 also takes "
        "wallets that own none."
    )
    fields = (
        Field(
            "nft",
            "collection",
            "The collection's address, or its symbol.",
            required=True,
            examples=("BAYC", BAYC),
        ),
        CHAIN,
        Field(
            "count",
            "counts",
            "How many the wallet owns, bounds included.",
            unit="NFTs",
            examples=({"min": 2}, {"min": 1, "max": 5}),
        ),
        Field(
            "tokenIds",
            "ids",
            "Count only these token ids.",
            most=MAX_TOKEN_IDS,
            examples=([1, 2, "3"],),
        ),
        HELD_SINCE,
    )
    examples = (
        {"nft": "BAYC", "count": {"min": 2}},
        {"nft": BAYC, "tokenIds": [1, "8817"], "heldSince": "2024-01-01"},
    )
    denials = (("own ", "do not own "),)

    @classmethod
    def resolve(cls, asked: ParsedCondition, context: Context) -> Self | None:
        """Return the collection, the count, the token ids in order, and the times as blocks."""
        chain = context.chain(asked)
        if chain is None or (contract := context.contract(asked, "nft", chain)) is None:
            return None
        count = context.counts(asked, "count")
        context.warn_of_every_wallet(asked, "count", count)
        ids = tuple(sorted(set(asked.values.get("tokenIds") or ())))
        # A count is kept in the same columns as an amount, and compared in the same way.
        within = AmountRange(count.low, count.high, count.none_too)
        moment = context.held_at(asked, chain, contract)
        return cls(contract, within, moment, context.since(asked, chain, contract), ids)

    def least_balances(self) -> Iterator[tuple[tuple[int, int | None], AmountRange]]:
        """Yield the lower bound of the whole collection: of some ids it bounds no column that is shown."""
        return iter(()) if self.ids else super().least_balances()

    def burned(self) -> tuple[str, ...]:
        """Return the collection where the burn address owns so many; of some ids nobody has counted it."""
        return () if self.ids else super().burned()

    def canonical(self) -> dict[str, Any]:
        """Return it with the collection's address."""
        return {
            "nft": self.contract.address,
            "chain": describe.chain_name(self.contract.chain_id),
            "count": bounds_json(self.within),
            # As texts, which no reader of JSON rounds.
            "tokenIds": list(map(str, self.ids)) or None,
            "heldSince": self.since,
        }

    def words(self) -> str:
        """Return it as "own at least 2 BAYC (ids 1, 2) on ethereum"."""
        what = (
            f"own {describe.amount_phrase(self.within, describe.contract_name(self.contract), str)}"
        )
        if self.ids:
            what += f" (ids {describe.first_three([visible(one, 80) for one in self.ids])})"
        return self._held_words(what)

    def _balances(self, tables: Tables) -> ir.Table:
        values: Any = self
        if not values.ids:
            return super()._balances(tables)
        if values.at is not None:
            return history.standing(self._history(tables), values.at)
        owners = tables["owners"]
        mine = history.of_ids(
            owners.filter(owners.contract == values.contract.contract), "id_", values.ids
        )
        return history.counts_as_amounts(mine.group_by("wallet").agg(count=mine["count"].sum()))

    def _history(self, tables: Tables) -> ir.Table:
        values: Any = self
        # Who owned which id at a block is not prepared: it is derived from the collection's transfers.
        return (
            history.history_of_ids(values.contract, values.ids, tables)
            if values.ids
            else super()._history(tables)
        )
