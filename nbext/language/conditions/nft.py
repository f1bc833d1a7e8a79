"""``nft``: wallets by how many NFTs of a collection they own, or of some of its token ids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from nbext.core.uint256 import LIMB_BASE, split
from nbext.core.untrusted_text import visible
from nbext.engine.query.amounts import count_as_amount
from nbext.engine.query.sql import LIMB
from nbext.engine.schema import FOREVER
from nbext.language import describe
from nbext.language.conditions.condition import BAYC, CHAIN, HELD_SINCE, bounds_json
from nbext.language.conditions.token import HoldingCondition
from nbext.language.fields import MAX_TOKEN_IDS, Field

if TYPE_CHECKING:
    from nbext.engine.query.sql import SqlBuilder
    from nbext.language.lookup import Context
    from nbext.language.model import LeastBalances, ParsedCondition


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
            "Count only these token ids, to choose wallets. The count in a row is of all ids.",
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
    quantity = "count"

    @classmethod
    def resolve(cls, asked: ParsedCondition, context: Context) -> Self:
        """Return the collection, the count, the token ids in order, and the times as blocks."""
        ids = tuple(sorted(set(asked.values.get("tokenIds") or ())))
        # A count is kept in the same columns as an amount, and compared in the same way.
        return replace(super().resolve(asked, context), ids=ids)

    def least_balances(self) -> LeastBalances:
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

    def _changes(self, sql: SqlBuilder) -> str:
        """Return what wallets gained and lost of the ids."""
        # Nearly all ids fit one limb, which an engine can look up in a list; the rest are compared one by one.
        tests = []
        if small := [one for one in self.ids if one < LIMB_BASE]:
            # Else as texts: Spark has no list of decimals of unlike digits, and DuckDB casts texts slowly.
            given: list[int] | list[str] = small if max(small) < 2**63 else list(map(str, small))
            listed = f"(SELECT CAST(listed AS {LIMB}) FROM {sql.listed(given, 'listed')})"
            tests.append(f"id_hi = 0 AND id_mid = 0 AND id_lo IN {listed}")
        for one in self.ids:
            if one >= LIMB_BASE:
                limbs = zip(("hi", "mid", "lo"), map(sql.value, split(one)), strict=True)
                tests.append(" AND ".join(f"id_{limb} = {value}" for limb, value in limbs))
        changes = sql.table("nft_changes", contract=self.contract.contract)
        return f"(SELECT wallet, block, change FROM {changes} WHERE {' OR '.join(tests)})"

    def _held(self, sql: SqlBuilder, since: int | None = None) -> str:
        """Return what is held of the collection, or in the same columns how many of the ids each wallet owned."""
        if not self.ids:
            return super()._held(sql, since)
        changes = self._changes(sql)
        if self.at is None and since is None:
            owned = f"(SELECT wallet, sum(change) AS number FROM {changes} GROUP BY wallet)"
            return f"(SELECT wallet, {count_as_amount('number')} FROM {owned})"
        # What came and went within a block stood in no block.
        by_block = (
            f"SELECT wallet, block, sum(change) AS change FROM {changes} GROUP BY wallet, block"
        )
        by_wallet = "PARTITION BY wallet ORDER BY block"
        rows = (
            f"SELECT wallet, block AS from_block, "
            f"coalesce(lead(block) OVER ({by_wallet}), {FOREVER}) AS to_block, "
            f"sum(change) OVER ({by_wallet} ROWS UNBOUNDED PRECEDING) AS number FROM ({by_block})"
        )
        owned = f"(SELECT wallet, from_block, to_block, {count_as_amount('number')} FROM ({rows}))"
        return sql.stood(owned, self.at, since)
