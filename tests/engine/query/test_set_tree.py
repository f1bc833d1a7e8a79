"""Sets of wallets, against Python's: whatever is joined and complemented, with wallets that are not seen among them."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nbext.engine.query import bitmaps
from nbext.engine.query.set_tree import Selection, formula_of, in_all, in_any

SEEN = {1, 2, 3, 4}
ALL = SEEN | {5, 6}


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


def built(tree, leaf):
    kind, value = tree
    if kind in ("did", "is"):
        return Selection(leaf(value), loose=kind == "is")
    if kind == "not":
        return ~built(value, leaf)
    if kind == "saved":
        return built(value, leaf).among(Selection(leaf(SEEN)))
    return {"all": in_all, "any": in_any}[kind]([built(one, leaf) for one in value])


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


@settings(max_examples=200)
@example(DENIED)
@given(TREES)
def test_the_combined_bitmaps_find_what_is_meant(tree):
    def leaf(wallets):
        return np.array(sorted(wallets), np.int32)

    whole = built(tree, leaf).among(Selection(leaf(SEEN))).tree
    assert sorted(bitmaps.combined(whole, lambda leaf: leaf)) == sorted(meant(tree))


def test_and_not_never_looks_at_all_wallets():
    these, those, seen = (Selection(name) for name in ("these", "those", "seen"))
    found = {}
    assert formula_of(in_all([these, ~those]).among(seen).tree, found) == "1 and not 2"
    assert list(found.values()) == [(1, "these"), (2, "those")]


def test_two_hundred_sets_one_inside_the_other_are_combined_without_recursing_past_python():
    sets = [Selection(np.array([n, 500], np.int32)) for n in range(200)]
    trees = {
        "all": in_all(sets).tree,
        "any": in_any(sets).tree,
        "not": in_all([sets[0], *(~one for one in sets[1:])]).tree,
    }
    sizes = {name: len(bitmaps.combined(tree, lambda leaf: leaf)) for name, tree in trees.items()}
    assert sizes == {"all": 1, "any": 201, "not": 1}
    found = {}
    assert formula_of(trees["not"], found).startswith("1 and not 2 and not 3 and not 4 ")
    assert len(found) == 200
