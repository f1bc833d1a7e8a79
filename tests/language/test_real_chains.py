"""A segment across Ethereum and OP Mainnet, on transfers as chains have them and on real ones, against plain Python."""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from nbext import cli
from nbext.engine.open import open_dataset
from nbext.language import language
from tests.real.transfers import Chain, coin, collection, popular_contracts
from tests.shared_data import shared_data

ZERO = "0x" + "0" * 40
COLUMNS = ["token_address", "from_address", "to_address", "value", "block_number", "log_index"]


def read(path):
    return [
        tuple(map(str, row.values())) for row in pq.read_table(path, columns=COLUMNS).to_pylist()
    ]


def made(folder):
    """Write transfers of each chain, that of NFTs with one collection alone; return the files and a coin."""
    paths = []
    for chain, of_it in (("ethereum", coin(0)), ("optimism", collection(0))):
        table = pq.read_table(Chain(300).write(folder / f"{chain}.parquet", 6_000))
        kept = pc.equal(table["token_address"], of_it)
        if chain == "ethereum":
            kept = pc.match_substring(table["token_address"], coin(0)[:4])
        pq.write_table(table.filter(kept), folder / f"{chain}.parquet")
        paths.append(folder / f"{chain}.parquet")
    return *paths, coin(0)


def real(_):
    return (
        shared_data("transfers/eth_token_transfers_12600000.parquet"),
        shared_data("transfers/op_quests_ethereum_etl.parquet"),
        "0xdac17f958d2ee523a2206206994597c13d831ec7",
    )


@pytest.fixture(scope="module", params=[made, real])
def opened(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("chains")
    ethereum, optimism, token = request.param(folder)
    known = popular_contracts(folder / "contracts.csv")
    for path, chain in ((ethereum, "ethereum"), (known, "optimism"), (optimism, "optimism")):
        words = ["ingest", path, "--chain", chain, "--data", folder / "data", "--quiet"]
        assert cli.main(list(map(str, words))) == 0
    dataset = open_dataset(folder / "data")
    yield dataset, read(ethereum), read(optimism), token
    dataset.close()


@pytest.mark.slow
def test_wallets_of_one_chain_and_of_another(opened):
    dataset, ethereum, optimism, usdt = opened
    received = {to.lower() for token, _, to, _, _, _ in ethereum if token.lower() == usdt}
    owners = {}
    for _, _, to, number, _, _ in sorted(optimism, key=lambda row: (int(row[4]), int(row[5]))):
        owners[number] = to.lower()
    quest = optimism[0][0].lower()
    owning = set(owners.values())

    def asked(operator):
        filters = {
            "transfer": {"direction": "in", "token": usdt},
            "nft": {"nft": quest, "chain": "optimism"},
            "exclude": [ZERO],
        }
        plan = language.resolve(language.parse({"filters": filters, "operator": operator}), dataset)
        rows = dataset.ask(language.compile(plan), limit=1_000_000).rows.to_pylist()
        return {row["address"]: row for row in rows}

    either = asked("OR")
    assert set(either) == (received | owning) - {ZERO}
    assert set(asked("AND")) == (received & owning) - {ZERO}
    (column,) = {name for row in either.values() for name in row} - {"address"}
    counts = dict.fromkeys(either, 0)
    for owner in owners.values():
        if owner in counts:
            counts[owner] += 1
    assert {address: row[column] for address, row in either.items()} == counts


@pytest.mark.slow
def test_wallets_seen_are_those_of_the_conditions_chain(opened):
    dataset, _, optimism, _ = opened
    seen = {side.lower() for row in optimism for side in (row[1], row[2])} - {ZERO}
    filters = {"not": {"nft": {"nft": optimism[0][0], "chain": 10}}, "exclude": ["burn"]}
    plan = language.resolve(language.parse({"filters": filters}), dataset)
    matched = dataset.ask(language.compile(plan), limit=0).matched
    everyone = language.resolve(
        language.parse({"filters": {"activity": {"chain": 10, "transfers": {"min": 1}}}}), dataset
    )
    assert dataset.ask(language.compile(everyone), limit=0).matched == len(
        seen - {"0x" + "0" * 36 + "dead"}
    )
    assert 0 < matched < len(seen)
