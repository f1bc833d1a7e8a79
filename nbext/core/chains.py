"""Chains: one name for each, its EIP-155 id, and the aliases that people write."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from nbext.core.rules import is_whole
from nbext.core.untrusted_text import quoted
from nbext.errors import ValidationError, did_you_mean


@dataclass(frozen=True)
class Chain:
    """A chain: the name that answers use, its EIP-155 id, and other names for it."""

    name: str
    id: int
    aliases: tuple[str, ...] = ()

    @property
    def caip2(self) -> str:
        """The CAIP-2 identifier, such as ``eip155:1``."""
        return f"eip155:{self.id}"


# The aliases include each chain's short name in the public chain list (chainlist.org), which a test compares.
CHAINS = (
    Chain("ethereum", 1, ("eth", "mainnet", "eth-mainnet", "ethereum-mainnet", "homestead")),
    Chain("optimism", 10, ("oeth", "op", "op-mainnet", "optimism-mainnet")),
    Chain("bnb", 56, ("bsc", "bnb-chain", "binance", "bnb-smart-chain")),
    Chain("gnosis", 100, ("gno", "xdai")),
    Chain("polygon", 137, ("matic", "pol", "polygon-pos")),
    Chain("fantom", 250, ("ftm",)),
    Chain("zksync", 324, ("zksync-era",)),
    Chain("polygon-zkevm", 1101, ("zkevm",)),
    Chain("mantle", 5000, ("mnt",)),
    Chain("base", 8453, ("base-mainnet",)),
    Chain("arbitrum", 42161, ("arb1", "arb", "arbitrum-one")),
    Chain("arbitrum-nova", 42170, ("arb-nova", "nova")),
    Chain("celo", 42220, ()),
    Chain("avalanche", 43114, ("avax", "avalanche-c")),
    Chain("linea", 59144, ()),
    Chain("blast", 81457, ("blastmainnet",)),
    Chain("scroll", 534352, ("scr",)),
    Chain("zora", 7777777, ()),
    Chain("sepolia", 11155111, ("sep", "eth-sepolia")),
)
DEFAULT_CHAIN = CHAINS[0]
# What a chain may look like in a path: a remote service may know chains that are not in the table above.
CHAIN_TEXT = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_-]{0,63}\Z")


@cache
def _by_alias() -> dict[str, Chain]:
    return {
        alias: chain
        for chain in CHAINS
        for alias in (chain.name, *chain.aliases, str(chain.id), hex(chain.id), chain.caip2)
    }


def chain_names() -> tuple[str, ...]:
    """Return the chains' names, in the order of their ids."""
    return tuple(chain.name for chain in CHAINS)


def chain_of(given: object, pointer: str = "chain") -> Chain:
    """Return the chain that a name, alias, id, hex id or CAIP-2 identifier means, or raise ValidationError."""
    text = str(given).strip().lower() if isinstance(given, str) or is_whole(given) else ""
    # As people write names of several words, such as Arbitrum One.
    text = text.replace(" ", "-")
    chain = _by_alias().get(text)
    if chain is None:
        raise ValidationError.of(
            pointer,
            "chain",
            f"Unknown chain {quoted(given)}.{did_you_mean(text, _by_alias())} "
            f"Allowed: {', '.join(chain_names())}, or a chain id such as 137 or eip155:137.",
        )
    return chain
