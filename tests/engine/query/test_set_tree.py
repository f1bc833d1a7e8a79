"""Sets of wallets, against Python's: whatever is joined and complemented, with wallets that are not seen among them."""

from __future__ import annotations

import re

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nbext.engine.dataset import Question
from nbext.engine.duckdb import bitmaps
from nbext.engine.query.set_tree import Among, And, Leaf, Not, Or, as_one_table, mapped, normal_form
from nbext.engine.query.statements import Statements
from tests import slow

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
    lambda inner: (
        st.tuples(st.sampled_from(["not", "saved"]), inner)
        | st.tuples(st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=6,
)


def built(tree, leaf=table):
    kind, value = tree
    if kind in ("did", "is"):
        return Leaf(leaf(value), loose=kind == "is")
    if kind == "not":
        return Not(built(value, leaf))
    if kind == "saved":
        return Among(built(value, leaf), Leaf(leaf(SEEN)))
    return {"all": And, "any": Or}[kind]([built(one, leaf) for one in value])


def meant(tree):
    kind, value = tree
    if kind in ("did", "is"):
        return value & SEEN
    if kind == "not":
        return SEEN - meant(value)
    if kind == "saved":
        return meant(value)
    return (set.intersection if kind == "all" else set.union)(*map(meant, value))


DENIED = ("not", ("all", [("not", ("is", {5})), ("not", ("did", {1}))]))


@settings(max_examples=40, deadline=None)
@example(DENIED)
@given(TREES)
def test_the_joined_statement_finds_what_is_meant(connection, tree):
    whole = normal_form(Among(built(tree), Leaf(table(SEEN))))
    found = connection.to_pyarrow(as_one_table(whole))["wallet"].to_pylist()
    assert sorted(found) == sorted(meant(tree))


@settings(max_examples=200, deadline=None)
@example(DENIED)
@given(TREES)
def test_the_combined_bitmaps_find_what_is_meant(tree):
    def leaf(wallets):
        return np.array(sorted(wallets), np.int32)

    whole = normal_form(Among(built(tree, leaf), Leaf(leaf(SEEN))))
    assert sorted(bitmaps.combined(whole, lambda wallets: wallets)) == sorted(meant(tree))


def test_and_not_never_looks_at_all_wallets():
    tree = normal_form(Among(And([Leaf("these"), Not(Leaf("those"))]), Leaf("seen")))
    found = []
    mapped(tree, found.append)
    assert found == ["these", "those"]


@pytest.mark.parametrize("join", slow.but_the_first(["not", "all", "any"]))
def test_two_hundred_sets_are_one_statement_of_every_engine(join):
    """In a row, one inside the other, they would be nested past what Python recurses."""
    sets = [
        Leaf(ibis.table({"wallet": "int32", "n": "int32"}, name=f"t{n}").select("wallet"))
        for n in range(200)
    ]
    tree = {"all": And(sets), "any": Or(sets), "not": And([sets[0], *map(Not, sets[1:])])}[join]
    for engine in ("duckdb", "pyspark"):
        question = Question(join, lambda tables, scalars: tree, lambda tables, scalars: [])
        text = Statements(engine).returning(question).with_literals((5,), pretty=True)
        assert {f"t{n}" for n in range(200)} <= set(re.findall(r"\bt\d+\b", text))
