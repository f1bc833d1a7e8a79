"""How amounts are put into bins, and what a bin is called."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbext.notebook.forms.distribution import spread

AMOUNTS = st.lists(st.floats(min_value=0, max_value=1e60, allow_subnormal=False), max_size=50)


@pytest.mark.parametrize(
    ("amounts", "bins"),
    [
        ([], []),
        ([0.0], [("0", 1)]),
        ([2, 2, 5], [("2", 2), ("3", 0), ("4", 0), ("5", 1)]),
        ([250_000.0, 750_000.0], [("200k to 500k", 1), ("500k to 1M", 1)]),
        ([1000.0, 999.5], [("500 to 1k", 1), ("1k to 2k", 1)]),
        ([0, 3e-18], [("0", 1), ("2e-18 to 5e-18", 1)]),
    ],
)
def test_amounts_fall_into_bins_with_short_names(amounts, bins):
    assert spread(amounts) == bins


@given(AMOUNTS)
@settings(deadline=None)
def test_every_amount_falls_into_one_bin(amounts):
    assert sum(count for _, count in spread(amounts)) == len(amounts)
