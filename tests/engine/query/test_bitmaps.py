"""Sets of wallets combined as bitmaps are the sets that Python finds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from nbext.engine.query import bitmaps
from nbext.engine.query.set_tree import Narrowed, Selection, in_all, in_any

# Of another number each; the last ones end before the others, of which one is small.
HELD = {contract: range(contract, 60_000, contract) for contract in (1, 2, 3, 5, 7000)}
HELD[63] = range(63, 1000, 63)


def holders(contract):
    return np.array(HELD[contract], np.int32)


TREES = st.recursive(
    st.sampled_from(sorted(HELD)),
    lambda tree: st.tuples(st.sampled_from(["and", "and not", "or"]), tree, tree),
    max_leaves=6,
)


def tree_of(tree):
    if isinstance(tree, int):
        return Selection(holders(tree))
    how, left, right = tree[0], tree_of(tree[1]), tree_of(tree[2])
    if how == "or":
        return in_any([left, right])
    return in_all([left, right if how == "and" else ~right])


def meant(tree):
    if isinstance(tree, int):
        return set(HELD[tree])
    how, left, right = tree[0], meant(tree[1]), meant(tree[2])
    return left | right if how == "or" else left & right if how == "and" else left - right


@settings(max_examples=30)
@given(TREES, st.sets(st.sampled_from(sorted(HELD))))
def test_any_tree_of_sets_has_the_wallets_that_pythons_sets_have_be_they_ids_or_bits(tree, as_bits):
    def fetch(leaf):
        ids = leaf[::-1]
        return bitmaps.packed(ids) if leaf[0] in as_bits else ids

    found = bitmaps.combined(tree_of(tree).tree, fetch)
    wanted = sorted(meant(tree))
    assert np.sort(bitmaps.wallets_of(found)).tolist() == wanted
    assert len(found) == len(wanted)
    assert bitmaps.among(np.arange(70_000, dtype=np.int32), found).nonzero()[0].tolist() == wanted


PLACES = st.lists(st.integers(0, len(HELD) - 1), min_size=1, max_size=4, unique=True)


@settings(max_examples=30)
@given(st.sets(st.sampled_from(range(len(HELD)))), st.lists(PLACES, max_size=6), st.integers(0, 15))
def test_what_sets_have_in_common_is_what_pythons_sets_have_be_they_ids_or_bits(
    as_bits, together, left_out
):
    ids = [holders(contract) for contract in HELD]
    sets = {n: bitmaps.packed(one) if n in as_bits else one for n, one in enumerate(ids)}
    # After the first, some are left out.
    signed = [
        [one if not n or left_out >> n & 1 else ~one for n, one in enumerate(places)]
        for places in together
    ]
    plain = list(map(set, HELD.values()))
    assert list(bitmaps.in_common(sets, signed)) == [
        len(
            plain[places[0]]
            .intersection(*(plain[one] for one in places if one >= 0))
            .difference(*(plain[~one] for one in places if one < 0))
        )
        for places in signed
    ]


def test_an_empty_set_asks_for_nothing_more():
    asked = []

    def fetch(leaf):
        asked.append(leaf)
        return np.array([], np.int32)

    node = Narrowed("first", ["second"], ["third"])
    assert len(bitmaps.combined(node, fetch)) == 0
    assert asked == ["first"]


NUMBERS = st.dictionaries(
    st.integers(0, 60), st.one_of(st.none(), st.integers(-3, 3), st.just(2**62)), max_size=40
)


@given(
    st.sets(st.integers(0, 60), min_size=1),
    NUMBERS,
    st.integers(1, 50),
    st.booleans(),
    st.booleans(),
)
def test_the_first_by_a_number_are_those_of_a_plain_sort(
    wallets, numbers, limit, descending, missing_last
):
    keys = pa.table(
        {"wallet": pa.array(numbers, pa.int32()), "number": pa.array(numbers.values(), pa.int64())}
    )

    def place(wallet):
        number = numbers.get(wallet)
        if number is None and missing_last:
            return (1, 0, wallet)
        return (0, -(number or 0) if descending else (number or 0), wallet)

    given = np.array(sorted(wallets, reverse=True), np.int32)
    first, ranks = bitmaps.first_by(
        given, keys, limit, descending=descending, missing_last=missing_last
    )
    found = first.tolist()
    assert sorted(ranks.tolist()) == ranks.tolist()
    wanted = sorted(wallets, key=place)
    assert found[:limit] == wanted[:limit]
    # All that tie with the last one are there: something finer may decide between them.
    assert found == [
        one for one in wanted if place(one)[:2] <= place(wanted[min(limit, len(wanted)) - 1])[:2]
    ]


def test_the_first_wallets_are_the_lowest_in_order():
    wallets = np.array([5, 3, 9, 1], np.int32)
    assert bitmaps.first_of(wallets, 2).tolist() == [1, 3]
    assert bitmaps.first_of(wallets, 4).tolist() == [1, 3, 5, 9]
    assert bitmaps.first_of(wallets, 9).tolist() == [1, 3, 5, 9]
    assert bitmaps.first_of(wallets, 2, last=True).tolist() == [9, 5]


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_ranks_that_are_equal_stay_together(ranks, most):
    ranks = np.array(sorted(ranks), np.int64)
    parts = [ranks[start:end].tolist() for start, end in bitmaps.apart(ranks, most)]
    assert [one for part in parts for one in part] == ranks.tolist()
    assert all(len(part) >= min(most, len(ranks)) for part in parts[:-1])
    assert all(len({*part[most - 1 :]}) == 1 for part in parts[:-1])
    assert len({one for part in parts for one in set(part)}) == sum(
        len(set(part)) for part in parts
    )
