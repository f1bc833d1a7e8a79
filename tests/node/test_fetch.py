"""The command: from a node's URL to answers, what it refuses, and that nobody sees the URL."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import traceback
from collections import Counter
from contextlib import closing

import pyarrow.parquet as pq
import pytest
from keyring.errors import KeyringLocked

from nbext import cli
from nbext.core.addresses import checksummed
from nbext.core.chains import chain_of
from nbext.engine import storage
from nbext.engine.open import open_dataset
from nbext.errors import ConfigError, NodeError, StorageError, ValidationError
from nbext.fetch import Output, Request
from nbext.fetch.command import urls_of
from nbext.fetch.run import addresses_of, fetch
from nbext.language.language import parse, resolve
from nbext.node.contracts import TRANSFERS, head_of
from nbext.node.limits import RangeSize
from nbext.node.reader import RangeReader
from nbext.node.rpc import Node
from nbext.settings import Secret
from tests import slow
from tests.engine.ingest import large
from tests.full_disk import fill
from tests.keyrings import Ring
from tests.node.conftest import opened, said
from tests.node.faults import COIN, ITEMS, KEY, ZERO, Chain, FaultNode, word
from tests.node.refusals import FINAL, PASSING, RANGES, Refused

CHAIN = Chain(90)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("nbext.node.rpc.FIRST_PAUSE", 0.001)


def test_transfers_are_fetched_ingested_verified_and_read_once(tmp_path, capsys, monkeypatch):
    with FaultNode(CHAIN) as server:
        monkeypatch.setenv("NBEXT_RPC_URL", server.url)
        words = [
            "fetch",
            "--contract",
            COIN,
            "--contract",
            ITEMS,
            "--to-block",
            "latest",
            "--data",
            str(tmp_path),
        ]
        assert cli.main(words) == 0
        first = capsys.readouterr().out
        coin = sum(log["address"] == COIN for logs in CHAIN.logs.values() for log in logs)
        assert first.splitlines() == [
            f"the contract ({checksummed(ITEMS)}): blocks 1 to 90.",
            f"COIN ({checksummed(COIN)}): blocks 1 to 90.",
            f"{CHAIN.rows():,} new transfers are ingested. Services that run on this folder serve them within two "
            "seconds.",
            *(line for line in first.splitlines() if "balances equal" in line),
        ]
        assert "20 of 20 balances equal the chain's at block 90." in first
        (items,) = [
            line
            for line in first.splitlines()
            if line.startswith("the contract") and "balances" in line
        ]
        equal, many = items.split(": ")[1].split(" balances")[0].split(" of ")
        assert equal == many
        server.requests.clear()
        assert cli.main(words) == 0
        assert server.logs_asked() == []
    # ethereum-etl's own columns, which other tools read.
    (transfers,) = (tmp_path / "fetched" / "ethereum").glob("token_transfers-*.parquet")
    assert pq.read_schema(transfers).names == [
        "token_address",
        "from_address",
        "to_address",
        "value",
        "transaction_hash",
        "log_index",
        "block_number",
        "block_timestamp",
    ]
    assert pq.read_metadata(transfers).num_rows == coin


@pytest.mark.slow
def test_a_reorganised_end_is_replaced_and_a_file_that_was_removed_is_read_again(tmp_path):
    with FaultNode(CHAIN) as server:
        said(server, tmp_path)
        server.chain = Chain(90, fork=80, branch="b")
        lines = said(server, tmp_path)
        assert (
            lines[0] == "The chain was reorganised: blocks from 80 on are read again and replaced."
        )
        assert [line for line in lines if "20 of 20" in line] != []
        before = storage.current_generation(tmp_path).manifest["tables"]["transfers"]
        assert before == server.chain.rows()
        (blocks,) = (tmp_path / "fetched" / "ethereum").glob("blocks-80-90-*.parquet")
        assert cli.main(["remove", str(blocks), "--data", str(tmp_path), "--quiet"]) == 0
        lines = said(server, tmp_path)
        assert lines[0].endswith("are no longer in the data, and are read again.")
        assert storage.current_generation(tmp_path).manifest["tables"]["transfers"] == before


@pytest.mark.slow
def test_of_a_chain_that_is_followed_the_blocks_of_a_file_that_is_taken_out_are_read_again(
    tmp_path,
):
    def steps():
        with opened(tmp_path) as coverage:
            return sorted(
                (each.first, each.last) for one in coverage.steps for each in one.covers()
            )

    with FaultNode(Chain(90)) as server:
        for head in (60, 70, 80):
            server.chain.blocks = head
            said(server, tmp_path, contracts=(COIN,), check=0)
        assert steps() == [(1, 60), (61, 70), (71, 80)]
        server.chain = Chain(90, fork=75, branch="b")
        lines = said(server, tmp_path, contracts=(COIN,))
        assert (
            lines[0] == "The chain was reorganised: blocks from 75 on are read again and replaced."
        )
        assert lines[-1].endswith(": 20 of 20 balances equal the chain's at block 90.")
        assert steps() == [(1, 60), (61, 70), (71, 74), (75, 90)]
        (blocks,) = (tmp_path / "fetched" / "ethereum").glob("blocks-61-70-*.parquet")
        assert cli.main(["remove", str(blocks), "--data", str(tmp_path), "--quiet"]) == 0
        server.requests.clear()
        lines = said(server, tmp_path, contracts=(COIN,))
        assert lines[0] == (
            f"Files of COIN ({checksummed(COIN)}) are no longer in the data, and are read again."
        )
        assert lines[-1].endswith(": 20 of 20 balances equal the chain's at block 90.")
        assert [asked for asked in server.logs_asked() if asked != (0, 0)] == [(61, 70)]
        assert steps() == [(1, 60), (61, 70), (71, 74), (75, 90)]


def test_what_a_killed_process_left_aside_is_removed_and_what_the_data_has_stays(tmp_path):
    folder = tmp_path / "fetched" / "ethereum"
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, check=0)
        whole = sorted(folder.glob("*.parquet"))
        for left in (
            folder / "parts" / ".000000000001.parquet.0a.part",
            folder / ".blocks-1-90.parquet.0b.part",
            folder / "blocks-1-90-0123456789ab.parquet",
        ):
            left.write_bytes(whole[0].read_bytes())
        said(server, tmp_path, check=0)
    assert (
        sorted(path for path in folder.rglob("*") if path.suffix in (".parquet", ".part")) == whole
    )


def states_asked(server):
    """Blocks of which a contract's code was asked for."""
    codes = (params[1] for method, params in server.requests if method == "eth_getCode")
    return [block for block in codes if block != "latest"]


@pytest.mark.slow
def test_balances_that_differ_are_named_in_later_answers_until_a_later_check_finds_them_equal(
    tmp_path,
):
    def rebased(method, params, true):
        is_balance = method == "eth_call" and params[0]["data"].startswith("0x70a08231")
        return (
            "0x" + word(int(true, 16) + 1) if is_balance and int(params[1], 16) >= first else true
        )

    # A block with a transfer of it, as the block of a rebase is.
    first = next(
        number
        for number, logs in sorted(CHAIN.logs.items())
        if number > 50 and logs[0]["address"] == COIN
    )
    with FaultNode(CHAIN, lie=rebased) as server:
        lines = said(server, tmp_path, contracts=(COIN,))
        assert lines[-1] == (
            f"COIN ({checksummed(COIN)}): 0 of 20 balances equal the chain's at block 90. It moves balances without a "
            f"Transfer, first in block {first}: it rebases, takes a fee on transfer, or wraps ether (--deposits reads "
            "those logs). Answers about it are approximate."
        )
        # Nothing is new: the data alone knows it. Where it was deployed may be wrong, too, and is looked for again.
        for warns in (True, False):
            server.requests.clear()
            said(server, tmp_path, contracts=(COIN,), check=0 if warns else 20)
            warnings = resolve(
                parse({"filters": {"token": {"token": "COIN"}}}), open_dataset(tmp_path)
            ).warnings
            assert [
                line
                for line in warnings
                if "balances differed from the contract's own at block 90" in line
            ] == [
                "COIN on ethereum: 20 of 20 balances differed from the contract's own at block 90: it changes balances "
                "without a transfer, as tokens do that rebase or take a fee. Its amounts are approximate."
            ] * warns
            assert len(states_asked(server)) > 1
            server.lie = lambda method, params, true: true
        server.requests.clear()
        said(server, tmp_path, contracts=(COIN,), check=0)
        # Whether it had code before is asked each time.
        assert states_asked(server) == ["0x0"]


@pytest.mark.slow
@pytest.mark.parametrize("receipts", slow.but_the_first(["not offered", "offered", "empty"]))
def test_logs_that_a_node_left_out_are_told_from_a_token_that_moves_balances_without_them(
    tmp_path, receipts
):
    """Of old blocks: an index that was never built, or was pruned without a word."""

    def silent(method, params, true):
        if method == "eth_getLogs" and params[0]["fromBlock"] != params[0]["toBlock"]:
            return [log for log in true if int(log["blockNumber"], 16) > 20]
        return (
            []
            if method == "eth_getBlockReceipts" and receipts == "empty" and int(params[0], 16) <= 20
            else true
        )

    def refuse(method, params):
        return FINAL[6] if method == "eth_getBlockReceipts" and receipts == "not offered" else None

    with FaultNode(CHAIN, lie=silent, refuse=refuse) as server:
        with pytest.raises(NodeError) as caught:
            # From the block before: of one with logs a node that has none at all is found out while it is read.
            said(server, tmp_path, contracts=(COIN,), from_block="0")
        if receipts != "not offered":
            # The filters say which blocks may have logs, and their receipts that they do.
            assert (
                "logs that its receipts have" if receipts == "offered" else "It has no receipts"
            ) in str(caught.value)
        else:
            found = re.fullmatch(
                rf"COIN \({checksummed(COIN)}\): (\d+) of 20 balances equal the chain's at block 90\. The node left "
                r"logs out: block (\d+) has transfers that it did not return\. The next fetch reads all blocks of the "
                r"contract again: use another node\.",
                str(caught.value),
            )
            assert int(found[1]) < 20
            assert int(found[2]) in [number for number in CHAIN.logs if number <= 20]
            assert warnings_of(tmp_path, "token", COIN)[-1] == (
                "COIN on ethereum: transfers are missing: the node that they were fetched from left logs out. Fetch it "
                "again, from another node."
            )
    with FaultNode(CHAIN) as server:
        assert said(server, tmp_path, contracts=(COIN,), from_block="0")[-1] == (
            f"COIN ({checksummed(COIN)}): 20 of 20 balances equal the chain's at block 90."
        )
    assert warnings_of(tmp_path, "token", COIN) == []
    assert storage.current_generation(tmp_path).manifest["tables"]["transfers"] == sum(
        log["address"] == COIN for logs in CHAIN.logs.values() for log in logs
    )


def without_receipts(method, params):
    """Refuse what would show while a range is read that its logs are not whole."""
    return FINAL[6] if method == "eth_getBlockReceipts" else None


SUPPLY, BALANCE = "0x18160ddd", "0x70a08231"


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True])
def test_a_mint_that_a_node_left_out_is_found_from_where_the_token_says_something(tmp_path, known):
    """In the supply where its owner is nobody who could be compared; before the token says one there was none."""
    chain, other = Chain(90), "0x" + "b2" * 20
    chain.logs.clear()
    for block, wallet in ((10, other if known else "0x" + "a1" * 20), (15, other)):
        chain.move(block, 0, COIN, ("0x" + "0" * 40, wallet), 7)

    def lie(method, params, true):
        if method == "eth_getLogs":
            first, last = params[0]["fromBlock"], params[0]["toBlock"]
            return [log for log in true if first == last or log["blockNumber"] != hex(10)]
        if method == "eth_call":
            asked, unset = params[0]["data"][:10], params[1] != "latest" and int(params[1], 16) < 10
            # A supply would show what is missing of a wallet, too.
            if (asked == SUPPLY and (unset or known)) or (asked == BALANCE and unset):
                return "0x"
        return true

    with (
        FaultNode(chain, lie=lie, refuse=without_receipts) as server,
        pytest.raises(NodeError) as caught,
    ):
        said(server, tmp_path, contracts=(COIN,), from_block="0")
    assert "block 10 has transfers that it did not return" in str(caught.value)


@pytest.mark.slow
def test_a_node_without_the_old_states_cannot_tell_and_it_is_said(tmp_path):
    def lie(method, params, true):
        if method == "eth_getLogs":
            return [log for log in true if int(log["blockNumber"], 16) > 20]
        return true

    def refuse(method, params):
        old = method == "eth_call" and params[1] not in ("latest", hex(90))
        return FINAL[1] if old else without_receipts(method, params)

    with FaultNode(CHAIN, lie=lie, refuse=refuse) as server:
        line = said(server, tmp_path, contracts=(COIN,), from_block="0")[-1]
    minted = -CHAIN.balance(ZERO, 90)
    seen = minted + CHAIN.balance(ZERO, 20)
    assert line.endswith(
        f"balances equal the chain's at block 90. Its totalSupply is {minted:,} of the smallest unit, and {seen:,} by "
        "its transfers. It moves balances without a Transfer: it rebases, takes a fee on transfer, or wraps ether "
        "(--deposits reads those logs). Or the node left logs out: it does not have the old "
        "states that would show which. Answers about it are approximate."
    )
    assert warnings_of(tmp_path, "token", COIN)[-1].endswith(
        "it changes balances without a transfer, as tokens do that rebase or take a fee, or the node left logs out. "
        "Its amounts are approximate."
    )


def warnings_of(data, condition, contract):
    """What an answer about a contract warns of."""
    dataset = open_dataset(data)
    try:
        return resolve(parse({"filters": {condition: {condition: contract}}}), dataset).warnings
    finally:
        dataset.close()


def gaps_told(data):
    """What an answer about COIN says of blocks that the data lacks."""
    told = " ".join(warnings_of(data, "token", COIN))
    return re.findall("the data has no row of blocks|the data starts at|were not fetched", told)


@pytest.mark.slow
def test_what_was_not_fetched_of_a_contract_is_said_beside_its_answers(tmp_path):
    """A service answers of one last block, and contracts may be read to others."""
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, contracts=(COIN,), to_block="40", check=0)
        assert warnings_of(tmp_path, "token", COIN) == []
        said(server, tmp_path, contracts=(ITEMS,), from_block="50", check=0)
        (coin,), (items,) = (
            warnings_of(tmp_path, "token", COIN),
            warnings_of(tmp_path, "nft", ITEMS),
        )
        assert coin == "COIN on ethereum: transfers are missing: blocks 41 to 90 were not fetched."
        assert (
            items == f"{ITEMS} on ethereum: transfers are missing: blocks 0 to 49 were not fetched."
        )
        said(server, tmp_path, contracts=(COIN, ITEMS), check=0)
        assert gaps_told(tmp_path) == []
        assert warnings_of(tmp_path, "nft", ITEMS) == []


@pytest.mark.slow
def test_blocks_that_were_read_and_are_empty_are_no_gap_of_what_was_fetched(tmp_path):
    """A collection that is deployed long before its first transfer, sells out within the hour, and rests."""
    chain = Chain(200)
    chain.logs = {
        number: logs for number, logs in chain.logs.items() if 40 <= number < 90 or number >= 190
    }
    with FaultNode(chain) as server:
        said(server, tmp_path, check=0)
        (extent,) = storage.current_generation(tmp_path).chains
        assert (2, 39) in extent.gaps
        assert extent.covered == {COIN: ((0, 200),), ITEMS: ((0, 200),)}
        assert gaps_told(tmp_path) == []
        # More is added, and that is compacted: what was known stays.
        server.chain = chain = Chain(260)
        chain.logs = {
            number: logs
            for number, logs in chain.logs.items()
            if 40 <= number < 90 or 190 <= number <= 200 or number == 255
        }
        said(server, tmp_path, check=0)
        assert gaps_told(tmp_path) == []
        assert cli.main(["compact", "--data", str(tmp_path), "--quiet"]) == 0
        assert gaps_told(tmp_path) == []
    # Taken out by hand, nobody knows any more.
    (blocks,) = (tmp_path / "fetched" / "ethereum").glob("blocks-201-260-*.parquet")
    assert cli.main(["remove", str(blocks), "--data", str(tmp_path), "--quiet"]) == 0
    assert len(gaps_told(tmp_path)) == 1


@pytest.mark.slow
def test_what_was_fetched_is_served_and_kept_where_the_disk_has_no_room_to_compact_it(small_disk):
    data, lines = large.begin(small_disk / "data"), []
    with FaultNode(CHAIN) as server:
        said(server, data, check=0)
        large.grow(data)
        stored = storage.current_generation(data).manifest["tables"]["transfers"]
        others = stored - server.chain.rows()
        server.chain = Chain(120)

        def progress(step, done):
            if (step, done) == ("ingest: merging", 0):  # the rows are served by then
                fill(small_disk, free=2**18)

        fetch(
            [Secret(server.url)],
            Request((COIN, ITEMS), to_block="latest", check=0),
            data,
            Output(lines.append, progress),
        )
        assert [line for line in lines if "compacting" in line] == [
            "The new rows are served; compacting them with the rest failed, so that queries may be slower: "
            f"{data} cannot be written: {lines[-1].partition('cannot be written: ')[2]}"
        ]
        (small_disk / "fill").unlink()
        assert (
            storage.current_generation(data).manifest["tables"]["transfers"]
            == others + server.chain.rows()
        )
        server.requests.clear()
        said(server, data, check=0)
        assert server.logs_asked() == []


@pytest.mark.slow
def test_the_last_block_of_the_chain_may_be_named(tmp_path):
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, check=0, to_block=str(CHAIN.blocks))
    served = storage.current_generation(tmp_path).manifest["tables"]["transfers"]
    assert served == CHAIN.rows()


@pytest.mark.slow
def test_a_range_that_cannot_be_stored_ends_the_fetch_with_the_reason_and_is_read_again(tmp_path):
    parts = tmp_path / "fetched" / "ethereum" / "parts"

    def lie(method, params, true):
        if method == "eth_getLogs" and parts.is_dir():
            parts.rename(tmp_path / "elsewhere")
        return true

    with FaultNode(CHAIN, lie=lie) as server:
        with pytest.raises(StorageError) as caught:
            said(server, tmp_path, check=0)
        folder = parts.parent.resolve()
        assert str(caught.value) == (
            f"{folder} cannot be read or written: No such file or directory."
        )
        (tmp_path / "elsewhere").rename(parts)
        server.lie = lambda method, params, true: true
        said(server, tmp_path, check=0)
    served = storage.current_generation(tmp_path).manifest["tables"]["transfers"]
    assert served == CHAIN.rows()


@pytest.mark.slow
def test_a_digit_that_changed_in_what_is_covered_or_in_a_part_never_is_a_hole(tmp_path):
    folder = tmp_path / "fetched" / "ethereum"
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, check=0, to_block="60")
        (path,) = folder.glob("blocks-1-60-*.parquet")
        whole = path.read_bytes()
        # To block 80, of which 20 were never read.
        path.write_bytes(whole.replace(b'"read": [[1, 60,', b'"read": [[1, 80,'))
        assert path.read_bytes() != whole
        with pytest.raises(StorageError) as caught:
            said(server, tmp_path, check=0)
        assert str(caught.value) == (
            f"{path} is damaged, or another version's. Move {folder} away: its blocks are read again, and repeated "
            "rows skipped."
        )
        path.write_bytes(whole)
        with opened(tmp_path) as coverage:
            node = Node([Secret(server.url)])
            topics = dict.fromkeys((COIN, ITEMS), TRANSFERS)
            reader = RangeReader(node, coverage, topics, span=RangeSize(size=5))
            reader.read(reader.plan(dict.fromkeys(topics, 0), 75), 75)
            node.close()
        (part, *_) = sorted((folder / "parts").glob("*.parquet"))
        raw = part.read_bytes()
        # A digit of a block's hash, which tells reorganisations.
        at = raw.find(b"0x") + 5
        part.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        said(server, tmp_path, check=0)
    served = storage.current_generation(tmp_path).manifest["tables"]["transfers"]
    assert served == CHAIN.rows()


def test_a_symbol_that_a_node_did_not_say_is_the_one_that_is_known():
    ethereum = chain_of("ethereum")
    known = addresses_of(["USDC"], ethereum, {})
    assert (
        addresses_of(["USDC"], ethereum, {address: {"symbol": None} for address in known}) == known
    )


@pytest.mark.slow
@pytest.mark.parametrize("file", ["blocks", "parts"])
def test_a_file_that_cannot_be_read_just_now_is_not_called_damaged(tmp_path, file):
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, check=0)
        folder = tmp_path / "fetched" / "ethereum"
        (path,) = folder.glob("blocks-*.parquet")
        if file == "parts":
            path = folder / "parts" / f"{1:012d}-{1:012d}-0.parquet"
        path.unlink(missing_ok=True)
        path.mkdir()
        with pytest.raises(StorageError) as caught:
            said(server, tmp_path, check=0)
    assert "cannot be read or written: " in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--contract", "UNIX"],
            "'UNIX' is the symbol of no contract on ethereum that nbext knows or has fetched. Did you "
            "mean 'UNI'? Write the 0x... address",
        ),
        (["--contract", "RPL"], "'RPL' is the symbol of several contracts: 0x"),
        (["--contract", "0x12"], "'0x12' is not an address."),
        (
            ["--contract", COIN, "--chain", "base"],
            "The node has the chain id 1, and --chain base means 8453.",
        ),
        (["--contract", COIN, "--memory", "much"], "'much' is not a memory size."),
        (["--contract", COIN, "--to-block", "91"], "--to-block 91 is after the chain's last, 90."),
        (
            ["--contract", COIN, "--from-block", "80", "--to-block", "70"],
            "--from-block 80 is after the last block",
        ),
    ],
)
def test_what_cannot_be_fetched_is_refused(tmp_path, capsys, monkeypatch, words, message):
    with FaultNode(CHAIN) as server:
        monkeypatch.setenv("NBEXT_RPC_URL", server.url)
        assert cli.main(["fetch", *words, "--data", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert storage.current_generation(tmp_path) is None


def test_an_address_without_a_contract_is_refused(tmp_path):
    with (
        FaultNode(
            CHAIN, lie=lambda method, params, true: "0x" if method == "eth_getCode" else true
        ) as server,
        pytest.raises(NodeError, match="There is no contract at 0x1e"),
    ):
        said(server, tmp_path)


@pytest.mark.slow
def test_a_latest_block_behind_the_last_one_is_not_believed(tmp_path, monkeypatch):
    monkeypatch.setattr("nbext.fetch.run._TRIES", 2)
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, check=0)
        server.lie = lambda method, params, true: "0x20" if method == "eth_blockNumber" else true
        with pytest.raises(
            NodeError, match="latest block, 32, is before block 90, which was read earlier"
        ):
            said(server, tmp_path)
        server.lie = lambda method, params, true: (
            hex(2**70) if method == "eth_blockNumber" else true
        )
        with pytest.raises(NodeError, match="Its answer to eth_blockNumber has another form"):
            said(server, tmp_path)


@pytest.mark.parametrize(("finalized", "last"), [(70, 70), (None, 78)])
def test_without_a_word_blocks_are_read_to_the_finalized_one_or_to_twelve_before_the_latest(
    tmp_path, finalized, last
):
    with FaultNode(CHAIN, finalized=finalized) as server:
        lines = said(server, tmp_path, to_block="auto", check=0, contracts=(COIN,))
    assert lines[0] == f"COIN ({checksummed(COIN)}): blocks 1 to {last}."


def test_a_node_that_knows_no_finalized_block_is_not_read_to_another_one(tmp_path):
    with (
        FaultNode(CHAIN) as server,
        pytest.raises(NodeError, match="does not know which block is finalized"),
    ):
        said(server, tmp_path, to_block="finalized", check=0)


def test_of_a_chain_that_is_shorter_than_its_confirmations_the_first_block_is_the_last(tmp_path):
    with FaultNode(Chain(5)) as server, closing(Node([Secret(server.url)])) as node:
        assert head_of(node, "latest", 5, 12) == 0


@pytest.mark.slow
def test_a_node_that_takes_too_long_is_named_and_asked_again_where_its_chain_is_followed(tmp_path):
    slow = next(refused for refused in RANGES if refused.who == "geth's timeout")
    ending, lines = threading.Event(), []
    with FaultNode(
        CHAIN, refuse=lambda method, params: slow if method == "eth_blockNumber" else None
    ) as server:
        with pytest.raises(
            NodeError, match=r"^The node took too long\. It says: request timed out\.$"
        ):
            said(server, tmp_path)
        server.refuse = lambda method, params: None

        def say(line):
            lines.append(line)
            if "are ingested" in line:
                server.refuse = lambda method, params: slow
            if "Trying again" in line:
                server.refuse, server.chain = lambda method, params: None, Chain(95)
            if "blocks 91 to 95" in line:
                ending.set()

        fetch(
            [Secret(server.url)],
            Request((COIN,), to_block="latest", check=0, follow=True, every=0.01),
            tmp_path,
            Output(say),
            ending=ending,
        )
    assert "The node took too long. It says: request timed out. Trying again in 0.01 s." in lines
    assert f"COIN ({checksummed(COIN)}): blocks 91 to 95." in lines


def test_there_must_be_a_url(ring, monkeypatch):
    monkeypatch.delenv("NBEXT_RPC_URL", raising=False)
    nowhere = (
        "No node is set. Set NBEXT_RPC_URL to its URL, or store it in the system's keyring: `keyring set nbext "
        "NBEXT_RPC_URL`."
    )
    for found, more in (
        (Ring(), ""),
        *(
            (Ring(error=error(KEY)), f" The keyring cannot be read ({error.__name__}).")
            for error in (KeyringLocked, AttributeError, ImportError, SystemExit, GeneratorExit)
        ),
    ):
        ring(found)
        with pytest.raises(ConfigError) as caught:
            urls_of()
        assert str(caught.value) == nowhere + more
        assert KEY not in "".join(traceback.format_exception(caught.value))
    assert [url.reveal() for url in urls_of(["http://a/x", "http://b/y, http://c/z"])] == [
        "http://a/x",
        "http://b/y",
        "http://c/z",
    ]


def test_the_url_is_read_from_the_keyring_where_no_variable_has_it(
    tmp_path, ring, capsys, monkeypatch
):
    words = [
        "fetch",
        "--contract",
        COIN,
        "--to-block",
        "latest",
        "--check",
        "0",
        "--data",
        str(tmp_path),
    ]
    with FaultNode(CHAIN) as kept, FaultNode(CHAIN) as set_:
        ring(Ring({("nbext", "NBEXT_RPC_URL"): f"{kept.url}\n"}))
        monkeypatch.setenv("NBEXT_RPC_URL", set_.url)
        assert cli.main(words) == 0
        assert kept.requests == []
        set_.requests.clear()
        monkeypatch.delenv("NBEXT_RPC_URL")
        kept.chain = Chain(95)
        assert cli.main(words) == 0
        assert kept.logs_asked() == [(91, 95)]
        assert set_.requests == []
    shown = capsys.readouterr()
    assert f"COIN ({checksummed(COIN)}): blocks 91 to 95." in shown.out
    assert KEY not in shown.out + shown.err


LEAKY = Refused(
    "a leaky node", 200, -32000, f"invalid api key {KEY} for /v3/{KEY}", FINAL[0].meaning
)


@pytest.mark.parametrize(
    ["refused"],  # noqa: PT006  a refusal is itself a tuple, which a name alone would not take apart
    slow.but_the_first(
        [
            (LEAKY,),
            (LEAKY._replace(status=429),),
            (LEAKY._replace(status=500),),
            (LEAKY._replace(message=f"<p>{KEY}"),),
        ]
    ),
    ids=["200", "429", "500", "in markup"],
)
def test_the_url_is_in_no_message_traceback_log_or_file(tmp_path, caplog, refused):
    caplog.set_level(logging.DEBUG)
    with FaultNode(
        CHAIN, refuse=lambda method, params: refused if method == "eth_getLogs" else None
    ) as server:
        with pytest.raises(NodeError) as caught:
            said(server, tmp_path)
        port = str(server.server.server_port)
    shown = "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    for text in (
        shown,
        str(caught.value),
        repr(caught.value),
        caplog.text,
        *(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()),
    ):
        assert KEY not in text
        assert port not in text


def test_the_url_is_not_shown_where_nobody_answers_or_it_is_wrong(tmp_path):
    for url in (
        f"http://127.0.0.1:1/{KEY}",
        f"http://user:{KEY}@127.0.0.1:1/",
        f"ftp://{KEY}",
        f"http://[{KEY}",
    ):
        with pytest.raises((NodeError, ConfigError)) as caught:
            fetch([Secret(url)], Request((COIN,)), tmp_path, Output())
        seen, error = [], caught.value
        while error is not None:
            seen.append("".join(traceback.format_exception(error)))
            error = error.__cause__ or error.__context__
        assert KEY not in "".join(seen), url


A_URL = (
    "a URL was given, which is not shown: it may hold a key. Set NBEXT_RPC_URL to a node's URL. Write ./ before "
    "the name of a folder that looks like a URL."
)


@pytest.mark.parametrize(
    "url",
    [
        f"https://node.example/v3/{KEY}",
        f"node.example/v3/{KEY}",
        f"localhost:8545/{KEY}",
        f"user:{KEY}@node/",
        f"https:/node/{KEY}",
    ],
)
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["{}"],
            "nbext: error: argument COMMAND: invalid choice: (a URL, not shown) (choose from ",
        ),
        (
            ["fetch", "{}", "--contract", "UNI"],
            "nbext fetch: error: unrecognized arguments: (a URL, not shown)",
        ),
        (
            ["fetch", "--contract", "UNI", "--rpc", "{0}", "{0}"],
            "nbext fetch: error: unrecognized arguments: (a URL, not shown)",
        ),
        (
            ["fetch", "--contract", "UNI", "--r={}"],
            "nbext fetch: error: ambiguous option: --r=(a URL, not shown) could match --rpc, --rps",
        ),
        *(
            (
                ["fetch", "--contract", "UNI", option, "{}"],
                f"nbext fetch: error: argument {option}: {A_URL}",
            )
            for option in (
                "--contract",
                "--chain",
                "--data",
                "--memory",
                "--from-block",
                "--to-block",
                "--confirmations",
                "--every",
                "--check",
                "--rps",
                "--in-flight",
            )
        ),
    ],
)
def test_a_url_in_the_place_of_another_word_is_not_repeated(capsys, words, error, url):
    with pytest.raises(SystemExit):
        cli.main([word.format(url) for word in words])
    shown = capsys.readouterr()
    assert KEY not in shown.out + shown.err
    assert shown.err.splitlines()[-1].startswith(error)


CHECK_IT = "Check the URL's host and port, whether it is http or https, that the node runs, and the network."


def test_where_nobody_answers_the_message_says_so_what_to_check_and_which_others_were_tried(
    tmp_path,
):
    def error_of(*urls):
        with pytest.raises(NodeError) as caught:
            fetch([Secret(url) for url in urls], Request((COIN,)), tmp_path, Output())
        return str(caught.value)

    dead = f"http://127.0.0.1:1/{KEY}"
    assert error_of(dead) == f"The node does not answer at its URL. {CHECK_IT}"
    with FaultNode(CHAIN) as server:
        assert error_of(server.url.replace("http:", "https:")) == (
            "The node has a certificate that is not trusted, or speaks no https. Check whether the URL is http or "
            "https. A certificate that the system trusts is trusted."
        )
        server.refuse = lambda method, params: FINAL[9]
        assert error_of(dead, server.url) == (
            "Node 1 of 2 does not answer at its URL. Node 2 of 2 refuses the key. It says: Unauthorized: You must "
            f"authenticate your request with an API key. {CHECK_IT} Check the key in the URL."
        )
        # Later than at the first question.
        server.refuse = lambda method, params: PASSING[6] if method == "eth_getCode" else None
        assert error_of(server.url) == (
            "No answer after 6 attempts. The node failed. It says: <html>Bad Gateway</html>."
        )


def test_a_fetch_that_is_told_to_end_again_and_again_ends(tmp_path, capsys, monkeypatch):
    others = []

    def insist(method, params):
        if method == "eth_getCode" and not others:
            # From another process: one comes while another is taken.
            send = f"os.kill({os.getpid()}, {signal.SIGTERM})"
            loop = f"import os\nfor _ in range(20_000): {send}\nprint(1)"
            others.append(subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE))
            others[0].stdout.read(1)

    former = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with FaultNode(CHAIN) as server:
            monkeypatch.setenv("NBEXT_RPC_URL", server.url)
            server.refuse = insist
            words = ["--contract", COIN, "--to-block", "latest", "--data", str(tmp_path)]
            assert cli.main(["fetch", *words]) == 143
    finally:
        for process in others:
            process.kill()
            process.communicate()
        signal.signal(signal.SIGTERM, former)
    assert "The fetch was stopped" in capsys.readouterr().err


@pytest.mark.slow
def test_a_fetch_that_is_ended_by_sigterm_says_what_became_of_it(tmp_path, capsys, monkeypatch):
    words = [
        "fetch",
        "--contract",
        COIN,
        "--to-block",
        "latest",
        "--in-flight",
        "1",
        "--data",
        str(tmp_path),
    ]

    def at(wanted):
        def refuse(method, params):
            # Not while it is looked whether anything was logged before the deployment.
            if method == wanted and (method != "eth_getLogs" or params[0]["fromBlock"] != "0x0"):
                os.kill(os.getpid(), signal.SIGTERM)
            return (
                RANGES[2]
                if method == "eth_getLogs" and int(params[0]["toBlock"], 16) > 30
                else None
            )

        return refuse

    # Of a busy machine: what is under way may take its time.
    monkeypatch.setattr("nbext.fetch.run._GRACE", 60)
    with FaultNode(CHAIN) as server:
        monkeypatch.setenv("NBEXT_RPC_URL", server.url)
        expected = (
            ("eth_getCode", "Nothing new was complete"),
            ("eth_getLogs", "What was complete is ingested"),
        )
        for where, kept in expected:
            server.refuse = at(where)
            assert cli.main(words) == 143
            out, err = capsys.readouterr()
            assert err == f"The fetch was stopped. {kept}; the same command continues from there.\n"
            assert re.fullmatch(r"Not covered: blocks \d+ to 90\.", out.splitlines()[-1])
        server.refuse = lambda method, params: None
        assert cli.main(words) == 0
        # One that follows is meant to be ended.
        server.refuse = at("eth_call")
        assert cli.main([*words, "--follow"]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == (
            "The fetch was stopped. Nothing new was complete; the same command continues from there."
        )


def test_nothing_new_is_said(tmp_path):
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, contracts=(COIN,), check=0)
        assert said(server, tmp_path, contracts=(COIN,), check=0) == [
            f"Nothing new: COIN ({checksummed(COIN)}) to block 90."
        ]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"follow": True, "to_block": "80"},
            "to_block: --follow has no last block, and --to-block 80 is one. Leave one of "
            "them out, or write --to-block latest or finalized.",
        ),
        (
            {"confirmations": 3, "to_block": "finalized"},
            "confirmations: --confirmations counts from the latest block, and "
            "--to-block finalized names another last block. Leave one of them "
            "out.",
        ),
    ],
)
def test_words_that_contradict_each_other_are_refused(tmp_path, request_, message):
    with pytest.raises(ValidationError) as caught:
        fetch([Secret("http://127.0.0.1:1")], Request((COIN,), **request_), tmp_path, Output())
    assert str(caught.value) == message


PRUNED = (
    "the node does not have the old states that would show when it was deployed. An archive node does. Its logs "
    "are read from block 0 on, or from --from-block N."
)


def test_a_contract_that_was_deployed_after_the_last_block_to_read_is_read_once_it_is_reached(
    tmp_path,
):
    """As of one that is minutes old: the finalized block is before it."""

    def young(method, params, true):
        old = method == "eth_getCode" and params[1] != "latest" and int(params[1], 16) < 85
        return "0x" if old else true

    chain = Chain(90)
    chain.logs = {number: logs for number, logs in chain.logs.items() if number >= 85}
    with FaultNode(chain, lie=young) as server:
        lines = said(server, tmp_path, contracts=(COIN,), to_block="auto", check=0)
        assert lines == [
            f"the contract ({checksummed(COIN)}): it was deployed after block 78, the last to read. Write --to-block "
            "latest, or fetch it later.",
            f"Nothing new: the contract ({checksummed(COIN)}) to block 78.",
        ]
        assert storage.current_generation(tmp_path) is None
        assert (
            said(server, tmp_path, contracts=(COIN,), check=0)[0]
            == f"COIN ({checksummed(COIN)}): blocks 85 to 90."
        )


@pytest.mark.slow
def test_a_deployment_that_a_node_failed_to_tell_is_not_stored(tmp_path):
    def refusing(refused):
        return lambda method, params: (
            refused if method == "eth_getCode" and params[1] != "latest" else None
        )

    def deployed():
        with opened(tmp_path) as coverage:
            return coverage.deployed.get(COIN)

    with FaultNode(CHAIN, refuse=refusing(PASSING[6])) as server:
        with pytest.raises(NodeError, match=r"^No answer after 6 attempts\. The node failed"):
            said(server, tmp_path, contracts=(COIN,), check=0)
        server.refuse, server.lie = (
            refusing(None),
            lambda method, params, true: (
                None if method == "eth_getCode" and params[1] != "latest" else true
            ),
        )
        assert said(server, tmp_path, contracts=(COIN,), check=0)[:2] == [
            f"the contract ({checksummed(COIN)}): {PRUNED}",
            f"COIN ({checksummed(COIN)}): blocks 0 to 90.",
        ]
        assert deployed() is None
        server.refuse, server.lie = refusing(FINAL[1]), lambda method, params, true: true
        assert said(server, tmp_path, contracts=(COIN,), check=0)[0] == (
            f"COIN ({checksummed(COIN)}): {PRUNED}"
        )
        assert deployed() is None
        server.refuse = refusing(None)
        said(server, tmp_path, contracts=(COIN,))
        assert deployed() == 1


@pytest.mark.parametrize(
    ("missing", "is_believed"),
    slow.but_the_first(
        [
            ({}, False),
            ({"eth_getTransactionByHash": {"type": "0x6a", "from": COIN, "nonce": "0x0"}}, True),
            ({"eth_getTransactionByHash": None}, True),
            ({"eth_getTransactionCount": FINAL[6]}, True),
            ({"eth_getTransactionCount": FINAL[0]}, False),
        ],
        2,
    ),
    ids=[
        "a wallet's",
        "one of the chain's own",
        "none",
        "no such method",
        "pruned, as the node says",
    ],
)
def test_a_pruned_state_that_looks_like_one_without_the_contract_is_told_by_a_senders_nonce(
    tmp_path, missing, is_believed
):
    def pruned(method, params, true):
        old = (
            method in ("eth_getCode", "eth_getTransactionCount")
            and params[1] != "latest"
            and int(params[1], 16) < 60
        )
        return (
            {"eth_getCode": "0x", "eth_getTransactionCount": "0x0"}[method]
            if old
            else missing.get(method, true)
        )

    chain = Chain(90)
    if is_believed:
        # A log from before is one of a contract that was there.
        chain.logs = {number: logs for number, logs in chain.logs.items() if number >= 60}
    with FaultNode(
        chain,
        lie=pruned,
        refuse=lambda method, params: (
            refused if isinstance(refused := missing.get(method), Refused) else None
        ),
    ) as server:
        lines = said(server, tmp_path, contracts=(COIN,), check=0)
    assert (
        lines[:-1] == [f"COIN ({checksummed(COIN)}): blocks 60 to 90."]
        if is_believed
        else [
            f"the contract ({checksummed(COIN)}): {PRUNED}",
            f"COIN ({checksummed(COIN)}): blocks 0 to 90.",
        ]
    )


def test_a_pruned_state_is_no_proof_of_a_deployment_where_the_nonce_is_no_answer_either(tmp_path):
    def pruned(method, params, true):
        old = method in ("eth_getCode", "eth_getTransactionCount") and params[1] != "latest"
        if not old or int(params[1], 16) >= 60:
            return true
        return "0x" if method == "eth_getCode" else None

    with FaultNode(Chain(90), lie=pruned) as server:
        lines = said(server, tmp_path, contracts=(COIN,), check=0)
    assert lines[:-1] == [
        f"the contract ({checksummed(COIN)}): {PRUNED}",
        f"COIN ({checksummed(COIN)}): blocks 0 to 90.",
    ]


def test_an_address_of_which_the_node_does_not_say_what_it_is_names_it_and_why(tmp_path):
    with (
        FaultNode(
            CHAIN, refuse=lambda method, params: FINAL[-1] if method == "eth_getCode" else None
        ) as server,
        pytest.raises(NodeError) as caught,
    ):
        said(server, tmp_path, contracts=(COIN,))
    assert str(caught.value) == (
        f"Whether {COIN} is a contract could not be read. The node refuses the request. It says: invalid argument 0: "
        "json: cannot unmarshal hex string."
    )


@pytest.mark.parametrize(
    ("raw", "finding"),
    [
        (b"", "Its answer is not JSON."),
        (b'{"jsonrpc": "2.0", "id": 1}', "Its answer is not one of JSON-RPC."),
        (b"[]", "An answer of the batch is missing."),
    ],
)
def test_what_we_find_of_an_answer_is_not_said_to_be_the_nodes_words(tmp_path, raw, finding):
    class Odd(FaultNode):
        def answer(self, body):
            return (
                (200, {}, raw)
                if isinstance(body, list) == raw.startswith(b"[")
                else super().answer(body)
            )

    with Odd(CHAIN) as server, pytest.raises(NodeError) as caught:
        said(server, tmp_path, contracts=(COIN,))
    assert finding in str(caught.value)
    assert "It says" not in str(caught.value)


@pytest.mark.slow
def test_a_contract_that_was_fetched_is_known_by_its_symbol_and_what_was_not_read_is_not_said_to_be(
    tmp_path,
):
    with FaultNode(CHAIN) as server:
        name = f"COIN ({checksummed(COIN)})"
        assert said(server, tmp_path, contracts=(COIN,), from_block="31", to_block="60", check=0)[
            0
        ] == (f"{name}: blocks 31 to 60.")
        assert said(server, tmp_path, contracts=("coin",), from_block="0", check=0)[0] == (
            f"{name}: blocks 0 to 30 and 61 to 90."
        )
        # Another one of that name: neither is meant more than the other.
        server.lie = lambda method, params, true: (
            "0x" + word(32) + word(4) + b"COIN".hex().ljust(64, "0")
            if (method == "eth_call" and params[0]["data"] == "0x95d89b41")
            else true
        )
        said(server, tmp_path, contracts=(ITEMS,), check=0)
        with pytest.raises(ValidationError) as caught:
            said(server, tmp_path, contracts=("COIN",), check=0)
        assert str(caught.value) == (
            f"contract: 'COIN' is the symbol of several contracts: {checksummed(COIN)}, {checksummed(ITEMS)}. Write "
            "the 0x... address: anyone can give a contract any symbol."
        )


def test_nodes_of_two_chains_are_told_apart_by_their_first_block(tmp_path):
    with FaultNode(CHAIN) as one, FaultNode(Chain(90, branch="b")) as other:
        request = Request((COIN,), to_block="latest", check=0)
        with pytest.raises(NodeError) as caught:
            fetch([Secret(one.url), Secret(other.url)], request, tmp_path, Output())
    assert str(caught.value) == (
        "The nodes are of different chains: block 0 is not the same at node 1 of 2, node 2 of 2."
    )


def test_a_node_that_does_not_answer_is_left_out_and_another_chains_is_refused(tmp_path):
    with FaultNode(CHAIN) as good, FaultNode(CHAIN, chain_id=10) as other:
        lines: list[str] = []
        request = Request((COIN,), to_block="latest", check=0)
        fetch(
            [Secret("http://127.0.0.1:1/x"), Secret(good.url)],
            request,
            tmp_path,
            Output(lines.append),
        )
        assert lines[0] == "Node 1 of 2 does not answer at its URL. It is left out."
        with pytest.raises(
            NodeError, match="Node 2 of 2 has the chain id 10, and --chain ethereum means 1"
        ):
            fetch([Secret(good.url), Secret(other.url)], request, tmp_path, Output())


def test_two_fetches_of_a_chain_do_not_run_at_once(tmp_path, coverage):
    with (
        FaultNode(CHAIN) as server,
        pytest.raises(Exception, match="another `nbext fetch` is running there"),
    ):
        said(server, tmp_path)


def test_an_install_without_what_ingest_needs_names_the_extra_that_has_it(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert (
        cli.main(
            ["fetch", "--rpc", "http://127.0.0.1:1", "--contract", COIN, "--data", str(tmp_path)]
        )
        == 2
    )
    assert capsys.readouterr().err == (
        "ConfigError: A fetch ingests what it reads, and the libraries for that are not installed: pip install "
        '"nbext[node]"\n'
    )


@pytest.mark.parametrize("contracts", [(), ("",), (" ",), ("UNI", "")])
def test_no_contract_is_no_fetch(tmp_path, contracts):
    with pytest.raises(ValidationError, match="a contract is missing"):
        fetch([Secret("http://127.0.0.1:1")], Request(contracts), tmp_path, Output())


@pytest.mark.slow
def test_each_holder_is_as_likely_to_be_compared_and_the_last_block_says_which(tmp_path):
    asked = Counter()

    def count(method, params, true):
        if method == "eth_call" and params[0]["data"].startswith("0x70a08231"):
            asked[params[0]["data"]] += 1
        return true

    with FaultNode(CHAIN, lie=count) as server:
        for last in range(61, 91):
            said(server, tmp_path, contracts=(COIN,), check=5, to_block=str(last))
        drawn, again = Counter(asked), []
        for data in (tmp_path, tmp_path / "other"):
            asked.clear()
            said(server, data, contracts=(COIN,), check=5, to_block="90")
            again.append(dict(asked))
        holders = sum(CHAIN.balance(f"0x{number:040x}", 90) > 0 for number in range(16, 60))
    assert sum(drawn.values()) == 150
    # Nobody is left out of so many draws but one time in millions; the first ones by address would be five.
    assert len(drawn) > holders * 0.7
    assert again[0] == again[1]
