"""The canonical form of a segment: a request that means the same, with nothing left to look up.

Addresses for symbols, blocks for times, raw integers for amounts. It is itself a request: to parse and
resolve it on the same data gives the same plan.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nbext.core.constants import NFT_STANDARDS
from nbext.language.fields import GRAMMAR
from nbext.language.lookup import name_of
from nbext.language.model import (
    Acting,
    All,
    Being,
    Blocks,
    Holding,
    Moving,
    Node,
    Not,
    Owning,
    Plan,
    Query,
    Range,
    Saved,
    Some,
)

if TYPE_CHECKING:
    from nbext.core.chains import Chain


def segment_id(plan: Plan, fingerprint: str) -> str:
    """Return the id of a plan on some data: the same question of the same data has the same id."""
    # Keys are not sorted: their order is the order of the columns.
    text = json.dumps([GRAMMAR, fingerprint, plan.canonical], separators=(",", ":"), ensure_ascii=True)
    digest = hashlib.sha256(text.encode("ascii")).digest()
    return "sg_" + base64.urlsafe_b64encode(digest[:18]).decode("ascii")


def canonical(query: Query, whole: Saved, chain: Chain, as_of: int | str | None) -> dict[str, Any]:
    """Return the canonical request of a resolved query."""
    assert isinstance(whole.node, All | Some)
    filters = {
        **_map(whole.node.children, type(whole.node)),
        "chain": chain.name,
        **({} if as_of is None else {"asOf": as_of}),
        "exclude": list(whole.exclude),
    }
    return {
        "operator": query.operator,
        "filters": filters,
        "fileType": query.file_type,
        "limit": query.limit,
    }


def _map(nodes: Sequence[Node], join: type[All | Some]) -> dict[str, Any]:
    """Return joined nodes as one map: several under one key as a list."""
    entries: dict[str, list[Any]] = {}
    for node in nodes:
        key, value = _entry(node)
        entries.setdefault(key, []).append(value)
    # The list under a group's key is that group's members: two groups need a group around them.
    own, other = ("all", "any") if join is All else ("any", "all")
    if len(entries.get(other, ())) > 1:
        groups = [{other: value} for value in entries[other]]
        entries = {own if key == other else key: [groups] if key == other else one for key, one in entries.items()}
    return {key: values[0] if len(values) == 1 else values for key, values in entries.items()}


def _entry(node: Node) -> tuple[str, Any]:
    if isinstance(node, All):
        return "all", [_member(child) for child in node.children]
    if isinstance(node, Some):
        return "any", [_member(child) for child in node.children]
    if isinstance(node, Not):
        return "not", _member(node.child)
    return _leaf(node)


def _member(node: Node) -> dict[str, Any]:
    """Return a node as a map inside a group, whose keys all hold."""
    return _map(node.children if isinstance(node, All) else (node,), All)


def _leaf(node: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(node, Holding):
        return _holding(node)
    if isinstance(node, Owning):
        return "collections", _owning(node)
    if isinstance(node, Moving):
        return "transfer", _moving(node)
    if isinstance(node, Acting):
        return "activity", _acting(node)
    if isinstance(node, Being):
        return "wallet", _given({"in": node.among and list(node.among), "contract": node.contract})
    return "segment", {"id": node.name}


def _holding(node: Holding) -> tuple[str, dict[str, Any]]:
    contract, chain = node.contract, name_of(node.contract.chain_id)
    if contract.standard in NFT_STANDARDS:
        return "nft", _given({
            "nft": contract.address, "chain": chain, "count": _numbers(node.within),
            "tokenIds": [str(one) for one in node.ids] or None, "heldSince": node.since,
        })  # fmt: skip
    return "token", _given({
        "token": contract.address, "chain": chain, "balance": _amounts(node.within), "unit": "raw",
        "heldSince": node.since,
    })  # fmt: skip


def _owning(node: Owning) -> dict[str, Any]:
    if not node.of:
        return {"distinct": _numbers(node.within), "chain": name_of(node.chain_id)}
    # In the order asked: nothing depends on it, but people know their list again.
    of = [contract.address for contract in node.of]
    return {"of": of, "atLeast": node.within.low, "chain": name_of(node.chain_id)}


def _moving(node: Moving) -> dict[str, Any]:
    nft = node.contract is not None and node.contract.standard in NFT_STANDARDS
    return _given({
        "direction": node.direction,
        ("nft" if nft else "token"): node.contract and node.contract.address,
        "chain": name_of(node.chain_id),
        "counterparty": list(node.counterparty) or None,
        "amount": node.amount and _amounts(node.amount),
        "total": node.total and _amounts(node.total),
        "count": _numbers(node.count),
        "unit": "raw" if node.contract and not nft else None,
        **_window(node.blocks),
    })  # fmt: skip


def _acting(node: Acting) -> dict[str, Any]:
    return _given({
        "first": _window(node.first) or None,
        "last": _window(node.last) or None,
        "transfers": node.transfers and _numbers(node.transfers),
        "activeDays": node.days and _numbers(node.days),
        "chain": name_of(node.chain_id),
    })  # fmt: skip


def _window(blocks: Blocks) -> dict[str, Any]:
    return _given({"after": blocks.first, "before": blocks.last})


def _numbers(bounds: Range) -> dict[str, int]:
    return _given({"min": bounds.low, "max": bounds.high})


def _amounts(bounds: Range) -> dict[str, str]:
    return {key: str(bound) for key, bound in _numbers(bounds).items()}


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
