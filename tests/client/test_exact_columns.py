"""Columns of exact integers are computed with as Python's integers are, and read back by others as they were."""

from __future__ import annotations

import operator
import pickle
import warnings
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nbext.client import frames

WHOLE = st.integers(-(2**120), 2**256 - 1)
EXACT = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
)


def column(values):
    return pd.Series(frames.typed_column(values, "uint256"))


def plain(series):
    return [None if pd.isna(one) else int(one) for one in series]


# Without a deadline: the first example imports pandas.
@hypothesis_settings(deadline=None)
@given(st.lists(WHOLE, min_size=1, max_size=5), WHOLE.filter(bool))
def test_integers_are_computed_with_exactly(values, number):
    exact = column([one % 10**37 for one in values])
    ints = plain(exact)
    for other, others in ((number, [number] * len(ints)), (exact, ints)):
        for op in EXACT:
            if 0 in others and op in (operator.floordiv, operator.mod):
                continue
            assert plain(op(exact, other)) == [op(*pair) for pair in zip(ints, others, strict=True)]
    assert plain(number - exact) == [number - one for one in ints]
    assert plain(exact.cumsum()) == [sum(ints[: at + 1]) for at in range(len(ints))]
    assert plain(exact.cummax()) == [max(ints[: at + 1]) for at in range(len(ints))]
    assert exact.isin(ints[:1]).tolist() == [one == ints[0] for one in ints]
    assert (exact / number).tolist() == [one / number for one in ints]
    assert plain(exact[exact >= max(ints)]) == [one for one in ints if one == max(ints)]


def test_what_is_no_integer_is_the_nearest_float_and_what_is_missing_stays_missing():
    exact = column([5 * 10**24, None, 7])
    assert str((exact + 1).dtype) == "decimal128(38, 0)[pyarrow]"
    assert plain(exact + 1) == [5 * 10**24 + 1, None, 8]
    halves = exact / 2
    assert (str(halves.dtype), halves.dropna().tolist()) == ("float64", [2.5e24, 3.5])
    assert (exact + Decimal("0.5")).dropna().tolist() == [5e24, 7.5]
    assert (exact / 0).isna().all()
    assert str((exact * exact * 10**30).dtype) == "object"
    assert plain(exact.diff()) == [None, None, None]
    share = exact.fillna(Decimal(0)) / exact.sum()
    assert share.sum() == pytest.approx(1)
    with pytest.raises(
        OverflowError, match=r"more than 64 bits. .map\(int\) makes Python's integers"
    ):
        exact.dropna().astype(int)
    assert exact.dropna().map(int).tolist() == [5 * 10**24, 7]
    assert column([1, 2]).astype("int64").tolist() == [1, 2]


def test_what_pandas_does_with_exact_columns_is_exact_or_asked_of_the_floats_beside_them():
    values = [5 * 10**24 + 1, 7, 9 * 10**24, 5 * 10**24]
    table = pd.DataFrame({"amount": [one / 10**18 for one in values], "raw": column(values)})
    by_size = table.sort_values("raw", ascending=False)
    assert plain(by_size["raw"]) == sorted(values, reverse=True)
    assert (int(table["raw"].sum()), int(table["raw"].max())) == (sum(values), max(values))
    # pandas' own code has these for numbers of 64 bits alone.
    for of_raw in (lambda: table.nlargest(2, "raw"), table["raw"].describe):
        with pytest.raises(TypeError):
            of_raw()
    assert plain(table.nlargest(2, ["amount"])["raw"])[0] == max(values)
    assert table["amount"].describe()["count"] == 4


def test_exact_columns_are_read_back_by_others_as_they_were(tmp_path):
    table = pd.DataFrame({"raw": column([5 * 10**24, 3]) + 1})
    table.to_parquet(tmp_path / "raw.parquet")
    values = [Decimal(5 * 10**24 + 1), Decimal(4)]
    assert pd.read_parquet(tmp_path / "raw.parquet")["raw"].tolist() == values
    found = duckdb.sql(f"SELECT raw, typeof(raw) FROM '{tmp_path}/raw.parquet'").fetchall()
    assert found == [(one, "DECIMAL(38,0)") for one in values]
    assert pl.read_parquet(tmp_path / "raw.parquet")["raw"].to_list() == values
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(pickle.dumps(table))
    pd.testing.assert_frame_equal(again, table)
    assert type(again["raw"].array) is pd.arrays.ArrowExtensionArray
