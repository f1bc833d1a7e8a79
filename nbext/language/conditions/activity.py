"""``activity``: wallets by all their transfers on one chain: the first, the last, how many, on how many days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from nbext.core.strict_json import below
from nbext.engine.query.amounts import Range
from nbext.engine.query.set_tree import Selection
from nbext.language import describe
from nbext.language.conditions.condition import CHAIN, Condition, bounds_json
from nbext.language.fields import Field
from nbext.language.model import SeenWallets

if TYPE_CHECKING:
    from nbext.engine.query.sql import SqlBuilder
    from nbext.language.lookup import Context
    from nbext.language.model import ParsedCondition


@dataclass(frozen=True)
class ActivityCondition(Condition):
    """When a wallet was first and last seen on a chain, how often, and on how many days."""

    chain_id: int
    first: Range
    last: Range
    transfers: Range
    days: Range
    at: int | None = None

    name = "activity"
    help = "Wallets by all their transfers on one chain."
    fields = (
        Field(
            "first",
            "window",
            "When the wallet was first seen.",
            examples=({"after": "2024-01-01"},),
        ),
        Field("last", "window", "When the wallet was last seen.", examples=({"before": "180d"},)),
        Field(
            "transfers",
            "counts",
            "How many transfers it took part in.",
            unit="transfers",
            examples=({"min": 10},),
        ),
        Field(
            "activeDays",
            "counts",
            "On how many days (UTC) it took part in one.",
            unit="days",
            examples=({"min": 5},),
        ),
        CHAIN,
    )
    examples = (
        {"first": {"before": "2023-01-01"}, "transfers": {"min": 10}},
        {"last": {"after": "30d"}, "chain": "base"},
    )

    @classmethod
    def resolve(cls, asked: ParsedCondition, context: Context) -> Self:
        """Return the windows in blocks, and the counts."""
        chain = context.chain(asked)
        context.warn_of_gaps(chain)
        if "activeDays" in asked.values:
            context.timed(
                chain, below(asked.pointer, "activeDays"), "Days cannot be counted.", every=True
            )
        first, last = (
            context.blocks(asked.values[name], chain, below(asked.pointer, name))
            if name in asked.values
            else Range()
            for name in ("first", "last")
        )
        # Who did nothing was never first seen.
        both = ("transfers", "activeDays")
        transfers, days = (
            context.counts(asked, name, *both) if name in asked.values else Range() for name in both
        )
        made = cls(chain.id, first, last, transfers, days, context.at(chain, asked.pointer))
        if made.none_too:
            context.warn_of_every_wallet(asked, *both)
        return made

    @property
    def none_too(self) -> bool:
        """Whether it takes wallets that did nothing."""
        return not (self.transfers.low or self.days.low) and self.first == self.last == Range()

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return the wallets whose activity lies within all bounds."""
        fits = " AND ".join(
            [
                *self.first.holds(sql, "first_block"),
                *self.last.holds(sql, "last_block"),
                *self.transfers.holds(sql, "transfers"),
                *self.days.holds(sql, "active_days"),
            ]
        )
        # Who did nothing has no row: it is found by not being found outside the bounds.
        where = f"NOT ({fits})" if self.none_too else fits or "true"
        if self.at is None:
            found = SeenWallets(self.chain_id).whose(where, sql)
        else:
            activity = sql.activity(self.at, self.chain_id, days=self.days != Range())
            found = sql.leaf(f"SELECT wallet FROM {activity} WHERE {where}")
        return ~found if self.none_too else found

    def canonical(self) -> dict[str, Any]:
        """Return it with its windows in blocks."""
        return {
            "first": bounds_json(self.first, int, "after", "before"),
            "last": bounds_json(self.last, int, "after", "before"),
            "transfers": bounds_json(self.transfers),
            "activeDays": bounds_json(self.days),
            "chain": describe.chain_name(self.chain_id),
        }

    def words(self) -> str:
        """Return it as "were first seen from block 5 and were active on at least 3 days on ethereum"."""
        parts = [
            (self.first, "were first seen" + describe.window_phrase(self.first)),
            (self.last, "were last seen" + describe.window_phrase(self.last)),
            (self.transfers, f"took part in {describe.number_phrase(self.transfers)} transfers"),
            (self.days, f"were active on {describe.number_phrase(self.days)} days"),
        ]
        asked = " and ".join(words for bounds, words in parts if bounds != Range())
        return asked + describe.on_chain(self.chain_id, self.at)
