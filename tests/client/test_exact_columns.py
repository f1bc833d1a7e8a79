"""Columns of exact integers are computed with as Python's integers are, and read back by others as they were."""

from __future__ import annotations

import json
import operator
import pickle
import warnings
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
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
    quotients, rests = divmod(exact, number)
    assert list(zip(plain(quotients), plain(rests), strict=True)) == [
        divmod(one, number) for one in ints
    ]
    assert plain(exact.cumsum()) == [sum(ints[: at + 1]) for at in range(len(ints))]
    assert plain(exact.cummax()) == [max(ints[: at + 1]) for at in range(len(ints))]
    assert exact.isin(ints[:1]).tolist() == [one == ints[0] for one in ints]
    assert (exact / number).tolist() == [one / number for one in ints]
    assert plain(exact[exact >= max(ints)]) == [one for one in ints if one == max(ints)]


def test_single_values_are_pythons_integers_and_lose_no_digit_in_what_a_user_computes_with_them():
    # More than the 28 digits of Decimal's arithmetic.
    values = [10**36 + 1, 3, None]
    exact = column(values)
    whole = exact[:2]
    given = pd.DataFrame({"raw": whole})
    for found in (
        *(whole.tolist(), list(whole), [whole[0], whole.iat[1]], whole.astype(object).tolist()),
        [row.raw for row in given.itertuples()],
        [row["raw"] for row in given.to_dict("records")],
    ):
        assert (found, {type(one) for one in found}) == (values[:2], {int})
    assert sum(whole) == 10**36 + 4
    assert whole.map(lambda one: one * 3).tolist() == [3 * 10**36 + 3, 9]
    assert whole.apply(lambda one: one + 1).tolist() == [10**36 + 2, 4]
    assert json.loads(json.dumps(whole.tolist())) == values[:2]
    assert (exact.sum(), exact.min(), exact.max()) == (10**36 + 4, 3, 10**36 + 1)
    assert {type(one) for one in (exact.sum(), exact.min(), exact.max())} == {int}
    assert exact.to_numpy(dtype=float, na_value=0).tolist() == [1e36, 3, 0]
    assert exact.isna().tolist() == [pd.isna(one) for one in exact] == [False, False, True]
    assert column([]).tolist() == column([]).astype(object).tolist() == []
    # Integers of more than 64 bits would be null to Spark, which takes NumPy's objects, and rounded by JavaScript.
    assert {type(one) for one in np.asarray(whole)} == {Decimal}
    assert json.loads(whole.to_json(orient="values")) == list(map(str, values[:2]))


@pytest.mark.slow
@hypothesis_settings(deadline=None)
@given(st.lists(st.integers(1 - 10**76, 10**76 - 1), min_size=1, max_size=4), st.integers(1, 3))
def test_what_columns_set_under_each_other_sum_to_is_exact_or_refused(values, times):
    # Each column has the digits of its own sum, both together may have more: Arrow's sum is then another number.
    one = column([*values, None])
    table = pd.concat([pd.DataFrame({"raw": one, "half": "ab"[n % 2]}) for n in range(times)])
    if sum(map(abs, values)) * times >= 5 * 10**76:
        for ask in (table["raw"].sum, table.groupby("half")["raw"].sum):
            with pytest.raises(OverflowError) as caught:
                ask()
            assert str(caught.value) == (
                "A sum has more digits than its type. .astype(object) makes Python's integers of all."
            )
    else:
        assert table["raw"].sum() == sum(values) * times
        by_half = table.groupby("half")["raw"].sum()
        assert plain(by_half) == [sum(values) * n for n in ((times + 1) // 2, times // 2) if n]
        kind = "decimal" if sum(map(abs, plain(by_half))) < 10**76 else "object"
        assert str(by_half.dtype).startswith(kind)
    assert table["raw"].astype(object).sum() == sum(values) * times


def test_two_days_of_the_largest_amounts_sum_to_what_they_are():
    day = column([9 * 10**37])
    both = pd.concat([day, day], ignore_index=True)
    table = pd.DataFrame({"raw": both, "other": both, "chain": ["a", "a"]})
    assert [str(one.dtype) for one in (day, both)] == ["decimal128(38, 0)[pyarrow]"] * 2
    assert both.sum() == table.groupby("chain")["raw"].sum().iloc[0] == 18 * 10**37
    assert table[["raw", "other"]].sum().tolist() == [18 * 10**37] * 2
    assert table[["raw", "other"]].sum(axis=1).tolist() == [18 * 10**37] * 2
    assert table.pivot_table(index="chain", values="raw", aggfunc="sum")["raw"].tolist() == [
        18 * 10**37
    ]
    # Narrow again, so that others read it.
    small = table.assign(raw=column([1, 2])).groupby("chain")["raw"].sum()
    assert (str(small.dtype), small.tolist()) == ("decimal128(38, 0)[pyarrow]", [3])


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
        OverflowError, match=r"more than 64 bits. .astype\(object\) makes Python's integers"
    ):
        exact.dropna().astype(int)
    assert exact.dropna().astype(object).tolist() == [5 * 10**24, 7]
    assert column([1, 2]).astype("int64").tolist() == [1, 2]


def test_what_pandas_does_with_exact_columns_is_exact_or_asked_of_the_floats_beside_them():
    values = [5 * 10**24 + 1, 7, 9 * 10**24, 5 * 10**24]
    table = pd.DataFrame({"amount": [one / 10**18 for one in values], "raw": column(values)})
    by_size = table.sort_values("raw", ascending=False)
    assert plain(by_size["raw"]) == sorted(values, reverse=True)
    assert (int(table["raw"].sum()), int(table["raw"].max())) == (sum(values), max(values))
    assert plain(table.nlargest(2, ["amount"])["raw"])[0] == max(values)
    assert table.describe().columns.tolist() == ["amount"]
    assert int(table.sum(numeric_only=True)["raw"]) == sum(values)
    assert plain(table.groupby([0, 0, 1, 1]).sum(numeric_only=True)["raw"]) == [
        sum(values[:2]),
        sum(values[2:]),
    ]
    assert table.corr(numeric_only=True).columns.tolist() == ["amount", "raw"]
    assert pd.cut(table["raw"], 2).cat.codes.tolist() == [1, 0, 1, 1]
    assert table["raw"].rank().tolist() == [3, 1, 4, 2]
    assert table["raw"].quantile(0.5) == 5e24
    assert table["raw"].groupby([0, 0, 1, 1]).sum().tolist() == [sum(values[:2]), sum(values[2:])]


def test_what_pandas_cannot_do_with_exact_columns_it_names_in_one_line():
    table = pd.DataFrame({"raw": column([3, 5 * 10**24, 4]), "chain": list("aab")})
    grouped = table.groupby("chain")["raw"]
    dtype = "decimal128(38, 0)[pyarrow]"
    refused = {
        lambda: table["raw"].nlargest(2): "No matching signature found",
        lambda: table.nsmallest(2, "raw"): "No matching signature found",
        table[
            "raw"
        ].prod: "A prod has more digits than its type. .astype(object) makes Python's integers of all.",
        table["raw"].cumprod: f"operation 'cumprod' not supported for dtype '{dtype}'",
        grouped.cumsum: f"cumsum is not supported for {dtype} dtype",
        grouped.rank: f"rank is not supported for {dtype} dtype",
    }
    for ask, words in refused.items():
        with pytest.raises((TypeError, OverflowError)) as caught:
            ask()
        assert str(caught.value) == words
    assert table["raw"].astype(float).describe()["max"] == 5e24
    assert table["raw"].astype(object).prod() == 60 * 10**24
    assert plain(table["raw"].sort_values(ascending=False).head(2)) == [5 * 10**24, 4]
    running = grouped.transform(lambda one: one.cumsum())
    assert plain(running) == [3, 5 * 10**24 + 3, 4]
    assert plain(grouped.transform(lambda one: one.rank())) == [1, 2, 1]
    assert table.dtypes.astype(str)["raw"] == f"{table['raw'].dtype}" == dtype


@pytest.mark.parametrize("factor", [1, 10**50])
def test_a_mean_is_not_cut_to_a_whole_number(factor):
    table = pd.DataFrame({"raw": column([factor, 2 * factor, None]), "chain": list("aaa")})
    assert table["raw"].mean() == pytest.approx(1.5 * factor)
    assert table.groupby("chain")["raw"].mean().tolist() == [pytest.approx(1.5 * factor)]
    assert table["raw"].median() == pytest.approx(1.5 * factor)


def test_columns_of_exact_integers_have_the_dtype_that_pandas_has_for_them():
    exact = column([5 * 10**24, 3])
    plain_dtype = pd.ArrowDtype(pa.decimal128(38, 0))
    assert exact.dtype == plain_dtype
    assert plain_dtype == exact.dtype
    assert exact.dtype != "int64"
    assert {exact.dtype: 1}[plain_dtype] == 1
    again = pickle.loads(pickle.dumps(exact))
    assert type(pickle.loads(pickle.dumps(exact.dtype))) is pd.ArrowDtype
    for parts in ([exact, again], [again, exact]):
        both = pd.concat(parts, ignore_index=True)
        assert (both.dtype, plain(both)) == (plain_dtype, [5 * 10**24, 3] * 2)
    for made in (exact + 1, exact.shift(), exact.where(exact > 4), exact.reindex([0, 7])):
        assert plain(made + 10**30)[0] in (5 * 10**24 + 1 + 10**30, 5 * 10**24 + 10**30, None)
        assert made.dtype == plain_dtype


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
