"""Sets of wallets taken apart and combined as bitmaps are the sets that the whole statement gives."""

from __future__ import annotations

import ibis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbext.engine.duckdb import bitmaps
from nbext.engine.duckdb.bitmaps import Leaf, Narrowed, Together

HELD = {contract: range(contract, 60_000, contract) for contract in (1, 2, 3, 5, 7000)}


@pytest.fixture(scope="module")
def holdings():
    backend = ibis.duckdb.connect()
    rows = [(contract, wallet) for contract, held in HELD.items() for wallet in held]
    contracts, wallets = (np.array(column, np.int32) for column in zip(*rows, strict=True))
    backend.con.register("numbers", {"contract": contracts, "wallet": wallets})
    backend.con.execute("CREATE TABLE holdings AS FROM numbers")
    yield backend.table("holdings")
    backend.disconnect()


def holders(holdings, contract):
    return holdings.filter(holdings.contract == contract).select("wallet")


def fetched(table):
    return table.to_pyarrow()["wallet"].to_numpy()


TREES = st.recursive(
    st.sampled_from(sorted(HELD)),
    lambda tree: st.tuples(st.sampled_from(["semi", "anti", "union", "distinct"]), tree, tree),
    max_leaves=6,
)


def table_of(tree, holdings):
    if isinstance(tree, int):
        return holders(holdings, tree)
    how, left, right = tree[0], table_of(tree[1], holdings), table_of(tree[2], holdings)
    if how == "union":
        return left.union(right).distinct()
    if how == "distinct":
        return left.union(right, distinct=True)
    return left.semi_join(right, "wallet") if how == "semi" else left.anti_join(right, "wallet")


@settings(max_examples=20, deadline=None)
@given(TREES)
def test_any_tree_of_sets_has_the_wallets_of_its_statement(holdings, tree):
    table = table_of(tree, holdings)
    found = bitmaps.combined(bitmaps.taken_apart(table, lambda leaf: leaf), fetched)
    assert np.array_equal(np.sort(found), np.sort(fetched(table)))


def test_only_joins_that_narrow_wallets_are_taken_apart(holdings):
    narrowed = holders(holdings, 1).semi_join(holders(holdings, 2), "wallet").anti_join(holders(holdings, 3), "wallet")
    node = bitmaps.taken_apart(narrowed, lambda leaf: leaf)
    assert isinstance(node, Narrowed)
    assert [(kept, type(part)) for kept, part in node.by] == [(True, Leaf), (False, Leaf)]
    assert isinstance(bitmaps.taken_apart(narrowed.union(narrowed), lambda leaf: leaf), Together)
    by_contract = holdings.semi_join(holders(holdings, 2).mutate(contract=1), ["wallet", "contract"]).select("wallet")
    inner = holders(holdings, 1).join(holders(holdings, 2), "wallet").select("wallet")
    for table in (by_contract, inner, holders(holdings, 1)):
        assert isinstance(bitmaps.taken_apart(table, lambda leaf: leaf), Leaf)


def test_an_empty_set_asks_for_nothing_more():
    asked = []

    def fetch(name):
        asked.append(name)
        return np.array([], np.int32)

    node = Narrowed(Leaf("first"), ((True, Leaf("second")), (False, Leaf("third"))))
    assert len(bitmaps.combined(node, fetch)) == 0
    assert asked == ["first"]


def test_the_first_wallets_are_the_lowest_in_order():
    wallets = np.array([5, 3, 9, 1], np.int32)
    assert bitmaps.first_of(wallets, 2).tolist() == [1, 3]
    assert bitmaps.first_of(wallets, 4).tolist() == [1, 3, 5, 9]
    assert bitmaps.first_of(wallets, 9).tolist() == [1, 3, 5, 9]
