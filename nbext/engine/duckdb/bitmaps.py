"""Sets of wallets on one machine: each condition is fetched as integers, and sets are combined as bitmaps.

A segment is conditions joined by *and*, *or* and *not*. A wallet is a small integer, so joining two
million wallets takes some milliseconds by a bitmap, where a database's hash joins take ten times as long.
The expression that a segment was compiled to is taken apart where it only combines sets (semi joins, anti
joins, unions of wallets); what remains, the leaves, are the engine's statements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from ibis.expr import operations as ops

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from nbext.engine.query.statements import Statement

    Wallets = np.ndarray[tuple[int], np.dtype[np.int32]]

# Below this many wallets sorting is as fast as a bitmap, and does not touch a byte for every wallet of the data.
_FEW = 20_000


@dataclass(frozen=True)
class Leaf:
    """The wallets that a statement returns."""

    statement: Statement


@dataclass(frozen=True)
class Narrowed:
    """The wallets of the first set that are in each of some others (True), or not in them (False)."""

    first: Node
    by: tuple[tuple[bool, Node], ...]


@dataclass(frozen=True)
class Together:
    """The wallets of all parts, as often as they are in them; ``once``: each once."""

    parts: tuple[Node, ...]
    once: bool


Node = Leaf | Narrowed | Together


def taken_apart(wallets: ir.Table, compiled: Callable[[ir.Table], Statement]) -> Node:
    """Return a table of the one column ``wallet`` as a tree of sets."""
    return _node(wallets.op(), compiled)


def combined(node: Node, fetch: Callable[[Statement], Wallets]) -> Wallets:
    """Return the wallets of a tree, in no order."""
    if isinstance(node, Leaf):
        return fetch(node.statement)
    if isinstance(node, Together):
        whole = np.concatenate([combined(part, fetch) for part in node.parts])
        return _each_once(whole) if node.once else whole
    wallets = combined(node.first, fetch)
    for kept, other in node.by:
        if not len(wallets):
            break
        inside = _among(wallets, combined(other, fetch))
        wallets = wallets[inside if kept else ~inside]
    return wallets


def first_of(wallets: Wallets, limit: int) -> Wallets:
    """Return the lowest wallets, in order: the first by address."""
    return np.sort(np.partition(wallets, limit)[:limit] if limit < len(wallets) else wallets)


def placed(wallets: Wallets, found: pa.Table) -> pa.Array:
    """Return the column beside ``wallet`` in a table for each of some wallets; null where one is not in it."""
    import pyarrow as pa

    if not found.num_rows:
        return pa.nulls(len(wallets), found.schema.field(1).type)
    keys = found["wallet"].to_numpy()
    order = np.argsort(keys, kind="stable")
    place = order[np.searchsorted(keys, wallets, sorter=order).clip(max=len(keys) - 1)]
    return found.column(1).combine_chunks().take(pa.array(place, mask=keys[place] != wallets))


def _node(op: Any, compiled: Callable[[ir.Table], Statement]) -> Node:
    if isinstance(op, ops.JoinChain) and _narrows(op):
        by = tuple((link.how == "semi", _node(link.table.parent, compiled)) for link in op.rest)
        return Narrowed(_node(op.first.parent, compiled), by)
    if isinstance(op, ops.Union):
        return Together((_node(op.left, compiled), _node(op.right, compiled)), once=op.distinct)
    if isinstance(op, ops.Distinct):
        return Together((_node(op.parent, compiled),), once=True)
    return Leaf(compiled(op.to_expr()))


def _narrows(chain: ops.JoinChain) -> bool:
    """Say whether a join only keeps or drops wallets of its first table by those of the others."""
    return list(chain.values) == ["wallet"] and all(
        link.how in ("semi", "anti")
        and list(link.table.schema) == ["wallet"]
        and len(link.predicates) == 1
        and isinstance(link.predicates[0], ops.Equals)
        and _is_wallet(link.predicates[0].left, chain.first)
        and _is_wallet(link.predicates[0].right, link.table)
        for link in chain.rest
    ) and list(chain.first.schema) == ["wallet"]


def _is_wallet(value: Any, table: Any) -> bool:
    return isinstance(value, ops.Field) and value.name == "wallet" and value.rel == table


def _among(wallets: Wallets, others: Wallets) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    if not len(others):
        return np.zeros(len(wallets), bool)
    if len(wallets) + len(others) < _FEW:
        others = np.sort(others)
        inside: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
            others[np.searchsorted(others, wallets).clip(max=len(others) - 1)] == wallets
        )
        return inside
    return _bitmap(others, int(wallets.max()))[wallets]


def _each_once(wallets: Wallets) -> Wallets:
    if len(wallets) < _FEW:
        return np.unique(wallets)
    return np.flatnonzero(_bitmap(wallets, 0)).astype(np.int32)


def _bitmap(wallets: Wallets, at_least: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    bits = np.zeros(max(int(wallets.max()), at_least) + 1, bool)
    bits[wallets] = True
    return bits
