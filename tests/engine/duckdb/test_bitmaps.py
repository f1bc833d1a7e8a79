"""Sets of wallets combined as bitmaps are the sets that the one joined statement finds."""

from __future__ import annotations

import ibis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbext.engine.duckdb import bitmaps
from nbext.engine.query.set_tree import And, Leaf, Narrowed, Not, Or, joined, settled

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
    lambda tree: st.tuples(st.sampled_from(["and", "and not", "or"]), tree, tree),
    max_leaves=6,
)


def tree_of(tree, holdings):
    if isinstance(tree, int):
        return Leaf(holders(holdings, tree))
    how, left, right = tree[0], tree_of(tree[1], holdings), tree_of(tree[2], holdings)
    return Or([left, right]) if how == "or" else And([left, right if how == "and" else Not(right)])


@settings(max_examples=20, deadline=None)
@given(TREES)
def test_any_tree_of_sets_has_the_wallets_of_its_statement(holdings, tree):
    sets = settled(tree_of(tree, holdings))
    found = bitmaps.combined(sets, fetched)
    assert np.array_equal(np.sort(found), np.sort(fetched(joined(sets))))


def test_an_empty_set_asks_for_nothing_more():
    asked = []

    def fetch(name):
        asked.append(name)
        return np.array([], np.int32)

    node = Narrowed(Leaf("first"), [Leaf("second")], [Leaf("third")])
    assert len(bitmaps.combined(node, fetch)) == 0
    assert asked == ["first"]


def test_the_first_wallets_are_the_lowest_in_order():
    wallets = np.array([5, 3, 9, 1], np.int32)
    assert bitmaps.first_of(wallets, 2).tolist() == [1, 3]
    assert bitmaps.first_of(wallets, 4).tolist() == [1, 3, 5, 9]
    assert bitmaps.first_of(wallets, 9).tolist() == [1, 3, 5, 9]
