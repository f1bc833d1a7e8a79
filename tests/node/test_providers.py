"""Providers that are made up: a fetch from one ends with the chain's balances or with an error, and the next is right.

Over a chain on this machine each lags, forks, leaves out, refuses, answers garbage in any field, or breaks connections,
at some calls and for a while; or the disk is full then, or the process is told to end, or killed. After it an honest
node is asked, on the same data.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import multiprocessing
import os
import random
import re
import signal
import socket
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbext import cli
from nbext.engine import storage
from nbext.engine.open import open_dataset
from nbext.fetch.balances import _drawn
from nbext.node import rpc
from nbext.node.contracts import TRANSFERS
from nbext.node.limits import RangeSize
from tests.full_disk import fill, mounted
from tests.node.conftest import opened
from tests.node.refusals import FINAL, PASSING, RANGES
from tests.node.test_chain import LONGEST, STIR, Contracts, fixture_of_local
from tests.node.test_chain import pytestmark as needs_a_chain
from tests.node.test_chain import rows as rows_of

pytestmark = [*needs_a_chain, pytest.mark.slow]
GARBAGE = [
    None,
    "",
    "0x",
    "0xzz",
    hex(2**70),
    -1,
    1.5,
    [],
    {},
    [[]],
    "0x" + "12" * 32,
    True,
    "x" * 3000,
]
KINDS = ["lag", "fork", "gap", "refuse", "garbage", "reset", "null", "term", "kill", "full"]
# By a fetch, which takes less time than they do.
IMPORTED = [
    "Crypto.Hash.keccak",
    "pandas",
    "pyarrow.dataset",
    "nbext.engine.ingest.command",
    "nbext.engine.sample.known",
    "nbext.fetch.command",
    "nbext.node.reader",
]
# Of some 370 calls of a fetch it reads blocks by the 54th to 87th; those after them are of balances.
FAULT = st.tuples(
    st.sampled_from(KINDS),
    st.integers(25, 90) | st.integers(0, 400),
    st.integers(1, 40),
    st.integers(0, 2**32),
)


class Branch:
    """A chain with three contracts that stays as it is, and what they say of their holders."""

    def __init__(self, local, seeds):
        self.chain, self._known = local.LocalChain(), {}
        self.contracts = {self.chain.deploy(local.COIN, 0): "token"}
        self.contracts |= {self.chain.deploy(each): "nft" for each in (local.BEASTS, local.ITEMS)}
        for seed in seeds:
            for contract, count in zip(self.contracts, (40, 20, 4), strict=True):
                self.chain.send(contract, STIR, seed, count)
            self.chain.mine(1 + seed % 3)
        named = Contracts.__new__(Contracts)
        named.local, named.chain, named.items = local, self.chain, list(self.contracts)[-1]
        self.holders = {each: named.holders(each) for each in self.contracts}
        self.rows = rows_of(self.chain)

    def answer(self, asked):
        """Return the answer to a call. The EVM is asked once: it takes longer than a fetch."""
        call = json.dumps([asked["method"], asked["params"]])
        if call not in self._known:
            self._known[call] = self.chain.answer(asked)
        return {**self._known[call], "id": asked["id"]}


@pytest.fixture(scope="module")
def branches():
    """Two chains that part after some blocks."""
    local = fixture_of_local()
    both = Branch(local, (1, 2, 3, 4)), Branch(local, (1, 2, 7, 8, 9))
    yield both
    for one in both:
        one.chain.close()


class Provider:
    """A node in front of a chain that has some faults; a context.

    A fault is its kind, first call, calls and seed. ``process`` is what asks, and ``disk`` what it writes on.
    """

    def __init__(self, branches, faults=(), disk=None):
        self.ours, self.theirs = branches
        self.faults, self.disk, self.calls = faults, disk, 0
        # Whether logs were asked for: a fetch knows its last block then.
        self.has_last, self.process = False, None
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answers = [
                    provider.answer(one) for one in (body if isinstance(body, list) else [body])
                ]
                if None in answers:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                raw = json.dumps(answers if isinstance(body, list) else answers[0]).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *words):
                """Keep quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                """Say nothing of connections that were broken."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v3/key"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, asked):
        """Return the answer to a call, or None where the connection breaks."""
        number, self.calls = self.calls, self.calls + 1
        self.has_last |= asked["method"] == "eth_getLogs"
        answer, said = self.ours.answer(asked), {"jsonrpc": "2.0", "id": asked["id"]}
        for kind, first, many, seed in self.faults:
            if not first <= number < first + many:
                continue
            draw = random.Random(seed * 1000 + number)
            if kind in ("term", "kill"):
                self._signal(signal.SIGKILL if kind == "kill" else signal.SIGTERM)
            elif kind == "full":
                if number == first:
                    fill(self.disk, free=seed % 2**18)
            elif kind == "reset":
                return None
            elif kind == "null":
                answer = {**said, "result": None}
            elif kind == "refuse":
                refused = draw.choice((*RANGES, *PASSING, *FINAL))
                answer = {**said, "error": {"code": refused.code, "message": refused.message}}
            elif kind == "fork":
                answer = self.theirs.answer(asked)
            elif "result" in answer:
                answer["result"] = self._changed(kind, draw, asked, answer["result"], seed)
        return answer

    def _signal(self, number):
        """Send a signal to who asks, which may be gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def _changed(self, kind, draw, asked, result, seed):
        if kind == "lag":
            # Not its latest block: what is covered to there would be right.
            is_late = asked["method"] == "eth_getBlockByNumber" and isinstance(result, dict)
            return (
                None
                if is_late and int(result["number"], 16) > self.ours.chain.head - seed % 5
                else result
            )
        if kind == "gap":
            if isinstance(result, list) and result:
                return [one for one in result if draw.random() < 0.7]
            return result
        return spoilt(draw, result)


def spoilt(draw, value):
    """Return a value with garbage in one of its fields."""
    if isinstance(value, list) and value and draw.random() < 0.9:
        place = draw.randrange(len(value))
        return [spoilt(draw, one) if n == place else one for n, one in enumerate(value)]
    if isinstance(value, dict) and value and draw.random() < 0.9:
        place = draw.choice(sorted(value))
        return {name: spoilt(draw, one) if name == place else one for name, one in value.items()}
    return draw.choice(GARBAGE)


def shorten():
    """Have pauses be short, and ranges small."""
    rpc.FIRST_PAUSE, rpc.LONGEST_PAUSE = 0.001, 0.01
    RangeSize.__init__.__defaults__ = (6, 2000)


def command(url, contracts, data, lines):
    """Run the command, whose lines go to a file; a process's whole work."""
    shorten()
    # One that hangs says where.
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    os.environ["NBEXT_RPC_URL"] = url
    named = [word for each in contracts for word in ("--contract", each)]
    words = ["--to-block", "latest", "--check", "1000", "--in-flight", "2", "--quiet"]
    with lines.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.stdout = sys.stderr = file
        code = cli.main(["fetch", *named, *words, "--data", str(data)])
        file.flush()
        os._exit(code)


def fetched(provider, data):
    """Fetch in a process of its own, and return its exit code and what it said."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([*IMPORTED, __name__])
    with tempfile.NamedTemporaryFile("r") as lines:
        arguments = provider.url, list(provider.ours.contracts), data, Path(lines.name)
        provider.process = processes.Process(target=command, args=arguments)
        provider.process.start()
        provider.process.join()
        return provider.process.exitcode, lines.read()


def answers(data, branch):
    """What each wallet has of each contract, and how many transfers there are."""
    dataset = open_dataset(data)
    try:
        held = {
            contract: _drawn(dataset, {kind: {kind: contract}, "chain": "ethereum"}, 1000, random)
            for contract, kind in branch.contracts.items()
        }
    finally:
        dataset.close()
    return held, storage.current_generation(data).manifest["tables"]["transfers"]


def left(data, branch):
    """Whether blocks of a contract are not covered."""
    with opened(data) as coverage:
        return any(
            not ranges or ranges[-1][1] < branch.chain.head
            for ranges in (coverage.covered(each, TRANSFERS) for each in branch.contracts)
        )


def run_of(branches, faults, disk):
    """Fetch from a provider with faults, then from an honest one; return how the first ended."""
    ours, _ = branches
    with tempfile.TemporaryDirectory(dir=disk) as folder:
        data = Path(folder)
        with Provider(branches, faults, disk) as provider:
            code, said = fetched(provider, data)
        (disk / "fill").unlink(missing_ok=True)
        assert not re.search("Traceback|most recent call", said), said
        if code == 0:
            expected = [(one.holders, one.rows) for one in branches]
            found = answers(data, ours)
            assert found in (expected if uses(faults, "fork") else expected[:1]), said
        elif code == -signal.SIGKILL:
            assert uses(faults, "kill")
        elif provider.has_last and left(data, ours):
            assert "Not covered: blocks" in said, said
        if not any(path.is_file() and path.name != ".lock" for path in data.rglob("*")):
            # Nothing is left of it: what comes next is a first fetch.
            return code
        with Provider(branches) as honest:
            again = fetched(honest, data)
        assert again[0] == 0, (said, again)
        assert answers(data, ours) == (ours.holders, ours.rows), (said, again)
        # Of each contract once, whatever had to be read again for it.
        told = re.findall(
            r"\((0x\w+)\): (\d+) of (\d+) balances equal the chain's at block ", again[1]
        )
        assert sorted(one.lower() for one, *_ in told) == sorted(ours.contracts), again
        assert all(equal == compared for _, equal, compared in told), again
    return code


def uses(faults, kind):
    """Return whether one of some faults is of a kind."""
    return any(each[0] == kind for each in faults)


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A small disk, which a fault fills."""
    with mounted(tmp_path_factory.mktemp("disk") / "small") as disk:
        yield disk


OPTIONS = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}


@settings(max_examples=10, **OPTIONS)
@given(faults=st.lists(FAULT, min_size=1, max_size=4))
def test_whatever_a_provider_does_the_data_are_the_chains_or_an_error_says_not(
    branches, disk, faults
):
    run_of(branches, faults, disk)


@pytest.mark.long
@settings(max_examples=2000, **OPTIONS)
@given(faults=st.lists(FAULT, min_size=1, max_size=4))
def test_of_two_thousand_providers_none_leaves_a_hole(branches, disk, faults):
    run_of(branches, faults, disk)
