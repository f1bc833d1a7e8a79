"""``transfer``: wallets by the transfers that they took part in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.strict_json import below
from nbext.engine.query.amounts import Range, carried, count_as_amount, limbs_at_least
from nbext.engine.query.set_tree import Selection
from nbext.engine.query.sql import where
from nbext.language import describe
from nbext.language.conditions.condition import CHAIN, UNIT, VITALIK, Condition, bounds_json
from nbext.language.fields import Field, TimeRange

if TYPE_CHECKING:
    from nbext.engine.dataset import Contract
    from nbext.engine.query.sql import SqlBuilder
    from nbext.language.lookup import Context
    from nbext.language.model import ParsedCondition

_VERBS = {
    "in": "received",
    "out": "sent",
    "any": "sent or received",
    "mint": "were minted",
    "burn": "burned",
}


@dataclass(frozen=True)
class TransferCondition(Condition):
    """How many transfers that fit a wallet took part in, and how much they moved together.

    Only blocks up to the plan's are looked at.
    """

    chain_id: int
    direction: str
    contract: Contract | None
    counterparty: tuple[str, ...]
    amount: Range
    total: Range
    count: Range
    blocks: Range

    name = "transfer"
    help = (
        "Wallets that took part in transfers. Without count: at least one. Only an explicit min of 0, of count or "
        "of total, also takes wallets with none."
    )
    fields = (
        Field(
            "direction",
            "choice",
            "The wallet received (in), sent (out), either (any), or was minted to or burned from.",
            default="any",
            choices=("in", "out", "any", "mint", "burn"),
            examples=("in",),
        ),
        Field(
            "token",
            "token",
            "Transfers of this token only: its address or symbol.",
            examples=("USDC",),
        ),
        Field(
            "nft",
            "collection",
            "Transfers of this collection only: its address or symbol.",
            examples=("BAYC",),
        ),
        CHAIN,
        Field(
            "counterparty",
            "parties",
            "The other side: an address, or a list of addresses, any of which matches.",
            examples=(VITALIK, [VITALIK]),
        ),
        Field(
            "amount",
            "moved",
            "The amount of each transfer; other transfers are ignored.",
            unit="token",
            examples=({"min": "100"}, {"max": "0"}),
        ),
        Field(
            "total",
            "moved",
            "The total amount of those transfers.",
            unit="token",
            examples=({"min": "10000"},),
        ),
        Field(
            "count",
            "counts",
            "How many such transfers there were.",
            unit="transfers",
            examples=({"min": 3}, {"min": 0, "max": 0}),
        ),
        UNIT,
        Field(
            "after",
            "time",
            "Only transfers at or after this time or block; a date is its 00:00 UTC.",
            examples=("90d", "2024-01-01"),
        ),
        Field(
            "before",
            "until",
            "Only transfers at or before this time or block; a date is the end of its day.",
            examples=("2024-01-31", "30d", 19_000_000),
        ),
    )
    examples = (
        {"direction": "in", "token": "USDC", "total": {"min": "10000"}, "after": "90d"},
        {"direction": "mint", "nft": "BAYC", "count": {"min": 2}},
    )
    exclusive = (("token", "nft"),)
    needs = (("amount", ("token", "nft")), ("total", ("token", "nft")), ("unit", ("token",)))
    denials = (
        ("received ", "did not receive "),
        ("sent or received ", "did not send or receive "),
        ("sent ", "did not send "),
        ("burned ", "did not burn "),
        ("were ", "were not "),
    )

    @classmethod
    def resolve(cls, asked: ParsedCondition, context: Context) -> Self:
        """Return the contract, raw amounts, and the window in blocks."""
        chain = context.chain(asked)
        name = "nft" if "nft" in asked.values else "token"
        direction, contract = asked.values["direction"], None
        if name in asked.values:
            contract = context.contract(asked, name, chain)
        else:
            context.warn_of_gaps(chain)
        if "counterparty" in asked.values and direction in ("mint", "burn"):
            other = "zero" if direction == "mint" else "burn"
            detail = f"A {direction} has no counterparty: the other side is the {other} address."
            context.report.add(below(asked.pointer, "counterparty"), "exclusive", detail)
        span = TimeRange(asked.values.get("after"), asked.values.get("before"))
        others = tuple(sorted(set(asked.values.get("counterparty", ()))))
        # Without min, nothing moved will do, as transfers of 0 do.
        amount, total = (
            context.amounts(asked, one, contract, 0) if one in asked.values else Range()
            for one in ("amount", "total")
        )
        context.warn_of_every_wallet(asked, "count", "total")
        number = context.counts(asked, "count", "total")
        blocks = context.blocks(span, chain, asked.pointer, contract)
        return cls(chain.id, direction, contract, others, amount, total, number, blocks)

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return the wallets by the number and the sum of their transfers."""
        sums, count = self.summed(sql), self.count.holds(sql, "transfers")
        fits = " AND ".join([*count, *self.total.holds_by(limbs_at_least, sql)])
        # A wallet without a transfer has no row: it is found by not being found outside the bounds.
        if not (self.count.low or self.total.low):
            return ~sql.leaf(f"SELECT wallet FROM {sums} WHERE NOT ({fits})")
        return sql.leaf(f"SELECT wallet FROM {sums} WHERE {fits}")

    def summed(self, sql: SqlBuilder) -> str:
        """Return a row for each wallet: ``transfers``, ``first_block``, ``last_block``, and the limbs of their sum."""
        # Limbs are summed as they are, and carried once: each sum stays within 38 digits.
        sums = (
            "SELECT wallet, count(*) AS transfers, min(block) AS first_block, max(block) AS last_block, "
            f"sum(hi) AS hi, sum(mid) AS mid, sum(lo) AS lo FROM ({self._sides(sql)}) GROUP BY wallet"
        )
        return f"({carried(f'({sums})', 'wallet, transfers, first_block, last_block')})"

    def _sides(self, sql: SqlBuilder) -> str:
        """Return a row for each wallet and transfer that fits: ``wallet``, ``other``, ``block`` and the limbs."""
        if self.contract is not None:
            rows = sql.table("transfers", contract=self.contract.contract)
        else:
            # Transfers hold their contract, and only the contract knows its chain.
            contracts = sql.table("contracts", chain_id=self.chain_id)
            rows = f"(SELECT * FROM transfers WHERE contract IN (SELECT contract FROM {contracts}))"
        rows = where(rows, self.blocks.holds(sql, "block"))
        # Of NFTs the limbs hold the token id: how many were moved is the count.
        is_nft = self.contract is not None and self.contract.is_nft
        amount = count_as_amount("count") if is_nft else "hi, mid, lo"
        moved = f"(SELECT block, sender, recipient, {amount} FROM {rows})"
        moved = where(moved, self.amount.holds_by(limbs_at_least, sql))
        # One row for each side, so that one GROUP BY counts a wallet's sent and received transfers together.
        received = f"SELECT recipient AS wallet, sender AS other, block, hi, mid, lo FROM {moved}"
        sent = f"SELECT sender AS wallet, recipient AS other, block, hi, mid, lo FROM {moved}"
        if self.direction == "any":
            # A transfer to oneself is one transfer.
            sides = f"{received} UNION ALL {sent} WHERE sender <> recipient"
        else:
            sides = received if self.direction in ("in", "mint") else sent
        # A mint comes from the zero address; what goes there or to 0x...dEaD is burned.
        burn = {"mint": BURN_ADDRESSES[:1], "burn": BURN_ADDRESSES}
        others = burn.get(self.direction, self.counterparty)
        if not others:
            return sides
        return f"SELECT * FROM ({sides}) WHERE other IN {sql.wallets_at(others)}"

    def canonical(self) -> dict[str, Any]:
        """Return it with the contract's address, raw amounts, and its window in blocks."""
        nft = self.contract is not None and self.contract.is_nft
        return {
            "direction": self.direction,
            ("nft" if nft else "token"): self.contract and self.contract.address,
            "chain": describe.chain_name(self.chain_id),
            "counterparty": list(self.counterparty) or None,
            "amount": bounds_json(self.amount, str),
            "total": bounds_json(self.total, str),
            "count": bounds_json(self.count),
            # Beside a token only: of NFTs and of any contract at all, amounts have no unit.
            "unit": "raw" if self.contract and not nft else None,
            **(bounds_json(self.blocks, int, "after", "before") or {}),
        }

    def words(self) -> str:
        """Return it as "received USDC on ethereum, at least 10,000 in all"."""
        what = "anything" if self.contract is None else describe.contract_name(self.contract)
        times = "" if self.count == Range(1) else f" {describe.number_phrase(self.count)} times"
        text = f"{_VERBS[self.direction]} {what}{times}" + describe.on_chain(self.chain_id)
        if self.counterparty:
            side = {"in": "from", "out": "to"}.get(self.direction, "with")
            text += f", {side} {describe.first_three(self.counterparty)}"
        unit = describe.unit_of(self.contract) if self.contract else str
        amount, total = (
            describe.number_phrase(one, unit) if one != Range(0) else "any amount"
            for one in (self.amount, self.total)
        )
        # Not "each time": the wallet may have other transfers.
        text += f", in transfers of {amount}" if self.amount != Range() else ""
        text += f", {total} in all" if self.total != Range() else ""
        return text + describe.window_phrase(self.blocks)
