"""Real chain data, checked against plain pandas and Python integers."""

from __future__ import annotations

from decimal import Decimal

import pandas as pd
import pytest

from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from tests.engine.ingest.reading_back import Tables, take
from tests.shared_data import shared_data

USDT = "0xdac17f958d2ee523a2206206994597c13d831ec7"
USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
QUESTS = "0xfa14e1157f35e1dad95dc3f822a9d18c40e360e2"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Ethereum blocks and an OP Mainnet collection side by side in one generation."""
    folder = tmp_path_factory.mktemp("mixed")
    first = take(folder, shared_data("transfers/eth_token_transfers_12600000.parquet"))
    second = take(folder, shared_data("transfers/op_quests_ethereum_etl.parquet"), chain=10)
    with Tables(folder) as tables:
        yield first, second, tables


def net_balances(frame):
    moved = frame.assign(value=frame["value"].map(int))
    plus = moved.groupby("to_address")["value"].agg(sum)
    minus = moved.groupby("from_address")["value"].agg(sum)
    wallets = set(plus.index) | set(minus.index)
    net = {w.lower(): int(plus.get(w, 0)) - int(minus.get(w, 0)) for w in wallets}
    return {w: amount for w, amount in net.items() if amount}


def test_the_blocks_of_ethereum_are_taken_in_whole(mixed):
    report = mixed[0]
    assert (report.rows, report.new, report.bad_rows) == (8_817, 8_817, 0)
    assert (report.erc20 + report.nft, report.odd["huge_values"]) == (8_817, 51)
    assert report.odd["duplicates"] == 0


@pytest.mark.parametrize("token", [USDT, USDC])
def test_net_balances_are_those_of_plain_pandas(mixed, token):
    frame = pd.read_parquet(shared_data("transfers/eth_token_transfers_12600000.parquet"))
    wanted = net_balances(frame[frame["token_address"] == token])
    assert {w: b for (c, w), b in mixed[2].balances().items() if c == token} == wanted


@pytest.mark.slow
def test_the_quests_have_their_current_owners_although_logs_are_missing_and_doubled(mixed):
    frame = pd.read_parquet(shared_data("transfers/op_quests_ethereum_etl.parquet"))
    last = frame.sort_values(["block_number", "log_index"]).groupby("value").tail(1)
    ids, recipients = last["value"].map(int), last["to_address"].str.lower()
    wanted = {(QUESTS, token): owner for token, owner in zip(ids, recipients, strict=True)}
    owners = {key: owner for key, owner in mixed[2].owners().items() if key[0] == QUESTS}
    assert owners == wanted
    assert mixed[1].nft == 219_900


def test_both_chains_are_in_one_generation(mixed):
    chains = mixed[2].generation.chains
    assert [(c.chain_id, c.first_block, c.last_block) for c in chains] == [
        (1, 12_600_000, 12_600_050),
        (10, 22_945_787, 27_585_787),
    ]


def test_the_snapshots_of_2021_keep_their_dust(tmp_path):
    path = shared_data("holders/export-tokenholders-ern.csv")
    ern = "0xbbc2ae13b23d715c30720f079fcd9b4a74093505"
    report = take(
        tmp_path, path, options=SnapshotOptions(tokens={"ern": ern}, decimals=18, block=12_000_000)
    )
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    wanted = {
        (ern, holder.lower()): int(Decimal(balance).scaleb(18))
        for holder, balance in zip(rows["HolderAddress"], rows["Balance"], strict=True)
        if Decimal(balance)
    }
    with Tables(tmp_path) as tables:
        assert tables.balances() == wanted
    assert (report.rows, report.bad_rows, 1 in wanted.values()) == (8_001, 0, True)


def test_four_collections_have_the_owners_of_the_snapshot(tmp_path):
    path = shared_data("holders/nft_holdings_eth_4contracts.parquet")
    frame = pd.read_parquet(path)
    take(tmp_path, path, chain=None)
    with Tables(tmp_path) as tables:
        rows = zip(frame["contract_address"], frame["token_id"], frame["owner"], strict=True)
        assert tables.owners() == {
            (contract.lower(), int(token)): owner.lower() for contract, token, owner in rows
        }


def test_etherscans_rows_make_the_balances_of_plain_pandas(tmp_path):
    path = shared_data("transfers/erc20_transfers_posbridge.parquet")
    report = take(tmp_path, path)
    frame = pd.read_parquet(path).rename(columns={"from": "from_address", "to": "to_address"})
    wanted = {
        (token, holder): amount
        for token, rows in frame.groupby("contractAddress")
        for holder, amount in net_balances(rows).items()
    }
    with Tables(tmp_path) as tables:
        assert tables.balances() == wanted
    assert (report.rows, report.erc20, report.erc20_contracts) == (10_000, 10_000, 231)


def test_the_values_above_half_of_uint256s_bits_survive(mixed):
    frame = pd.read_parquet(shared_data("transfers/eth_token_transfers_12600000.parquet"))
    wanted = sorted(value for value in map(int, frame["value"]) if value >= 2**127)
    found = sorted(row[-1] for row in mixed[2].transfers() if row[-1] >= 2**127)
    assert (found, len(found)) == (wanted, 51)


def test_contracts_are_told_apart_as_public_lists_tell_them(mixed):
    lists = pd.read_parquet(shared_data("metadata/sequence_token_directory.parquet"))
    lists = lists[(lists["chain_id"] == 1) & lists["standard"].isin(["erc20", "erc721"])]
    listed = dict(zip(lists["address"].str.lower(), lists["standard"].str.upper(), strict=True))
    taken = dict(
        mixed[2].rows(
            "SELECT address, standard FROM contracts WHERE chain_id = 1 AND transfers > 0"
        )
    )
    both = {
        address: (listed[address], standard)
        for address, standard in taken.items()
        if address in listed
    }
    wrong = {address: pair for address, pair in both.items() if pair[0] != pair[1]}
    assert len(both) > 100
    assert len(wrong) <= 0.04 * len(both), wrong


# After a base of 200,000 rows ten days of 1,990, each cut within a block: which comes when, and why all is built again.
COMING = {
    "in order": (range(10), {}),
    "one day late": ([0, 1, 3, 2, *range(4, 10)], {2: "most of what is stored changes"}),
    "a snapshot between": (range(10), {5: "most of what is stored changes"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("coming", COMING)
def test_a_collection_that_comes_day_by_day_has_the_owners_of_the_whole_file(tmp_path, coming):
    frame = pd.read_parquet(shared_data("transfers/op_quests_ethereum_etl.parquet"))
    frame = frame.sort_values(["block_number", "log_index"], ignore_index=True)
    order, expected = COMING[coming]

    def owners(rows):
        last = rows.groupby("value").tail(1)
        return dict(zip(last["value"].map(int), last["to_address"].str.lower(), strict=True))

    def ingest(rows, *more):
        path = tmp_path / f"{rows.index[0]}.parquet"
        rows.to_parquet(path)
        return take(tmp_path / "data", path, *more, chain=10).rebuilt

    assert ingest(frame[:200_000]) is None
    found = {}
    for day in order:
        more = []
        if coming == "a snapshot between" and day == 5:
            block = int(frame["block_number"][209_000])
            held = owners(frame[frame["block_number"] <= block]).items()
            more = [tmp_path / "holders.csv"]
            more[0].write_text(
                "token_id,address,block_number,token_address\n"
                + "".join(f"{item},{owner},{block},{QUESTS}\n" for item, owner in held)
            )
        found[day] = ingest(frame[200_000 + 1_990 * day : 200_000 + 1_990 * (day + 1)], *more)
    assert {day: why for day, why in found.items() if why} == expected
    with Tables(tmp_path / "data") as tables:
        assert {item: owner for (_, item), owner in tables.owners().items()} == owners(frame)
