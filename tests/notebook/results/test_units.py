"""Amounts in a token's unit: exact, on request, and only once."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbext
from nbext.errors import ValidationError


def segment(values, decimals=18, dtype=None):
    addresses = [f"0x{i}" for i in range(len(values))]
    frame = pd.DataFrame({"address": addresses, "UNI_balance": pd.Series(values, dtype=dtype)})
    frame.attrs["nbext"] = {
        "columns": [
            {"name": "address", "type": "string"},
            {"name": "UNI_balance", "type": "uint256", "decimals": decimals, "symbol": "UNI"},
        ]
    }
    return frame


def test_raw_integers_and_exact_texts_become_decimals():
    frame = segment(["1", str(2**256 - 1), "0"], dtype="str")
    units = nbext.to_units(frame)
    assert list(units["UNI_balance"]) == [
        Decimal("1E-18"),
        Decimal("115792089237316195423570985008687907853269984665640564039457.584007913129639935"),
        Decimal(0),
    ]
    assert list(units["address"]) == list(frame["address"])
    assert list(frame["UNI_balance"]) == ["1", str(2**256 - 1), "0"]


def test_floats_are_made_on_request():
    units = nbext.to_units(segment([1_500_000, 0], decimals=6), as_="float")
    assert units["UNI_balance"].dtype == "float64"
    assert list(units["UNI_balance"]) == [1.5, 0.0]


def test_missing_values_stay_missing():
    frame = segment([1, None], decimals=0, dtype="Int64")
    assert list(nbext.to_units(frame)["UNI_balance"]) == [Decimal(1), None]
    assert nbext.to_units(frame, as_="float")["UNI_balance"].isna().tolist() == [False, True]


def test_unknown_decimals_leave_the_column_raw():
    frame = segment([5], decimals=None)
    pd.testing.assert_frame_equal(nbext.to_units(frame), frame)


def test_converting_twice_converts_once():
    units = nbext.to_units(segment([5 * 10**17]))
    pd.testing.assert_frame_equal(nbext.to_units(units), units)
    assert units["UNI_balance"].iloc[0] == Decimal("0.5")


@given(st.lists(st.integers(0, 2**256 - 1), min_size=1, max_size=5), st.integers(0, 77))
def test_no_digit_is_lost(values, decimals):
    units = nbext.to_units(segment([str(value) for value in values], decimals=decimals, dtype="str"))
    with localcontext(prec=200):
        assert [int(amount * 10**decimals) for amount in units["UNI_balance"]] == values


def test_what_is_no_whole_number_any_more_is_not_cut_to_one():
    assert list(nbext.to_units(segment([Decimal("1.5")], decimals=1, dtype=object))["UNI_balance"]) == [Decimal("0.15")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nbext.to_units(segment([1]), as_="int"), "as_: 'int' is not allowed. Use 'decimal' or 'float'."),
        (
            lambda: nbext.to_units(pd.DataFrame({"a": [1]})),
            "frame: This table is not a segment's: its attrs['nbext'] are missing.",
        ),
        (
            lambda: nbext.to_units(pa.table({"a": [1]})),
            "frame: A pyarrow.Table is not allowed. Give a segment's pandas.DataFrame.",
        ),
        (
            lambda: nbext.to_units(segment(["much"], dtype="str")),
            "frame: UNI_balance contains 'much', which is not a number.",
        ),
    ],
)
def test_what_cannot_be_converted_is_refused(call, message):
    with pytest.raises(ValidationError) as caught:
        call()
    assert str(caught.value) == message
