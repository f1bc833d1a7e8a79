"""The canonical form of a segment, its id, and the columns of its rows.

The canonical form is a request that means the same, with nothing left to look up: addresses for symbols, blocks for
times, raw integers for amounts. To parse and resolve it on the same data gives the same plan.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nbext.core.constants import MAX_COLUMN_SYMBOL
from nbext.language.conditions.condition import Condition
from nbext.language.describe import chain_name
from nbext.language.fields import GRAMMAR
from nbext.language.model import AllOf, AnyOf, Node, NoneOf, Plan, Query, Segment

if TYPE_CHECKING:
    from nbext.core.chains import Chain
    from nbext.core.operations import Column
    from nbext.engine.dataset import Contract


def segment_id(plan: Plan, fingerprint: str) -> str:
    """Return the id of a plan on some data: the same question of the same data has the same id."""
    # Keys are not sorted: their order is the order of the columns.
    text = json.dumps([GRAMMAR, fingerprint, plan.canonical], separators=(",", ":"), ensure_ascii=True)
    digest = hashlib.sha256(text.encode("ascii")).digest()
    # 144 bits: two segments never meet, and the id still fits a line of a notebook.
    return "sg_" + base64.urlsafe_b64encode(digest[:18]).decode("ascii")


def canonical(query: Query, whole: Segment, chain: Chain, as_of: int | str | None) -> dict[str, Any]:
    """Return the canonical request of a resolved query."""
    assert isinstance(whole.node, AllOf | AnyOf)
    # The scope is written out in full, defaults too: the id must not change when a default does.
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


def _map(nodes: Sequence[Node], join: type[AllOf | AnyOf]) -> dict[str, Any]:
    """Return joined nodes as one map: several under one key as a list."""
    entries: dict[str, list[Any]] = {}
    for node in nodes:
        if isinstance(node, AllOf | AnyOf):
            key = "all" if isinstance(node, AllOf) else "any"
            value: Any = [_member(child) for child in node.children]
        elif isinstance(node, NoneOf):
            key, value = "not", _member(node.child)
        else:
            assert isinstance(node, Condition)
            key = node.name
            value = {name: one for name, one in node.canonical().items() if one is not None}
        entries.setdefault(key, []).append(value)
    # The list under a group's key is that group's members: two groups need a group around them.
    own, other = ("all", "any") if join is AllOf else ("any", "all")
    if len(entries.get(other, ())) > 1:
        groups = [{other: value} for value in entries[other]]
        entries = {own if key == other else key: [groups] if key == other else one for key, one in entries.items()}
    return {key: values[0] if len(values) == 1 else values for key, values in entries.items()}


def _member(node: Node) -> dict[str, Any]:
    """Return a node as a map inside a group, whose keys all hold."""
    return _map(node.children if isinstance(node, AllOf) else (node,), AllOf)


def columns(contracts: Sequence[Contract]) -> list[Column]:
    """Return ``address`` and a column for each contract: ``<SYMBOL>_balance``, or ``<SYMBOL>_count`` of NFTs.

    Where two would be equal (engines compare names without regard to case), both get their chain, and
    where they still are, their address.
    """
    # Longer only where needed: "UNI_balance" is what people type, and the chain is nearly always the same.
    names: list[str] = []
    parts = [1] * len(contracts)
    for _ in range(3):
        names = [_column_name(one, length) for one, length in zip(contracts, parts, strict=True)]
        alike = Counter(map(str.casefold, names))
        if len(alike) == len(names):
            break
        # Names that are already their own stay as they are.
        parts = [
            length + (alike[name.casefold()] > 1) for name, length in zip(names, parts, strict=True)
        ]
    found: list[Column] = [{"name": "address", "type": "string"}]
    for contract, name in zip(contracts, names, strict=True):
        column: Column = {
            "name": name,
            "type": "integer" if contract.is_nft else "uint256",
            "symbol": contract.symbol,
            "chain": chain_name(contract.chain_id),
            "address": contract.address,
        }
        # A count has no decimals to be divided by.
        found.append(column if contract.is_nft else {**column, "decimals": contract.decimals})
    return found


def _column_name(contract: Contract, parts: int) -> str:
    # A symbol is a stranger's text; a column's name goes into SQL, CSV headers and Python attributes.
    symbol = re.sub(r"[^A-Za-z0-9_]", "", contract.symbol or "")[:MAX_COLUMN_SYMBOL] or contract.address[:10]
    chain = chain_name(contract.chain_id).replace("-", "_")
    kind = "count" if contract.is_nft else "balance"
    return "_".join([*(symbol, chain, contract.address)[:parts], kind])
