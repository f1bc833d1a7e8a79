"""Whole numbers of 128 bits in arrays, against Python's integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from nbext.core.uint256 import Limbs, join, split
from nbext.engine.ingest.derive import holdings
from nbext.engine.query.amounts import sort_key

LIMB = 10**26
# Sums of limbs, as they come of up to 2**31 rows, and numbers beside every power of ten and of the word.
EDGES = [sign * (10**n + more) for n in range(36) for sign in (1, -1) for more in (-1, 0, 1)]
SUMS = st.one_of(
    st.integers(-(2**30) * LIMB, 2**30 * LIMB),
    st.sampled_from([e for e in EDGES if abs(e) < 2**30 * LIMB]),
)


# The first call loads and compiles: on a machine with other work that has taken longer than the deadline.
@settings(deadline=None)
@given(st.lists(st.tuples(SUMS, SUMS, SUMS), min_size=1, max_size=40))
def test_sums_of_limbs_become_the_amount_they_are_with_its_size(sums):
    found = holdings.normal_amounts(
        [holdings.constants([row[limb] for row in sums]) for limb in range(3)], len(sums)
    )
    amounts = [join(Limbs(*row)) for row in sums]
    rows = zip(*(limb.to_pylist() for limb in found.limbs), found.sizes.tolist(), strict=True)
    assert [tuple(map(int, row)) for row in rows] == [
        (*split(amount), sort_key(amount)) for amount in amounts
    ]
    assert found.zero.tolist() == [amount == 0 for amount in amounts]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, LIMB - 1), st.sampled_from([1, -1]), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_running_sums_begin_anew_where_they_are_told_to(rows):
    numbers = holdings.constants([amount for amount, _, _ in rows]).times(
        np.array([sign for _, sign, _ in rows])
    )
    starts = [n for n, row in enumerate(rows) if row[2] or n == 0]
    expected, total = [], 0
    for n, (amount, sign, _) in enumerate(rows):
        total = amount * sign + (0 if n in starts else total)
        expected.append(total)
    sums = holdings.running(numbers, np.array(starts))
    found = holdings.normal_amounts([None, None, sums], len(rows))
    assert [
        join(Limbs(*row)) for row in zip(*(limb.to_pylist() for limb in found.limbs), strict=True)
    ] == expected


def test_a_column_of_several_chunks_is_read_whole():
    numbers = [0, 1, 2**32, 2**64 - 1, 2**64, LIMB - 1]
    column = pa.array(numbers, pa.decimal128(38, 0))
    chunks = pa.chunked_array([column[:2], column[2:2], column[2:]])
    found = holdings.of_decimals(chunks)
    assert [part.tolist() for part in found] == [
        part.tolist() for part in holdings.constants(numbers)
    ]
