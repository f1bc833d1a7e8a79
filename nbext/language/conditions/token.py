"""The wallets of one condition, each over the tables of `nbext.engine.schema`.

A leaf comes with Ibis scalars in place of its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import ibis

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.uint256 import Limbs
from nbext.engine.query import exact, sort_key
from nbext.engine.query import history as past
from nbext.engine.query.set_tree import Wallets
from nbext.engine.schema import FOREVER

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.dataset import Tables

# A leaf of the plan (`nbext.language.model`) whose values are Ibis scalars: its fields' types are not the model's.
Leaf = Any

SECONDS_A_DAY = 86_400


def is_nft(contract: Any) -> bool:
    """Say whether a contract is a collection."""
    return contract.standard in ("ERC721", "ERC1155")


def given(addresses: ir.ArrayScalar | tuple[()]) -> bool:
    """Say whether a list of addresses holds any: an empty one never became a scalar."""
    return not isinstance(addresses, tuple)


def seen(chains: Sequence[Leaf], tables: Tables) -> ir.Table:
    """Build the wallets with a transfer on one of the chains."""
    activity = tables["activity"]
    one_of = [
        (activity.chain_id == one.chain_id) & (True if one.at is None else activity.first_block <= one.at)
        for one in chains
    ]
    found = activity.filter(reduce(or_, one_of)).select("wallet")
    return found if len(chains) == 1 else found.distinct()


def wallets_at(addresses: ir.ArrayScalar, tables: Tables) -> ir.Table:
    """Build the wallets of a list of addresses."""
    listed = addresses.unnest().name("address").as_table()
    return tables["wallets"].semi_join(listed, "address").select("wallet")


def balances(contract: Any, at: Any, tables: Tables) -> ir.Table:
    """Build a contract's balances now, or as they stood at a block: ``wallet``, the limbs and ``size``."""
    if at is None:
        table = tables["balances"].filter(tables["balances"].contract == contract.contract)
    else:
        history = tables["history"]
        table = history.filter(history.contract == contract.contract, history.from_block <= at, history.to_block > at)
    return table.select("wallet", "hi", "mid", "lo", "size")


def holding(leaf: Leaf, tables: Tables) -> Wallets:
    """Build the wallets whose balance lies within bounds, and never fell below the lower one since a block."""
    if leaf.since is not None:
        return _held(leaf, _history(leaf, tables))
    if not leaf.ids:
        return _chosen(balances(leaf.contract, leaf.at, tables), leaf)
    if leaf.at is None:
        return _chosen(_owned(leaf, tables), leaf)
    history = _history(leaf, tables)
    return _chosen(history.filter(history.from_block <= leaf.at, history.to_block > leaf.at), leaf)


def owning(leaf: Leaf, tables: Tables) -> Wallets:
    """Build the wallets that own from so many collections."""
    balance = tables["balances"] if leaf.at is None else tables["history"]
    if leaf.at is not None:
        balance = balance.filter(balance.from_block <= leaf.at, balance.to_block > leaf.at)
    if leaf.of:
        balance = balance.filter(balance.contract.isin([contract.contract for contract in leaf.of]))
    else:
        contracts = tables["contracts"]
        nfts = contracts.filter(contracts.chain_id == leaf.chain_id, contracts.standard.isin(["ERC721", "ERC1155"]))
        balance = balance.semi_join(nfts, "contract")
    some = balance.filter(balance.size > 0)
    return _counted(some.group_by("wallet").agg(number=some.count()), leaf.within)


def moving(leaf: Leaf, tables: Tables) -> Wallets:
    """Build the wallets by the transfers that they took part in."""
    sides = _sides(leaf, _moved(leaf, tables), tables)
    # Limbs are summed as they are, and carried once: each sum stays within 38 digits.
    sums = sides.group_by("wallet").agg(
        number=sides.count(), hi=sides.hi.sum(), mid=sides.mid.sum(), lo=sides.lo.sum()
    )
    fits = _between(sums.number, leaf.count)
    if leaf.total is not None:
        fits = fits & _within(exact.carried(exact.of(sums)), leaf.total)
    return _fitting(sums, fits, leaf.count.none_too)


def acting(leaf: Leaf, tables: Tables) -> Wallets:
    """Build the wallets by when and how much they were active on a chain."""
    activity = tables["activity"].filter(tables["activity"].chain_id == leaf.chain_id)
    if leaf.at is not None:
        activity = past.activity(leaf.chain_id, leaf.at, tables)
    fits: list[ir.BooleanValue] = [
        *_inside(activity.first_block, leaf.first),
        *_inside(activity.last_block, leaf.last),
        *([_between(activity.transfers, leaf.transfers)] if leaf.transfers else []),
        *([_between(activity.active_days, leaf.days)] if leaf.days else []),
    ]
    return _fitting(activity, ibis.and_(*fits), leaf.none_too)


def being(leaf: Leaf, tables: Tables) -> Wallets:
    """Build the wallets that are among a list, and contracts or not."""
    wallets = tables["wallets"]
    if leaf.contract is not None:
        # Where the data does not say, a wallet is not known to be a contract.
        known = wallets.is_contract.fill_null(False)
        wallets = wallets.filter(known if leaf.contract else ~known)
    if leaf.among is not None:
        listed = leaf.among.unnest().name("address").as_table()
        wallets = wallets.semi_join(listed, "address")
    return Wallets(wallets.select("wallet"), loose=True)


def _history(leaf: Leaf, tables: Tables) -> ir.Table:
    if leaf.ids:
        return past.history_of_ids(leaf.contract, leaf.ids, tables)
    history = tables["history"]
    return history.filter(history.contract == leaf.contract.contract)


def _owned(leaf: Leaf, tables: Tables) -> ir.Table:
    owners = tables["owners"]
    mine = past.of_ids(owners.filter(owners.contract == leaf.contract.contract), "id_", leaf.ids)
    return past.counted(mine.group_by("wallet").agg(count=mine["count"].sum()))


def _chosen(balance: ir.Table, leaf: Leaf) -> Wallets:
    low, high = leaf.within.low, leaf.within.high
    if leaf.within.none_too:
        return _fitting(balance, sort_key.within(balance, low, high), none_too=True)
    return Wallets(sort_key.rows_within(balance, low, high).select("wallet"))


def _held(leaf: Leaf, history: ir.Table) -> Wallets:
    """Build the wallets whose balance stood high enough at each block from ``since`` on."""
    enough = sort_key.at_least(history, leaf.within.low)
    still = history.to_block > leaf.since
    if leaf.at is None:
        standing = history.to_block == FOREVER
    else:
        still = still & (history.from_block <= leaf.at)
        standing = (history.from_block <= leaf.at) & (history.to_block > leaf.at)
    # A balance that another of the same block replaced stood in no block.
    stood = history.from_block < history.to_block
    fell = history.filter(still, stood, ~enough).select("wallet")
    inside = sort_key.within(history, leaf.within.low, leaf.within.high)
    # A wallet that never held any has no history: it is found by not being found outside.
    if leaf.within.none_too:
        outside = history.filter(standing, ~inside).select("wallet")
        return Wallets(fell.union(outside).distinct(), all_but=True)
    held_then = history.filter(history.from_block <= leaf.since, still, enough).select("wallet")
    now = history.filter(standing, inside).select("wallet")
    return Wallets(now.semi_join(held_then, "wallet").anti_join(fell, "wallet"))


def _moved(leaf: Leaf, tables: Tables) -> ir.Table:
    """Build the transfers that fit, their amounts as limbs."""
    moved = tables["transfers"]
    if leaf.contract is not None:
        moved = moved.filter(moved.contract == leaf.contract.contract)
    else:
        contracts = tables["contracts"]
        moved = moved.semi_join(contracts.filter(contracts.chain_id == leaf.chain_id), "contract")
    if window := _inside(moved.block, leaf.blocks):
        moved = moved.filter(*window)
    if leaf.contract is not None and is_nft(leaf.contract):
        moved = past.counted(moved)
    return moved if leaf.amount is None else moved.filter(_within(exact.of(moved), leaf.amount))


def _sides(leaf: Leaf, moved: ir.Table, tables: Tables) -> ir.Table:
    """Build a row for each wallet and transfer: ``wallet``, ``other`` and the limbs."""
    received = moved.select("hi", "mid", "lo", wallet=moved.recipient, other=moved.sender)
    sent = moved.select("hi", "mid", "lo", wallet=moved.sender, other=moved.recipient)
    if leaf.direction == "any":
        # A transfer to oneself is one transfer.
        sides = received.union(sent.filter(sent.wallet != sent.other))
    else:
        sides = received if leaf.direction in ("in", "mint") else sent
    if leaf.direction in ("mint", "burn"):
        # A mint comes from the zero address; what goes there or to 0x...dEaD is burned.
        burn = BURN_ADDRESSES[:1] if leaf.direction == "mint" else BURN_ADDRESSES
        others = tables["wallets"].filter(tables["wallets"].address.isin(burn))
    elif given(leaf.counterparty):
        others = wallets_at(leaf.counterparty, tables)
    else:
        return sides
    return sides.semi_join(others.select(other="wallet"), "other")


def _fitting(table: ir.Table, fits: ir.BooleanValue, none_too: bool) -> Wallets:
    """Return the rows that fit; where nothing fits as well, all seen but the rows that do not."""
    return Wallets(table.filter(~fits if none_too else fits).select("wallet"), all_but=none_too)


def _counted(numbers: ir.Table, within: Any) -> Wallets:
    return _fitting(numbers, _between(numbers.number, within), within.none_too)


def _within(amount: Limbs, within: Any) -> ir.BooleanValue:
    low = exact.at_least(amount, within.low.limbs)
    return low if within.high is None else low & exact.at_most(amount, within.high.limbs)


def _between(number: ir.IntegerValue, within: Any) -> ir.BooleanValue:
    low = number >= within.low
    return low if within.high is None else low & (number <= within.high)


def _inside(block: ir.IntegerValue, blocks: Leaf) -> list[ir.BooleanValue]:
    first = [] if blocks.first is None else [block >= blocks.first]
    return first if blocks.last is None else [*first, block <= blocks.last]
