"""Sets of wallets in memory: each leaf is fetched as integers, and the sets are combined as bitmaps.

A wallet is a small integer, so a bitmap of all wallets combines two million of them in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nbext.engine.query.set_tree import Leaf, Settled, Union

if TYPE_CHECKING:
    import pyarrow as pa

    from nbext.engine.query.statements import Statement

    Wallets = np.ndarray[tuple[int], np.dtype[np.int32]]

# Why there are bitmaps: of 10 million transfers, "at least X of A, and B, and not C" of the largest contracts takes
# 29 ms with them, 59 ms as one statement of joins, and 11 ms on arrays of ids in memory. Bitmaps stay while joins take
# more than 1.3 times the arrays and 40 ms. "Not C" alone takes 42 ms with them, and 237 ms as joins.
# Below this many wallets sorting is as fast as a bitmap, and does not touch a byte for every wallet of the data.
_FEW = 20_000


def combined(node: Settled[Statement], fetch: Callable[[Statement], Wallets]) -> Wallets:
    """Return the wallets of a tree, in no order; statements that cannot matter are not fetched."""
    if isinstance(node, Leaf):
        return fetch(node.wallets)
    if isinstance(node, Union):
        return _each_once(np.concatenate([combined(part, fetch) for part in node.parts]))
    wallets = combined(node.first, fetch)
    for kept, others in ((True, node.inside), (False, node.outside)):
        for other in others:
            # Nothing is left to narrow: the rest would be fetched for nothing.
            if not len(wallets):
                return wallets
            inside = _among(wallets, combined(other, fetch))
            wallets = wallets[inside if kept else ~inside]
    return wallets


def first_of(wallets: Wallets, limit: int) -> Wallets:
    """Return the lowest wallets, in order: the first by address."""
    # Partitioning first: to sort two million wallets for the first ten thousand would take most of the answer.
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
