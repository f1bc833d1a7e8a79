"""How often a node is asked: by the server's own clock, as the options and the node's own words bound it."""

from __future__ import annotations

import json
import socket
import threading
import time
from itertools import accumulate
from types import SimpleNamespace

import pytest

from nbext.node.rpc import InconsistentAnswer, Node, Refusal, _in_turn, quantity
from nbext.settings import Secret
from tests.node.conftest import expected_rows, read_all, told
from tests.node.faults import Chain, FaultNode
from tests.node.refusals import FINAL, PASSING

SMALL = Chain(90)
RPS = 200


def test_a_quantity_is_a_text_of_hex_digits_within_bounds():
    assert quantity("0x" + "f" * 64, "number", 2**256) == 2**256 - 1
    assert quantity(hex(2**53), "number") == 2**53
    assert quantity("0xA", "number", 10) == 10
    for wrong in (None, 5, True, [], {}, "5", "", "0x", "0xg", " 0x1", "0x1\n", "0x" + "1" * 65):
        with pytest.raises(InconsistentAnswer, match=r"has no number: .* is not a quantity"):
            quantity(wrong, "number")
    with pytest.raises(InconsistentAnswer, match="has no number"):
        quantity("0xb", "number", 10)
    with pytest.raises(InconsistentAnswer, match="has no number"):
        quantity(hex(2**53 + 1), "number")


def test_what_is_no_object_among_the_answers_of_a_batch_is_none_and_what_is_missing_is_asked_again():
    class Odd(FaultNode):
        odd = 1

        def answer(self, body):
            status, headers, raw = super().answer(body)
            if isinstance(body, list) and self.odd:
                self.odd -= 1
                raw = json.dumps([None, 5, "x", *json.loads(raw)[1:]]).encode()
            return status, headers, raw

    with Odd(SMALL) as server:
        node = Node([Secret(server.url)])
        found = node.batch([("eth_chainId", []), ("eth_blockNumber", [])])
    assert found == [1, SMALL.blocks]


@pytest.mark.parametrize("longest_batch", [0, 7])
def test_no_more_calls_a_second_come_to_the_server_than_rps_allows(reader_of, longest_batch):
    with FaultNode(SMALL, batches=longest_batch) as server:
        reader = reader_of(server, rps=RPS)
        reader.node.endpoints[0].batch = max(1, longest_batch)
        started = time.monotonic()
        assert told(read_all(reader, SMALL)) == expected_rows(SMALL)
        arrived = server.arrived
    most = max(calls for _, calls in arrived)
    assert most == max(1, longest_batch)
    # A post waits until those before it have had their time; it may come late, never early.
    early = [
        at - started
        for (at, _), calls in zip(arrived, accumulate(calls for _, calls in arrived), strict=True)
        if calls - most > RPS * (at - started)
    ]
    assert early == []
    assert sum(calls for _, calls in arrived) > 70


def test_nothing_comes_to_a_server_before_the_seconds_that_it_asks_to_wait(reader_of):
    refused_at: list[float] = []

    def refuse(method, params):
        if method == "eth_getLogs" and not refused_at:
            refused_at.append(time.monotonic())
            return PASSING[0]
        return None

    with FaultNode(SMALL, refuse=refuse, headers={"Retry-After": "1"}) as server:
        assert told(read_all(reader_of(server, in_flight=1), SMALL)) == expected_rows(SMALL)
        after = [at - refused_at[0] for at, _ in server.arrived if at > refused_at[0]]
    assert len(after) > 1
    assert min(after) >= 1


def test_the_answers_of_two_threads_are_read_one_after_the_other(monkeypatch):
    monkeypatch.setattr("nbext.node.rpc._PATIENCE", 60)
    reading, order, ready = threading.Lock(), [], threading.Event()
    one, other = socket.socketpair()
    one.sendall(b"an answer")
    connection = SimpleNamespace(sock=other, timeout=60)

    def second():
        with _in_turn(reading) as take:
            ready.set()
            take(connection)
            order.append("second")

    with one, other:
        with _in_turn(reading) as take:
            take(connection)
            waiting = threading.Thread(target=second)
            waiting.start()
            assert ready.wait(60)
            waiting.join(0.1)
            order.append("first")
        waiting.join(60)
    assert order == ["first", "second"]


def test_of_several_threads_that_are_refused_all_wait_for_the_longest_time_asked_for():
    """The first to be refused is asked to wait the least, and one that waits for its turn is not exempt."""
    pauses, all_here, seen = [0.1, 0.2, 0.8], threading.Barrier(3), threading.Lock()
    refused_at: list[float] = []

    class Slow(FaultNode):
        def answer(self, body):
            with seen:
                at = len(refused_at)
                refused_at.append(time.monotonic())
            if at >= 3:
                return super().answer(body)
            all_here.wait(30)
            time.sleep(pauses[at] / 10)  # the answers come in the order of what they ask for
            refused_at[at] = time.monotonic()
            return 429, {"Retry-After": str(pauses[at])}, b"<html>Too Many Requests</html>"

    with Slow(SMALL) as server:
        node = Node([Secret(server.url)], rps=1000)
        threads = [threading.Thread(target=node.call, args=("eth_blockNumber",)) for _ in pauses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        node.close()
    assert len(refused_at) == 6
    assert min(refused_at[3:]) - refused_at[2] >= pauses[2]


def test_a_node_that_refuses_for_good_is_asked_once_and_one_that_is_busy_again():
    for refusals, answered in (([FINAL[0]], False), (PASSING[:2], True)):
        waiting = list(refusals)
        with FaultNode(
            SMALL, refuse=lambda *_, left=waiting: left.pop(0) if left else None
        ) as server:
            (found,) = Node([Secret(server.url)]).of_each("eth_chainId").values()
        assert (found == 1, server.posts) == (answered, len(refusals) + answered)


def test_what_one_node_does_not_have_another_one_is_asked_for():
    asked = [("eth_getTransactionCount", ["0x" + "a1" * 20, "0x1"])]
    with (
        FaultNode(SMALL, refuse=lambda *_: FINAL[1]) as pruned,
        FaultNode(SMALL, lie=lambda *_: "0x7") as whole,
    ):
        for urls in ((pruned.url, whole.url), (whole.url, pruned.url)):
            assert Node(list(map(Secret, urls))).together(asked) == [7]
        with pytest.raises(Refusal, match="missing trie node"):
            Node([Secret(pruned.url)]).together(asked)
