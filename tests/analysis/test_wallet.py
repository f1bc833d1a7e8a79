"""What wallets hold: the oracle's balance of each wallet and contract, now and at any block, to 256 bits."""

from __future__ import annotations

import datetime
import json

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbext
from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.times import iso
from nbext.errors import ValidationError
from tests.analysis.test_overlap import EACH
from tests.language.tables import GENESIS
from tests.language.test_against_oracle import CONTRACTS, LAST, SECONDS, WALLETS
from tests.oracle.meaning import One

MOMENTS = st.one_of(
    st.none(),
    st.integers(0, LAST[1]),
    st.integers(0, 55).map(lambda hours: f"{hours}h"),
    st.integers(0, LAST[1] * SECONDS[1]).map(lambda seconds: iso(GENESIS + seconds)),
)


@EACH
@given(
    wallets=st.lists(st.sampled_from(WALLETS), min_size=1, max_size=4, unique=True),
    as_of=MOMENTS,
    chain=st.sampled_from([None, "eth", "optimism"]),
)
def test_each_row_is_the_oracles_balance_of_that_wallet(client, oracle, wallets, as_of, chain):
    # A block is one of the chain that is named, or of ethereum.
    as_of = min(as_of, LAST[10]) if chain == "optimism" and isinstance(as_of, int) else as_of
    scope = {**({"chain": chain} if chain else {}), **({} if as_of is None else {"asOf": as_of})}
    try:
        table = nbext.wallet(wallets, as_of=as_of, chain=chain, client=client)
    except ValidationError as error:
        assert "before the start of the data" in str(error)  # noqa: PT017 - either is an answer
        return
    asked = One(oracle, {"filters": scope})
    on = {"eth": {1}, "optimism": {10}}.get(chain, {1, 10})
    expected = {
        (wallet, one.address, one.chain_id): asked.balance(one, wallet, asked.end(one.chain_id))
        for wallet in wallets
        for one in CONTRACTS
        if one.chain_id in on
    }
    found = {
        (row.address, row.contract, {"ethereum": 1, "optimism": 10}[row.chain]): int(row.amount_raw)
        for row in table.itertuples()
    }
    assert found == {key: amount for key, amount in expected.items() if amount > 0}
    assert len(found) == len(table)
    said = table.attrs["nbext"]["warnings"]
    assert any("Balances below zero are left out: " in one for one in said) == any(
        amount < 0 for amount in expected.values()
    )
    for chain_id in on:
        number = sum(asked.ever_below_zero(one) for one in CONTRACTS if one.chain_id == chain_id)
        name = {1: "ethereum", 10: "optimism"}[chain_id]
        line = f"{name}: transfers of {number} contract{'s' * (number != 1)} are missing: "
        assert any(one.startswith(line) for one in said) == bool(number)
    holders = {}
    for row, one in enumerate(table.itertuples()):
        contract = next(each for each in CONTRACTS if each.symbol == one.symbol)
        assert one.amount == int(one.amount_raw) / 10 ** (contract.decimals or 0)
        supply = asked.supply(contract)
        assert repr(one.share) == repr(int(one.amount_raw) / supply if supply else float("nan"))
        if contract not in holders:
            holders[contract] = set(table.segment(row).open(100)["address"]) | set(BURN_ADDRESSES)
        assert one.address in holders[contract]


def test_a_table_has_its_dtypes_chains_and_chart_and_no_rows_where_nothing_is_held(client):
    table = nbext.wallet(WALLETS[2:], client=client)
    assert dict(table.dtypes.astype(str)) == dict(
        nbext.wallet("0x" + "ee" * 20, client=client).dtypes.astype(str)
    ) | {"amount_raw": str(table["amount_raw"].dtype)}
    nobody = f"0x{'ee' * 20}: no holdings in this data."
    about = nbext.wallet([WALLETS[2], "0x" + "EE" * 20], client=client).attrs["nbext"]
    assert nobody in about["warnings"]
    assert nobody not in table.attrs["nbext"]["warnings"]
    about = table.attrs["nbext"]
    ends = [("ethereum", LAST[1]), ("optimism", LAST[10])]
    assert [(one["chain"], one["block"]) for one in about["chains"]] == ends
    assert (about["as_of"]["block"], about["operation"]) == (LAST[1], "wallet")
    held = table[table["amount"] > 0]
    assert len(held) <= 30
    chart = table.chart()
    assert [number for _, number, _ in chart.values] == held["amount"].tolist()
    assert [name.split(",")[0] for name, *_ in chart.values] == held["symbol"].tolist()
    assert "amount, each in its own unit (logarithmic)" in json.dumps(chart.spec)
    day = datetime.date.fromisoformat(iso(GENESIS)[:10])
    then = nbext.wallet(pd.Series(WALLETS[2:]), as_of=day, client=client)
    assert then.attrs["nbext"]["as_of"]["block"] == 0


def test_thousands_of_wallets_are_one_column_and_hold_what_each_of_them_holds(client):
    few = nbext.wallet(WALLETS[2:], client=client)
    nobody = [f"0x{number:040x}" for number in range(10**30, 10**30 + 3_000)]
    many = nbext.wallet(pd.Series([*reversed(WALLETS[2:]), *nobody]), client=client)
    pd.testing.assert_frame_equal(pd.DataFrame(many), pd.DataFrame(few))
    of_three = nbext.wallet([*nobody[:4], WALLETS[2]], client=client)
    about, said = (one.attrs["nbext"]["warnings"] for one in (many, of_three))
    note = f"3,000 of {3_000 + len(WALLETS[2:]):,} wallets: no holdings in this data."
    assert note in about
    assert [one for one in about if one != note] == few.attrs["nbext"]["warnings"]
    assert f"{', '.join(nobody[:3])} and 1 more: no holdings in this data." in said
    assert many.segment(0).open(100)["address"].tolist() == (
        few.segment(0).open(100)["address"].tolist()
    )


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (None, {}, "/wallets: Expected addresses, got NoneType."),
        (5, {}, "/wallets: Expected addresses, got int."),
        ([], {}, "/wallets: wallets is a list of 1 to 1,000 addresses."),
        (pd.Series(["0x1"]), {}, "/wallets: 1 of 1 values of wallets is not an address."),
        ([WALLETS[2], "ls_" + "x" * 24], {}, "/wallets: 1 of 2 values of wallets is not an"),
        (
            "vitalik.eth",
            {},
            "/wallets: 1 of 1 values of wallets is not an address. Nothing was sent. Rows are counted from 0.\n"
            "  row 0: 'vitalik.eth' is an ENS name. nbext does not resolve names; give the 0x... address.",
        ),
        (WALLETS[2:3], {"chain": "base"}, "/chain: "),
        (WALLETS[2:3], {"as_of": 99}, "/asOf: "),
        (WALLETS[2:3], {"as_of": pd.Timedelta(1, "D")}, "/asOf: a Timedelta cannot be written"),
        (WALLETS[2:3], {"as_of": pd.NaT}, "/asOf: a missing time cannot be written as JSON"),
    ],
)
def test_what_cannot_be_asked_names_the_field(client, given, options, message):
    with pytest.raises(ValidationError) as caught:
        nbext.wallet(given, client=client, **options)
    assert str(caught.value).startswith(message)
