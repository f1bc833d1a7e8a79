"""Chains: one name for each, its EIP-155 id, and the aliases that people write."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from nbext.core.rules import is_whole
from nbext.core.untrusted_text import shown
from nbext.errors import ValidationError, did_you_mean


@dataclass(frozen=True)
class Chain:
    """A chain: the name that answers use, its EIP-155 id, and other names for it."""

    name: str
    id: int
    aliases: tuple[str, ...] = ()


# By their ids: the name that answers use, and then the aliases, among them each chain's short name in the public chain
# list (chainlist.org), which a test compares.
_NAMES = {
    1: "ethereum eth mainnet eth-mainnet ethereum-mainnet homestead",
    10: "optimism oeth op op-mainnet optimism-mainnet",
    56: "bnb bsc bnb-chain binance bnb-smart-chain",
    100: "gnosis gno xdai",
    137: "polygon matic pol polygon-pos",
    250: "fantom ftm",
    324: "zksync zksync-era",
    1101: "polygon-zkevm zkevm",
    5000: "mantle mnt",
    8453: "base base-mainnet",
    42161: "arbitrum arb1 arb arbitrum-one",
    42170: "arbitrum-nova arb-nova nova",
    42220: "celo",
    43114: "avalanche avax avalanche-c",
    59144: "linea",
    81457: "blast blastmainnet",
    534352: "scroll scr",
    7777777: "zora",
    11155111: "sepolia sep eth-sepolia",
}
CHAINS = tuple(
    Chain(name, number, tuple(aliases))
    for number, (name, *aliases) in zip(_NAMES, map(str.split, _NAMES.values()), strict=True)
)
DEFAULT_CHAIN = CHAINS[0]
# What a chain may look like in a path: a remote service may know chains that are not in the table above.
CHAIN_TEXT = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_-]{0,63}\Z")


@cache
def _by_alias() -> dict[str, Chain]:
    return {
        alias: chain
        for chain in CHAINS
        for alias in (
            chain.name,
            *chain.aliases,
            str(chain.id),
            hex(chain.id),
            f"eip155:{chain.id}",
        )
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
            f"Unknown chain{'' if text else ':'} {shown(given)}.{did_you_mean(text, _by_alias())} "
            f"Allowed: {', '.join(chain_names())}, or a chain id such as 137 or eip155:137.",
        )
    return chain
