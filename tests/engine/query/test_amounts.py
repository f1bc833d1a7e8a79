"""Amounts stay exact over all of uint256, and for negative sums, in Python and in the engine."""

from __future__ import annotations

import itertools
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbext.core.uint256 import LIMB_BASE, Limbs, join, split
from nbext.engine.dataset import ExactColumn
from nbext.engine.exact_columns import quotients
from nbext.engine.query.amounts import Range, as_amounts, carried, limbs_at_least, sort_key
from nbext.engine.query.answers import valued
from nbext.engine.query.bitmaps import placed
from nbext.engine.query.rows import Rows
from nbext.engine.query.sql import SqlBuilder

MAX = 2**256 - 1
EDGES = [0, 1, 10**26 - 1, 10**26, 10**52 - 1, 10**52, 2**63, 2**127, 2**128, MAX]
AMOUNTS = st.one_of(
    st.sampled_from([sign * edge for edge in EDGES for sign in (1, -1)]),
    st.integers(-MAX, MAX),
    st.integers(-9, 9),
)
SETTINGS = settings(max_examples=25, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def engine():
    connection = duckdb.connect()
    yield connection
    connection.close()


AMOUNT = ExactColumn("amount", "amount", lambda sql: "")


def limbs_table(amounts):
    """Return a table of amounts: ``wallet``, the place of each, and its three limbs."""
    columns = {"wallet": pa.array(range(len(amounts)), pa.int32())}
    limbs = zip(*map(split, amounts), strict=True)
    for name, numbers in zip(("hi", "mid", "lo"), limbs, strict=True):
        columns[name] = pa.array([Decimal(n) for n in numbers], pa.decimal128(38, 0))
    return pa.table(columns)


def run(engine, sql, text, **tables):
    """Return the rows of a statement that reads some tables."""
    for name, table in tables.items():
        engine.register(name, table)
    statement = sql.statement(text)
    return engine.sql(statement.text, params=dict(statement.values)).to_arrow_table()


def rows_of(fetched, floats=None):
    """Return the answer's rows of a fetched column of amounts."""
    rows = Rows(fetched.num_rows, 1, floats or {}, None)
    rows.add("amount", fetched["amount"].combine_chunks(), "amount")
    return rows.table()


@given(AMOUNTS)
def test_splitting_and_joining_gives_the_integer_back(amount):
    limbs = split(amount)
    assert join(limbs) == amount
    assert 0 <= limbs.mid < LIMB_BASE
    assert 0 <= limbs.lo < LIMB_BASE


@SETTINGS
@given(st.lists(AMOUNTS, min_size=1, max_size=40), AMOUNTS)
def test_comparing_limbs_is_comparing_integers(engine, amounts, bound):
    sql = SqlBuilder()
    most = " AND ".join(Range(-(2**256), bound).holds_by(limbs_at_least, sql))
    tests = f"{limbs_at_least(sql, bound)} AS least, {most} AS most"
    found = run(
        engine, sql, f"SELECT {tests} FROM amounts ORDER BY wallet", amounts=limbs_table(amounts)
    )
    assert found.to_pylist() == [{"least": x >= bound, "most": x <= bound} for x in amounts]


@SETTINGS
@given(st.lists(AMOUNTS, min_size=1, max_size=40))
def test_an_amount_is_answered_exactly_and_as_the_float_that_is_nearest_to_it(amounts):
    supply = 3 * 10**25 + 7
    floats = {"units": ("amount", 10**18), "share": ("amount", supply), "unknown": ("amount", 0)}
    made = rows_of(valued(limbs_table(amounts), AMOUNT), floats)
    assert made.column_names == ["units", "share", "unknown", "amount"]
    assert made["amount"].cast(pa.string()).to_pylist() == [str(amount) for amount in amounts]
    # Python divides integers with one rounding, too.
    assert made["units"].to_pylist() == [amount / 10**18 for amount in amounts]
    assert made["share"].to_pylist() == [amount / supply for amount in amounts]
    assert made["unknown"].to_pylist() == [None] * len(amounts)


@SETTINGS
@given(
    st.lists(
        st.tuples(
            st.integers(2**52, 2**53), st.integers(-60, 70), st.integers(-2, 2), st.booleans()
        ),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([1, 2, 10**6, 10**18, 10**22, 10**23, 3 * 10**25 + 7]),
)
def test_quotients_beside_the_middle_of_two_floats_are_rounded_once(drawn, divisor):
    # Twice a float and one more is the middle between it and the next.
    exact = [
        int(Fraction(2 * digits + 1) * Fraction(2) ** power * divisor) + beside
        for digits, power, beside, _ in drawn
    ]
    exact = [-one if below else one for one, (*_, below) in zip(exact, drawn, strict=True)]
    exact = [one for one in exact if abs(one) < 10**38]
    numbers = pa.array([Decimal(one) for one in exact], pa.decimal128(38, 0))
    each = [divisor, None, 0] * len(exact)
    assert quotients(numbers, [divisor]).to_pylist() == [one / divisor for one in exact]
    assert quotients(numbers, each[: len(exact)]).to_pylist() == [
        one / by if by else None for one, by in zip(exact, each, strict=False)
    ]


@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(38, 0), pa.decimal256(76, 0)])
def test_the_quotient_of_a_missing_number_is_missing(kind):
    numbers = pa.array([6, None, 9], kind)
    assert quotients(numbers, [3]).to_pylist() == [2.0, None, 3.0]


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
def test_exact_amounts_have_one_type_as_long_as_they_and_their_sum_fit_it(amounts, expected):
    limbs = [
        dict(zip(("hi", "mid", "lo"), map(Decimal, split(amount)), strict=True))
        for amount in amounts
    ]
    kind = pa.struct([(limb, pa.decimal128(38, 0)) for limb in ("hi", "mid", "lo")])
    made = rows_of(pa.table({"amount": pa.array(limbs, kind)}))
    assert made.schema == pa.schema([("amount", expected)])
    assert made["amount"].cast(pa.string()).to_pylist() == [str(amount) for amount in amounts]
    if expected != pa.string() and amounts:
        assert made.to_pandas(types_mapper=pd.ArrowDtype)["amount"].sum() == sum(amounts)


@SETTINGS
@given(st.lists(AMOUNTS, min_size=1, max_size=60))
def test_sums_of_limbs_carry_to_the_sum_of_integers(engine, amounts):
    sums = "(SELECT 1 AS wallet, sum(hi) AS hi, sum(mid) AS mid, sum(lo) AS lo FROM amounts)"
    text = f"SELECT hi, mid, lo FROM ({carried(sums, 'wallet')})"
    found = run(engine, SqlBuilder(), text, amounts=limbs_table(amounts)).to_pylist()
    assert found == [{limb: Decimal(n) for limb, n in split(sum(amounts))._asdict().items()}]


# Sums of limbs, as they come of up to 2**31 rows, and numbers beside every power of ten and of the word.
NEAR = [
    sign * (base**n + more)
    for base, n in itertools.chain(((10, n) for n in range(36)), ((2, 63), (2, 64)))
    for sign in (1, -1)
    for more in (-1, 0, 1)
]
SUMS = st.one_of(st.integers(-(2**30) * LIMB_BASE, 2**30 * LIMB_BASE), st.sampled_from(NEAR))


@SETTINGS
@given(st.lists(st.tuples(SUMS, SUMS, SUMS), min_size=1, max_size=40))
def test_sums_of_limbs_become_the_amounts_that_they_are_with_their_sort_keys(engine, sums):
    limbs = [
        pa.array(map(Decimal, column), pa.decimal128(38, 0)) for column in zip(*sums, strict=True)
    ]
    table = pa.table([pa.array(range(len(sums)), pa.int32()), *limbs], ["wallet", *Limbs._fields])
    text = f"FROM ({as_amounts('sums', 'wallet')}) ORDER BY wallet"
    found = run(engine, SqlBuilder(), text, sums=table).to_pylist()
    amounts = [join(Limbs(*row)) for row in sums]
    assert [tuple(map(int, row.values())) for row in found] == [
        (wallet, *split(amount), sort_key(amount)) for wallet, amount in enumerate(amounts)
    ]


def test_the_largest_limbs_that_may_be_summed_still_carry(engine):
    top = 10**37
    column = pa.array([Decimal(top)], pa.decimal128(38, 0))
    zero = pa.array([Decimal(0)], pa.decimal128(38, 0))
    tops = pa.table({"wallet": [1], "hi": zero, "mid": column, "lo": column})
    rows = run(
        engine,
        SqlBuilder(),
        f"SELECT wallet, hi, mid, lo FROM ({carried('tops', 'wallet')})",
        tops=tops,
    )
    assert rows_of(valued(rows, AMOUNT))["amount"].to_pylist() == [Decimal(str(top * 10**26 + top))]


def test_a_wallet_without_the_amount_has_zero_of_it():
    found = placed(np.array([0, 1], np.int32), valued(limbs_table([5]), AMOUNT))
    assert rows_of(pa.table({"amount": found})).to_pylist() == [{"amount": 5}, {"amount": 0}]
