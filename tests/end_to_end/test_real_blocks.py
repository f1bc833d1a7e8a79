"""The whole walk on 51 real blocks of Ethereum: ingest, service, magics, DataFrame, checked against plain pandas."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from nbext.cli import main
from tests.notebook.shells import loaded_shell
from tests.shared_data import shared_data

USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
USDT = "0xdac17f958d2ee523a2206206994597c13d831ec7"
BURN = {"0x0000000000000000000000000000000000000000", "0x000000000000000000000000000000000000dead"}


@pytest.fixture(scope="module")
def blocks():
    """The rows as they are in the file, each value a Python integer."""
    rows = pd.read_parquet(shared_data("transfers/eth_token_transfers_12600000.parquet"))
    return rows.assign(value=rows["value"].map(int))


@pytest.fixture(scope="module")
def ingested(blocks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    path = shared_data("transfers/eth_token_transfers_12600000.parquet")
    assert main(["ingest", str(path), "--chain", "ethereum", "--data", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def shell(ingested):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NBEXT_DATA_DIR", str(ingested))
        with loaded_shell() as shell:
            yield shell


def net(blocks: pd.DataFrame, token: str) -> dict[str, int]:
    """Each wallet's received minus sent, by plain Python integers."""
    balances: dict[str, int] = {}
    for row in blocks[blocks["token_address"] == token].itertuples():
        balances[row.to_address] = balances.get(row.to_address, 0) + row.value
        balances[row.from_address] = balances.get(row.from_address, 0) - row.value
    return balances


def test_ingest_tells_how_many_rows_it_read_and_what_it_took_them_as(ingested, capsys):
    path = shared_data("transfers/eth_token_transfers_12600000.parquet")
    main(["ingest", str(path), "--chain", "ethereum", "--data", str(ingested / "again"), "--quiet"])
    told = capsys.readouterr().out
    assert (
        "8,817 rows read: 8,645 ERC20 transfers (757 contracts) and 172 NFT transfers (34 contracts)"
        in told
    )
    for oddity in (
        "7 transfers from a wallet to itself",
        "25 ERC20 transfers of zero",
        "2,677 mints",
        "99 burns",
        "51 amounts or token ids of 2**127 or more",
    ):
        assert oddity in told


def test_wallets_that_gained_both_usdt_and_usdc_are_those_that_pandas_finds(blocks, shell):
    question = {"all": [{"token": {"token": "USDT"}}, {"token": {"token": USDC}}]}
    shell.value(f"%%segment_query both --limit 100000\n{json.dumps(question)}")
    usdt, usdc = net(blocks, USDT), net(blocks, USDC)
    expected = sorted(w for w in usdt if usdt[w] > 0 and usdc.get(w, 0) > 0 and w not in BURN)
    assert expected, "the blocks must hold such wallets for this test to mean anything"
    both = shell.value("both")
    assert both["address"].tolist() == expected
    assert both["USDT_balance_raw"].map(int).tolist() == [usdt[w] for w in expected]
    assert both["USDC_balance_raw"].map(int).tolist() == [usdc[w] for w in expected]
    assert both.attrs["nbext"]["as_of"] == {"block": 12_600_050, "timestamp": None}


def test_the_metadata_of_a_token_counts_what_the_blocks_hold(blocks, shell):
    (token,) = shell.value(f"%token ethereum {USDT}").to_dict("records")
    rows = blocks[blocks["token_address"] == USDT]
    holders = sum(balance > 0 for balance in net(blocks, USDT).values())
    assert (token["symbol"], token["decimals"], token["transfers"]) == ("USDT", 6, len(rows))
    assert token["holders"] == holders
    assert token["address"] == USDT


def test_the_owners_of_a_collection_are_those_of_each_ids_last_transfer(blocks, shell):
    contracts = shell.value('%nft search "a" --chain ethereum --limit 100')
    traded = blocks[blocks["token_address"].isin(contracts["address"])]
    address = traded["token_address"].value_counts().index[0]
    moves = blocks[blocks["token_address"] == address].sort_values(["block_number", "log_index"])
    last = moves.groupby("value")["to_address"].last()
    (collection,) = shell.value(f"%nft ethereum {address}").to_dict("records")
    assert collection["ownerCount"] == last[~last.isin({"0x" + "0" * 40})].nunique()
    owners = shell.value(f'%segment {{"nft": {{"nft": "{address}"}}}} --limit 100000')
    assert owners["address"].tolist() == sorted(set(last) - BURN)
    counts = last.value_counts()
    assert owners.iloc[:, 1].tolist() == [counts[w] for w in owners["address"]]
