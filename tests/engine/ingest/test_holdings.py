"""Whole numbers of 128 bits in arrays, against Python's integers."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbext.core.uint256 import split
from nbext.engine.ingest.derive import holdings, tables
from nbext.engine.query.amounts import sort_key
from nbext.engine.schema import FOREVER

LIMB = 10**26


def decimals(numbers):
    """Return integers as a column of limbs."""
    return pa.chunked_array([pa.array(numbers, pa.decimal128(38, 0))])


def stored(arriving):
    """Return rows of a history as ingest stores them."""
    return duckdb.sql(tables.with_amounts("arriving")).to_arrow_table().to_pylist()


@given(
    st.lists(
        st.tuples(st.integers(0, LIMB - 1), st.sampled_from([1, -1]), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_running_sums_begin_anew_where_they_are_told_to(rows):
    numbers = holdings.of_decimals(decimals([amount * sign for amount, sign, _ in rows]))
    starts = [n for n, row in enumerate(rows) if row[2] or n == 0]
    expected, total = [], 0
    for n, (amount, sign, _) in enumerate(rows):
        total = amount * sign + (0 if n in starts else total)
        expected.append(total)
    sums = holdings.running(numbers, np.array(starts))
    assert holdings.as_decimals(sums).to_pylist() == expected


def test_a_column_of_several_chunks_is_read_whole():
    numbers = [0, 1, -1, 2**32, 2**64 - 1, 2**64, -(2**64), LIMB - 1, 1 - 10**38]
    column = decimals(numbers).chunk(0)
    chunks = pa.chunked_array([column[:2], column[2:2], column[2:]])
    assert holdings.as_decimals(holdings.of_decimals(chunks)).to_pylist() == numbers


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


@pytest.mark.slow
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
    found = [tuple(row.values()) for rows in made for row in stored(rows)]
    assert sorted(found, key=lambda row: row[:2]) == expected
