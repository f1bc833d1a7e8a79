"""What a fetch writes, as other tools read it and as answers come of it: files, times, metadata, odd transfers."""

from __future__ import annotations

from contextlib import closing

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

from nbext.core.addresses import checksummed
from nbext.engine.open import open_dataset
from nbext.language.language import compile, parse, resolve  # noqa: A004  the step's name
from nbext.node.contracts import read_metadata
from nbext.node.rpc import Node
from nbext.settings import Secret
from tests import slow
from tests.node.conftest import said
from tests.node.faults import COIN, ITEMS, ZERO, Chain, FaultNode, word
from tests.node.refusals import FINAL

BEASTS = "0x" + "be" * 20
A, B, C = (f"0x{number:040x}" for number in (1000, 1001, 1002))
CHAIN = Chain(90)
TRANSFERS = {
    "token_address": pl.String,
    "from_address": pl.String,
    "to_address": pl.String,
    "value": pl.String,
    "transaction_hash": pl.String,
    "log_index": pl.Int64,
    "block_number": pl.Int64,
    "block_timestamp": pl.Int64,
}
ITEM_EVENTS = {
    "contract_address": pl.String,
    "evt_tx_hash": pl.String,
    "evt_index": pl.Int64,
    "evt_block_number": pl.Int64,
    "evt_block_time": pl.Int64,
    "from": pl.String,
    "to": pl.String,
    "id": pl.String,
    "value": pl.String,
}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("nbext.node.rpc.FIRST_PAUSE", 0.001)


def answered(data, filters):
    """The rows of an answer, as wallets and what each has."""
    with closing(open_dataset(data)) as dataset:
        table = dataset.ask(compile(resolve(parse({"filters": filters}), dataset)), limit=1000).rows
    column = next(
        name
        for name in reversed(table.column_names)
        if name.endswith(("_raw", "_count", "_balance"))
    )
    return dict(zip(table["address"].to_pylist(), map(int, table[column].to_pylist()), strict=True))


def balances_of_coin(data, **more):
    return answered(
        data, {"token": {"token": COIN, "balance": {"min": "1"}, "unit": "raw"}, **more}
    )


def metadata_of_coin(data):
    with closing(open_dataset(data)) as dataset:
        token = dataset.catalog.contract(1, COIN)
    return token.symbol, token.name, token.decimals, token.total_supply


def as_logged(chain):
    """The rows of ethereum-etl's table and of Dune's that a chain's logs are, read without our decoder."""
    coins, items = [], []
    for number, logs in sorted(chain.logs.items()):
        for log in logs:
            sender, receiver = (f"0x{topic[-40:]}" for topic in log["topics"][-2:])
            place = (log["transactionHash"], int(log["logIndex"], 16), number)
            if log["address"] == COIN:
                coins.append(
                    (COIN, sender, receiver, str(int(log["data"], 16)), *place, chain.time(number))
                )
            else:
                words = [
                    int(log["data"][at : at + 64], 16) for at in range(2, len(log["data"]), 64)
                ]
                items += [
                    (ITEMS, *place, chain.time(number), sender, receiver, str(id_), str(count))
                    for id_, count in zip(words[3:9], words[10:16], strict=True)
                ]
    return (
        pl.DataFrame(coins, TRANSFERS, orient="row"),
        pl.DataFrame(items, ITEM_EVENTS, orient="row"),
    )


@pytest.mark.slow
def test_polars_and_duckdb_read_the_files_as_every_row_that_was_logged(tmp_path):
    """Of two runs: a folder has several files of each table."""
    folder, (coins, items) = tmp_path / "fetched" / "ethereum", as_logged(CHAIN)
    assert (len(coins), len(items)) > (40, 10)
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, to_block="40", check=0)
        said(server, tmp_path, check=0)
    for name, wanted, order in (
        ("token_transfers", coins, ["block_number", "log_index"]),
        ("erc1155_transfers", items, ["evt_block_number", "evt_index", "id"]),
    ):
        assert len(list(folder.glob(f"{name}-*.parquet"))) == 2
        assert_frame_equal(
            pl.read_parquet(folder / f"{name}-*.parquet").sort(order), wanted.sort(order)
        )
        with duckdb.connect() as connection:
            found = connection.sql(
                f"FROM read_parquet('{folder}/{name}-*.parquet') ORDER BY {', '.join(order)}"
            ).pl()
        assert_frame_equal(found, wanted.sort(order))
    times = pl.read_parquet(folder / "blocks-*.parquet").unique().sort("number")
    assert times.rows() == [
        (number, CHAIN.hash(number), CHAIN.time(number)) for number in times["number"]
    ]
    assert set(CHAIN.logs) <= set(times["number"])
    assert pl.read_parquet(folder / "tokens-*.parquet").sort("address").to_dict(
        as_series=False
    ) == {
        "address": [ITEMS, COIN],
        "symbol": [None, "COIN"],
        "name": [None, None],
        "decimals": [None, 18],
        "total_supply": [None, str(-CHAIN.balance(ZERO, 90))],
        "standard": ["ERC1155", "ERC20"],
        "deployed_block_number": [1, 1],
    }


@pytest.mark.slow
@pytest.mark.parametrize("times_in_logs", slow.but_the_first([False, True]))
def test_of_a_chain_of_many_blocks_a_second_each_second_ends_with_its_last_block(
    tmp_path, times_in_logs
):
    start = 1_600_000_000  # 2020-09-13T12:26:40Z
    chain = Chain(90, time=lambda number: start + number // 7)

    def timed(method, params, true):
        if method == "eth_getLogs" and times_in_logs:
            return [
                {**log, "blockTimestamp": hex(chain.time(int(log["blockNumber"], 16)))}
                for log in true
            ]
        return true

    with FaultNode(chain, chain_id=42161, lie=timed) as server:
        assert said(server, tmp_path, contracts=(COIN,), chain="arbitrum")[-1] == (
            f"COIN ({checksummed(COIN)}): 20 of 20 balances equal the chain's at block 90."
        )
    times = [
        row
        for path in (tmp_path / "fetched" / "arbitrum").glob("blocks-*.parquet")
        for row in pq.read_table(path).to_pylist()
    ]
    assert [(row["number"], row["hash"], row["timestamp"]) for row in times] == [
        (row["number"], chain.hash(row["number"]), start + row["number"] // 7) for row in times
    ]
    wallets = [f"0x{number:040x}" for number in range(16, 60)]
    for second in (0, 5, 11):
        at_the_end_of = {
            wallet: amount
            for wallet in wallets
            if (amount := chain.balance(wallet, 7 * second + 6))
        }
        for as_of in (7 * second + 6, f"2020-09-13T12:26:{40 + second}Z"):
            assert balances_of_coin(tmp_path, chain="arbitrum", asOf=as_of) == at_the_end_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ["how"],  # noqa: PT006  a refusal is itself a tuple, which a name alone would not take apart
    slow.but_the_first([(FINAL[10],), (FINAL[11],), (None,)]),
    ids=["reverts, geth", "reverts, nethermind", "is empty"],
)
def test_metadata_that_reverts_or_is_empty_is_unknown_and_not_zero(tmp_path, how):
    """Of name, symbol, decimals, totalSupply and supportsInterface; balances are answered."""
    asked = ("0x06fdde03", "0x95d89b41", "0x313ce567", "0x18160ddd", "0x01ffc9a7")

    def is_metadata(method, params):
        return method == "eth_call" and params[0]["data"].startswith(asked)

    with FaultNode(
        CHAIN,
        refuse=lambda method, params: how if is_metadata(method, params) else None,
        lie=lambda method, params, true: "0x" if is_metadata(method, params) else true,
    ) as server:
        assert said(server, tmp_path, contracts=(COIN,))[-1] == (
            f"the contract ({checksummed(COIN)}): 20 of 20 balances equal the chain's at block 90."
        )
        late = tmp_path / "late"
        said(server, late, contracts=(COIN,), from_block="40")
    (path,) = (tmp_path / "fetched" / "ethereum").glob("tokens-*.parquet")
    assert pq.read_table(path).to_pylist() == [
        {
            "address": COIN,
            "symbol": None,
            "name": None,
            "decimals": None,
            "total_supply": None,
            "standard": "ERC20",
            "deployed_block_number": 1,
        }
    ]
    # A supply is then what was minted and not burnt, of data from the deployment on; else nobody knows it.
    assert metadata_of_coin(tmp_path) == (None, None, None, -CHAIN.balance(ZERO, 90))
    assert metadata_of_coin(late) == (None, None, None, None)
    assert balances_of_coin(tmp_path) == {
        wallet: amount for wallet, amount in CHAIN.balances.items() if amount
    }


@pytest.mark.parametrize("longest_batch", [0, 1000])
def test_a_revert_with_an_http_status_of_its_own_hides_nothing_else_that_the_contract_says(
    tmp_path, longest_batch
):
    """The first that is asked, its name; of a batch as of a call."""

    class Strict(FaultNode):
        def answer(self, body):
            status, headers, raw = super().answer(body)
            return (400 if b'"error"' in raw else status), headers, raw

    with Strict(
        CHAIN,
        refuse=lambda method, params: (
            FINAL[10] if method == "eth_call" and params[0]["data"] == "0x06fdde03" else None
        ),
        batches=longest_batch,
    ) as server:
        assert said(server, tmp_path, contracts=(COIN,))[-1] == (
            f"COIN ({checksummed(COIN)}): 20 of 20 balances equal the chain's at block 90."
        )
    assert metadata_of_coin(tmp_path) == ("COIN", None, 18, -CHAIN.balance(ZERO, 90))


@pytest.mark.slow
def test_decimals_are_what_eight_bits_hold(tmp_path):
    for places, known in ((255, 255), (256, None)):
        with FaultNode(
            CHAIN,
            lie=lambda method, params, true, places=places: (
                f"0x{places:064x}"
                if method == "eth_call" and params[0]["data"].startswith("0x313ce567")
                else true
            ),
        ) as server:
            said(server, tmp_path / str(places), contracts=(COIN,), check=0)
        assert metadata_of_coin(tmp_path / str(places))[2] == known


@pytest.mark.slow
def test_what_a_contract_says_again_after_something_else_is_known_again(tmp_path):
    """Of a token whose supply never moves in the same bytes: what a node said once in between would stay."""

    def other_decimals(method, params, true):
        asks = method == "eth_call" and params[0]["data"].startswith("0x313ce567")
        return "0x" + word(6) if asks else true

    with FaultNode(CHAIN) as server:
        honest = server.lie
        for lie, known in ((honest, 18), (other_decimals, 6), (honest, 18)) * 2:
            server.lie = lie
            said(server, tmp_path, contracts=(COIN,), check=0)
            assert metadata_of_coin(tmp_path)[2] == known


def test_what_a_wallet_sends_to_itself_changes_nothing(tmp_path):
    chain = Chain(12)
    chain.logs = {}
    for number, index, contract, sender, receiver, value in (
        (1, 0, COIN, ZERO, A, 100),
        (2, 0, COIN, A, A, 40),
        (2, 1, COIN, A, A, 100),
        (3, 0, COIN, A, B, 30),
        (3, 1, COIN, B, B, 30),
        (4, 0, COIN, C, C, 0),
        (5, 0, BEASTS, ZERO, A, 7),
        (5, 1, BEASTS, A, A, 7),
        (6, 0, BEASTS, ZERO, B, 8),
        (7, 0, BEASTS, B, A, 8),
        (7, 1, BEASTS, A, A, 8),
    ):
        chain.move(number, index, contract, (sender, receiver), value)
    with FaultNode(chain) as server:
        said(server, tmp_path, contracts=(BEASTS,), check=0)
        assert said(server, tmp_path, contracts=(COIN,))[-1] == (
            f"COIN ({checksummed(COIN)}): 3 of 3 balances equal the chain's at block 12."
        )
    assert balances_of_coin(tmp_path) == {A: 70, B: 30}
    assert answered(tmp_path, {"nft": {"nft": BEASTS}}) == {A: 2}


def test_a_name_is_a_string_of_the_abi_or_32_bytes_and_nothing_that_is_cut():
    def words(*numbers):
        return b"".join(number.to_bytes(32) for number in numbers)

    for raw, known in (
        (words(32, 5) + b"Hello".ljust(32, b"\0"), "Hello"),
        (words(32, 5) + b"Hello", "Hello"),
        (words(32, 5) + b"Hell", None),
        (words(64, 0, 2) + b"OK", "OK"),
        (words(32, 0), None),
        (words(64, 5), None),
        (words(2**255, 5), None),
        (b"Maker".ljust(32, b"\0"), "Maker"),
        (b"Maker", None),
    ):
        with FaultNode(
            CHAIN,
            lie=lambda method, params, true, raw=raw: (
                (f"0x{raw.hex()}" if params[0]["data"] == "0x06fdde03" else true)
                if method == "eth_call"
                else true
            ),
        ) as server:
            (found,) = read_metadata(Node([Secret(server.url)]), [COIN], {COIN: "ERC20"})
        assert found.name == known, raw
