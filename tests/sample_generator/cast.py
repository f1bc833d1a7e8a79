"""Who takes part: made-up wallets by role, and the made-up contracts among them."""

from __future__ import annotations

from functools import cache
from hashlib import sha256

ZERO = "0x" + "0" * 40
DEAD = "0x" + "0" * 36 + "dead"

ROLES = {
    "trader": 5_500,  # buys a few tokens, on one chain or two
    "holder": 1_300,  # buys early and keeps
    "whale": 60,  # few, and most of the value
    "farmer": 1_000,  # claims airdrops alone
    "sybil": 900,  # claims airdrops in groups that send all to one wallet
    "leader": 45,  # the wallet that such a group sends to
    "collector": 1_600,  # buys NFTs and mostly keeps them
    "flipper": 60,  # buys NFTs and sells them within days
    "gamer": 1_500,  # plays on polygon and arbitrum
    "newcomer": 2_000,  # came to base in the last quarter
    "dormant": 700,  # active in the first two months only
}
# Contracts that hold and move tokens. Each has one address on every chain.
CONTRACTS = (
    "exchange",
    "marketplace",
    "bridge",
    "distributor",
    "migration",
    "safe 1",
    "safe 2",
    "safe 3",
)


def digest(text: str) -> str:
    """Return 64 hex digits made of the text: for addresses, hashes and ids."""
    return sha256(f"nbext synthetic {text}".encode()).hexdigest()


def address(text: str) -> str:
    """Return the made-up address of that name."""
    return "0x" + digest(text)[:40]


# Addresses are asked for by every story: hash each name once.
@cache
def wallets(role: str) -> tuple[str, ...]:
    """Return the addresses of all wallets of a role."""
    return tuple(address(f"{role} {number}") for number in range(ROLES[role]))


@cache
def contract(name: str) -> str:
    """Return the address of one of ``CONTRACTS``."""
    return address(f"contract {name}")


def lookalike(victim: str, number: int) -> str:
    """Return an address that begins and ends as the victim's does, as address poisoning uses."""
    return victim[:7] + digest(f"lookalike {number}")[:31] + victim[-4:]
