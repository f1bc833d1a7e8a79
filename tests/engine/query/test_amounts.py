"""Amounts stay exact over all of uint256, and for negative sums, in Python and in the engine."""

from __future__ import annotations

from decimal import Decimal

import ibis
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbext.core.uint256 import LIMB_BASE, Limbs, join, split
from nbext.engine.query.amounts import carried, limbs_at_least, limbs_at_most, limbs_equal, limbs_of
from nbext.engine.query.rows import amount_struct, answered

MAX = 2**256 - 1
EDGES = [0, 1, 10**26 - 1, 10**26, 10**52 - 1, 10**52, 2**63, 2**127, 2**128, MAX]
AMOUNTS = st.one_of(
    st.sampled_from([sign * edge for edge in EDGES for sign in (1, -1)]),
    st.integers(-MAX, MAX),
    st.integers(-9, 9),
)
SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def engine():
    backend = ibis.duckdb.connect()
    yield backend
    backend.disconnect()


def limbs_table(engine, **amounts):
    """Register one table of amounts: for each name its three limb columns, and ``row``."""
    columns = {"row": pa.array(range(len(next(iter(amounts.values())))))}
    for name, values in amounts.items():
        for limb, numbers in zip(
            ("hi", "mid", "lo"), zip(*map(split, values), strict=True), strict=True
        ):
            columns[f"{name}_{limb}"] = pa.array(
                [Decimal(n) for n in numbers], pa.decimal128(38, 0)
            )
    return engine.create_table("amounts", pa.table(columns), overwrite=True)


@given(AMOUNTS)
def test_splitting_and_joining_gives_the_integer_back(amount):
    limbs = split(amount)
    assert join(limbs) == amount
    assert 0 <= limbs.mid < LIMB_BASE
    assert 0 <= limbs.lo < LIMB_BASE


@SETTINGS
@given(st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=40))
def test_comparing_limbs_is_comparing_integers(engine, pairs):
    left, right = zip(*pairs, strict=True)
    table = limbs_table(engine, a=left, b=right)
    a, b = limbs_of(table, "a_"), limbs_of(table, "b_")
    result = table.select(
        "row", least=limbs_at_least(a, b), most=limbs_at_most(a, b), equal=limbs_equal(a, b)
    ).order_by("row")
    assert result.to_pyarrow().drop("row").to_pylist() == [
        {"least": x >= y, "most": x <= y, "equal": x == y} for x, y in pairs
    ]


@SETTINGS
@given(st.lists(AMOUNTS, min_size=1, max_size=40))
def test_an_amount_is_answered_exactly_and_as_the_float_that_is_nearest_to_it(engine, amounts):
    table = limbs_table(engine, a=amounts)
    rows = (
        table.select("row", amount=amount_struct(limbs_of(table, "a_")))
        .order_by("row")
        .to_pyarrow()
    )
    made = answered(rows, {"amount": ("units", 18)})
    assert made.column_names == ["row", "units", "amount"]
    assert made["amount"].cast(pa.string()).to_pylist() == [str(amount) for amount in amounts]
    # Python divides integers with one rounding, too.
    assert made["units"].to_pylist() == [amount / 10**18 for amount in amounts]


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ([], pa.decimal128(38, 0)),
        ([0], pa.decimal128(38, 0)),
        ([-5, 10**26], pa.decimal128(38, 0)),
        ([10**38 - 1], pa.decimal128(38, 0)),
        ([10**38], pa.decimal256(76, 0)),
        ([10**38 - 1, 1], pa.decimal256(76, 0)),
        ([-(10**38)], pa.decimal256(76, 0)),
        ([10**76 - 1], pa.decimal256(76, 0)),
        ([10**76], pa.string()),
        ([10**76 - 1] * 6, pa.string()),
        ([MAX], pa.string()),
        ([-MAX, 1], pa.string()),
    ],
)
def test_exact_amounts_have_one_type_as_long_as_they_and_their_sum_fit_it(
    engine, amounts, expected
):
    limbs = [
        dict(zip(("hi", "mid", "lo"), map(Decimal, split(amount)), strict=True))
        for amount in amounts
    ]
    kind = pa.struct([(limb, pa.decimal128(38, 0)) for limb in ("hi", "mid", "lo")])
    made = answered(pa.table({"amount": pa.array(limbs, kind)}), {})
    assert made.schema == pa.schema([("amount", expected)])
    assert made["amount"].cast(pa.string()).to_pylist() == [str(amount) for amount in amounts]
    if expected != pa.string() and amounts:
        assert made.to_pandas(types_mapper=pd.ArrowDtype)["amount"].sum() == sum(amounts)


@SETTINGS
@given(st.lists(AMOUNTS, min_size=1, max_size=60))
def test_sums_of_limbs_carry_to_the_sum_of_integers(engine, amounts):
    table = limbs_table(engine, a=amounts)
    sums = table.agg(hi=table.a_hi.sum(), mid=table.a_mid.sum(), lo=table.a_lo.sum())
    whole = carried(limbs_of(sums))
    result = sums.select(**whole._asdict()).to_pyarrow().to_pylist()
    assert result == [{limb: Decimal(n) for limb, n in split(sum(amounts))._asdict().items()}]


def test_the_largest_limbs_that_may_be_summed_still_carry(engine):
    top = 10**37
    column = pa.array([Decimal(top)], pa.decimal128(38, 0))
    table = engine.create_table(
        "tops", pa.table({"hi": column, "mid": column, "lo": column}), overwrite=True
    )
    whole = carried(Limbs(table.hi - table.hi, table.mid, table.lo))
    rows = answered(table.select(amount=amount_struct(whole)).to_pyarrow(), {})
    assert rows["amount"].to_pylist() == [Decimal(str(top * 10**26 + top))]


def test_a_wallet_without_the_amount_has_zero_of_it(engine):
    holders = limbs_table(engine, a=[5])
    asked = engine.create_table("asked", pa.table({"row": [0, 1]}), overwrite=True)
    rows = asked.left_join(
        holders.select("row", amount=amount_struct(limbs_of(holders, "a_"))), "row"
    )
    fetched = engine.to_pyarrow(rows.select("row", "amount").order_by("row"))
    assert answered(fetched, {}).to_pylist() == [
        {"row": 0, "amount": 5},
        {"row": 1, "amount": 0},
    ]
