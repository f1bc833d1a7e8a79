"""Why a holder's balance is another than the contract says: it moved without a log, or the node left a log out.

A token that rebases or takes a fee looks like one of which a node left logs out. The first block at which the data and
the contract part tells them apart: either it has a transfer that is not stored, or it has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from nbext.core.addresses import ZERO_ADDRESS
from nbext.errors import NodeError
from nbext.node.contracts import balances, supply
from nbext.node.coverage import Coverage
from nbext.node.rpc import Node, Refusal
from nbext.node.windows import Lie, Wanted, transfers_in


class Cause(Enum):
    """Why balances differ."""

    UNLOGGED = "unlogged"
    LEFT_OUT = "left out"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Parting:
    """Why a balance differs, and the first block at which it does; None where the node has no old states."""

    cause: Cause
    block: int | None = None


def parting(
    node: Node, coverage: Coverage, wanted: Wanted, wallet: str, *, first: int, last: int
) -> Parting:
    """Find the first block at which a wallet's balance differs from the contract's, and look at its transfers.

    Parameters
    ----------
    wanted
        One contract and its events.
    wallet
        A holder; the zero address for the supply, which is what was minted and not burnt.
    first, last
        Before ``first`` nobody has a balance; at ``last`` they differ.
    """
    (contract,) = wanted.contracts
    moves = coverage.moves_of(contract, wallet)
    low, high = first - 1, last
    try:
        while high - low > 1:
            middle = (low + high) // 2
            stored = sum(amount for block, amount in moves if block <= middle)
            same = _said(node, contract, wallet, middle) == stored
            low, high = (middle, high) if same else (low, middle)
        there = transfers_in(node, wanted, high)
    except Lie:
        return Parting(Cause.LEFT_OUT, high)
    except (NodeError, Refusal):
        return Parting(Cause.UNKNOWN)
    if there is None:
        return Parting(Cause.UNKNOWN, high)
    return Parting(
        Cause.LEFT_OUT if there - coverage.indexes_of(contract, high) else Cause.UNLOGGED, high
    )


def supply_differs(node: Node, coverage: Coverage, contract: str, block: int) -> bool:
    """Say whether a token's supply is another than what was minted and not burnt."""
    said = supply(node, contract, block)
    return said is not None and -said != sum(
        amount for at, amount in coverage.moves_of(contract, ZERO_ADDRESS) if at <= block
    )


def _said(node: Node, contract: str, wallet: str, block: int) -> int:
    """Return what the contract says at a block; where it says nothing yet, it has nothing."""
    if wallet == ZERO_ADDRESS:
        return -(supply(node, contract, block) or 0)
    return next(iter(balances(node, contract, [(wallet, None)], block))) or 0
