"""The largest holders' shares: exact sums of the oracle's balances, and the Gini coefficient of every pair."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbext
from nbext.analysis.compare import gini
from nbext.core.addresses import BURN_ADDRESSES
from nbext.errors import ValidationError
from tests.analysis.test_overlap import matched
from tests.language.test_against_oracle import CONTRACTS, LAST
from tests.oracle.meaning import One

ON_ETHEREUM = [one for one in CONTRACTS if one.chain_id == 1]


@pytest.mark.parametrize("contract", ON_ETHEREUM, ids=lambda one: one.symbol)
def test_each_row_is_the_sum_of_that_many_of_the_largest_balances(client, oracle, contract):
    asked = One(oracle, {"filters": {}})
    held = {
        wallet: asked.balance(contract, wallet, LAST[1])
        for wallet in oracle.world.addresses
        if wallet not in BURN_ADDRESSES
    }
    ranked = sorted(((-amount, wallet) for wallet, amount in held.items() if amount > 0))
    table = nbext.concentration(contract.symbol, client=client)
    number, total = len(ranked), -sum(amount for amount, _ in ranked)
    sizes = {"top 10": min(10, number), "top 100": number, "top 1 %": 1, "all": number}
    assert list(table.columns) == ["wallets", "amount", "amount_raw", "share"]
    assert dict(table["wallets"]) == sizes
    for name, size in sizes.items():
        amount = -sum(amount for amount, _ in ranked[:size])
        assert int(table.at[name, "amount_raw"]) == amount
        assert table.at[name, "amount"] == amount / 10 ** (contract.decimals or 0)
        assert table.at[name, "share"] == amount / total
        assert list(table.segment(name).open()["address"]) == [
            wallet for _, wallet in ranked[:size]
        ]
    assert table.attrs["nbext"]["gini"] == gini([-amount for amount, _ in ranked])
    assert f"{number:,} holders" in table.chart().words


@given(st.lists(st.integers(1, 2**256 - 1), min_size=1, max_size=12))
def test_the_gini_coefficient_is_half_the_mean_difference_of_all_pairs(amounts):
    differences = sum(abs(one - other) for one in amounts for other in amounts)
    expected = Fraction(differences, 2 * len(amounts) * sum(amounts))
    assert gini(sorted(amounts, reverse=True)) == float(expected)


def test_without_holders_there_are_no_rows_and_without_amounts_an_error(client):
    nobody = {
        "token": {"token": "USDC", "balance": {"min": "1"}},
        "wallet": {"in": ["0x" + "9" * 40]},
    }
    none = nbext.concentration(nobody, client=client)
    assert (len(none), math.isnan(none.attrs["nbext"]["gini"])) == (0, True)
    assert (
        matched(nbext.funnel({"token": {"token": "USDC"}}, client=client).segment(0, "alone")) > 0
    )
    # What moved, and how often, is not held.
    moved = {"transfer": {"token": "USDC"}, "columns": ["transferred", "transferCount"]}
    seen = {"activity": {"transfers": {"min": 1}}, "columns": ["transfers", "activeDays"]}
    for without in (moved, seen):
        with pytest.raises(ValidationError, match="its rows have no amount held"):
            nbext.concentration(without, client=client)


def test_a_wallet_that_has_nothing_of_what_is_measured_is_no_holder_and_the_first_of_several_is_said(
    client,
):
    coin, other = {"token": {"token": "WEI"}}, {"nft": {"nft": "ITEMS"}}
    alone = nbext.concentration("WEI", client=client)
    either = nbext.concentration({"any": [coin, other]}, client=client)
    assert len(alone) == 4
    assert either.equals(alone)
    assert either.attrs["nbext"]["gini"] == alone.attrs["nbext"]["gini"]
    said = "The rows have WEI_balance_raw and ITEMS_count: the first is measured."
    assert [said in one.attrs["nbext"]["warnings"] for one in (either, alone)] == [True, False]
    # All of them are there for something else.
    items = {"all": [{"any": [coin, other]}, {"not": coin}]}
    held = client.execute_segment(items, limit="all")["WEI_balance_raw"].map(int)
    assert (min(held) < 0, max(held)) == (True, 0)
    none = nbext.concentration(items, client=client)
    assert (len(none), math.isnan(none.attrs["nbext"]["gini"])) == (0, True)
