"""The columns of a segment's rows: the address, and a balance or a count for each contract asked of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nbext.core.constants import MAX_COLUMN_SYMBOL, NFT_STANDARDS
from nbext.language.lookup import name_of

if TYPE_CHECKING:
    from nbext.core.operations import Column
    from nbext.engine.dataset import Contract



def columns(contracts: Sequence[Contract]) -> list[Column]:
    """Return ``address`` and a column for each contract: ``<SYMBOL>_balance``, or ``<SYMBOL>_count`` of NFTs.

    Where two would be equal (engines compare names without regard to case), both get their chain, and
    where they still are, their address.
    """
    parts = [[_symbol(one), name_of(one.chain_id).replace("-", "_"), one.address] for one in contracts]
    names = _told_apart(parts, contracts)
    return [{"name": "address", "type": "string"}, *map(_column, contracts, names)]


def _told_apart(parts: list[list[str]], contracts: Sequence[Contract]) -> list[str]:
    names: list[str] = []
    for length in (1, 2, 3):
        names = [_name(part[:length], one) for part, one in zip(parts, contracts, strict=True)]
        seen = Counter(name.casefold() for name in names)
        # Names that are already their own stay as they are.
        parts = [
            part[:length] if seen[name.casefold()] == 1 else part for part, name in zip(parts, names, strict=True)
        ]
    return names


def _name(parts: Sequence[str], contract: Contract) -> str:
    return "_".join([*parts, "count" if contract.standard in NFT_STANDARDS else "balance"])


def _column(contract: Contract, name: str) -> Column:
    nft = contract.standard in NFT_STANDARDS
    column: Column = {
        "name": name,
        "type": "integer" if nft else "uint256",
        "symbol": contract.symbol,
        "chain": name_of(contract.chain_id),
        "address": contract.address,
    }
    return column if nft else {**column, "decimals": contract.decimals}


def _symbol(contract: Contract) -> str:
    # A symbol is a stranger's text; a column's name goes into SQL, CSV headers and Python attributes.
    clean = re.sub(r"[^A-Za-z0-9_]", "", contract.symbol or "")[:MAX_COLUMN_SYMBOL]
    return clean or contract.address[:10]
