"""How amounts are put into bins, and what a bin is called."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.notebook.forms.shown_bars import bars_of

AMOUNTS = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=50)


def named(amounts):
    return [(one["name"], one["count"]) for one in bars_of(amounts)]


def empty(*edges):
    return [(f"{low} to {high}", 0) for low, high in itertools.pairwise(edges)]


EMPTY = [*empty("0.5", "1", "1.5", "2", "2.5"), *empty("3", "3.5", "4", "4.5", "5")]
MILLIONS = empty("-1.5M", "-1M", "-500k", "0", "500k", "1M", "1.5M", "2M")
WIDE = empty(*(f"1e-{power}" for power in range(17, 8, -1)))
HUGE = empty(
    *(f"{edge}e+307" for edge in (2, 4, 6, 8)), *("1e+308", "1.2e+308", "1.4e+308", "1.6e+308")
)
TWOS = empty("2", "5", "10", "20", "50", "100", "200", "500", "1k", "2k")


@pytest.mark.parametrize(
    ("amounts", "bins"),
    [
        ([], []),
        ([0.0], [("0", 1)]),
        ([2, 2, 5], [("2", 2), ("3", 0), ("4", 0), ("5", 1)]),
        ([1_000_001, 1_000_002], [("1,000,001", 1), ("1,000,002", 1)]),
        ([-3, -1], [("-3", 1), ("-2", 0), ("-1", 1)]),
        ([0.5, 0.5], [("0.5", 2)]),
        (
            [0.0, 2.5, 5.0],
            [("0 to 0.5", 1), *EMPTY[:4], ("2.5 to 3", 1), *EMPTY[4:], ("5 to 5.5", 1)],
        ),
        ([-2e6, 2e6], [("-2M to -1.5M", 1), *MILLIONS, ("2M to 2.5M", 1)]),
        # Nearly all are small beside the largest: of the largest bin alone nothing would be seen.
        ([0, *[3e-18] * 9, 4e-9], [("0", 1), ("1e-18 to 1e-17", 9), *WIDE, ("1e-9 to 1e-8", 1)]),
        ([*[1.5] * 9, 4000], [("1 to 2", 9), *TWOS, ("2k to 5k", 1)]),
        # Past the largest float an edge is no number.
        ([0.0, 1.7e308], [("0 to 2e+307", 1), *HUGE, ("1.6e+308 to inf", 1)]),
    ],
)
def test_amounts_fall_into_bins_with_short_names(amounts, bins):
    assert named(amounts) == bins


def test_amounts_of_many_decades_have_no_more_bins_than_a_head_has_room_for():
    bins = named([*[1.5] * 30, 1e77, 1e300])
    assert (bins[0], bins[-1], len(bins)) == (("1 to 10T", 30), ("1e+299 to 1e+301", 1), 24)


@given(AMOUNTS)
def test_every_amount_falls_into_one_bin(amounts):
    assert sum(one["count"] for one in bars_of(amounts)) == len(amounts)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.integers(1, 40))
def test_numbers_that_are_spread_evenly_are_drawn_evenly(noise, length):
    even = [place / length * 1e6 for place in range(50 * length)]
    counts = [one["count"] for one in bars_of(even)]
    # All but the last, which begins at the largest number.
    assert max(counts[:-1]) - min(counts[:-1]) <= 1
    assert len(bars_of([*noise, *even])) <= 13
