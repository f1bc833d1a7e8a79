"""``wallet``: wallets by what they are: members of a list, contracts or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from nbext.engine.query.set_tree import Selection, in_all
from nbext.language import describe
from nbext.language.conditions.condition import VITALIK, Condition
from nbext.language.fields import Field

if TYPE_CHECKING:
    from nbext.engine.query.set_tree import WalletList
    from nbext.engine.query.sql import SqlBuilder
    from nbext.language.lookup import Context
    from nbext.language.model import ParsedCondition


@dataclass(frozen=True)
class WalletCondition(Condition):
    """The wallet is one of a list, and a contract or not; None where that is not asked."""

    among: tuple[str, ...] | None
    contract: bool | None
    stored: WalletList | None = None

    name = "wallet"
    help = "Wallets by what they are, among those seen."
    fields = (
        Field(
            "in",
            "wallets",
            "The wallet is one of these: addresses, ids of saved segments, or both. The id of one "
            "saved segment needs no list.",
            examples=([VITALIK],),
        ),
        Field(
            "list",
            "list",
            "The wallet is in a list that the service stores: thousands to millions of addresses, "
            "sent once. nbext's client stores and names a list of more than 1,000 by itself.",
            examples=("ls_ExampleExampleExampleExa",),
        ),
        Field(
            "contract",
            "boolean",
            "true: known to be a contract, on any chain of the data. false: not known to be one.",
            examples=(False,),
        ),
    )
    examples = ({"in": [VITALIK]}, {"contract": False})
    exclusive = (("in", "list"),)

    @classmethod
    def resolve(cls, asked: ParsedCondition, context: Context) -> Self:
        """Return the addresses in order, each once; or the stored list."""
        among = asked.values.get("in")
        stored = context.wallet_list(asked) if "list" in asked.values else None
        return cls(among and tuple(sorted(set(among))), asked.values.get("contract"), stored)

    def most(self) -> int | None:
        """Return how many are in the list, where there is one."""
        if self.stored is not None:
            return self.stored.wallets
        return None if self.among is None else len(self.among)

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return the wallets that are among a list, and contracts or not. Some of them may not be seen."""
        # Loose: these are wallets of every chain, also those that the segment's chains never saw.
        parts = [] if self.stored is None else [Selection(self.stored, loose=True)]
        tests = []
        if self.contract is not None:
            # Where the data does not say, a wallet is not known to be a contract.
            tests.append(f"{'' if self.contract else 'NOT '}coalesce(is_contract, false)")
        if self.among is not None:
            tests.append(f"address IN {sql.listed(self.among, 'address')}")
        if tests:
            wallets = sql.table("wallets")
            parts.append(
                sql.leaf(f"SELECT wallet FROM {wallets} WHERE {' AND '.join(tests)}", loose=True)
            )
        return in_all(parts)

    def canonical(self) -> dict[str, Any]:
        """Return it as it was asked."""
        stored = self.stored and self.stored.id
        return {"in": self.among and list(self.among), "list": stored, "contract": self.contract}

    def words(self) -> str:
        """Return it as "are known to be contracts and are one of 0x..."."""
        known = (
            ""
            if self.contract is None
            else f"are {'' if self.contract else 'not '}known to be contracts"
        )
        among = f"are one of {describe.first_three(self.among)}" if self.among else ""
        stored = (
            f"are in a list of {self.stored.wallets:,} wallets ({self.stored.id})"
            if self.stored
            else ""
        )
        return " and ".join(filter(None, (known, among, stored)))
