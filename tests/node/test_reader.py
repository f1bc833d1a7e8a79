"""Reading through every provider's limits, without a row too many or too few; and answers that lie."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbext.errors import NodeError, QueryCancelled
from nbext.node.contracts import CONSECUTIVE_TRANSFER, DEPOSIT, TRANSFER, TRANSFERS
from nbext.node.coverage import _is_intact, uncovered, union
from nbext.node.limits import RangeSize
from tests import slow
from tests.node.conftest import blocks_in, expected_rows, read_all, rows_in, told
from tests.node.faults import COIN, ITEMS, KEY, ZERO, Chain, FaultNode, bloom_of, word
from tests.node.refusals import FINAL, PASSING, RANGES

CHAIN = Chain()
SMALL = Chain(90)
QUICKNODE_FIVE = next(refused for refused in RANGES if refused.who == "QuickNode, five")


def above(refused, limit):
    """Refuse logs of more than so many blocks."""

    def refuse(method, params):
        if (
            method == "eth_getLogs"
            and int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) >= limit
        ):
            return refused
        return None

    return refuse


def once(refused, times=1):
    """Refuse the first questions for logs."""
    left = [times]

    def refuse(method, params):
        if method == "eth_getLogs" and left[0]:
            left[0] -= 1
            return refused
        return None

    return refuse


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("nbext.node.rpc.FIRST_PAUSE", 0.01)


@pytest.mark.parametrize("refused", slow.but_the_first(RANGES, 8), ids=lambda one: one.who)
def test_all_rows_come_through_a_limit_whatever_its_words(reader_of, refused):
    with FaultNode(SMALL, refuse=above(refused, 30)) as server:
        reader = reader_of(server)
        assert told(read_all(reader, SMALL)) == expected_rows(SMALL)
    assert reader.coverage.covered(COIN, ()) == [(0, SMALL.blocks)]


def test_a_reader_with_fewer_requests_at_once_than_one_has_one(reader_of):
    with FaultNode(SMALL) as server:
        assert told(read_all(reader_of(server, in_flight=0), SMALL)) == expected_rows(SMALL)


@pytest.mark.parametrize("refused", PASSING, ids=lambda one: f"{one.who}: {one.message[:20]}")
def test_what_passes_is_asked_again(reader_of, refused):
    with FaultNode(SMALL, refuse=once(refused), headers={"Retry-After": "0"}) as server:
        assert told(read_all(reader_of(server, in_flight=1), SMALL)) == expected_rows(SMALL)


@pytest.mark.parametrize("refused", FINAL, ids=lambda one: f"{one.who}: {one.message[:20]}")
def test_what_does_not_pass_ends_the_fetch_and_is_named(reader_of, refused):
    with FaultNode(SMALL, refuse=once(refused, times=10**6)) as server:
        reader = reader_of(server, in_flight=1)
        with pytest.raises(NodeError) as caught:
            read_all(reader, SMALL)
    assert refused.meaning.value in str(caught.value)
    assert caught.value.meaning == refused.meaning.name
    assert rows_in(reader.coverage) == []


def test_an_answer_that_was_refused_is_asked_for_again_and_not_read_from_what_was_received(
    reader_of,
):
    answers = []

    def lie(method, params, true):
        if method != "eth_getLogs" or not true:
            return true
        answers.append(params)
        return [{**true[0], "blockNumber": "0x0"}] if len(answers) == 1 else true

    with FaultNode(SMALL, lie=lie) as server:
        assert told(read_all(reader_of(server, in_flight=1), SMALL)) == expected_rows(SMALL)
    assert answers[0] == answers[1]


def test_a_pruned_node_is_told_from_an_empty_answer(reader_of):
    def pruned(method, params, true):
        if method in ("eth_getLogs", "eth_getBlockReceipts"):
            return []
        return true

    with FaultNode(CHAIN, lie=pruned) as server:
        reader = reader_of(server, contracts=(COIN,), in_flight=1)
        plan = reader.plan({COIN: min(CHAIN.logs)}, 300)
        with pytest.raises(NodeError) as caught:
            reader.read(plan, 400)
    assert str(caught.value) == (
        f"Blocks {min(CHAIN.logs)} to 300 could not be read. The node has pruned this history. It has no receipts of "
        f"block {min(CHAIN.logs)}, which has logs. Use an archive node, or begin later with --from-block."
    )


def test_after_refusals_blocks_are_read_in_their_order(reader_of):
    """What several threads had in flight when the first refusals came, too: a fetch that ends early ends at a block."""
    all_here, probing = threading.Barrier(3), [3]

    def refuse(method, params):
        if method == "eth_getLogs" and probing[0]:
            probing[0] -= 1
            all_here.wait(30)
        return above(QUICKNODE_FIVE, 5)(method, params)

    with FaultNode(CHAIN, refuse=refuse) as server:
        reader = reader_of(server)
        reader.span = RangeSize(size=100)
        assert told(read_all(reader, CHAIN)) == expected_rows(CHAIN)
        firsts = [first for first, last in server.logs_asked() if last - first < 5][3:]
    # Three are under way at once, and now and then four times as many blocks are tried as were offered.
    assert max(max(firsts[:at]) - first for at, first in enumerate(firsts[1:], 1)) <= 3 * 4 * 5


def test_several_nodes_are_asked_in_turn(reader_of):
    with (
        FaultNode(CHAIN, refuse=above(RANGES[0], 10)) as one,
        FaultNode(CHAIN, refuse=above(RANGES[0], 10)) as other,
    ):
        reader = reader_of(one, other)
        reader.span = RangeSize(size=10)
        assert told(read_all(reader, CHAIN)) == expected_rows(CHAIN)
        shares = [len(set(each.logs_asked())) for each in (one, other)]
    assert min(shares) > 10


def test_what_one_node_has_pruned_is_read_from_another(reader_of):
    archive_needed = FINAL[0]
    with (
        FaultNode(SMALL, refuse=once(archive_needed, times=10**6)) as full,
        FaultNode(SMALL) as archive,
    ):
        assert told(read_all(reader_of(full, archive), SMALL)) == expected_rows(SMALL)


def test_blocks_that_one_node_has_not_are_read_from_the_other_one(reader_of):
    """Of two nodes, each of the first blocks' ranges is asked of either."""

    def lie(method, params, true):
        return None if method == "eth_getBlockByNumber" and int(params[0], 16) < 20 else true

    with FaultNode(SMALL, lie=lie) as pruned, FaultNode(SMALL) as archive:
        reader = reader_of(pruned, archive, in_flight=1)
        reader.span = RangeSize(size=10)
        assert told(read_all(reader, SMALL)) == expected_rows(SMALL)
        assert any(first < 20 for first, _ in pruned.logs_asked())


def test_a_node_that_is_behind_another_leaves_the_last_blocks_to_it(reader_of):
    behind = Chain(85)
    with FaultNode(behind) as slow, FaultNode(SMALL) as good:
        assert told(read_all(reader_of(slow, good), SMALL)) == expected_rows(SMALL)


def test_a_node_that_fails_rests_and_another_is_asked(reader_of):
    with (
        FaultNode(SMALL, refuse=lambda method, params: PASSING[-5]) as bad,
        FaultNode(SMALL) as good,
    ):
        assert told(read_all(reader_of(bad, good), SMALL)) == expected_rows(SMALL)


def test_a_node_that_asks_to_wait_long_is_not_waited_for_while_there_is_another(reader_of):
    busy = PASSING[0]
    with (
        FaultNode(SMALL, refuse=lambda *_: busy, headers={"Retry-After": "60"}) as bad,
        FaultNode(SMALL) as good,
    ):
        reader = reader_of(bad, good, in_flight=1)
        reader.span = RangeSize(size=10)
        assert told(read_all(reader, SMALL)) == expected_rows(SMALL)
        assert len(bad.arrived) == 1


def test_batches_are_as_long_as_the_node_takes(reader_of):
    for longest in (0, 1, 7):
        with FaultNode(SMALL, batches=longest) as server:
            reader = reader_of(server, in_flight=1)
            reader.read(reader.plan(dict.fromkeys(reader.topics, 0), SMALL.blocks), SMALL.blocks)
            assert told(rows_in(reader.coverage)) == expected_rows(SMALL)
            for part in reader.coverage.parts.glob("*.parquet"):
                part.unlink()


def test_a_gateway_that_cuts_at_a_round_number_loses_nothing(reader_of):
    with FaultNode(
        CHAIN, lie=lambda method, params, true: true[:100] if method == "eth_getLogs" else true
    ) as server:
        assert told(read_all(reader_of(server), CHAIN)) == expected_rows(CHAIN)


def test_a_block_with_more_logs_than_the_node_returns_is_read_from_its_receipts(reader_of):
    busy = max(SMALL.logs, key=lambda number: len(SMALL.logs[number]))

    def refuse(method, params):
        inside = method == "eth_getLogs" and int(params[0]["fromBlock"], 16) <= busy <= int(
            params[0]["toBlock"], 16
        )
        return RANGES[0] if inside else None

    with FaultNode(SMALL, refuse=refuse) as server:
        assert told(read_all(reader_of(server), SMALL)) == expected_rows(SMALL)


def test_logs_of_more_rows_than_memory_should_hold_are_read_in_shorter_ranges(
    reader_of, monkeypatch
):
    """A log that mints many ids is small, and any contract may write it."""
    monkeypatch.setattr("nbext.node.ranges.MOST_ROWS", 1000)
    chain = Chain(30)
    chain.logs.clear()
    for number in range(1, 11):
        ids = (word(each) for each in (0, ZERO, "0x" + "a1" * 20))
        topics = [CONSECUTIVE_TRANSFER, *("0x" + each for each in ids)]
        chain._log(number, 0, ITEMS, topics, "0x" + word(399))
    with FaultNode(chain) as server:
        rows = read_all(reader_of(server, contracts=(ITEMS,)), chain)
        assert [(row["block"], row["place"]) for row in rows] == [
            (number, place) for number in range(1, 11) for place in range(400)
        ]
        chain.logs[5][0]["data"] = "0x" + word(1000)
        for path in (reader := reader_of(server, contracts=(ITEMS,))).coverage.parts.iterdir():
            path.unlink()
        reader.coverage.discard_parts()
        with pytest.raises(NodeError, match="Its logs are more than 1,000 rows"):
            read_all(reader, chain)


def test_an_answer_that_was_cut_is_found_by_the_last_block_that_may_hold_more(reader_of):
    """The first ones of a busy chain may hold more by chance: others' logs set the same bits."""
    chain, draw = Chain(200), random.Random(1)
    drawn = ("0x" + word(draw.getrandbits(256)) for _ in range(10**6))
    wanted = bloom_of([COIN, TRANSFER])
    topics = [next(drawn)]
    while wanted & ~bloom_of(topics):
        one = next(drawn)
        topics += [one] * (bloom_of([one]) & wanted & ~bloom_of(topics) > 0)
    for number in range(1, 30):
        chain.logs[number] = []
        chain._log(number, 0, "0x" + "07" * 20, topics, "0x")

    def lie(method, params, true):
        is_range = method == "eth_getLogs" and params[0]["fromBlock"] != params[0]["toBlock"]
        return [log for log in true if int(log["blockNumber"], 16) < 120] if is_range else true

    with FaultNode(chain, lie=lie) as server:
        with pytest.raises(
            NodeError, match="logs that its receipts have, and has 0 that they lack"
        ):
            read_all(reader_of(server, contracts=(COIN,)), chain)
        server.lie = lambda method, params, true: true
        rows = read_all(reader_of(server, contracts=(COIN,)), chain)
    assert told(rows) == [row for row in expected_rows(chain) if row[3] == COIN]


def test_a_block_with_more_logs_than_a_node_without_receipts_returns_ends_the_fetch(reader_of):
    busy = max(SMALL.logs, key=lambda number: len(SMALL.logs[number]))

    def refuse(method, params):
        if method == "eth_getBlockReceipts":
            return FINAL[6]
        inside = method == "eth_getLogs" and int(params[0]["fromBlock"], 16) <= busy <= int(
            params[0]["toBlock"], 16
        )
        return RANGES[0] if inside else None

    with FaultNode(SMALL, refuse=refuse) as server:
        reader = reader_of(server, in_flight=1)
        with pytest.raises(NodeError) as caught:
            read_all(reader, SMALL)
    assert str(caught.value) == (
        f"Blocks {busy} to {busy} could not be read. The node refuses the range: it has too many blocks or logs. "
        f"Block {busy} has more logs than one answer, and its receipts are not offered."
    )
    assert uncovered(busy, busy, reader.coverage.covered(COIN, ())) == [(busy, busy)]


def of_logs(change):
    """Return a lie that changes the list of logs of an answer that has some."""

    def lie(method, params, true):
        if method == "eth_getLogs" and len(true) > 2:
            return change([dict(log) for log in true])
        return true

    return lie


def with_its_time(log):
    return {**log, "blockTimestamp": hex(1_600_000_000 + 12 * int(log["blockNumber"], 16))}


def without_data(logs):
    return [{**log, "data": "0x"} for log in logs]


LIES = {
    "a log of a block outside of the range": (
        of_logs(lambda logs: [*logs, {**logs[0], "blockNumber": "0x1000"}]),
        "with a log of block 4,096",
    ),
    "a log twice": (of_logs(lambda logs: [*logs, logs[0]]), "twice"),
    "a log twice, once with its time": (
        of_logs(lambda logs: [*logs, with_its_time(logs[0])]),
        "twice",
    ),
    "another contract's log": (
        of_logs(lambda logs: [{**logs[0], "address": "0x" + "ab" * 20}, *logs[1:]]),
        "which was not asked for",
    ),
    "a removed log": (
        of_logs(lambda logs: [{**logs[0], "removed": True}, *logs[1:]]),
        "a reorganisation has removed",
    ),
    "another event": (
        of_logs(lambda logs: [{**logs[0], "topics": ["0x" + "12" * 32]}, *logs[1:]]),
        "of another event",
    ),
    "a log of another branch": (
        of_logs(lambda logs: [{**logs[0], "blockHash": "0x" + "12" * 32}, *logs[1:]]),
        "another block than its header",
    ),
    "logs that are missing near the end": (
        of_logs(lambda logs: logs[:-1]),
        "lacks 1 logs that its receipts have",
    ),
    "a log made up": (
        of_logs(
            lambda logs: [*logs, *({**log, "logIndex": hex(777 + n)} for n, log in enumerate(logs))]
        ),
        r"has \d that they lack",
    ),
    "a log without a hash": (
        of_logs(lambda logs: [{**logs[0], "blockHash": None}, *logs[1:]]),
        "hash of 32 bytes",
    ),
    "no list": (
        lambda method, params, true: {"a": 1} if method == "eth_getLogs" else true,
        "does not answer what it was asked. Its answer to eth_getLogs has another form",
    ),
    "a block too high": (
        lambda method, params, true: CHAIN.header(7) if method == "eth_getBlockByNumber" else true,
        "another block",
    ),
    "blocks that do not follow": (
        lambda method, params, true: (
            {**true, "parentHash": "0x" + "34" * 32}
            if method == "eth_getBlockByNumber" and params[0] == hex(CHAIN.blocks - 3)
            else true
        ),
        "does not follow",
    ),
    "a block that holds no such logs": (
        lambda method, params, true: (
            {**true, "logsBloom": "0x" + "00" * 255 + "01"}
            if method == "eth_getBlockByNumber"
            else true
        ),
        "its bloom filter excludes them",
    ),
    "data that is no transfer": (
        lambda method, params, true: (
            without_data(true)
            if method == "eth_getLogs"
            else [{"logs": without_data(one["logs"])} for one in true]
            if method == "eth_getBlockReceipts"
            else true
        ),
        "cannot be stored as",
    ),
    "another amount": (
        of_logs(
            lambda logs: [
                {**log, "data": "0x" + "01" * (len(log["data"]) // 2 - 1)} for log in logs
            ]
        ),
        r"lacks \d logs that its receipts have, and has \d that they lack",
    ),
    "another sender": (
        of_logs(
            lambda logs: [
                {**log, "topics": [log["topics"][0], "0x" + "ab" * 32, *log["topics"][2:]]}
                for log in logs
            ]
        ),
        "its bloom filter excludes them",
    ),
    "logs in another order than their transactions": (
        of_logs(
            lambda logs: [{**log, "transactionIndex": hex(9 - n % 9)} for n, log in enumerate(logs)]
        ),
        "not in the order of its transactions",
    ),
    "a block of 0x1212... in the middle": (
        lambda method, params, true: (
            {**true, "hash": "0x" + "12" * 32}
            if method == "eth_getBlockByNumber" and params[0] == hex(CHAIN.blocks - 20)
            else true
        ),
        "another block than its header|does not follow",
    ),
    "a time before that of the block before": (
        lambda method, params, true: (
            {**true, "timestamp": "0x1"}
            if method == "eth_getBlockByNumber" and params[0] == hex(CHAIN.blocks - 20)
            else true
        ),
        "is earlier than block",
    ),
    "a time after the year 9999": (
        lambda method, params, true: (
            {**true, "timestamp": hex(2**70)} if method == "eth_getBlockByNumber" else true
        ),
        "has no time of a block",
    ),
    "a hash that is no hex": (
        of_logs(lambda logs: [{**log, "transactionHash": "0x" + "zz" * 32} for log in logs]),
        "is not a hash of 32 bytes",
    ),
    "a log without data": (
        of_logs(lambda logs: [{**log, "data": None} for log in logs]),
        "is not bytes as hex",
    ),
    "an address that is none": (
        of_logs(lambda logs: [*logs[:-1], {**logs[-1], "address": "0x" + "zz" * 20}]),
        f"0x{'zz' * 20} is not an address",
    ),
    "a topic that is none": (
        of_logs(lambda logs: [*logs[:-1], {**logs[-1], "topics": [TRANSFER, "0x5"]}]),
        "0x5 is not a hash of 32 bytes",
    ),
    "what is no log among logs": (
        of_logs(lambda logs: [*logs[:-1], {**logs[-1], "data": 5}, 7]),
        r"lacks a field, or has a wrong one: \{'address': .*'data': 5",
    ),
    "a log index beyond all": (
        of_logs(lambda logs: [{**log, "logIndex": hex(2**70)} for log in logs]),
        "has no index of a log",
    ),
}


def test_an_amount_of_an_item_that_does_not_fit_is_refused_by_transaction_and_log_index(reader_of):
    first = next(log for logs in CHAIN.logs.values() for log in logs if log["address"] == ITEMS)
    words = [first["data"][at : at + 64] for at in range(2, len(first["data"]), 64)]

    def of(count):
        return lambda method, params, true: (
            [
                {**log, "data": "0x" + "".join([*words[:-1], f"{count:064x}"])}
                if log["logIndex"] == first["logIndex"]
                and log["blockNumber"] == first["blockNumber"]
                else log
                for log in true
            ]
            if method == "eth_getLogs"
            else true
        )

    with FaultNode(CHAIN, lie=of(2**63)) as server:
        reader = reader_of(server, contracts=(ITEMS,), in_flight=1)
        with pytest.raises(NodeError) as caught:
            reader.read(reader.plan({ITEMS: 0}, 300), 400)
        assert str(caught.value) == (
            f"Log 90 of transaction {first['transactionHash']}, in block {int(first['blockNumber'], 16):,}, of {ITEMS},"
            " cannot be stored as a transfer: an ERC1155 amount is beyond 2**63 - 1, the largest that nbext stores."
        )
        assert rows_in(reader.coverage) == []
        server.lie = of(2**63 - 1)
        reader = reader_of(server, contracts=(ITEMS,), in_flight=1)
        reader.read(reader.plan({ITEMS: 0}, 300), 400)
        assert str(2**63 - 1) in [row["count"] for row in rows_in(reader.coverage)]


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_caught_and_nothing_of_it_is_stored(reader_of, lie, monkeypatch):
    monkeypatch.setattr("nbext.node.reader._REPEATS", 1)
    change, words = LIES[lie]
    with FaultNode(CHAIN, lie=change) as server:
        reader = reader_of(server, in_flight=1)
        plan = reader.plan(dict.fromkeys(reader.topics, 370), CHAIN.blocks)
        with pytest.raises(NodeError, match=words):
            reader.read(plan, CHAIN.blocks)
    assert rows_in(reader.coverage) == []


def test_a_lie_that_is_told_once_is_asked_again(reader_of):
    told_once = [of_logs(lambda logs: logs[:-1])]

    def lie(method, params, true):
        if method == "eth_getLogs" and told_once and len(true) > 2:
            return told_once.pop()(method, params, true)
        return true

    with FaultNode(CHAIN, lie=lie) as server:
        reader = reader_of(server, in_flight=1)
        reader.read(reader.plan(dict.fromkeys(reader.topics, 370), CHAIN.blocks), CHAIN.blocks)
    assert told(rows_in(reader.coverage)) == [row for row in expected_rows(CHAIN) if row[0] >= 370]


def test_each_block_with_rows_has_its_hash_and_its_time(reader_of):
    with FaultNode(CHAIN) as server:
        reader = reader_of(server)
        read_all(reader, CHAIN)
    for number, (found, time) in blocks_in(reader.coverage).items():
        assert (found, time) == (CHAIN.hash(number), 1_600_000_000 + 12 * number)
    assert set(CHAIN.logs) <= blocks_in(reader.coverage).keys()


def test_times_in_the_logs_are_those_of_the_headers(reader_of):
    def timed(method, params, true):
        if method == "eth_getLogs":
            return [with_its_time(log) for log in true]
        return true

    with FaultNode(CHAIN, lie=timed) as server:
        reader = reader_of(server, in_flight=1)
        read_all(reader, CHAIN)
    assert all(
        time == 1_600_000_000 + 12 * n for n, (_, time) in blocks_in(reader.coverage).items()
    )


def test_a_run_that_stops_is_taken_up_where_it_was(reader_of):
    refuse_wide = above(RANGES[0], 40)

    def stop_midway(method, params):
        # Told at a request: the reader's own progress may come when all is read.
        if method == "eth_getLogs" and int(params[0]["toBlock"], 16) > 200:
            reader.ending.set()
        return refuse_wide(method, params)

    with FaultNode(CHAIN, refuse=stop_midway) as server:
        reader = reader_of(server, in_flight=1)
        reader.span = RangeSize(size=40)
        plan = reader.plan(dict.fromkeys(reader.topics, 0), CHAIN.blocks)
        reader.read(plan, CHAIN.blocks)
        before = reader.coverage.covered(COIN, ())
        assert before != [(0, CHAIN.blocks)]
        server.requests.clear()
        again = reader_of(server)
        again.span = RangeSize(size=40)
        assert told(read_all(again, CHAIN)) == expected_rows(CHAIN)
        assert all(uncovered(*asked, before) == [asked] for asked in server.logs_asked())


def test_where_the_chain_parts_from_what_is_stored_is_found(reader_of):
    other = Chain(fork=371, branch="b")
    with FaultNode(CHAIN) as server:
        reader = reader_of(server)
        read_all(reader, CHAIN)
        assert reader.fork() is None
        server.chain = other
        # Of the last 64 blocks every hash is stored.
        assert reader.fork() == 371
        reader.coverage.drop_from(371)
        assert told(read_all(reader, other)) == expected_rows(other)
        server.chain = Chain(seed=2, fork=0, branch="c")
        # Of parts alone nothing was ingested: all of them are read again.
        assert reader.fork() == min(reader.coverage.known())
        reader.coverage.commit(*reader.coverage.joined([]), [])
        with pytest.raises(
            NodeError, match="another chain, or its chain was reorganised further back"
        ):
            reader.fork()


def test_contracts_that_are_covered_differently_are_read_only_where_each_is_not(reader_of):
    with FaultNode(CHAIN) as server:
        coin = reader_of(server, contracts=(COIN,))
        coin.read(coin.plan({COIN: 100}, 200), CHAIN.blocks)
        both = reader_of(server)
        plan = both.plan({COIN: 50, ITEMS: 0}, 250)
        assert [(wanted.contracts, wanted.first, wanted.last) for wanted in plan] == [
            ((ITEMS,), 0, 49),
            ((ITEMS, COIN), 50, 99),
            ((ITEMS,), 100, 200),
            ((ITEMS, COIN), 201, 250),
        ]


def test_blocks_that_a_killed_run_read_for_fewer_events_are_read_again_for_more(reader_of):
    more = (*TRANSFERS, DEPOSIT)
    with FaultNode(CHAIN) as server:
        fewer = reader_of(server, contracts=(COIN,))
        fewer.read(fewer.plan({COIN: 0}, 80), CHAIN.blocks)
        rest = reader_of(server, contracts=(COIN,))
        rest.topics = {COIN: more}
        rest.read(rest.plan({COIN: 50}, 60), CHAIN.blocks)
        coverage = rest.coverage
        coverage.commit(*coverage.joined([]), [])
        assert coverage.covered(COIN, TRANSFERS) == [(0, 80)]
        assert coverage.covered(COIN, more) == [(50, 60)]


RANGE = st.tuples(st.integers(0, 60), st.integers(0, 20)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)


@settings(max_examples=50)
@given(st.lists(RANGE, max_size=8), RANGE)
def test_what_is_missing_and_what_is_covered_are_a_range_together(covered, asked):
    blocks = {number for first, last in covered for number in range(first, last + 1)}
    gaps = uncovered(*asked, covered)
    assert [number for first, last in gaps for number in range(first, last + 1)] == [
        number for number in range(asked[0], asked[1] + 1) if number not in blocks
    ]
    assert {number for first, last in union(covered) for number in range(first, last + 1)} == blocks


@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_a_refusal_always_leads_to_fewer_blocks(seed):
    draw = random.Random(seed)
    span = RangeSize(size=draw.randrange(1, 10_000))
    blocks = draw.randrange(2, 10_000)
    for _ in range(20):
        less = span.refused(blocks, draw.choice((None, draw.randrange(20_000))))
        assert 1 <= less < blocks
        blocks = max(2, less)


def stopped_after_the_logs(reader_of, server):
    """Read until the logs of the first range are there, and end then, as a process that is killed does."""
    reader = reader_of(server, in_flight=1)

    def lie(method, params, true):
        if method == "eth_getBlockReceipts":
            reader.node.close()
        return true

    before, server.lie = server.lie, lambda *asked: lie(*asked[:2], before(*asked))
    with pytest.raises(QueryCancelled):
        read_all(reader, SMALL)
    server.lie = before
    asked = server.logs_asked()
    server.requests.clear()
    return asked, sorted(reader.coverage.parts.iterdir())


def test_what_was_received_of_a_range_that_is_not_whole_is_not_asked_for_again(reader_of):
    with FaultNode(SMALL) as server:
        ((first, last),), (left,) = stopped_after_the_logs(reader_of, server)
        assert left.stat().st_mode & 0o077 == 0
        reader = reader_of(server)
        assert told(read_all(reader, SMALL)) == expected_rows(SMALL)
        assert [each for each in server.logs_asked() if each[0] <= last and first <= each[1]] == []
    assert not left.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-20],
        lambda raw: raw[:40],
        lambda raw: b"",
        lambda raw: raw.replace(b"result", b"resul", 1),
        # A digit of an amount, and one of the range that the answer is to.
        lambda raw: raw.replace(b'"data": "0x0', b'"data": "0x1', 1),
        lambda raw: raw.replace(b'"toBlock":"0x', b'"toBlock":"0x1', 1),
    ],
)
def test_an_answer_that_was_cut_is_asked_for_again(reader_of, damage):
    with FaultNode(SMALL) as server:
        _, (left,) = stopped_after_the_logs(reader_of, server)
        left.write_bytes(damage(left.read_bytes()))
        assert told(read_all(reader_of(server), SMALL)) == expected_rows(SMALL)
        assert server.logs_asked() != []
    assert not left.exists()


def test_a_part_whose_bytes_have_changed_is_not_taken_for_what_was_read(tmp_path, reader_of):
    with FaultNode(SMALL) as server:
        read_all(reader_of(server), SMALL)
    for path in sorted((tmp_path / "fetched" / "ethereum" / "parts").glob("*.parquet")):
        whole = path.read_bytes()
        assert _is_intact(path)
        for at in range(0, len(whole), 97):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert not _is_intact(path)
        path.write_bytes(whole[:-10])
        assert not _is_intact(path)
        path.write_bytes(whole)


def test_what_was_received_is_asked_for_again_where_its_blocks_were_orphaned_since(reader_of):
    with FaultNode(SMALL) as server:
        stopped_after_the_logs(reader_of, server)
        server.chain = Chain(90, fork=5, branch="b")
        reader = reader_of(server)
        assert told(read_all(reader, server.chain)) == expected_rows(server.chain)
    assert blocks_in(reader.coverage)[90][0] == server.chain.hash(90)


def test_an_answer_that_repeats_the_url_is_not_stored(reader_of):
    def repeat(method, params, true):
        return [{**log, "from": KEY} for log in true] if method == "eth_getLogs" else true

    with FaultNode(SMALL, lie=repeat) as server:
        _, left = stopped_after_the_logs(reader_of, server)
        assert [path for path in left if KEY in path.read_text()] == []
        assert told(read_all(reader_of(server), SMALL)) == expected_rows(SMALL)
        assert server.logs_asked() != []
