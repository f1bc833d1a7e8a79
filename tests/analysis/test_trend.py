"""A segment through time: each point is the oracle's answer as of that time."""

from __future__ import annotations

from datetime import timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbext
from nbext.core.times import iso
from nbext.errors import InvalidSegment, ValidationError
from tests.analysis.conftest import EVERYONE
from tests.analysis.test_overlap import EACH, segments
from tests.language.tables import GENESIS
from tests.language.test_against_oracle import CONTRACTS, LAST, SECONDS
from tests.oracle.meaning import One


@pytest.mark.slow
@EACH
@given(asked=segments(most=1), every=st.integers(1, 9))
def test_each_point_is_the_oracles_as_of_that_time(client, oracle, asked, every):
    filters = {key: one for key, one in asked[0]["filters"].items() if key != "asOf"}
    asked = {**asked[0], "filters": {**filters, "chain": "eth"}}
    try:
        table = nbext.trend(asked, every=f"{every}h", since="20h", client=client)
    except InvalidSegment:
        # Its heldSince lies after some of the points, or its other chain ends before them.
        return
    hours = range(20 // every * every, -1, -every)
    counts = [
        len(oracle.wallets({**asked, "filters": {**asked["filters"], "asOf": f"{hour}h"}}))
        for hour in hours
    ]
    assert table["count"].tolist() == counts
    assert [
        row.open(0).attrs["nbext"]["matched"] for row in map(table.segment, table.index)
    ] == counts


def test_a_trend_says_the_block_and_the_time_of_each_point(client, oracle):
    table = nbext.trend("USDC", every="1d", since="2d", amounts=True, client=client)
    ends = [LAST[1] * SECONDS[1] - 86_400 * day for day in (2, 1, 0)]
    blocks = [end // SECONDS[1] for end in ends]
    counts = [
        len(oracle.wallets({"filters": {"token": {"token": "USDC"}, "asOf": block}}))
        for block in blocks
    ]
    times = pd.to_datetime([iso(GENESIS + block * SECONDS[1]) for block in blocks], utc=True)
    assert table["block"].tolist() == blocks
    assert set(table["at"]) <= {*times, *(pd.Timestamp(iso(GENESIS + end)) for end in ends)}
    assert table["count"].tolist() == counts
    # Of these times and no others, whatever comes in later.
    assert [table.segment(row).filters["asOf"] for row in range(3)] == [
        iso(GENESIS + end) for end in ends
    ]
    assert [len(table.segment(row).open()) for row in range(3)] == counts
    assert table.dtypes.astype(str).tolist()[:4] == [
        "datetime64[s, UTC]",
        "Int64",
        "int64",
        "float64",
    ]
    counted = nbext.trend("USDC", every="1d", since="2d", amounts=False, client=client)
    pd.testing.assert_frame_equal(
        pd.DataFrame(counted), pd.DataFrame(table)[["at", "block", "count"]]
    )
    chart = table.chart()
    assert chart.title == "Wallets through time: those that hold USDC on ethereum"
    assert [number for _, number, _ in chart.values] == counts
    # Amounts have a panel of their own.
    assert [len(one.chart().spec["vconcat"][0]["vconcat"]) for one in (table, counted)] == [2, 1]


@pytest.mark.parametrize(
    "contract", [one for one in CONTRACTS if one.chain_id == 1], ids=lambda one: one.symbol
)
def test_what_is_held_together_is_the_exact_sum_of_the_oracles_balances(client, oracle, contract):
    kind = "token" if contract.standard == "ERC20" else "nft"
    filters = {kind: {kind: contract.symbol}, "not": {"wallet": {"in": [EVERYONE[3]]}}}
    table = nbext.trend(filters, every="10h", since="50h", amounts=True, client=client)
    for row in table.itertuples():
        asked = One(oracle, {"filters": {**filters, "asOf": int(row.block)}})
        held = sum(asked.balance(contract, wallet, int(row.block)) for wallet in asked.wallets())
        assert (row.count, int(row.amount_raw)) == (len(asked.wallets()), held)
        assert row.amount == held / 10 ** (contract.decimals or 0)
    assert table.attrs["nbext"]["amounts"] == contract.symbol
    assert "amount" not in nbext.trend(
        {"activity": {"transfers": {"min": 1}}}, since="1d", every="1d", amounts=True, client=client
    )


@pytest.mark.parametrize("name", ["USDC", "WEI"])
def test_what_is_below_zero_takes_nothing_away_from_what_the_others_hold(client, oracle, name):
    (contract,) = (one for one in CONTRACTS if one.symbol == name and one.chain_id == 1)
    filters = {"any": [{"token": {"token": name}}, {"activity": {"transfers": {"min": 1}}}]}
    table, below = nbext.trend(filters, every="10h", since="50h", amounts=True, client=client), 0
    for row in table.itertuples():
        asked = One(oracle, {"filters": {**filters, "asOf": int(row.block)}})
        each = [asked.balance(contract, one, int(row.block)) for one in asked.wallets()]
        assert int(row.amount_raw) == sum(one for one in each if one > 0)
        below += sum(one < 0 for one in each)
    assert below > 0


def test_what_is_held_of_the_only_token_is_added_up_unless_it_is_left_out_and_one_of_several_is_named(
    client,
):
    def columns(filters, **options):
        return list(
            nbext.trend(filters, every="10h", since="20h", client=client, **options).columns
        )

    counts, both = ["at", "block", "count"], ["at", "block", "count", "amount", "amount_raw"]
    usdc, wei, bayc = (
        {"token": {"token": "USDC"}},
        {"token": {"token": "WEI"}},
        {"nft": {"nft": "BAYC"}},
    )
    two = {"any": [usdc, {"all": [wei, {"not": bayc}]}]}
    assert [
        columns(one)
        for one in (
            "USDC",
            {"any": [usdc, {"wallet": {"contract": True}}]},
            {**usdc, "not": wei},
            {"token": [usdc["token"]]},
        )
    ] == [both] * 4
    assert [columns(one) for one in (two, {**usdc, **bayc}, "BAYC", {"not": usdc})] == [counts] * 4
    assert [columns(usdc, amounts=False), columns(two, amounts=True)] == [counts, both]
    for name in ("wei", CONTRACTS[1].address):
        named = nbext.trend(two, every="10h", since="20h", amounts=name, client=client)
        alone = nbext.trend(
            {**two, "any": two["any"][::-1]}, every="10h", since="20h", amounts=True, client=client
        )
        assert named["amount_raw"].tolist() == alone["amount_raw"].tolist()
        assert named.attrs["nbext"]["amounts"] == alone.attrs["nbext"]["amounts"] == "WEI"


def test_that_token_ids_choose_only_the_wallets_is_said_of_amounts_and_of_no_counts(client):
    of_id = {"nft": {"nft": "BAYC", "tokenIds": [1]}}
    note = "BAYC: the count in a row is of all token ids; tokenIds choose only the wallets."
    for amounts, said in ((None, False), (True, True)):
        table = nbext.trend(of_id, every="1d", since="1d", amounts=amounts, client=client)
        assert (note in table.attrs["nbext"]["warnings"]) == said


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("BAYC", "/amounts: The rows have no balance of 'BAYC'. They have: USDC."),
        ("none", "/amounts: The rows have no balance of 'none'. They have: USDC."),
    ],
)
def test_amounts_of_what_the_segment_does_not_name_are_an_error(client, name, message):
    with pytest.raises(ValidationError) as caught:
        nbext.trend(
            {"token": {"token": "USDC"}}, every="10h", since="20h", amounts=name, client=client
        )
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"every": "week"},
            '/every: \'week\' is not a span. Write one such as "12h", "30d" or "1y".',
        ),
        (
            {"since": "2025-06"},
            "/since: '2025-06' is not a span. Write one such as "
            '"12h", "30d" or "1y", or a date such as 2025-01-31.',
        ),
        ({"since": 5}, "/since: '5' is not a span."),
        (
            {"since": "2030-01-01"},
            "/since: '2030-01-01' is after the end of the data: ethereum ends at 20",
        ),
    ],
)
def test_a_span_that_cannot_be_asked_for_is_named(client, options, message):
    with pytest.raises(ValidationError) as caught:
        nbext.trend("USDC", client=client, **options)
    assert str(caught.value).startswith(message)


def test_data_that_begins_later_is_taken_from_there_on_and_a_date_is_as_good_as_a_span(client):
    whole = nbext.trend("USDC", every="12h", since="1y", client=client)
    extent = client.about()["data"]["chains"][0]
    first = client.execute_segment(
        {"token": {"token": "USDC"}, "asOf": extent["firstBlock"]}, limit=0
    )
    begin = first.attrs["nbext"]["as_of"]["timestamp"]
    note = (
        f"The data of ethereum begins at {begin}, and '1y' reaches back further: this is all of it."
    )
    assert note in whole.attrs["nbext"]["warnings"]
    assert pd.Timedelta(0) <= whole["at"].iloc[0] - pd.Timestamp(begin) < pd.Timedelta("12h")
    for name, asked in (
        ("retention", nbext.retention("USDC", "day", since="1y", client=client)),
        ("changes", nbext.changes("USDC", "1y", client=client)),
    ):
        assert note in asked.attrs["nbext"]["warnings"], name
    day = str(whole["at"].iloc[-1].date())
    dated = nbext.trend("USDC", every="1h", since=day, client=client)
    assert dated["at"].iloc[0] >= pd.Timestamp(day, tz="UTC")
    assert dated["at"].iloc[0] - pd.Timestamp(day, tz="UTC") <= pd.Timedelta("1h")
    assert not any("reaches back" in one for one in dated.attrs["nbext"]["warnings"])
    cohorts = nbext.retention("USDC", "day", since=day, client=client)
    assert [name.removeprefix("until ") for name in cohorts.index] == [day]


@pytest.mark.slow
def test_dates_and_times_of_python_are_taken_wherever_a_time_is(client):
    last = pd.Timestamp(client.about()["data"]["chains"][0]["lastTimestamp"])
    day, moment = (last - timedelta(1)).date(), (last - timedelta(1)).to_pydatetime()
    zoned = moment.astimezone(timezone(timedelta(hours=5)))
    for python, text in ((day, str(day)), (moment, moment.strftime("%Y-%m-%dT%H:%M:%SZ"))):
        for ask in (
            lambda since: nbext.trend("USDC", every="1h", since=since, client=client),
            lambda since: nbext.changes("USDC", since, client=client),
            lambda since: nbext.retention("USDC", "day", since=since, client=client),
            lambda since: nbext.funnel({"token": {"token": "USDC"}, "asOf": since}, client=client),
        ):
            pd.testing.assert_frame_equal(pd.DataFrame(ask(python)), pd.DataFrame(ask(text)))
    # numpy's are not Python's dates.
    day = nbext.trend(
        "USDC", every="1h", since=np.datetime64(moment.replace(tzinfo=None), "s"), client=client
    )
    pd.testing.assert_frame_equal(
        pd.DataFrame(day),
        pd.DataFrame(nbext.trend("USDC", every="1h", since=moment, client=client)),
    )
    now = nbext.trend("USDC", every="1h", since=zoned, client=client)
    pd.testing.assert_frame_equal(
        pd.DataFrame(now),
        pd.DataFrame(nbext.trend("USDC", every="1h", since=moment, client=client)),
    )


def test_a_segment_with_a_time_of_its_own_has_no_trend(client):
    with pytest.raises(ValidationError, match="A trend sets asOf itself"):
        nbext.trend({"token": {"token": "USDC"}, "asOf": 5}, client=client)


def test_a_pinned_notebook_is_told_that_an_analysis_through_time_is_not(client, monkeypatch):
    monkeypatch.setitem(client.settings.arguments, "as_of", "30")
    for ask in (nbext.trend, nbext.changes, nbext.retention):
        with pytest.raises(ValidationError) as caught:
            ask("USDC", client=client)
        assert str(caught.value).endswith(
            " sets asOf itself. Unset the setting as_of, which is '30'."
        )


@pytest.mark.parametrize(
    "analysis",
    [
        lambda filters, client: nbext.trend(filters, every="1d", since="2d", client=client),
        lambda filters, client: nbext.retention(filters, "day", since="2d", client=client),
        lambda filters, client: nbext.changes(filters, 3, client=client),
        lambda filters, client: nbext.funnel(filters, client=client),
    ],
    ids=["trend", "retention", "changes", "funnel"],
)
def test_a_mistake_in_the_filters_is_pointed_at_as_it_was_written(client, analysis):
    with pytest.raises(ValidationError) as caught:
        analysis({"token": {"token": "NOPE"}}, client)
    assert [one["pointer"] for one in caught.value.errors] == ["/filters/token/token"]


def test_the_id_of_a_segment_asked_as_of_the_last_block_is_that_of_now(client):
    now = {"token": {"token": "USDC"}, "exclude": ["0x" + "6" * 40]}
    (last,) = (
        one["lastBlock"] for one in client.about()["data"]["chains"] if one["chain"] == "ethereum"
    )
    first = client.execute_segment({**now, "asOf": last}).attrs["nbext"]
    second = client.execute_segment(now).attrs["nbext"]
    assert first["segment_id"] == second["segment_id"]
    # Each has its own words, and the id those that mean now.
    assert (first["filters"], second["filters"]) == ({**now, "asOf": last}, now)
    assert client.segment(first["segment_id"])["filters"].item() == now
    pd.testing.assert_frame_equal(
        pd.DataFrame(nbext.trend(first["segment_id"], every="1d", since="2d", client=client)),
        pd.DataFrame(nbext.trend(now, every="1d", since="2d", client=client)),
    )
