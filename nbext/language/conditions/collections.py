"""``collections``: wallets by how many NFT collections they own from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from nbext.core.rules import NFT_STANDARDS
from nbext.core.strict_json import below
from nbext.engine.query.amounts import Range
from nbext.engine.query.set_tree import Selection
from nbext.language import describe
from nbext.language.conditions.condition import CHAIN, Condition, bounds_json
from nbext.language.fields import MAX_COLLECTIONS, Field
from nbext.language.lookup import unseen_on

if TYPE_CHECKING:
    from nbext.engine.dataset import Contract
    from nbext.engine.query.sql import SqlBuilder
    from nbext.language.lookup import Context
    from nbext.language.model import ParsedCondition


@dataclass(frozen=True)
class CollectionsCondition(Condition):
    """How many collections a wallet owns from: of the list ``of``, or where that is empty, of the chain."""

    chain_id: int
    of: tuple[Contract, ...]
    within: Range
    at: int | None = None

    name = "collections"
    help = "Wallets by how many NFT collections they own from: at least so many of a list, or of all collections."
    fields = (
        Field(
            "of",
            "collections",
            "The collections, each as an address or a symbol.",
            most=MAX_COLLECTIONS,
            examples=(["BAYC", "MAYC", "AZUKI"],),
        ),
        Field(
            "atLeast",
            "natural",
            "How many of them the wallet owns from.",
            unit="collections",
            default=1,
            examples=(2,),
        ),
        Field(
            "distinct",
            "counts",
            "How many collections of the chain the wallet owns from.",
            unit="collections",
            examples=({"min": 5},),
        ),
        CHAIN,
    )
    examples = (
        {"of": ["BAYC", "MAYC", "AZUKI"], "atLeast": 2},
        {"distinct": {"min": 5}, "chain": "ethereum"},
    )
    exclusive = (("of", "distinct"),)
    needs = (("atLeast", ("of",)),)
    denials = (("own ", "do not own "),)

    @classmethod
    def resolve(cls, asked: ParsedCondition, context: Context) -> Self:
        """Return the collections, and how many of them."""
        chain = context.chain(asked)
        if "distinct" in asked.values:
            moment = context.owned_at(asked, chain)
            context.warn_of_gaps(chain)
            context.warnings += unseen_on(context.dataset.catalog, chain)
            context.warn_of_every_wallet(asked, "distinct")
            return cls(chain.id, (), context.counts(asked, "distinct"), moment)
        contracts, least = context.contracts(asked, "of", chain), asked.values["atLeast"]
        if least > len(asked.values["of"]):
            listed = f"{len(contracts):,} collection{'s' * (len(contracts) != 1)}"
            detail = f"{least:,} is out of range: the list has {listed}."
            context.report.add(below(asked.pointer, "atLeast"), "range", detail)
        moment = context.held_at(asked, chain, *contracts)
        return cls(chain.id, contracts, Range(least), moment)

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return the wallets that own from so many collections."""
        if self.of:
            owned = sql.held(self.at, contract=[contract.contract for contract in self.of])
        else:
            nfts = " OR ".join(f"standard = {sql.value(one)}" for one in sorted(NFT_STANDARDS))
            contracts = f"{sql.table('contracts', chain_id=self.chain_id)} WHERE {nfts}"
            owned = (
                f"(SELECT * FROM {sql.held(self.at)} "
                f"WHERE contract IN (SELECT contract FROM {contracts}))"
            )
        # A history holds the zero that a sale left behind; owning none of a collection is not owning from it.
        owners = f"SELECT wallet FROM {owned} WHERE sort_key > 0 GROUP BY wallet HAVING"
        fits = " AND ".join(self.within.holds(sql, "count(*)"))
        # Who owns from none has no row: it is found by not being found outside the bounds.
        if not self.within.low:
            return ~sql.leaf(f"{owners} NOT ({fits})")
        return sql.leaf(f"{owners} {fits}")

    def burned(self) -> tuple[str, ...]:
        """Return the listed collections that the burn address owns from now, where they are as many as asked."""
        held = [describe.contract_name(one) for one in self.of if one.burned > 0]
        return tuple(held) if self.at is None and len(held) >= (self.within.low or 0) else ()

    def canonical(self) -> dict[str, Any]:
        """Return it with addresses, in the order asked: nothing depends on it, but people know their list again."""
        asked: dict[str, Any] = {"distinct": bounds_json(self.within)}
        if self.of:
            asked = {"of": [one.address for one in self.of], "atLeast": self.within.low}
        return {**asked, "chain": describe.chain_name(self.chain_id)}

    def words(self) -> str:
        """Return it as "own NFTs of at least 2 of BAYC, MAYC on ethereum"."""
        what = (
            f"of {describe.first_three([describe.contract_name(one) for one in self.of])}"
            if self.of
            else "collections"
        )
        return f"own NFTs of {describe.number_phrase(self.within)} {what}" + describe.on_chain(
            self.chain_id, self.at
        )
