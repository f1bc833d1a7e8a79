"""Amounts in token units and raw integers, held to Python's own integers."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.core.uint256 import TooManyDecimals, from_raw, to_raw

DECIMALS = st.integers(0, 77)


@given(raw=st.integers(0, 2**256 - 1), decimals=DECIMALS)
def test_an_amount_written_in_units_comes_back_as_it_was(raw, decimals):
    text = str(raw).rjust(decimals + 1, "0")
    written = text[: len(text) - decimals] + ("." + text[len(text) - decimals :] if decimals else "")
    # The context's precision must play no part.
    with localcontext(prec=5):
        assert to_raw(Decimal(written), decimals) == raw
    assert to_raw(Decimal(from_raw(raw, decimals).replace(",", "")), decimals) == raw


@given(raw=st.integers(1, 10**30), decimals=DECIMALS, more=st.integers(1, 9))
def test_a_digit_beyond_the_tokens_last_is_refused(raw, decimals, more):
    places = decimals + more
    amount = Decimal((0, tuple(map(int, str(raw * 10 + 1))), -places))
    with pytest.raises(TooManyDecimals) as caught:
        to_raw(amount, decimals)
    assert caught.value.places == places


def test_trailing_zeros_and_exponents_are_not_digits():
    assert to_raw(Decimal("1.000"), 0) == 1
    assert to_raw(Decimal("1E+3"), 2) == 100_000
    assert to_raw(Decimal("0.000"), 0) == 0
