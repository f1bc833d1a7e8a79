"""What each wallet held of each contract, and when: transfers, in arrays, become the rows of ``history``.

Arrays of a bucket of contracts are sorted by one integer, and added up over all wallets at once. A window of
DuckDB's over the same rows takes twice the processor time: it sorts twice, by two keys, and sizes amounts as text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nbext.engine.ingest.derive import int128
from nbext.engine.ingest.derive.int128 import Amounts, Parts
from nbext.engine.schema import FOREVER, LIMBS

NOBODY = -1
_COLUMNS = ("contract", "block", "log_index", "sender", "recipient")
_WALLET_BITS = 31


@dataclass
class _Changes:
    """What came to a wallet or left it, by contract, wallet and moment: numbers of flows, and holdings."""

    holding: np.ndarray
    flow: np.ndarray
    leaves: np.ndarray


def history(flows: pa.Table, wallets: range) -> tuple[pa.Table, np.ndarray]:
    """Return the rows of ``history`` in its order, and which of them still stand with a balance that is not zero.

    ``flows`` has ``contract block log_index sender recipient lo``, and ``hi mid`` where an amount has them; a sender
    may be NOBODY. Only wallets of that range are followed.
    """
    columns = {name: flows.column(name).to_numpy() for name in _COLUMNS}
    amounts = {limb: int128.of_decimals(flows.column(limb)) for limb in LIMBS if limb in flows.column_names}
    order = _order(columns)
    if order is not None:
        columns = {name: column[order] for name, column in columns.items()}
        amounts = {limb: numbers.at(order) for limb, numbers in amounts.items()}
    changes = _changes(columns, wallets)
    first = np.ones(len(changes.flow), bool)
    first[1:] = changes.holding[1:] != changes.holding[:-1]
    block = columns["block"][changes.flow]
    sums = _sums(amounts, changes, np.flatnonzero(first))
    keep = _last_of_its_moment(changes, block, columns["log_index"], first)
    if not keep.all():
        changes.holding, block = changes.holding[keep], block[keep]
        sums = [None if limb is None else limb.at(keep) for limb in sums]
        first = np.ones(len(block), bool)
        first[1:] = changes.holding[1:] != changes.holding[:-1]
    return _rows(changes.holding, block, first, int128.settled(sums, len(block)))


def _order(columns: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return how to put flows into the order of their moments, contract by contract; None where they are in it."""
    contract, block, log_index = (columns[name] for name in ("contract", "block", "log_index"))
    same = contract[1:] == contract[:-1]
    later = (block[1:] > block[:-1]) | ((block[1:] == block[:-1]) & (log_index[1:] >= log_index[:-1]))
    together = np.count_nonzero(~same) + 1 == len(np.unique(contract))
    return None if together and bool((later | ~same).all()) else np.lexsort((log_index, block, contract))


def _changes(columns: dict[str, np.ndarray], wallets: range) -> _Changes:
    """Sort what came and left by contract, wallet and moment, as one integer of 64 bits."""
    contract, bits = columns["contract"], len(columns["contract"]).bit_length() + 1
    sides = []
    for leaves, name in enumerate(("recipient", "sender")):
        wallet = columns[name]
        rows = np.flatnonzero((wallet >= wallets.start) & (wallet < wallets.stop))
        holding = contract[rows].astype(np.int64)
        holding <<= _WALLET_BITS
        holding |= wallet[rows]
        rows <<= 1
        rows |= leaves
        sides.append((holding, rows))
    holding, what = (np.concatenate(arrays) for arrays in zip(*sides, strict=True))
    base, known = int(holding.min(initial=2**62)), None
    if (int(holding.max(initial=base)) - base).bit_length() + bits > 63:
        known, holding = np.unique(holding, return_inverse=True)
        base = 0
    packed = holding
    packed -= base
    packed <<= bits
    packed |= what
    packed.sort()
    holding = (packed >> bits) + base
    packed &= (1 << bits) - 1
    return _Changes(holding if known is None else known[holding], packed >> 1, packed & 1)


def _sums(amounts: dict[str, Parts], changes: _Changes, starts: np.ndarray) -> list[Parts | None]:
    """Return the limbs of what each wallet held after each change, summed one by one."""
    sign = 1 - 2 * changes.leaves
    return [int128.running(amounts[limb].at(changes.flow).times(sign), starts) if limb in amounts else None
            for limb in LIMBS]


def _last_of_its_moment(
    changes: _Changes, block: np.ndarray, log_index: np.ndarray, first: np.ndarray
) -> np.ndarray:
    """Say which changes no other one of the same log follows: a log can move many token ids at once."""
    at = log_index[changes.flow]
    keep = np.ones(len(block), bool)
    keep[:-1] = first[1:] | (block[1:] != block[:-1]) | (at[1:] != at[:-1])
    return keep


def _rows(
    holding: np.ndarray, block: np.ndarray, first: np.ndarray, balances: Amounts
) -> tuple[pa.Table, np.ndarray]:
    until = np.full(len(block), FOREVER)
    until[:-1] = np.where(first[1:], FOREVER, block[1:])
    table = pa.table({
        "contract": (holding >> _WALLET_BITS).astype(np.int32),
        "wallet": (holding & (1 << _WALLET_BITS) - 1).astype(np.int32),
        "from_block": block, "to_block": until, **dict(zip(LIMBS, balances.limbs, strict=True)),
        "size": balances.sizes,
    })
    return table, (until == FOREVER) & ~balances.zero
