"""Draws are the same everywhere, and stay within what they promise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.sample_generator.cast import contract, lookalike, wallets
from tests.sample_generator.draw import Draw

seeds = st.text(max_size=8)


def test_a_seed_draws_the_same_on_every_machine_and_python():
    draw = Draw("golden")
    assert [draw.below(1_000) for _ in range(5)] == [692, 429, 722, 834, 798]
    assert draw.some("abcdef", 3) == ["f", "a", "c"]
    assert [draw.tail(10, 500) for _ in range(6)] == [13, 14, 14, 23, 18, 10]


def test_addresses_are_made_of_names_and_never_change():
    assert wallets("whale")[0] == "0x7be19d3406ac743dbc442559a7c96f3328fb4b55"
    assert contract("exchange") == "0xfa0ea1210b4070770719056d8eb84b2859490108"


@given(seeds, st.integers(-(10**9), 10**9), st.integers(0, 10**9))
def test_a_number_between_two_is_one_of_them_or_between(seed, first, width):
    assert first <= Draw(seed).between(first, first + width) <= first + width


@given(seeds, st.lists(st.integers(), unique=True), st.integers(0, 30))
def test_some_items_are_different_ones_and_no_more_than_there_are(seed, items, count):
    chosen = Draw(seed).some(items, count)
    assert len(chosen) == len(set(chosen)) == min(count, len(items))
    assert set(chosen) <= set(items)


@given(seeds, st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_heavy_tail_starts_at_the_least_and_ends_at_the_most(seed, least, more):
    assert least <= Draw(seed).tail(least, least + more) <= least + more


@given(st.integers(0, 10**6))
def test_a_lookalike_begins_and_ends_as_its_victim_and_is_another_address(number):
    victim = wallets("whale")[number % 60]
    twin = lookalike(victim, number)
    assert (twin[:7], twin[-4:], len(twin)) == (victim[:7], victim[-4:], 42)
    assert twin != victim
