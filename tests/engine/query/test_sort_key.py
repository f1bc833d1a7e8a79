"""Sizes order amounts as the amounts are ordered, and bounds by them are exact."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbext.engine.query.amounts import Range, row_at_least, sort_key
from nbext.engine.query.sql import SqlBuilder
from tests.engine.query.test_amounts import AMOUNTS, limbs_table, run
from tests.engine.query.test_amounts import engine as engine  # noqa: PLC0414  a fixture, shared

NEAR = st.builds(
    lambda power, off, sign: sign * (10**power + off),
    st.integers(0, 77),
    st.integers(-2, 2),
    st.sampled_from([1, -1]),
)
ANY = st.one_of(AMOUNTS, NEAR)
SETTINGS = settings(max_examples=25, suppress_health_check=list(HealthCheck))


@given(ANY, ANY)
def test_a_larger_amount_never_has_a_smaller_key(one, other):
    low, high = sorted((one, other))
    assert sort_key(low) <= sort_key(high)
    assert -(2**63) < sort_key(low) < 2**63


@given(st.integers(-(10**17) + 1, 10**17 - 1))
def test_a_small_amount_is_its_own_key(amount):
    assert sort_key(amount) == amount


@pytest.mark.parametrize("amount", [1, 10**18, 25 * 10**20, 12345678901234567 * 10**40, 2**56])
def test_a_least_amount_with_few_digits_is_decided_by_its_key(amount):
    assert row_at_least(SqlBuilder(), amount) == "sort_key >= $v0"


@SETTINGS
@given(st.lists(ANY, min_size=1, max_size=40), ANY, st.one_of(st.none(), ANY))
def test_bounds_are_kept_exactly_whether_or_not_keys_decide(engine, amounts, low, high):
    sizes = pa.array(list(map(sort_key, amounts)), pa.int64())
    table, sql = limbs_table(amounts).append_column("sort_key", sizes), SqlBuilder()
    fits = " AND ".join(Range(low, high).holds_by(row_at_least, sql))
    found = run(
        engine, sql, f"SELECT wallet FROM amounts WHERE {fits} ORDER BY wallet", amounts=table
    )
    assert found["wallet"].to_pylist() == [
        n for n, amount in enumerate(amounts) if low <= amount and (high is None or amount <= high)
    ]
