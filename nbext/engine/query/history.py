"""Tables that conditions start from: balances now or at a block, single token ids, activity at a block, listed wallets.

A contract, a block or a list of addresses is an Ibis scalar by now.
"""

from __future__ import annotations

from operator import or_
from typing import TYPE_CHECKING, Any

import ibis

from nbext.core.addresses import ZERO_ADDRESS
from nbext.engine.query.amounts import LIMB_TYPE, limbs_equal, limbs_of
from nbext.engine.query.series import MARKS, Moments
from nbext.engine.query.set_tree import folded
from nbext.engine.schema import FOREVER

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.dataset import Tables
    from nbext.engine.query.parameters import TokenIds


def balances_at(contract: Any, at: Any, tables: Tables) -> ir.Table:
    """Build a contract's balances now, or as they stood at a block: ``wallet``, the limbs and ``size``."""
    if at is None:
        table = tables["balances"].filter(tables["balances"].contract == contract.contract)
    else:
        table = standing(
            tables["history"].filter(tables["history"].contract == contract.contract), at
        )
    return wallets_of(table, "hi", "mid", "lo", "size")


def standing(history: ir.Table, at: Any) -> ir.Table:
    """Return the rows of a history that stood at the end of a block; or of many, whose `wallets_of` say of which."""
    if isinstance(at, Moments):
        return at.standing(history, "from_block", "to_block")
    return history.filter(history.from_block <= at, history.to_block > at)


def until(rows: ir.Table, begun: str, at: Any) -> ir.Table:
    """Return the rows that had begun by a block; or by many, as of `standing`."""
    return (
        at.standing(rows, begun, None)
        if isinstance(at, Moments)
        else rows.filter(rows[begun] <= at)
    )


def wallets_of(rows: ir.Table, *columns: str, **named: ir.Value) -> ir.Table:
    """Return the wallets of rows, with some columns, and with the blocks that they are of where these are many."""
    return rows.select(
        "wallet", *columns, *(mark for mark in MARKS if mark in rows.columns), **named
    )


def wallets_listed(addresses: ir.ArrayScalar | ir.Table, tables: Tables) -> ir.Table:
    """Build the wallets of a list of addresses; the engine may have looked a stored list's wallets up already."""
    # The type and not the class: importing ibis' types here would load them with every condition.
    if hasattr(addresses, "columns"):
        return addresses
    asked = addresses.unnest().name("address").as_table()
    return tables["wallets"].semi_join(asked, "address").select("wallet")


def of_ids(table: ir.Table, prefix: str, ids: TokenIds) -> ir.Table:
    """Return the rows of a table whose token id, the limbs of that prefix, is one of some ids."""
    number = limbs_of(table, prefix)
    parts: list[ir.Table] = []
    if ids.small is not None:
        asked = ids.small.unnest().name("listed").as_table()
        asked = asked.select(listed=asked.listed.cast(LIMB_TYPE))
        small = table.filter(number.hi == 0, number.mid == 0)
        parts.append(small.semi_join(asked, [(f"{prefix}lo", "listed")]))
    # An engine has no list of 256-bit numbers: the few large ids are compared limb by limb.
    if ids.large:
        parts.append(table.filter(folded(or_, [limbs_equal(number, one) for one in ids.large])))
    return parts[0] if len(parts) == 1 else parts[0].union(parts[1])


def counts_as_amounts(table: ir.Table) -> ir.Table:
    """Return the table with its ``count`` as an amount: the limbs and ``size``."""
    zero = ibis.literal(0, type=LIMB_TYPE)
    return table.mutate(
        hi=zero,
        mid=zero,
        lo=table["count"].cast(LIMB_TYPE),
        size=table["count"].cast("int64"),
    )


def history_of_ids(contract: Any, ids: TokenIds, tables: Tables) -> ir.Table:
    """Build how many of some token ids each wallet owned, and when: the columns of the table ``history``."""
    moved = tables["transfers"]
    moved = of_ids(moved.filter(moved.contract == contract.contract), "", ids)
    changes = _changes_721(moved, tables) if contract.standard == "ERC721" else _changes_1155(moved)
    # What came and went within a block stood in no block.
    changes = changes.group_by("wallet", "block").agg(change=changes.change.sum())
    by_block = ibis.window(group_by="wallet", order_by="block")
    so_far = ibis.window(group_by="wallet", order_by="block", preceding=None, following=0)
    history = changes.select(
        "wallet",
        from_block=changes.block,
        to_block=changes.block.lead().over(by_block).fill_null(FOREVER),
        count=changes.change.sum().over(so_far),
    )
    return counts_as_amounts(history).drop("count")


def activity(chain_id: Any, at: Any, tables: Tables) -> ir.Table:
    """Build the table ``activity`` of one chain as it was at a block."""
    contracts, blocks = tables["contracts"], tables["blocks"]
    moved = tables["transfers"].semi_join(
        contracts.filter(contracts.chain_id == chain_id), "contract"
    )
    moved = moved.filter(moved.block <= at)
    # A transfer to oneself is one transfer: its sender's.
    sent = moved.select("block", wallet=moved.sender)
    received = moved.filter(moved.sender != moved.recipient).select("block", wallet=moved.recipient)
    times = blocks.filter(blocks.chain_id == chain_id).select(
        "block", day=blocks.timestamp // 86_400
    )
    sides = sent.union(received).left_join(times, "block")
    first, last = sides.block.min(), sides.block.max()
    # One row for each wallet and transfer: counting them is counting the wallet's transfers.
    counts = {"transfers": sides.count(), "active_days": sides.day.nunique()}
    return sides.group_by("wallet").agg(first_block=first, last_block=last, **counts)


def _changes_721(moved: ir.Table, tables: Tables) -> ir.Table:
    """Build what each wallet gained and lost.

    An id's owner is the recipient of its last transfer, whoever sends it on. Before its first transfer it
    was its sender's: the data may begin after the id was minted.
    """
    by_id = ibis.window(group_by=["hi", "mid", "lo"], order_by=["block", "log_index"])
    moves = moved.select(
        "block",
        "sender",
        "recipient",
        before=moved.recipient.lag().over(by_id),
        until=moved.block.lead().over(by_id),
    )
    lost = moves.filter(moves.until.notnull())
    zero = (
        tables["wallets"].filter(tables["wallets"].address == ZERO_ADDRESS).select(sender="wallet")
    )
    first = moves.filter(moves.before.isnull()).anti_join(zero, "sender")
    one = ibis.literal(1, type="int64")
    return (
        moves.select("block", wallet=moves.recipient, change=one)
        .union(lost.select(block=lost.until, wallet=lost.recipient, change=-one))
        .union(first.select(block=ibis.literal(0, type="int64"), wallet=first.sender, change=one))
        .union(first.select("block", wallet=first.sender, change=-one))
    )


def _changes_1155(moved: ir.Table) -> ir.Table:
    gained = moved.select("block", wallet=moved.recipient, change=moved["count"])
    return gained.union(moved.select("block", wallet=moved.sender, change=-moved["count"]))
