"""kill -9 in the middle of a fetch, ten times: what of a node's answers was received and is asked for again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbext.engine import storage
from tests.node.faults import COIN, Chain, FaultNode
from tests.node.refusals import RANGES
from tests.seed import gate_seed

pytestmark = pytest.mark.load
CHAIN = Chain(1200)
FIVE = next(refused for refused in RANGES if refused.who == "QuickNode, five")
KILLS = 10


def is_long(params):
    return int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) >= 5


def ranges_in(body):
    """The ranges whose logs an answer has."""
    calls = body if isinstance(body, list) else [body]
    return [
        tuple(int(call["params"][0][end], 16) for end in ("fromBlock", "toBlock"))
        for call in calls
        if call["method"] == "eth_getLogs" and not is_long(call["params"])
    ]


def unread(port):
    """The client's ports of which the kernel has bytes that the client did not read."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {
        int(row[1].split(":")[1], 16)
        for row in rows
        if int(row[2].split(":")[1], 16) == port and int(row[4].split(":")[1], 16)
    }


def stop(process):
    """Stop a process where it is, so that what it received does not change while that is counted."""
    process.send_signal(signal.SIGSTOP)
    while Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
        time.sleep(0.001)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what a process has not read yet")
@pytest.mark.parametrize("in_flight", [1, 4])
def test_of_ten_kills_none_has_more_than_one_range_read_again(tmp_path, in_flight):
    draw, received, asked = random.Random(gate_seed()), [], []
    words = [
        "--contract",
        COIN,
        "--to-block",
        "latest",
        "--check",
        "0",
        "--quiet",
        "--in-flight",
        str(in_flight),
    ]
    command = [sys.executable, "-m", "nbext.cli", "fetch", *words, "--data", str(tmp_path)]
    with FaultNode(
        CHAIN,
        refuse=lambda method, params: FIVE if method == "eth_getLogs" and is_long(params) else None,
    ) as server:
        port, environ = server.server.server_port, {**os.environ, "NBEXT_RPC_URL": server.url}
        for _ in range(KILLS):
            server.requests.clear()
            server.sent.clear()
            wanted, until = draw.randrange(1, 20), time.monotonic() + 60
            process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
            while sum(len(ranges_in(body)) for _, body in list(server.sent)) < wanted:
                assert time.monotonic() < until
            time.sleep(draw.random() * 0.01)
            stop(process)
            time.sleep(0.05)  # what the server was sending
            on_the_way, sent = unread(port), list(server.sent)
            process.kill()
            assert process.wait(60) == -signal.SIGKILL
            last = {client: at for at, (client, _) in enumerate(sent)}
            received.append(
                [
                    each
                    for at, (client, body) in enumerate(sent)
                    for each in ranges_in(body)
                    # Each run asks whether the block before the contract's first has a log of it.
                    if each != (0, 0) and not (client in on_the_way and at == last[client])
                ]
            )
            asked.append(server.logs_asked())
        server.requests.clear()
        assert (
            subprocess.run(
                command, env=environ, stdout=subprocess.DEVNULL, timeout=120, check=False
            ).returncode
            == 0
        )
        asked.append(server.logs_asked())
    again = [
        [
            each
            for each in ranges
            if any(
                first <= each[1] and each[0] <= last and last - first < 5
                for later in asked[at + 1 :]
                for first, last in later
            )
        ]
        for at, ranges in enumerate(received)
    ]
    print(
        f"{in_flight} in flight: ranges received and asked for again after each kill: {list(map(len, again))}, of "
        f"{list(map(len, received))}"
    )
    assert max(map(len, again)) <= 1
    assert storage.current_generation(tmp_path).manifest["tables"]["transfers"] == sum(
        log["address"] == COIN for logs in CHAIN.logs.values() for log in logs
    )
