"""Whole numbers of 128 bits in arrays, against Python's integers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from nbext.core.uint256 import Limbs, join, split
from nbext.engine.ingest.derive import holdings
from nbext.engine.query.amounts import sort_key
from nbext.engine.schema import FOREVER

LIMB = 10**26
# Sums of limbs, as they come of up to 2**31 rows, and numbers beside every power of ten and of the word.
EDGES = [sign * (10**n + more) for n in range(36) for sign in (1, -1) for more in (-1, 0, 1)]
SUMS = st.one_of(
    st.integers(-(2**30) * LIMB, 2**30 * LIMB),
    st.sampled_from([e for e in EDGES if abs(e) < 2**30 * LIMB]),
)


# The first call loads and compiles: on a machine with other work that has taken longer than the deadline.
@given(st.lists(st.tuples(SUMS, SUMS, SUMS), min_size=1, max_size=40))
def test_sums_of_limbs_become_the_amount_they_are_with_its_size(sums):
    found = holdings.normal_amounts(
        [holdings.constants([row[limb] for row in sums]) for limb in range(3)], len(sums)
    )
    amounts = [join(Limbs(*row)) for row in sums]
    rows = zip(*(limb.to_pylist() for limb in found.limbs), found.sort_keys.tolist(), strict=True)
    assert [tuple(map(int, row)) for row in rows] == [
        (*split(amount), sort_key(amount)) for amount in amounts
    ]
    assert found.zero.tolist() == [amount == 0 for amount in amounts]


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


# Contract, block, log index, sender, recipient, amount; NOBODY sends what comes from before the data.
FLOWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 4),
        st.integers(0, 3),
        st.integers(holdings.NOBODY, 4),
        st.integers(0, 4),
        st.one_of(st.integers(1, 50), st.sampled_from([LIMB - 1, 10**17, 2**64, 2**255])),
    ).filter(lambda flow: flow[3] != flow[4]),
    max_size=30,
)


@given(FLOWS, st.integers(1, 5))
def test_a_history_is_what_each_wallet_has_after_each_log_whole_or_by_shares_of_wallets(
    flows, shares
):
    columns = dict(
        zip(
            ("contract", "block", "log_index", "sender", "recipient"),
            zip(*(flow[:5] for flow in flows), strict=True) if flows else [()] * 5,
            strict=True,
        )
    )
    kinds = (pa.int32(), pa.int64(), pa.int64(), pa.int32(), pa.int32())
    table = pa.table(
        {
            **{
                name: pa.array(column, kind)
                for (name, column), kind in zip(columns.items(), kinds, strict=True)
            },
            **{
                limb: pa.array([split(flow[5])[place] for flow in flows], pa.decimal128(38, 0))
                for place, limb in enumerate(("hi", "mid", "lo"))
            },
        }
    )
    expected = []
    for contract in range(3):
        for wallet in range(5):
            moments = {}
            for one, block, log_index, sender, recipient, amount in flows:
                if one == contract and wallet in (sender, recipient):
                    change = amount if recipient == wallet else -amount
                    moments[block, log_index] = moments.get((block, log_index), 0) + change
            held, rows = 0, []
            for (block, _), change in sorted(moments.items()):
                held += change
                rows.append([contract, wallet, block, FOREVER, *split(held), sort_key(held)])
            for row, later in pairwise(rows):
                row[3] = later[2]
            expected += map(tuple, rows)
    cuts = [5 * share // shares for share in range(shares + 1)]
    made = [holdings.history(table, range(low, high)) for low, high in pairwise(cuts)]
    found = [tuple(row.values()) for rows, _ in made for row in rows.to_pylist()]
    assert sorted(found, key=lambda row: row[:2]) == expected
    stands = [stand for _, some in made for stand in some.tolist()]
    assert stands == [row[3] == FOREVER and row[4:7] != (0, 0, 0) for row in found]
