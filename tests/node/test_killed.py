"""kill -9 in the middle of a fetch, ten times: how much of what a node had answered is asked of it again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest

from nbext.core.chains import chain_of
from nbext.engine import storage
from nbext.node.contracts import TRANSFERS
from nbext.node.coverage import missing, opened
from tests.node.faults import COIN, Chain, FaultNode
from tests.node.refusals import RANGES

pytestmark = pytest.mark.load
CHAIN = Chain(1200)
FIVE = next(refused for refused in RANGES if refused.who == "QuickNode, five")
KILLS = 10


def is_long(params):
    return int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) >= 5


@pytest.mark.parametrize("in_flight", [1, 4])
def test_of_ten_kills_none_costs_more_ranges_than_were_in_flight(tmp_path, in_flight):
    answered, heard, draw = Counter(), threading.Condition(), random.Random()

    def lie(method, params, true):
        if method == "eth_getLogs":
            with heard:
                answered[int(params[0]["fromBlock"], 16)] += 1
                heard.notify_all()
        return true

    words = ["--contract", COIN, "--to-block", "latest", "--check", "0", "--quiet", "--in-flight", str(in_flight)]
    command = [sys.executable, "-m", "nbext.cli", "fetch", *words, "--data", str(tmp_path)]
    lost = []
    with FaultNode(CHAIN, lie=lie, refuse=lambda method, params: FIVE if method == "eth_getLogs" and is_long(params)
                   else None) as server:
        environ = {**os.environ, "NBEXT_RPC_URL": server.url}
        for _ in range(KILLS):
            before, wanted = answered.copy(), answered.total() + draw.randrange(1, 20)
            process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
            with heard:
                assert heard.wait_for(lambda wanted=wanted: answered.total() >= wanted, 60)
            process.kill()
            assert process.wait(60) == -signal.SIGKILL
            with opened(tmp_path, chain_of("ethereum")) as coverage:
                stored = coverage.covered(COIN, TRANSFERS)
            lost.append(len([first for first in answered - before if missing(first, first, stored)]))
        assert subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, timeout=120, check=False).returncode == 0
    print(f"{in_flight} in flight: ranges answered and not stored at each kill: {lost}; asked for again in all: "
          f"{answered.total() - len(answered)} of {len(answered)}")
    assert max(lost) <= in_flight
    assert answered.total() - len(answered) <= sum(lost)
    assert storage.current(tmp_path).manifest["tables"]["transfers"] == sum(
        log["address"] == COIN for logs in CHAIN.logs.values() for log in logs)
