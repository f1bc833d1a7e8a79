"""What the prepared tables do not hold: ownership of single token ids, and activity, as they were at a block."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import ibis

from nbext.engine import exact
from nbext.engine.layout import FOREVER

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.dataset import Tables


def among(number: exact.Limbs, numbers: tuple[exact.Limbs, ...]) -> ir.BooleanValue:
    """Say where a number is one of a list."""
    return reduce(or_, (exact.equal(number, one) for one in numbers))


def counted(table: ir.Table) -> ir.Table:
    """Return the table with its ``count`` as an amount: the limbs and ``size``."""
    zero = ibis.literal(0, type=exact.LIMB_TYPE)
    return table.mutate(hi=zero, mid=zero, lo=table["count"].cast(exact.LIMB_TYPE), size=table["count"].cast("int64"))


def history_of_ids(contract: Any, ids: tuple[exact.Limbs, ...], tables: Tables) -> ir.Table:
    """Build how many of some token ids each wallet owned, and when: the columns of the table ``history``."""
    moved = tables["transfers"]
    moved = moved.filter(moved.contract == contract.contract, among(exact.of(moved), ids))
    changes = _changes_721(moved) if contract.standard == "ERC721" else _changes_1155(moved)
    changes = changes.group_by("wallet", "block").agg(change=changes.change.sum())
    by_block = ibis.window(group_by="wallet", order_by="block")
    so_far = ibis.window(group_by="wallet", order_by="block", preceding=None, following=0)
    history = changes.select(
        "wallet",
        from_block=changes.block,
        to_block=changes.block.lead().over(by_block).fill_null(FOREVER),
        count=changes.change.sum().over(so_far),
    )
    return counted(history).drop("count")


def activity(chain_id: Any, at: Any, tables: Tables) -> ir.Table:
    """Build the table ``activity`` of one chain as it was at a block."""
    contracts, blocks = tables["contracts"], tables["blocks"]
    moved = tables["transfers"].semi_join(contracts.filter(contracts.chain_id == chain_id), "contract")
    moved = moved.filter(moved.block <= at)
    sent = moved.select("block", wallet=moved.sender)
    received = moved.filter(moved.sender != moved.recipient).select("block", wallet=moved.recipient)
    times = blocks.filter(blocks.chain_id == chain_id).select("block", day=blocks.timestamp // 86_400)
    sides = sent.union(received).left_join(times, "block")
    return sides.group_by("wallet").agg(
        first_block=sides.block.min(),
        last_block=sides.block.max(),
        transfers=sides.count(),
        active_days=sides.day.nunique(),
    )


def _changes_721(moved: ir.Table) -> ir.Table:
    """Build what each wallet gained and lost: an id's owner is the recipient of its last transfer."""
    by_id = ibis.window(group_by=["hi", "mid", "lo"], order_by=["block", "log_index"])
    owned = moved.select(
        wallet=moved.recipient, from_block=moved.block, to_block=moved.block.lead().over(by_id)
    )
    gained = owned.select("wallet", block=owned.from_block, change=ibis.literal(1, type="int64"))
    lost = owned.filter(owned.to_block.notnull())
    return gained.union(lost.select("wallet", block=lost.to_block, change=ibis.literal(-1, type="int64")))


def _changes_1155(moved: ir.Table) -> ir.Table:
    gained = moved.select("block", wallet=moved.recipient, change=moved["count"])
    return gained.union(moved.select("block", wallet=moved.sender, change=-moved["count"]))
