"""A segment in English words, for people to check that it says what they meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nbext.segment.amounts import from_raw
from nbext.segment.model import Acting, All, Being, Blocks, Holding, Moving, Node, Not, Owning, Range, Saved, Some
from nbext.segment.names import NFT_STANDARDS, name_of
from nbext.segment.report import plain
from nbext.wire.addresses import BURN_ADDRESSES

if TYPE_CHECKING:
    from nbext.engine.dataset import Contract


def in_words(node: Node) -> str:
    """Return what a node asks of a wallet, as the rest of a sentence that begins with "wallets that".

    At the top, a whole segment says which wallets it leaves out.
    """
    if isinstance(node, Saved) and not node.name:
        return "wallets that " + _inner(node.node) + _excluding(node)
    return _inner(node)


def _inner(node: Any) -> str:
    if isinstance(node, All | Some):
        return _joined(node)
    if isinstance(node, Not):
        return f"not ({_inner(node.child)})"
    return _WORDS[type(node)](node)


def _joined(node: All | Some) -> str:
    word = " and " if isinstance(node, All) else " or "
    parts = [
        f"({_inner(child)})" if isinstance(child, All | Some) and len(child.children) > 1 else _inner(child)
        for child in node.children
    ]
    return word.join(parts)


def _holding(node: Holding) -> str:
    contract = node.contract
    if contract.standard in NFT_STANDARDS:
        what = f"{_name(contract)} NFTs"
        if node.ids:
            what += f" with the ids {_listed([plain(str(one)) for one in node.ids])}"
        text = f"own {_bounds(node.within, str)} {what} on {name_of(contract.chain_id)}"
    else:
        text = f"hold {_bounds(node.within, _units(contract))} {_name(contract)} on {name_of(contract.chain_id)}"
    since = "" if node.since is None else f", at least the lower bound at every block since {node.since:,}"
    return text + _as_of(node.at) + since


def _owning(node: Owning) -> str:
    number = _bounds(node.within, str)
    if node.of:
        return f"own NFTs from {number} of {_listed([_name(one) for one in node.of])} on {name_of(node.chain_id)}"
    return f"own NFTs from {number} collections on {name_of(node.chain_id)}" + _as_of(node.at)


def _moving(node: Moving) -> str:
    verb = {"in": "received", "out": "sent", "any": "sent or received", "mint": "were minted", "burn": "burned"}
    what = "anything" if node.contract is None else _name(node.contract)
    text = f"{verb[node.direction]} {what} {_bounds(node.count, str)} times on {name_of(node.chain_id)}"
    units = _units(node.contract) if node.contract else str
    if node.amount is not None:
        text += f", {_bounds(node.amount, units)} each time"
    if node.total is not None:
        text += f", {_bounds(node.total, units)} in all"
    if node.counterparty:
        text += f", with {_listed(list(node.counterparty))}"
    return text + _window(node.blocks)


def _acting(node: Acting) -> str:
    parts = [
        "were first seen" + _window(node.first) if node.first != Blocks() else "",
        "were last seen" + _window(node.last) if node.last != Blocks() else "",
        f"took part in {_bounds(node.transfers, str)} transfers" if node.transfers else "",
        f"were active on {_bounds(node.days, str)} days" if node.days else "",
    ]
    return " and ".join(part for part in parts if part) + f" on {name_of(node.chain_id)}" + _as_of(node.at)


def _being(node: Being) -> str:
    parts = [
        "" if node.contract is None else f"are {'' if node.contract else 'not '}known to be contracts",
        f"are one of {_listed(list(node.among))}" if node.among else "",
    ]
    return " and ".join(part for part in parts if part)


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


def _bounds(within: Range, written: Callable[[int], str]) -> str:
    low, high = within.low, within.high
    if high is None:
        return "any number of" if low == 0 else f"at least {written(low)}"
    return f"exactly {written(low)}" if low == high else f"from {written(low)} to {written(high)}"


def _units(contract: Contract) -> Callable[[int], str]:
    decimals = contract.decimals
    if contract.standard in NFT_STANDARDS or decimals is None or not 0 <= decimals <= 255:
        return str
    return lambda raw: from_raw(raw, decimals)


def _name(contract: Contract) -> str:
    return plain(contract.symbol or contract.address)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _window(blocks: Blocks) -> str:
    first = "" if blocks.first is None else f" from block {blocks.first:,}"
    return first + ("" if blocks.last is None else f" up to block {blocks.last:,}")


def _as_of(block: int | None) -> str:
    return "" if block is None else f" as of block {block:,}"


def _excluding(node: Saved) -> str:
    if node.exclude == tuple(sorted(BURN_ADDRESSES)) or not node.exclude:
        return "" if node.exclude else "; burn addresses too"
    return f"; without {_listed(list(node.exclude))}"
