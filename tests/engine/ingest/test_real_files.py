"""Real chain data, checked against plain pandas and Python integers."""

from __future__ import annotations

import pandas as pd
import pytest

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
        (1, 12_600_000, 12_600_050), (10, 22_945_787, 27_585_787)]
