"""A segment in English words, for people to check that it says what they meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.constants import NFT_STANDARDS
from nbext.core.uint256 import units_text
from nbext.core.untrusted_text import visible
from nbext.language.lookup import name_of
from nbext.language.model import (
    NO_BLOCKS,
    Acting,
    All,
    Being,
    Blocks,
    Holding,
    Moving,
    Node,
    Not,
    Owning,
    Range,
    Saved,
    Some,
)

if TYPE_CHECKING:
    from nbext.engine.dataset import Contract

# What a condition's words begin with, and how that is denied.
_DENIED = {
    "hold ": "do not hold ",
    "own ": "do not own ",
    "received ": "did not receive ",
    "sent or received ": "did not send or receive ",
    "sent ": "did not send ",
    "burned ": "did not burn ",
    "took ": "did not take ",
    "were ": "were not ",
    "are ": "are not ",
}


def in_words(node: Node) -> str:
    """Return what a node asks, in words.

    A whole segment is "wallets that ...", with those that it leaves out; a part of one is only the rest
    of that sentence.
    """
    if isinstance(node, Saved) and not node.name:
        return "wallets that " + _inner(node.node) + _excluding(node)
    return _inner(node)


def _inner(node: Any) -> str:
    if isinstance(node, All | Some):
        if len(node.children) == 1:
            return _inner(node.children[0])
        return (" and " if isinstance(node, All) else " or ").join(map(_member, node.children))
    if isinstance(node, Not):
        return _denied(node.child)
    return _WORDS[type(node)](node)


def _member(node: Node) -> str:
    return f"({_inner(node)})" if isinstance(node, All | Some) else _inner(node)


def _denied(node: Node) -> str:
    text = _inner(node)
    # "do not a and b" would deny only a: what has several parts is denied as a whole.
    if not isinstance(node, All | Some | Not | Acting | Being):
        return next(denied + text[len(start) :] for start, denied in _DENIED.items() if text.startswith(start))
    return f"not ({text})"


def _holding(node: Holding) -> str:
    contract = node.contract
    if contract.standard in NFT_STANDARDS:
        what = f"own {_amount(node.within, _name(contract), str)}"
        if node.ids:
            what += f" (ids {_listed([visible(one, 80) for one in node.ids])})"
    else:
        what = f"hold {_amount(node.within, _name(contract), _units(contract))}"
    text = f"{what} on {name_of(contract.chain_id)}" + _as_of(node.at)
    if node.since is None:
        return text
    low = "" if node.within.low <= 1 else f" {_units(contract)(node.within.low)} or more"
    return f"{text}, and held{low} at every block since {node.since:,}"


def _owning(node: Owning) -> str:
    what = f"of {_listed([_name(one) for one in node.of])}" if node.of else "collections"
    return f"own NFTs of {_number(node.within)} {what} on {name_of(node.chain_id)}" + _as_of(node.at)


def _moving(node: Moving) -> str:
    verb = {"in": "received", "out": "sent", "any": "sent or received", "mint": "were minted", "burn": "burned"}
    what = "anything" if node.contract is None else _name(node.contract)
    times = "" if node.count == Range(1, None, none_too=False) else f" {_number(node.count)} times"
    text = f"{verb[node.direction]} {what}{times} on {name_of(node.chain_id)}"
    if node.counterparty:
        text += f", {'from' if node.direction == 'in' else 'to' if node.direction == 'out' else 'with'} "
        text += _listed(list(node.counterparty))
    units = _units(node.contract) if node.contract else str
    text += "" if node.amount is None else f", {_number(node.amount, units)} each time"
    text += "" if node.total is None else f", {_number(node.total, units)} in all"
    return text + _window(node.blocks)


def _acting(node: Acting) -> str:
    parts = [
        "were first seen" + _window(node.first) if node.first != Blocks() else "",
        "were last seen" + _window(node.last) if node.last != Blocks() else "",
        f"took part in {_number(node.transfers)} transfers" if node.transfers else "",
        f"were active on {_number(node.days)} days" if node.days else "",
    ]
    return " and ".join(part for part in parts if part) + f" on {name_of(node.chain_id)}" + _as_of(node.at)


def _being(node: Being) -> str:
    known = "" if node.contract is None else f"are {'' if node.contract else 'not '}known to be contracts"
    among = f"are one of {_listed(list(node.among))}" if node.among else ""
    return " and ".join(part for part in (known, among) if part)


def _saved(node: Saved) -> str:
    return f"are in the saved segment {node.name} ({_inner(node.node)}{_excluding(node)})"


_WORDS: dict[type, Callable[[Any], str]] = {
    Holding: _holding,
    Owning: _owning,
    Moving: _moving,
    Acting: _acting,
    Being: _being,
    Saved: _saved,
}


def _amount(within: Range, name: str, written: Callable[[int], str]) -> str:
    """Write bounds of a balance. Without a lower bound, some is meant: the smallest unit would say nothing."""
    if within.low == 1 and within.high is None:
        return name
    if within.low == 1 and within.high is not None and within.high > 1:
        return f"some {name}, at most {written(within.high)}"
    return f"{_number(within, written)} {name}"


def _number(within: Range, written: Callable[[int], str] = str) -> str:
    low, high = within.low, within.high
    if high is None:
        return "any number of" if low == 0 else f"at least {written(low)}"
    return f"exactly {written(low)}" if low == high else f"from {written(low)} to {written(high)}"


def _units(contract: Contract) -> Callable[[int], str]:
    decimals = contract.decimals
    if contract.standard in NFT_STANDARDS or decimals is None or not 0 <= decimals <= 255:
        return str
    return lambda raw: units_text(raw, decimals)


def _name(contract: Contract) -> str:
    return visible(contract.symbol or contract.address, 80)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _window(blocks: Blocks) -> str:
    if blocks == NO_BLOCKS:
        return " in no block of the data"
    first = "" if blocks.first is None else f" from block {blocks.first:,}"
    return first + ("" if blocks.last is None else f" up to block {blocks.last:,}")


def _as_of(block: int | None) -> str:
    return "" if block is None else f" as of block {block:,}"


def _excluding(node: Saved) -> str:
    if node.exclude == tuple(sorted(BURN_ADDRESSES)):
        return ""
    return f"; without {_listed(list(node.exclude))}" if node.exclude else "; burn addresses too"
