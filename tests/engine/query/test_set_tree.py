"""Sets of wallets, against Python's: whatever is joined and complemented, with wallets that are not seen among them."""

from __future__ import annotations

import ibis
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nbext.engine.query.set_tree import Wallets, both, complement, either, settled

SEEN = {1, 2, 3, 4}
ALL = SEEN | {5, 6}


@pytest.fixture(scope="module")
def connection():
    opened = ibis.duckdb.connect()
    yield opened
    opened.disconnect()


def table(wallets):
    return ibis.memtable(pa.table({"wallet": pa.array(sorted(wallets), pa.int32())}))


LEAVES = st.one_of(
    st.tuples(st.just("did"), st.sets(st.sampled_from(sorted(SEEN)))),
    st.tuples(st.just("is"), st.sets(st.sampled_from(sorted(ALL)))),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.tuples(st.just("not"), inner)
    | st.tuples(st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3)),
    max_leaves=6,
)


def built(tree):
    kind, value = tree
    if kind in ("did", "is"):
        return Wallets(table(value), loose=kind == "is")
    return complement(built(value)) if kind == "not" else {"all": both, "any": either}[kind]([*map(built, value)])


def meant(tree):
    kind, value = tree
    if kind in ("did", "is"):
        return value & SEEN
    if kind == "not":
        return SEEN - meant(value)
    return (set.intersection if kind == "all" else set.union)(*map(meant, value))


@settings(max_examples=40, deadline=None)
@example(("not", ("all", [("not", ("is", {5})), ("not", ("did", {1}))])))
@given(TREES)
def test_what_is_built_is_what_is_meant(connection, tree):
    found = connection.to_pyarrow(settled(built(tree), lambda: table(SEEN)))["wallet"].to_pylist()
    assert sorted(found) == sorted(meant(tree))


def test_and_not_never_looks_at_all_wallets():
    def all_wallets():
        raise AssertionError

    settled(both([Wallets(table({1, 2})), complement(Wallets(table({2})))]), all_wallets)
