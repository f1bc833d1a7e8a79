"""Amounts in token units and raw integers, held to Python's own integers."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.core.uint256 import (
    MAX_UINT256,
    TooManyDecimals,
    in_units,
    join,
    split,
    to_raw,
    uint256_of,
    units_text,
)

DECIMALS = st.integers(0, 77)


@given(raw=st.integers(0, 2**256 - 1), decimals=DECIMALS)
def test_an_amount_written_in_units_comes_back_as_it_was(raw, decimals):
    text = str(raw).rjust(decimals + 1, "0")
    written = text[: len(text) - decimals] + (
        "." + text[len(text) - decimals :] if decimals else ""
    )
    # The context's precision must play no part.
    with localcontext(prec=5):
        assert to_raw(Decimal(written), decimals) == raw
    assert to_raw(Decimal(units_text(raw, decimals).replace(",", "")), decimals) == raw


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


@given(st.integers(-(2**260), 2**260))
def test_limbs_hold_every_integer_and_compare_as_it_does(amount):
    limbs = split(amount)
    assert join(limbs) == amount
    assert all(0 <= limb < 10**26 for limb in limbs[1:])
    assert (limbs < split(amount + 1), limbs > split(amount - 1)) == (True, True)


@given(st.integers(0, MAX_UINT256), st.integers(0, 60))
def test_a_number_is_read_from_decimal_and_from_hex_digits(number, zeros):
    assert (
        uint256_of(str(number))
        == uint256_of(hex(number))
        == uint256_of(f"0x{number:064X}")
        == number
    )
    padded = "0" * zeros + str(number)
    assert uint256_of(padded) == (number if len(padded) <= 78 else None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        "-1",
        "+1",
        " 1",
        "1_0",
        "1.0",
        "1e3",
        "ff",
        "0xg",
        str(2**256),
        hex(2**256),
        "1" * 79,
        "٣",
        "1\n",
    ],
)
def test_what_is_not_a_uint256_is_none(text):
    assert uint256_of(text) is None


@given(st.integers(-MAX_UINT256, MAX_UINT256), st.integers(0, 255))
def test_an_amount_in_units_is_exact(raw, decimals):
    with localcontext(prec=5):
        assert to_raw(in_units(raw, decimals), decimals) == raw
        assert to_raw(Decimal(units_text(str(raw), decimals).replace(",", "")), decimals) == raw
