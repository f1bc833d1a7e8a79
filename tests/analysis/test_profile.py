"""A segment's profile: for each contract, how many wallets of the oracle's sets hold it; and its job is a segment's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbext
from nbext.errors import ValidationError
from tests.analysis.test_overlap import EACH, matched, seen_on, segments
from tests.language.test_against_oracle import CONTRACTS
from tests.oracle.meaning import One


@EACH
@given(asked=segments(most=2), least=st.integers(1, 3))
def test_each_contract_is_held_by_as_many_as_the_oracle_says(client, oracle, asked, least):
    segment, base = asked[0], asked[1] if len(asked) > 1 else None
    table = nbext.profile(segment, base=base, least=least, client=client)
    one = One(oracle, segment)
    chains = one.own_chains()
    wallets = oracle.wallets(segment)
    scope = {
        key: segment["filters"][key]
        for key in ("chain", "asOf", "exclude")
        if key in segment["filters"]
    }
    others = oracle.wallets(base or {"filters": {**seen_on(chains), **scope}})
    expected = {}
    for contract in CONTRACTS:
        if contract.chain_id not in chains:
            continue
        counts = [
            sum(one.balance(contract, wallet, one.end(contract.chain_id)) > 0 for wallet in side)
            for side in (wallets, others)
        ]
        if counts[0] >= least:
            expected[contract.symbol] = counts
    assert {row.symbol: row.wallets for row in table.itertuples()} == {
        key: both[0] for key, both in expected.items()
    }
    for row in table.itertuples():
        ours, theirs = expected[row.symbol]
        assert row.share == ours / len(wallets)
        if theirs:
            assert (row.base_share, row.lift) == (
                theirs / len(others),
                ours * len(others) / (len(wallets) * theirs),
            )
        else:
            assert math.isnan(row.lift)
    known = table["lift"].dropna().tolist()
    assert known == sorted(known, reverse=True)
    about = table.attrs["nbext"]
    assert (about["wallets"], about["base"], about["least"]) == (len(wallets), len(others), least)
    for part in about["activity"]:
        # Whom a side leaves out, it leaves out with every part; the filters have those of the segment.
        inside = oracle.wallets({"filters": {**part["filters"], "exclude": []}})
        assert (part["wallets"], part["base"]) == (len(wallets & inside), len(others & inside))


def test_nobody_is_called_young_or_active_by_a_time_before_the_data_begins(client):
    # The chain has 60 hours, and 30 days are the shortest time.
    parts = nbext.profile("USDC", least=1, client=client).attrs["nbext"]["activity"]
    assert [list(one["filters"]["activity"]) for one in parts] == [["transfers", "chain"]] * 3


@pytest.mark.slow
def test_a_segment_of_two_chains_that_runs_is_profiled_whenever_one_of_them_ends(client):
    held = {"any": [{"token": {"token": "USDC"}}, {"nft": {"nft": "QUEST", "chain": "optimism"}}]}
    ran = 0
    for moment in (*range(13), "2023-11-14", "2023-11-15", "2023-11-16", "0h", "9h", "40h"):
        try:
            segment = {**held, "asOf": moment}
            client.execute_segment(segment, limit=0)
        except ValidationError:
            continue
        nbext.profile(segment, least=1, client=client)
        ran += 1
    assert ran > 6


def test_cells_of_a_segment_of_two_chains_at_a_block_are_of_that_block_on_both(client):
    held = {"any": [{"token": {"token": "USDC"}}, {"nft": {"nft": "QUEST", "chain": "optimism"}}]}
    chains = set()
    for block in (2, 3, 7):
        table = nbext.profile({**held, "asOf": block}, least=1, client=client)
        opened = [matched(table.segment(row)) for row in table.index]
        assert opened == table["wallets"].tolist()
        chains |= {*table["chain"]}
    assert chains == {"ethereum", "optimism"}


def test_a_cell_is_the_segments_wallets_that_hold_the_contract_and_the_chart_has_its_lifts(client):
    table = nbext.profile("USDC", least=1, client=client)
    assert dict(table.dtypes.astype(str))["wallets"] == "int64"
    assert [matched(table.segment(row)) for row in table.index] == table["wallets"].tolist()
    chart = table.chart()
    assert chart.words.startswith(
        "What the wallets of a segment hold more than others do: USDC, without what all of them hold: USDC: "
    )
    others = table[table["share"] < 1]
    assert 0 < len(others) < len(table)
    assert [number for _, number, _ in chart.values] == others["lift"].dropna().tolist()
    table.loc[others.index[0], "symbol"] = None
    unnamed = table["name"].fillna(table["contract"])[others.index[0]]
    assert f": {unnamed[:15]}" in table.chart().words
    assert "nan" not in table.chart().words
    assert table.attrs["nbext"]["as_of"]["block"] == 12


def test_a_profile_is_a_segment_of_its_own_that_counts_and_is_read_again(client, service):
    first = nbext.profile("USDC", least=1, client=client).attrs["nbext"]["segment_id"]
    assert nbext.profile("USDC", least=1, client=client).attrs["nbext"]["segment_id"] == first
    counted = client.execute_segment({"token": {"token": "USDC"}}, limit=0).attrs["nbext"]
    assert counted["segment_id"] != first
    others = [
        nbext.profile("USDC", least=2, client=client),
        nbext.profile("USDC", base="WEI", least=1, client=client),
    ]
    assert len({first, *(one.attrs["nbext"]["segment_id"] for one in others)}) == 3
    said = service.get(f"/v1/segment/{first}").json()
    assert (said["status"], said["counts"]["matched"]) == ("completed", counted["matched"])
    assert said["profile"]["wallets"] == counted["matched"]


@pytest.mark.parametrize(
    ("segment", "options", "pointer"),
    [
        ({"token": {"token": "NOPE"}}, {}, "/filters/token/token"),
        ("USDC", {"base": {"token": {"token": "NOPE"}}}, "/base/filters/token/token"),
        ("USDC", {"least": 0}, "/least"),
    ],
)
def test_what_cannot_be_asked_names_the_field(client, segment, options, pointer):
    with pytest.raises(ValidationError) as caught:
        nbext.profile(segment, client=client, **options)
    assert [one["pointer"] for one in caught.value.errors] == [pointer]


def test_a_profile_without_rows_says_how_many_wallets_have_to_hold_a_contract(client):
    table = nbext.profile("USDC", least=10_000, client=client)
    assert len(table) == 0
    assert (
        "0 contracts are held by 10,000 wallets or more. nbext.profile(..., least=1) has those of fewer."
        in (table.attrs["nbext"]["warnings"])
    )
    assert "0 contracts" not in str(nbext.profile("USDC", least=1, client=client).attrs["nbext"])
