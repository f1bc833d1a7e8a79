"""``wallet``: wallets by what they are: members of a list, contracts or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from nbext.engine.query.set_tree import Leaf, Tree
from nbext.language import describe
from nbext.language.conditions.condition import Condition
from nbext.language.fields import VITALIK, Field

if TYPE_CHECKING:
    from nbext.engine.dataset import Tables
    from nbext.language.lookup import Context
    from nbext.language.model import ParsedCondition


@dataclass(frozen=True)
class WalletCondition(Condition):
    """The wallet is one of a list, and a contract or not; None where that is not asked."""

    among: tuple[str, ...] | None
    contract: bool | None

    name = "wallet"
    help = "Wallets by what they are, among those seen."
    fields = (
        Field("in", "addresses", "The wallet is one of these.", examples=([VITALIK],)),
        Field("contract", "boolean", "true: known to be a contract. false: not known to be one.", examples=(False,)),
    )
    examples = ({"in": [VITALIK]}, {"contract": False})

    @classmethod
    def resolve(cls, asked: ParsedCondition, context: Context) -> Self | None:
        """Return the addresses in order, each once."""
        among = asked.values.get("in")
        return cls(among and tuple(sorted(set(among))), asked.values.get("contract"))

    def wallets(self, tables: Tables) -> Tree:
        """Build the wallets that are among a list, and contracts or not. Some of them may not be seen."""
        values: Any = self
        wallets = tables["wallets"]
        if values.contract is not None:
            # Where the data does not say, a wallet is not known to be a contract.
            known = wallets.is_contract.fill_null(False)
            wallets = wallets.filter(known if values.contract else ~known)
        if values.among is not None:
            wallets = wallets.semi_join(values.among.unnest().name("address").as_table(), "address")
        # Loose: the table has every wallet of every chain, also those that the segment's chains never saw.
        return Leaf(wallets.select("wallet"), loose=True)

    def canonical(self) -> dict[str, Any]:
        """Return it as it was asked."""
        return {"in": self.among and list(self.among), "contract": self.contract}

    def words(self) -> str:
        """Return it as "are known to be contracts and are one of 0x..."."""
        known = "" if self.contract is None else f"are {'' if self.contract else 'not '}known to be contracts"
        among = f"are one of {describe.listed(self.among)}" if self.among else ""
        return " and ".join(filter(None, (known, among)))
