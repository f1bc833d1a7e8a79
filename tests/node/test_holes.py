"""Kinds of hole that a node can leave: each ends in the chain's own rows or in an error, and in honest rows after it.

A node lags, forks, leaves out, refuses in its own words or answers with garbage. What it says once must not stay.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from base64 import b64encode
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from nbext import cli
from nbext.core.addresses import checksummed
from nbext.core.locks import exclusive
from nbext.engine import storage
from nbext.engine.open import open_dataset
from nbext.errors import IngestError, NbextError, NodeError, QueryCancelled
from nbext.fetch import Output, Request
from nbext.fetch.run import fetch
from nbext.node import ranges
from nbext.node.contracts import DEPOSIT, TRANSFERS
from nbext.node.reader import RangeReader
from nbext.node.rpc import Node
from nbext.settings import Secret
from tests import slow
from tests.full_disk import fill
from tests.node.conftest import opened, said
from tests.node.faults import COIN, ITEMS, KEY, ZERO, Chain, FaultNode, word
from tests.node.refusals import FINAL, RANGES, Refused

pytestmark = pytest.mark.slow
CHAIN = Chain(90)
FIVE = next(refused for refused in RANGES if refused.who == "QuickNode, five")
UNKNOWN = Refused("nobody", 200, -32000, "the moon is in the seventh house", FINAL[0].meaning)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("nbext.node.rpc.FIRST_PAUSE", 0.001)


def stored(data):
    """How many transfers the data has."""
    served = storage.current_generation(data)
    return served.manifest["tables"]["transfers"] if served else 0


def is_chains(data, server, chain, **request):
    """Fetch from an honest node, and compare all balances and the number of rows."""
    server.lie, server.refuse, server.chain = (
        lambda method, params, true: true,
        lambda method, params: None,
        chain,
    )
    lines = said(server, data, check=100, **request)
    equal = [line for line in lines if "balances equal" in line]
    return stored(data) == chain.rows() and all(
        line.split(": ")[1].split(" of ")[0] == line.split(" of ")[1].split(" ")[0]
        for line in equal
    )


def of_method(wanted, change):
    """Return a lie about the results of one method that have something."""
    return lambda method, params, true: change(true) if method == wanted and true else true


def changed(**fields):
    """Return a lie about the last log of each answer."""
    return of_method("eth_getLogs", lambda logs: [*logs[:-1], {**logs[-1], **fields}])


@pytest.mark.parametrize(
    "lie",
    [
        changed(data=None),
        changed(logIndex=hex(2**70)),
        changed(transactionHash="0x" + "zz" * 32),
        changed(topics=[[], {}]),
        changed(blockNumber=["0x1"]),
        of_method("eth_getLogs", lambda logs: [None, *logs]),
        of_method("eth_getBlockByNumber", lambda block: {**block, "timestamp": hex(2**200)}),
        of_method("eth_getBlockByNumber", lambda block: {**block, "hash": {"a": 1}}),
        of_method("eth_getBlockReceipts", lambda receipts: [{"logs": [{"topics": 5}, None]}]),
    ],
)
def test_garbage_in_an_answer_ends_the_fetch_and_its_range_is_read_again(tmp_path, lie):
    with FaultNode(CHAIN, lie=lie) as server:
        with pytest.raises(NodeError):
            said(server, tmp_path)
        asked = len(server.logs_asked())
        assert asked < 30
        assert is_chains(tmp_path, server, CHAIN)


def test_an_id_that_is_a_list_is_no_answer(tmp_path):
    class Odd(FaultNode):
        def answer(self, body):
            status, headers, raw = super().answer(body)
            answers = json.loads(raw)
            if isinstance(answers, list) and body[0]["method"] == "eth_getLogs":
                answers[0]["id"] = [answers[0]["id"]]
            return status, headers, json.dumps(answers).encode()

    with Odd(CHAIN) as server, pytest.raises(NodeError):
        said(server, tmp_path)
    with FaultNode(CHAIN) as server:
        assert is_chains(tmp_path, server, CHAIN)


def test_two_nodes_that_part_at_block_1400_of_2000_are_refused(tmp_path):
    ours, theirs = Chain(2000), Chain(2000, fork=1400, branch="b")
    with FaultNode(ours) as one, FaultNode(theirs) as other:
        with pytest.raises(NodeError, match="are of different chains: block 2,000 is not the same"):
            fetch(
                [Secret(one.url), Secret(other.url)],
                Request((COIN, ITEMS), to_block="latest"),
                tmp_path,
                Output(),
            )
        assert is_chains(tmp_path, one, ours)


@pytest.mark.parametrize("every", [3, 7])
def test_a_balancer_over_two_branches_gives_rows_of_one_of_them(tmp_path, every):
    ours, theirs = Chain(2000), Chain(2000, fork=1400, branch="b")

    class Balancer(FaultNode):
        def answer(self, body):
            self.chain = theirs if self.posts % every == 0 else ours
            return super().answer(body)

    with Balancer(ours) as server:
        try:
            said(server, tmp_path, check=0)
        except NodeError:
            pass
        else:
            assert stored(tmp_path) in (ours.rows(), theirs.rows())
    with FaultNode(ours) as server:
        assert is_chains(tmp_path, server, ours)


def test_a_node_that_never_has_the_blocks_that_it_sent_is_not_asked_for_ever(tmp_path):
    class Balancer(FaultNode):
        """Sends the headers of a range from one branch, and any single one from another."""

        def answer(self, body):
            alone = isinstance(body, dict) and body["method"] == "eth_getBlockByNumber"
            self.chain = Chain(90, fork=80, branch="b") if alone and self.logs_asked() else CHAIN
            return super().answer(body)

    with (
        Balancer(CHAIN) as server,
        pytest.raises(NodeError, match="is another one each time that it is read: the node"),
    ):
        said(server, tmp_path, check=0)
    with FaultNode(CHAIN) as server:
        assert is_chains(tmp_path, server, CHAIN)


def test_a_reorganisation_between_the_look_for_one_and_the_logs_is_read_again(tmp_path):
    longer, other = Chain(120), Chain(120, fork=85, branch="b")
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, check=0)

        def lie(method, params, true):
            if method == "eth_getLogs":
                server.chain = other
                return other.asked(params[0])
            return true

        server.chain, server.lie = longer, lie
        said(server, tmp_path, check=0)
        assert stored(tmp_path) == other.rows()
        assert is_chains(tmp_path, server, other)


def test_a_block_of_0x1212_in_the_middle_of_a_range_is_not_stored(tmp_path):
    chain = Chain(400)

    def lie(method, params, true):
        if method == "eth_getLogs":
            return [
                {
                    **log,
                    "blockTimestamp": hex(chain.time(int(log["blockNumber"], 16))),
                    **({"blockHash": "0x" + "12" * 32} if log["blockNumber"] == odd else {}),
                }
                for log in true
            ]
        return true

    odd = next(hex(number) for number in chain.logs if number > 150)
    with FaultNode(chain, lie=lie) as server:
        with pytest.raises(NodeError, match="another block than its header"):
            said(server, tmp_path, check=0)
        assert is_chains(tmp_path, server, chain)


def test_a_time_before_that_of_the_block_before_is_not_stored(tmp_path):
    wrong = next(hex(number) for number in CHAIN.logs if number > 10)

    def lie(method, params, true):
        is_wrong = method == "eth_getBlockByNumber" and params[0] == wrong
        return {**true, "timestamp": "0x5"} if is_wrong else true

    with FaultNode(CHAIN, lie=lie) as server:
        with pytest.raises(NodeError, match="is earlier than block"):
            said(server, tmp_path, check=0)
        assert is_chains(tmp_path, server, CHAIN)


def test_orphaned_rows_of_a_node_that_answered_of_another_branch_go_with_the_next_reading(tmp_path):
    """A node of another branch that agrees with itself, and with the last block."""
    orphan = Chain(90)
    number = next(number for number in orphan.logs if number > 12)
    orphan.move(number, 50, COIN, (f"0x{20:040x}", f"0x{21:040x}"), 0)
    orphan.move(number, 51, COIN, ("0x" + "0" * 40, f"0x{21:040x}"), 777)
    no_receipts = lambda method, params: FINAL[6] if "Receipts" in method else None  # noqa: E731
    with FaultNode(orphan, refuse=no_receipts) as server:
        server._eth_call = FaultNode(CHAIN)._eth_call
        server.lie = lambda method, params, true: (
            CHAIN.asked(params[0])
            if method == "eth_getLogs" and params[0]["fromBlock"] == params[0]["toBlock"]
            else true
        )
        with pytest.raises(NodeError, match="does not have all transfers that it returned"):
            said(server, tmp_path, check=100)
        assert is_chains(tmp_path, server, CHAIN)


def test_what_a_node_refuses_in_unknown_words_is_said_and_asked_again(tmp_path):
    def refuse(method, params):
        is_metadata = method == "eth_call" and params[1] == "latest"
        return UNKNOWN if is_metadata else None

    with FaultNode(CHAIN, refuse=refuse) as server:
        lines = said(server, tmp_path, contracts=(COIN,), check=0)
        assert lines[0] == (
            f"the contract ({checksummed(COIN)}): its name and symbol and decimals and total supply and standard could "
            "not be read. The node refuses the request. It says: the moon is in the seventh house. The next fetch asks "
            "again."
        )
        server.refuse = lambda method, params: None
        # Nothing is new but that.
        said(server, tmp_path, contracts=(COIN,), check=0)
        assert card(tmp_path, COIN) == ("COIN", 18, "ERC20")
        server.refuse = refuse
        said(server, tmp_path, contracts=(COIN,), check=0)
        assert card(tmp_path, COIN) == ("COIN", 18, "ERC20")


def test_a_node_that_answers_with_nothing_does_not_take_back_what_a_contract_said(tmp_path):
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, contracts=(COIN,), check=0)
        server.lie = lambda method, params, true: (
            "0x" if method == "eth_call" and params[1] == "latest" else true
        )
        assert said(server, tmp_path, contracts=(COIN,), check=0)[0] == (
            f"COIN ({checksummed(COIN)}): its name and symbol and decimals and total supply and standard could not be "
            "read. The node refuses the request. It answers with nothing at the latest block. The next fetch asks "
            "again."
        )
        assert card(tmp_path, COIN) == ("COIN", 18, "ERC20")


def card(data, contract):
    """Symbol, decimals and standard of a contract, as answers have them."""
    dataset = open_dataset(data)
    try:
        found = dataset.catalog.contract(1, contract)
        return found.symbol, found.decimals, found.standard
    finally:
        dataset.close()


@pytest.mark.parametrize(
    "refused",
    [UNKNOWN, FINAL[0], UNKNOWN._replace(status=400), FINAL[0]._replace(status=403)],
    ids=["in unknown words", "pruned", "as a bad request", "pruned, as forbidden"],
)
def test_a_balance_that_a_node_refuses_is_no_balance_that_differs(tmp_path, refused):
    def refuse(method, params):
        return refused if method == "eth_call" and params[1] != "latest" else None

    with FaultNode(CHAIN, refuse=refuse, batches=1000 if refused.status == 200 else 0) as server:
        line = said(server, tmp_path, contracts=(COIN,))[-1]
    assert line.startswith(f"COIN ({checksummed(COIN)}): balances were not compared: The node ")
    assert [one.differing for one in storage.current_generation(tmp_path).chains] == [{}]


def test_a_state_that_is_pruned_without_a_word_does_not_say_that_balances_move_without_a_transfer(
    tmp_path,
):
    """The node leaves a log out, and of blocks before answers as if the contract had never been there."""
    lost = max(number for number, logs in CHAIN.logs.items() if logs[-1]["address"] == COIN)

    def lie(method, params, true):
        if method in ("eth_getLogs", "eth_getBlockReceipts"):
            return (
                None
                if "Receipts" in method
                else [log for log in true if log["blockNumber"] != hex(lost)]
            )
        if method == "eth_getBlockByNumber" and true:
            return {**true, "logsBloom": "0x" + "0" * 512}
        is_pruned = method == "eth_call" and params[1] != "latest" and int(params[1], 16) < lost
        return "0x" if is_pruned else true

    with FaultNode(CHAIN, lie=lie) as server:
        line = said(server, tmp_path, contracts=(COIN,), check=100)[-1]
    (chain,) = storage.current_generation(tmp_path).chains
    assert chain.differing[COIN].cause == "unknown", line


@pytest.mark.parametrize(
    ("method", "garbage"),
    slow.but_the_first(
        [
            ("eth_getCode", None),
            ("eth_getCode", 5),
            ("eth_blockNumber", None),
            ("eth_getLogs", None),
            ("eth_call", {}),
            ("eth_chainId", []),
        ],
        2,
    ),
    ids=str,
)
def test_what_one_of_several_nodes_answers_that_is_no_answer_is_asked_of_another(
    tmp_path, method, garbage
):
    with FaultNode(CHAIN) as honest, FaultNode(CHAIN) as odd:
        odd.lie = lambda asked, params, true: garbage if asked == method else true
        lines: list[str] = []
        urls = [Secret(server.url) for server in (odd, honest)]
        request = Request((COIN, ITEMS), to_block="latest", check=5)
        fetch(urls, request, tmp_path, Output(lines.append))
    assert len([line for line in lines if " balances equal the chain's at block 90." in line]) == 2
    assert [line for line in lines if "could not be read" in line] == []
    assert stored(tmp_path) == CHAIN.rows()


def test_what_a_balancer_answers_now_and_then_that_is_no_answer_is_asked_again(tmp_path):
    asked = [0]

    def lie(method, params, true):
        asked[0] += method == "eth_getCode"
        return None if method == "eth_getCode" and asked[0] % 2 else true

    with FaultNode(CHAIN, lie=lie) as server:
        lines = said(server, tmp_path, contracts=(COIN,), check=0)
    assert lines[0] == f"COIN ({checksummed(COIN)}): blocks 1 to 90."


def test_states_that_one_node_behind_a_balancer_has_pruned_hide_no_row(tmp_path):
    chain, asked = Chain(400), [0]

    def lie(method, params, true):
        asked[0] += method == "eth_getCode"
        is_pruned = method == "eth_getCode" and params[1] != "latest" and int(params[1], 16) < 380
        return "0x" if is_pruned and asked[0] % 2 else true

    with FaultNode(chain, lie=lie) as server:
        said(server, tmp_path, check=0)
    assert stored(tmp_path) == chain.rows()


@pytest.mark.parametrize(
    ("contract", "standard"), [(COIN, "ERC20"), (ITEMS, "ERC1155")], ids=["a coin", "items"]
)
def test_one_log_of_another_standard_does_not_make_a_contract_one_of_it(
    tmp_path, contract, standard
):
    chain = Chain(90)
    chain.move(33, 77, ITEMS if contract == ITEMS else COIN, (f"0x{16:040x}", f"0x{17:040x}"), 0)
    if contract == COIN:
        # With four topics, as a collection's.
        odd = chain.logs[33][-1]
        odd["topics"], odd["data"] = [*odd["topics"], "0x" + word(5)], "0x"
    else:
        odd = chain.logs[33][-1]
        odd["topics"], odd["data"] = odd["topics"][:3], "0x" + word(5)
    silent = lambda method, params: (  # noqa: E731
        UNKNOWN
        if method == "eth_call" and params[0]["data"].startswith(("0x01ffc9a7", "0x18160ddd"))
        else None
    )
    with FaultNode(chain, refuse=silent) as server:
        said(server, tmp_path, contracts=(contract,), check=0)
    with opened(tmp_path) as coverage:
        assert coverage.said[contract]["standard"] == standard


def test_receipts_that_are_refused_once_are_asked_for_again(tmp_path):
    refused = [0]

    def refuse(method, params):
        if method != "eth_getBlockReceipts":
            return None
        refused[0] += 1
        return UNKNOWN if refused[0] == 1 else None

    lost = max(CHAIN.logs)

    def lie(method, params, true):
        # A log that the node leaves out later.
        if method == "eth_getLogs" and params[0]["fromBlock"] != params[0]["toBlock"]:
            return [log for log in true if log["blockNumber"] != hex(lost)]
        return true

    with FaultNode(CHAIN, refuse=refuse, lie=lie) as server:
        with pytest.raises(NodeError, match="logs that its receipts have"):
            said(server, tmp_path, check=0)
        server.refuse = lambda method, params: FINAL[6] if "Receipts" in method else None
        server.lie = lambda method, params, true: true
        lines = said(server, tmp_path, check=0)
    assert any(line.startswith("The receipts of ") and "not offered" in line for line in lines)


@pytest.mark.parametrize(
    "form",
    [
        KEY.encode(),
        KEY.encode().hex().encode(),
        b64encode(b"a" + KEY.encode()),
        json.dumps(KEY).replace("k", "\\u006b").encode(),
    ],
    ids=["plain", "hex", "base64", "escaped"],
)
def test_a_key_that_a_node_repeats_is_nowhere(tmp_path, caplog, form):
    caplog.set_level(logging.DEBUG)
    text = form if not form.startswith(b'"') else KEY.encode()
    symbol = "0x" + word(32) + word(len(text)) + text.hex().ljust(192, "0")

    class Telling(FaultNode):
        def answer(self, body):
            status, headers, raw = super().answer(body)
            if form.startswith(b'"') and b'"removed"' in raw:
                raw = raw.replace(b'"removed"', b'"from": ' + form + b', "removed"')
            return status, headers, raw

    def lie(method, params, true):
        is_symbol = method == "eth_call" and params[0]["data"] in ("0x95d89b41", "0x06fdde03")
        return symbol if is_symbol else true

    with Telling(CHAIN, lie=lie) as server:
        lines = said(server, tmp_path, contracts=(COIN,))
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    shown = " ".join(lines).encode() + caplog.text.encode()
    assert text not in files + shown
    assert KEY.encode() not in files + shown


def test_a_key_at_which_an_answer_is_cut_is_not_shown_in_part(tmp_path):
    answer = f"{'x' * 60} {KEY}"
    with (
        FaultNode(CHAIN, lie=of_method("eth_getCode", lambda code: answer)) as server,
        pytest.raises(NodeError) as caught,
    ):
        said(server, tmp_path)
    assert str(caught.value) == (
        f"Whether {ITEMS} is a contract could not be read. The node does not answer what it was asked. Its answer to "
        "eth_getCode has another form."
    )


def test_a_key_at_which_a_field_of_a_log_is_cut_is_not_shown_in_part(tmp_path):
    lie = changed(data=f"{'x' * 60} {KEY}")
    with FaultNode(CHAIN, lie=lie) as server, pytest.raises(NodeError) as caught:
        said(server, tmp_path)
    assert str(caught.value) == f"{'x' * 60} ***… (97 characters) is not bytes as hex."


@pytest.mark.parametrize("key", ["k3y", "abcdef", "s3cr3t"])
def test_a_short_key_is_hidden_where_it_is_a_word(tmp_path, key):
    refused = UNKNOWN._replace(message=f"no such project: {key}")
    with FaultNode(CHAIN, refuse=lambda method, params: refused) as server:
        url = f"http://127.0.0.1:{server.server.server_port}/v3/{key}"
        with pytest.raises(NodeError) as caught:
            fetch([Secret(url)], Request((COIN,)), tmp_path, Output())
    assert str(caught.value).endswith("It says: no such project: ***.")


class Dripping:
    """A server that sends the head of an answer byte by byte, for ever; a context."""

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.close()

    def _serve(self):
        with self._listener:
            while True:
                try:
                    connection, _ = self._listener.accept()
                except OSError:
                    return
                threading.Thread(target=self._drip, args=(connection,), daemon=True).start()

    def _drip(self, connection):
        with connection:
            try:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
                while True:
                    connection.sendall(b"X-Slow: yes\r\n"[:1])
                    time.sleep(0.02)
            except OSError:
                return


def test_a_head_that_is_dripped_ends_at_the_deadline(tmp_path, monkeypatch):
    monkeypatch.setattr("nbext.node.rpc.DEADLINE", 0.2)
    monkeypatch.setattr("nbext.node.rpc.ATTEMPTS", 2)
    with Dripping() as server, pytest.raises(NodeError, match="took too long"):
        said(server, tmp_path)


def test_sigterm_ends_a_fetch_that_waits_for_a_rate_limit(tmp_path, monkeypatch, capsys):
    limited = Refused("a limit", 429, -32005, "too many requests", FINAL[0].meaning)
    words = ["fetch", "--contract", COIN, "--to-block", "latest", "--data", str(tmp_path)]
    began = []

    def refuse(method, params):
        if method != "eth_getLogs":
            return None
        if not began:
            began.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGTERM)
        return limited

    with FaultNode(CHAIN, refuse=refuse, headers={"Retry-After": "60"}) as server:
        monkeypatch.setenv("NBEXT_RPC_URL", server.url)
        assert cli.main(words) == 143, capsys.readouterr().err
    assert time.monotonic() - began[0] < 30


def test_a_fetch_that_follows_goes_on_beside_an_ingest(tmp_path):
    ending, lines = threading.Event(), []
    with FaultNode(CHAIN) as server, ExitStack() as beside:
        beside.enter_context(exclusive(tmp_path / ".ingest.lock"))

        def say(line):
            lines.append(line)
            if "Trying again" in line:
                beside.close()
            if "are ingested" in line:
                ending.set()

        request = Request((COIN,), to_block="latest", check=0, follow=True, every=0.01)
        fetch([Secret(server.url)], request, tmp_path, Output(say), ending=ending)
    assert "another `nbext ingest` is writing there" in lines[0]


def test_a_fetch_that_follows_ends_where_a_node_leaves_out_logs_again(tmp_path):
    """It reads all blocks anew for that: each time that it tried again, it would cost as much as the first."""
    lost = next(
        hex(number)
        for number, logs in CHAIN.logs.items()
        if number < 20 and any(log["address"] == COIN and int(log["data"], 16) for log in logs)
    )

    def lie(method, params, true):
        if method == "eth_getLogs" and params[0]["fromBlock"] != params[0]["toBlock"]:
            return [log for log in true if log["blockNumber"] != lost]
        return true

    no_receipts = lambda method, params: FINAL[6] if "Receipts" in method else None  # noqa: E731
    ending, lines = threading.Event(), []

    def say(line):
        lines.append(line)
        if "Trying again" in line:
            ending.set()

    request = Request((COIN,), to_block="latest", check=1000, follow=True, every=0.01)
    with FaultNode(CHAIN, lie=lie, refuse=no_receipts) as server:
        with pytest.raises(NodeError, match="The node left logs out: block"):
            fetch([Secret(server.url)], request, tmp_path, Output(say), ending=ending)
        assert lines[-1] == "Not covered: blocks 1 to 90."
        # Also where it says nothing any more once all is to be read anew.
        server.requests.clear()
        server.refuse = lambda method, params: (
            UNKNOWN
            if method == "eth_blockNumber" and (method, params) in server.requests[:-1]
            else no_receipts(method, params)
        )
        with pytest.raises(NodeError, match="the moon"):
            fetch([Secret(server.url)], replace(request, follow=False), tmp_path, Output(say))
        assert lines[-1] == "Not covered: blocks 1 to 90."
        assert is_chains(tmp_path, server, CHAIN)


def test_blocks_that_several_contracts_lack_are_named_once(tmp_path):
    lines = []
    request = Request((COIN,), from_block="5", to_block="40", check=0)
    with FaultNode(CHAIN) as server:
        fetch([Secret(server.url)], request, tmp_path, Output(lines.append))
        server.refuse = lambda method, params: FINAL[0] if method == "eth_getLogs" else None
        both = replace(request, contracts=(COIN, ITEMS), to_block="latest")
        with pytest.raises(NodeError, match="pruned"):
            fetch([Secret(server.url)], both, tmp_path, Output(lines.append))
    assert lines[-1] == "Not covered: blocks 5 to 90."


def test_a_full_disk_ends_the_fetch_and_asks_the_node_for_nothing_more(small_disk):
    data = small_disk / "data"
    chain = Chain(400)
    with FaultNode(chain) as server:
        said(server, data, check=0, to_block="90")
        server.requests.clear()
        fill(small_disk, free=2**13)
        with pytest.raises(NbextError, match=r"cannot be (read or )?written"):
            said(server, data, check=0)
        assert len(server.logs_asked()) < 10
        (small_disk / "fill").unlink()
        assert is_chains(data, server, chain)


def test_a_row_that_ingest_refuses_leaves_its_range_uncovered(tmp_path, monkeypatch):
    """Whatever passes our own checks: here they let through what is no hash."""
    with FaultNode(CHAIN, lie=changed(transactionHash="0x" + "zz" * 32)) as server:
        monkeypatch.setitem(ranges._FIELDS, "transactionHash", ("a text", ""))
        honest = FaultNode.__init__.__kwdefaults__["lie"]
        server.refuse = lambda method, params: FINAL[6] if "Receipts" in method else None
        with pytest.raises(NbextError, match="could not be stored"):
            said(server, tmp_path, check=0)
        server.lie, server.refuse = honest, lambda method, params: None
        # Not that its files are no longer in the data: they never were.
        assert said(server, tmp_path, check=0)[0].endswith(": blocks 1 to 90.")
        assert is_chains(tmp_path, server, CHAIN)


def interrupt(once):
    """Interrupt the main thread, once: a second signal would end the test itself."""
    for number in once:
        signal.pthread_kill(threading.main_thread().ident, number)
        time.sleep(1)


@pytest.mark.parametrize("stops", [IngestError("no room"), ZeroDivisionError(), None], ids=repr)
def test_whatever_ends_a_fetch_the_blocks_that_are_not_covered_are_named(
    tmp_path, monkeypatch, stops
):
    """Also what no rule of ours expected: it must not look as if nothing were missing."""
    lines, once = [], iter([signal.SIGINT])

    def stopped(*_, **__):
        raise stops or interrupt(once) or OSError

    monkeypatch.setattr("nbext.node.reader.read_range", stopped)
    request = Request((COIN,), to_block="latest", check=0)
    with FaultNode(CHAIN) as server, pytest.raises(NbextError):
        fetch([Secret(server.url)], request, tmp_path, Output(lines.append))
    assert lines[-1] == "Not covered: blocks 1 to 90."


def test_a_contract_that_was_destroyed_is_read_from_a_block_that_is_named(tmp_path):
    gone = of_method("eth_getCode", lambda code: "0x")
    with FaultNode(CHAIN, lie=gone) as server:
        with pytest.raises(
            NodeError, match="Of one that was destroyed --from-block N reads the logs"
        ):
            said(server, tmp_path, contracts=(COIN,))
        server._eth_call = lambda call, block: "0x"
        lines = said(server, tmp_path, contracts=(COIN,), from_block="0")
    coin = sum(log["address"] == COIN for logs in CHAIN.logs.values() for log in logs)
    assert stored(tmp_path) == coin
    assert "It has no code at the latest block. The next fetch asks again." in lines[0]


def test_a_contract_that_was_made_again_is_read_from_its_first_life_on(tmp_path):
    def lie(method, params, true):
        is_old = method == "eth_getCode" and params[1] != "latest"
        return "0x" if is_old and 20 <= int(params[1], 16) < 70 else true

    with FaultNode(CHAIN, lie=lie) as server:
        said(server, tmp_path, check=0)
    assert stored(tmp_path) == CHAIN.rows()


def test_a_contract_of_which_nobody_has_anything_at_the_last_block_is_compared(tmp_path):
    chain, holder = Chain(90), f"0x{20:040x}"
    chain.logs.clear()
    with FaultNode(chain) as server:
        lines = said(server, tmp_path, contracts=(COIN,))
        assert lines[-1] == f"COIN ({checksummed(COIN)}): nobody has a balance at block 90."
        chain.move(30, 0, COIN, (ZERO, holder), 5)
        chain.move(31, 0, COIN, (holder, ZERO), 5)
        server.chain._headers.clear()
        lines = said(server, tmp_path / "moved", contracts=(COIN,))
    compared = "1 of 1 balances equal the chain's at block 90."
    assert lines[-1] == f"COIN ({checksummed(COIN)}): {compared}"
    assert stored(tmp_path / "moved") == 2


def test_a_collection_of_which_nobody_is_drawn_is_compared(tmp_path):
    chain, holder = Chain(90), f"0x{20:040x}"
    chain.logs.clear()
    chain.move(30, 0, ITEMS, (ZERO, holder), 5)
    chain.move(31, 0, ITEMS, (holder, ZERO), 5)
    with FaultNode(chain) as server:
        server.lie = lambda method, params, true: "0x" if method == "eth_call" else true
        lines = said(server, tmp_path, contracts=(ITEMS,), check=1)
    name = f"the contract ({checksummed(ITEMS)})"
    assert lines[-1] == f"{name}: nobody has a balance at block 90."


def test_a_contract_whose_first_states_and_logs_a_node_hides_is_read_whole_from_an_honest_one(
    tmp_path,
):
    """Of ERC1155 every balance of a token id that is known may be equal all the same."""

    def lie(method, params, true):
        if method == "eth_getCode" and params[1] != "latest" and int(params[1], 16) < 40:
            return "0x"
        is_logs = method == "eth_getLogs"
        return [log for log in true if int(log["blockNumber"], 16) >= 40] if is_logs else true

    with FaultNode(CHAIN, lie=lie) as server:
        lines = said(server, tmp_path, contracts=(ITEMS,))
        assert lines[-1].endswith("4 of 4 balances equal the chain's at block 90.")
        assert stored(tmp_path) < CHAIN.rows()
        assert is_chains(tmp_path, server, CHAIN)


def test_a_limit_in_unknown_words_is_halved_and_then_said(tmp_path):
    def refuse(method, params):
        if method != "eth_getLogs":
            return None
        many = int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16)
        return UNKNOWN if many >= limit else None

    limit = 7
    with FaultNode(CHAIN, refuse=refuse) as server:
        said(server, tmp_path / "some", check=0)
        assert stored(tmp_path / "some") == CHAIN.rows()
        limit = 0
        with pytest.raises(NodeError, match="It says: the moon is in the seventh house") as caught:
            said(server, tmp_path / "none", check=0)
        assert len(server.logs_asked()) < 200
    assert "Lie" not in str(caught.value)


def everywhere(change):
    """Return a lie about the logs of each answer, those of receipts too: change returns a log, or None."""

    def lie(method, params, true):
        changed = lambda logs: [new for log in logs if (new := change(log))]  # noqa: E731
        if method == "eth_getLogs" and true:
            return changed(true)
        if method == "eth_getBlockReceipts" and true:
            return [{**one, "logs": changed(one["logs"])} for one in true]
        return true

    return lie


def test_amounts_that_a_node_changes_wherever_they_are_are_replaced_by_those_of_an_honest_one(
    tmp_path,
):
    with FaultNode(
        CHAIN,
        lie=everywhere(
            lambda log: {**log, "data": "0x" + word(5)} if log["address"] == COIN else log
        ),
    ) as server:
        lines = said(server, tmp_path)
        assert any("moves balances without a Transfer" in line for line in lines)
        assert is_chains(tmp_path, server, CHAIN)


def test_a_contract_that_a_node_leaves_out_of_receipts_too_is_missed_by_the_filters(tmp_path):
    """Of ERC1155 nothing else tells: a contract has no supply, and who has nothing is not asked about."""
    with FaultNode(
        CHAIN, lie=everywhere(lambda log: log if log["address"] != ITEMS else None)
    ) as server:
        with pytest.raises(NodeError, match=f"have no log of {ITEMS}, and its bloom filter says"):
            said(server, tmp_path)
        assert is_chains(tmp_path, server, CHAIN)


def left_out_of(chain, contract):
    """Return how a node leaves a contract's first log out, and offers no receipts; the log comes once more later."""
    gone = next(log for logs in chain.logs.values() for log in logs if log["address"] == contract)
    chain._log(85, 99, contract, gone["topics"], gone["data"])

    def lie(method, params, true):
        is_range = method == "eth_getLogs" and params[0]["fromBlock"] != params[0]["toBlock"]
        return [log for log in true if log != gone] if is_range else true

    return lie, lambda method, params: UNKNOWN if method == "eth_getBlockReceipts" else None


def test_items_that_a_node_left_out_are_found_by_what_wallets_have_of_each_id(tmp_path):
    """It offers no receipts, so that only balances show it; all that a wallet was sent later is there."""
    chain = Chain(90)
    items = [log for logs in chain.logs.values() for log in logs if log["address"] == ITEMS]
    lie, refuse = left_out_of(chain, ITEMS)
    with FaultNode(chain, lie=lie, refuse=refuse) as server:
        with pytest.raises(NodeError) as caught:
            said(server, tmp_path, contracts=(ITEMS,), check=100)
        gone, holders = items[0], len({log["topics"][3] for log in items})
        assert str(caught.value) == (
            f"the contract ({checksummed(ITEMS)}): {holders - 1} of {holders} balances equal the chain's at block 90. "
            f"The node left logs out: block {int(gone['blockNumber'], 16)} has transfers that it did not return. The "
            "next fetch reads all blocks of the contract again: use another node."
        )
        assert is_chains(tmp_path, server, chain)


def test_of_what_is_read_again_nothing_is_said_before_it_is(tmp_path):
    """A node left out logs of one contract, in an earlier fetch: the blocks of the other are read again, too."""
    chain = Chain(90)
    lie, refuse = left_out_of(chain, ITEMS)
    with FaultNode(chain, lie=lie, refuse=refuse) as server:
        said(server, tmp_path, check=0)
        assert stored(tmp_path) == chain.rows() - 6
        server.lie, server.refuse = lambda method, params, true: true, lambda *call: None
        names = f"COIN ({checksummed(COIN)})", f"the contract ({checksummed(ITEMS)})"
        lines = said(server, tmp_path, check=100)
    assert stored(tmp_path) == chain.rows()
    assert [line for line in lines if " blocks " in line or " balances " in line] == [
        f"{names[1]}: blocks 1 to 90.",
        f"{names[0]}: blocks 1 to 90.",
        f"{names[0]}: 36 of 36 balances equal the chain's at block 90.",
        f"{names[1]}: 6 of 6 balances equal the chain's at block 90.",
    ]


def test_where_a_node_leaves_logs_out_again_the_others_are_said_before_the_fetch_ends(tmp_path):
    """Nothing of them is read again in it: what was compared is what stays."""
    chain, lines = Chain(90), []
    lie, refuse = left_out_of(chain, ITEMS)
    request = Request((COIN, ITEMS), to_block="latest", check=100)
    with FaultNode(chain, lie=lie, refuse=refuse) as server:
        with pytest.raises(NodeError, match=rf"^the contract \({checksummed(ITEMS)}\): 5 of 6 "):
            fetch([Secret(server.url)], request, tmp_path, Output(lines.append))
        assert [line for line in lines if " balances " in line or "Not" in line] == [
            f"COIN ({checksummed(COIN)}): 36 of 36 balances equal the chain's at block 90.",
            "Not covered: blocks 1 to 90.",
        ]
        assert is_chains(tmp_path, server, chain)


@pytest.mark.parametrize("cause", ["unlogged", "left out"])
def test_what_was_compared_before_an_interrupt_is_stored_and_said(tmp_path, cause):
    """But nothing is said of what a node left out: it is stored so, and the next fetch reads all of it again."""
    chain, lines, ended, once = Chain(90), [], threading.Event(), iter([signal.SIGINT])
    lie, refuse = lambda method, params, true: true, lambda method, params: None
    if cause == "left out":
        lie, refuse = left_out_of(chain, COIN)

    def interrupted(method, params, true):
        is_item = method == "eth_call" and params[0]["data"].startswith("0x00fdd58e")
        for number in once if is_item else ():
            signal.pthread_kill(threading.main_thread().ident, number)
            ended.wait(30)
        is_balance = method == "eth_call" and params[0]["data"].startswith("0x70a08231")
        if cause == "unlogged" and is_balance and int(params[1], 16) >= 50:
            return "0x" + word(int(true, 16) + 1)
        return lie(method, params, true)

    request = Request((COIN, ITEMS), to_block="latest", check=100)
    with FaultNode(chain, lie=interrupted, refuse=refuse) as server:
        with pytest.raises(QueryCancelled, match="The fetch was interrupted"):
            fetch([Secret(server.url)], request, tmp_path, Output(lines.append))
        ended.set()
        ((contract, found),) = storage.current_generation(tmp_path).chains[0].differing.items()
        assert (contract, found.cause) == (COIN, cause)
        assert [line for line in lines if " balances " in line] == [
            f"COIN ({checksummed(COIN)}): 0 of 36 balances equal the chain's at block 90. It moves balances without a "
            "Transfer, first in block 50: it rebases, takes a fee on transfer, or wraps ether (--deposits reads those "
            "logs). Answers about it are approximate."
        ] * (cause == "unlogged")
        with opened(tmp_path) as coverage:
            covered = [coverage.covered(each, TRANSFERS) for each in (COIN, ITEMS)]
        assert covered == [[(1, 90)] * (cause == "unlogged")] * 2
        assert is_chains(tmp_path, server, chain)


def test_one_token_id_that_moved_often_is_compared_in_a_few_steps_for_each_move(tmp_path):
    """Its owner before each move is known: not all moves are added up again."""
    chain, holders, steps = Chain(90), [f"0x{number:040x}" for number in (20, 21)], 0
    chain.logs.clear()
    for move in range(600):
        sender, recipient = holders[move % 2], holders[1 - move % 2]
        chain.move(30 + move // 20, move % 20, ITEMS, (sender if move else ZERO, recipient), 5)

    def lie(method, params, true):
        if method != "eth_call" or params[0]["to"] != ITEMS:
            return true
        data = params[0]["data"]
        if data.startswith("0x6352211e"):
            return "0x" + word(holders[0])
        is_balance = data.startswith("0x70a08231")
        return "0x" + word(int(data.endswith(holders[0][2:]))) if is_balance else "0x"

    def count(frame, event, value):
        nonlocal steps
        steps += event == "call" and frame.f_code.co_filename.endswith("balances.py")

    with FaultNode(chain, lie=lie) as server:
        sys.setprofile(count)
        try:
            lines = said(server, tmp_path, contracts=(ITEMS,))
        finally:
            sys.setprofile(None)
    assert lines[-1] == (
        f"the contract ({checksummed(ITEMS)}): 2 of 2 balances equal the chain's at block 90, and 1 of 1 token ids "
        "have its owner."
    )
    assert 600 < steps < 3_000


def test_topics_in_capitals_are_the_same(tmp_path):
    def loud(text):
        return "0x" + text[2:].upper()

    def lie(method, params, true):
        if method != "eth_getLogs":
            return true
        names = ("blockHash", "transactionHash", "address", "data")
        return [
            {
                **log,
                **{name: loud(log[name]) for name in names},
                "topics": [*map(loud, log["topics"])],
            }
            for log in true
        ]

    with FaultNode(CHAIN, lie=lie) as server:
        said(server, tmp_path, check=0)
        assert stored(tmp_path) == CHAIN.rows()


def by_five(method, params):
    """Refuse logs of more than five blocks."""
    if method != "eth_getLogs":
        return None
    first, last = (int(params[0][end], 16) for end in ("fromBlock", "toBlock"))
    return FIVE if first and last - first >= 5 else None


def test_what_is_read_again_for_more_events_and_has_none_is_read_once(tmp_path):
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, contracts=(COIN,), check=0)
        for _ in range(2):
            server.requests.clear()
            lines = said(server, tmp_path, contracts=(COIN,), check=0, deposits=True)
    assert lines == [f"Nothing new: COIN ({checksummed(COIN)}) to block 90."]
    assert [asked for asked in server.logs_asked() if asked != (0, 0)] == []


def test_a_reorganisation_while_another_contract_is_read_is_found_in_blocks_that_are_stored(
    tmp_path,
):
    """Between the last stored block and the chain's last one: that one is of the new branch, and linked to no other."""
    before, after = Chain(400), Chain(400, fork=250, branch="b")
    for chain in (before, after):
        # No block that has something of either is stored of both.
        for number in range(200, 380):
            logs = chain.logs.get(number, ())
            chain.logs[number] = [log for log in logs if log["address"] == COIN]

    def reorganise(method, params):
        if method == "eth_getLogs" and params[0]["toBlock"] != "0x0":
            server.chain = after

    with FaultNode(before) as server:
        said(server, tmp_path, contracts=(COIN,), to_block="300", check=0)
        server.refuse = reorganise
        lines = said(server, tmp_path, contracts=(ITEMS,), check=0)
        assert "The chain was reorganised: blocks from 250 on are read again and replaced." in lines
        assert is_chains(tmp_path, server, after)


def test_of_a_reorganisation_each_event_that_was_read_is_replaced_by_whichever_fetch_comes(
    tmp_path,
):
    """Also by one that would not have read deposits: those of the orphaned blocks are taken out."""
    before, after = Chain(90), Chain(90, fork=80, branch="b")
    for chain in (before, after):
        for number in (10, 85):
            chain._log(number, 99, COIN, [DEPOSIT, "0x" + word(16)], "0x" + word(7))
    # Of what it says of itself nothing is needed.
    with FaultNode(
        before, refuse=lambda method, _: UNKNOWN if method == "eth_call" else None
    ) as server:
        said(server, tmp_path, check=0, deposits=True)
        server.chain = after
        said(server, tmp_path, check=0)
        assert stored(tmp_path) == after.rows()
        server.requests.clear()
        said(server, tmp_path, check=0, deposits=True)
        assert [asked for asked in server.logs_asked() if asked != (0, 0)] == []


def test_a_folder_of_data_that_was_moved_is_covered_as_before(tmp_path):
    """Also where it is moved once more, and a chain's end is replaced in between."""
    with FaultNode(CHAIN) as server:
        said(server, tmp_path / "one", check=0)
        (tmp_path / "one").rename(tmp_path / "two")
        server.requests.clear()
        assert said(server, tmp_path / "two")[0].startswith("Nothing new: ")
        assert [asked for asked in server.logs_asked() if asked != (0, 0)] == []
        after = Chain(90, fork=80, branch="b")
        assert is_chains(tmp_path / "two", server, after)
        (tmp_path / "two").rename(tmp_path / "three")
        server.requests.clear()
        assert is_chains(tmp_path / "three", server, after)
        assert [asked for asked in server.logs_asked() if asked != (0, 0)] == []


def test_of_a_reorganisation_a_step_that_ends_before_it_replaces_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("nbext.node.reader.STEP_ROWS", 10)
    after = Chain(90, fork=80, branch="b")
    with FaultNode(CHAIN, refuse=by_five) as server:
        said(server, tmp_path, contracts=(ITEMS,), check=0)
        server.chain, before, lines, many = after, stored(tmp_path), [], []

        def say(line):
            lines.append(line)
            many.append(stored(tmp_path))

        request = Request((COIN, ITEMS), to_block="latest", check=0, in_flight=1)
        fetch([Secret(server.url)], request, tmp_path, Output(say))
        assert lines[0].startswith("The chain was reorganised: blocks from 80 on")
        last = int(lines[1].removeprefix(f"COIN ({checksummed(COIN)}): blocks 1 to ")[:-1])
        assert last < 80
        coin = [log for n, logs in after.logs.items() if n <= last for log in logs]
        assert many[1] == before + sum(log["address"] == COIN for log in coin)
        assert is_chains(tmp_path, server, after)


def test_of_a_reorganisation_during_which_a_fetch_was_killed_the_next_one_replaces_what_it_orphaned(
    tmp_path,
):
    """What the killed one read is of the new branch, and beyond what was ingested of the old one."""
    before, after = Chain(90), Chain(120, fork=80, branch="b")
    with FaultNode(before) as server:
        said(server, tmp_path, contracts=(COIN,), check=0)
        server.chain = after
        with opened(tmp_path) as coverage, closing(Node([Secret(server.url)])) as node:
            coverage.drop_from(80)
            reader = RangeReader(node, coverage, {ITEMS: TRANSFERS})
            assert reader.read(reader.plan({ITEMS: 1}, 120), 120)
        assert is_chains(tmp_path, server, after)


def test_what_a_node_left_out_stays_until_the_whole_comes_instead(tmp_path):
    """Also where another name is read of the contract, and then nothing more."""

    def silent(method, params, true):
        if method == "eth_getLogs" and params[0]["fromBlock"] != params[0]["toBlock"]:
            return [log for log in true if int(log["blockNumber"], 16) > 20]
        return true

    def renamed(method, params, true):
        symbol = "0x" + word(32) + word(5) + b"COIN2".hex().ljust(64, "0")
        return symbol if method == "eth_call" and params[0]["data"] == "0x95d89b41" else true

    def without(*methods):
        return lambda method, params: FINAL[6] if method in methods else None

    with FaultNode(CHAIN) as server:
        said(server, tmp_path, contracts=(ITEMS,), check=0)
        server.lie, server.refuse = silent, without("eth_getBlockReceipts")
        with pytest.raises(NodeError, match="The node left logs out"):
            said(server, tmp_path, contracts=(COIN,), from_block="0")
        before = stored(tmp_path)
        server.lie, server.refuse = renamed, without("eth_getLogs")
        with pytest.raises(NodeError):
            said(server, tmp_path, contracts=(COIN,), from_block="0")
        assert stored(tmp_path) == before
        assert is_chains(tmp_path, server, CHAIN, from_block="0")
        # Nothing is left of what was replaced.
        said(server, tmp_path, check=0)
    assert list((tmp_path / "fetched" / "ethereum").glob("again-*")) == []
