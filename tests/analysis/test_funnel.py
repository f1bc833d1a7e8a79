"""The conditions of a segment, one after the other: each number is the oracle's, and each cell opens as that many."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given

import nbext
from nbext.errors import ValidationError
from tests.analysis.test_overlap import EACH, matched, segments


@EACH
@given(asked=segments(most=1))
def test_the_last_row_is_the_segment_and_each_cell_opens_as_its_number(client, oracle, asked):
    asked = asked[0]
    table = nbext.funnel(asked, client=client)
    assert table["remaining"].iloc[-1] == len(oracle.wallets(asked))
    assert table["remaining"].iloc[0] == table["alone"].iloc[0]
    assert table["remaining"].is_monotonic_decreasing
    for row in table.index:
        for column in ("alone", "remaining"):
            assert matched(table.segment(row, column)) == table.at[row, column], (row, column)


def test_a_denied_condition_takes_wallets_away(client, oracle):
    bayc, usdc = {"nft": {"nft": "BAYC"}}, {"token": {"token": "USDC"}}
    asked = {**bayc, "not": usdc, "transfer": {"direction": "in", "chain": "optimism"}}
    table = nbext.funnel(asked, client=client)
    sets = [
        oracle.wallets({"filters": one}) for one in (bayc, usdc, {"transfer": asked["transfer"]})
    ]
    seen = oracle.wallets(
        {
            "filters": {
                "any": [
                    {"activity": {"transfers": {"min": 1}}},
                    {"activity": {"transfers": {"min": 1}, "chain": "optimism"}},
                ]
            }
        }
    )
    words = [
        "own BAYC on ethereum",
        "do not hold USDC on ethereum",
        "received anything on optimism",
    ]
    expected = pd.DataFrame(
        {
            "condition": pd.Series(words, dtype="str"),
            "alone": [len(sets[0]), len(seen - sets[1]), len(sets[2])],
            "remaining": [len(sets[0]), len(sets[0] - sets[1]), len((sets[0] - sets[1]) & sets[2])],
        }
    )
    pd.testing.assert_frame_equal(pd.DataFrame(table), expected)
    with pytest.raises(ValidationError, match="The column 'condition' counts no wallets"):
        table.segment(0, "condition")


def test_what_is_denied_on_one_chain_is_taken_from_the_wallets_of_all_chains_of_the_segment(
    client, oracle
):
    quest = {"nft": {"nft": "QUEST", "chain": "optimism"}}
    saved = client.execute_segment({**quest, "exclude": []}).attrs["nbext"]["segment_id"]
    bayc = {"not": {"nft": {"nft": "BAYC"}}}
    for asked in (
        {"not": quest, "transfer": {"nft": "BAYC"}},
        {"segment": {"id": saved}, **bayc},
        {"wallet": {"contract": False}, **bayc, **quest},
    ):
        table = nbext.funnel({**asked, "exclude": []}, client=client)
        for row in table.index:
            for column in ("alone", "remaining"):
                assert matched(table.segment(row, column)) == table.at[row, column], (
                    asked,
                    row,
                    column,
                )
