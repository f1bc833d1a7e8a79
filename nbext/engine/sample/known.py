"""Well-known contracts and their true metadata, written down by hand as facts in ``known.json``.

Only these facts are true in the sample: who holds what, and every transfer, is made up. The file is a token list in
the Uniswap standard, with `collections` beside its `tokens`. A null symbol means that the public lists give none.
On ethereum two tokens have the symbol RPL (before and after a migration) and two collections LAND, so a symbol
alone does not identify them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbext.core.chains import chain_of


@dataclass(frozen=True)
class Known:
    """One contract: chain name, EIP-55 address, standard, symbol, name, and decimals where it is an ERC20."""

    chain: str
    checksum_address: str
    standard: str
    symbol: str | None
    name: str
    decimals: int | None = None

    @property
    def address(self) -> str:
        """The address in lower case."""
        return self.checksum_address.lower()

    @property
    def chain_id(self) -> int:
        """The chain's EIP-155 id."""
        return chain_of(self.chain).id


def _known(entries: list[dict[str, Any]]) -> tuple[Known, ...]:
    # Entries of a token list name no standard: in the Uniswap standard every token is an ERC20.
    return tuple(
        Known(
            chain_of(entry["chainId"]).name,
            entry["address"],
            entry.get("standard", "ERC20"),
            entry["symbol"],
            entry["name"],
            entry.get("decimals"),
        )
        for entry in entries
    )


_LIST = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
TOKENS, COLLECTIONS = _known(_LIST["tokens"]), _known(_LIST["collections"])
KNOWN = (*TOKENS, *COLLECTIONS)
