"""Steps: what their files cover, together where there are many; how they are forgotten, read again, and replaced."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from nbext import cli
from nbext.core.addresses import checksummed
from nbext.engine import storage
from nbext.errors import NodeError
from nbext.fetch import Output, Request
from nbext.fetch.run import fetch
from nbext.node.contracts import TRANSFERS
from nbext.node.coverage import blocks_of
from nbext.settings import Secret
from tests.node.conftest import opened, said
from tests.node.faults import COIN, ITEMS, Chain, FaultNode
from tests.node.refusals import FINAL
from tests.node.test_fetch import warnings_of, without_receipts
from tests.node.test_holes import is_chains, stored

pytestmark = pytest.mark.slow
CHAIN = Chain(90)
COIN_ROWS = sum(log["address"] == COIN for logs in CHAIN.logs.values() for log in logs)
HEADS = ("30", "60", "90")
# What a process does to files that another one finds then.
CHANGES = ("os.rename", "os.link", "os.remove", "os.rmdir")


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("nbext.node.rpc.FIRST_PAUSE", 0.001)


def silent(method, params, true):
    """Leave out logs of each step."""
    if method == "eth_getLogs" and params[0]["fromBlock"] != params[0]["toBlock"]:
        return [log for log in true if int(log["blockNumber"], 16) % 30 > 9]
    return true


def one_block(method, params):
    """Refuse receipts, and the logs of more than a block: what is covered is not read again, or not yet."""
    is_range = method == "eth_getLogs" and params[0]["fromBlock"] != params[0]["toBlock"]
    return FINAL[6] if is_range else without_receipts(method, params)


def forgotten(server, data):
    """Fetch, and forget all for the balances that differ."""
    server.refuse = one_block
    with pytest.raises(NodeError, match="does not offer the method"):
        said(server, data, contracts=(COIN,), from_block="0")
    assert "left logs out" in " ".join(warnings_of(data, "token", COIN))


def fetched_in_steps(server, data, **request):
    """Fetch the coin to several blocks in turn."""
    for head in HEADS:
        said(server, data, **{"contracts": (COIN,), "to_block": head, "check": 0, **request})


def covered_by_steps(data):
    """The blocks of the coin that steps cover; not those of parts, which are read and not ingested."""
    with opened(data) as coverage:
        return blocks_of(COIN, (each for one in coverage.steps for each in one.covers()))


def files_of(data):
    """The names of the files that the data has, of rows and of blocks."""
    entries = storage.current_generation(data).manifest["files"]
    names = {Path(entry["path"]).name for entry in entries}
    return {name for name in names if not name.startswith("tokens-")}


def killed_at(nth, url, data):
    """Fetch until the nth change of a file or folder, and be killed before it; a process's whole work."""
    counted = itertools.count(1)

    def kill(event, arguments):
        if event in CHANGES and next(counted) == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    request = Request((COIN,), from_block="0", to_block="latest")
    sys.addaudithook(kill)
    with contextlib.suppress(NodeError):
        fetch([Secret(url)], request, data, Output(lambda line: None))
    os._exit(0)


def is_killed(nth, server, data):
    """Fetch in a process that is killed at a change of a file; return whether it had as many."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    process = processes.Process(target=killed_at, args=(nth, server.url, data))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def kills(server, before, data, every=1):
    """Have a fetch killed at changes of files in turn, each time of the same data, until it ends; yield each."""
    for nth in itertools.count(1, every):
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(before, data)
        if not is_killed(nth, server, data):
            return
        yield nth


def test_of_a_fetch_that_is_killed_while_it_forgets_all_steps_are_read_again_or_none(tmp_path):
    """And what is read again was said before: each answer warns of it until the whole has come."""
    before, data, ends = tmp_path / "before", tmp_path / "data", []
    with FaultNode(CHAIN) as server:
        server.lie, server.refuse = silent, without_receipts
        fetched_in_steps(server, before, from_block="0")
        server.refuse = one_block
        for nth in kills(server, before, data):
            covered = covered_by_steps(data)
            end = covered, "left logs out" in " ".join(warnings_of(data, "token", COIN))
            if end in ends:
                continue
            ends.append(end)
            server.lie, server.refuse = lambda method, params, true: true, without_receipts
            said(server, data, contracts=(COIN,), from_block="0")
            assert stored(data) == COIN_ROWS, nth
            assert warnings_of(data, "token", COIN) == [], nth
            server.lie, server.refuse = silent, one_block
            if not covered:
                break
    assert ends == [([(0, 90)], False), ([(0, 90)], True), ([], True)]


def test_of_a_fetch_that_is_killed_while_it_reads_again_the_next_one_has_the_chains_rows(tmp_path):
    before, data = tmp_path / "before", tmp_path / "data"
    with FaultNode(CHAIN) as server:
        server.lie, server.refuse = silent, without_receipts
        fetched_in_steps(server, before, from_block="0")
        forgotten(server, before)
        old = files_of(before)
        server.lie, server.refuse = lambda method, params, true: true, lambda method, params: None
        for nth in kills(server, before, data, every=5):
            # Twice: once all is read again, the next one is killed before it has ingested that.
            is_killed(4, server, data)
            said(server, data, contracts=(COIN,), check=0, from_block="0")
            assert stored(data) == COIN_ROWS, nth
            assert files_of(data).isdisjoint(old), nth
            # Nothing is left of what was replaced.
            assert said(server, data, contracts=(COIN,), from_block="0")[0].startswith(
                "Nothing new"
            )
            assert left_in(data) == files_of(data), nth


def left_in(data):
    """The names of files of blocks and rows in the folder, and of those that stand for steps."""
    folder = data / "fetched" / "ethereum"
    return {path.name for path in folder.glob("*.parquet") if not path.name.startswith("tokens-")}


def test_files_of_steps_that_are_read_again_are_taken_out_by_the_ingest_that_brings_the_whole(
    tmp_path,
):
    """Also those that come again as they were: of blocks 11 to 20 no log was left out."""

    def but_these(method, params, true):
        left_out = method == "eth_getLogs" and int(params[0]["toBlock"], 16) > 30
        return silent(method, params, true) if left_out else true

    with FaultNode(CHAIN) as server:
        server.lie, server.refuse = but_these, without_receipts
        fetched_in_steps(server, tmp_path, from_block="0")
        forgotten(server, tmp_path)
        old, rows = files_of(tmp_path), stored(tmp_path)
        assert len(old) == 6
        assert rows < COIN_ROWS
        server.lie, server.refuse = lambda method, params, true: true, without_receipts
        # In the same steps: the first one has the rows and blocks that it had.
        fetched_in_steps(server, tmp_path, from_block="0")
        assert stored(tmp_path) == COIN_ROWS
        assert files_of(tmp_path).isdisjoint(old)
        server.requests.clear()
        assert said(server, tmp_path, contracts=(COIN,), from_block="0") == [
            f"Nothing new: COIN ({checksummed(COIN)}) to block 90.",
            f"COIN ({checksummed(COIN)}): 20 of 20 balances equal the chain's at block 90.",
        ]
        assert server.logs_asked() == []


def test_many_steps_are_covered_by_one_file_until_one_of_theirs_is_taken_out_or_replaced(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("nbext.node.coverage._STEPS", 3)
    folder = tmp_path / "fetched" / "ethereum"

    def kinds():
        with opened(tmp_path) as coverage:
            assert coverage.covered(COIN, TRANSFERS)[-1][1] == server.chain.blocks
            return [step.path.name.split("-")[0] for step in coverage.steps]

    with FaultNode(Chain(90)) as server:
        found = []
        for head in range(10, 90, 10):
            server.chain.blocks = head
            said(server, tmp_path, contracts=(COIN,), check=0)
            found.append(kinds())
        assert found == [
            *(["blocks"] * many for many in (1, 2, 3)),
            *(["all", *["blocks"] * many] for many in (0, 1, 2)),
            *(["all", *["blocks"] * many] for many in (0, 1)),
        ]
        assert len(list(folder.glob("all-*"))) == 1
        # One of those that are joined: the others are covered as before.
        (blocks,) = folder.glob("blocks-21-30-*.parquet")
        assert cli.main(["remove", str(blocks), "--data", str(tmp_path), "--quiet"]) == 0
        server.requests.clear()
        lines = said(server, tmp_path, contracts=(COIN,), check=0)
        assert lines[0].endswith("are no longer in the data, and are read again.")
        assert [asked for asked in server.logs_asked() if asked != (0, 0)] == [(21, 30)]
        assert kinds() == ["all"]
        said(server, tmp_path, check=0)
        # A reorganisation in the midst of them, twice.
        for fork, branch in ((55, "b"), (35, "c")):
            server.requests.clear()
            assert is_chains(tmp_path, server, Chain(90, fork=fork, branch=branch))
            assert min(asked for asked in server.logs_asked() if asked != (0, 0))[0] == fork
        # Where it is damaged or gone, each step says itself what it covers.
        for spoil in (lambda path: path.write_bytes(b"?"), lambda path: path.unlink()):
            for path in folder.glob("all-*"):
                spoil(path)
            server.requests.clear()
            assert said(server, tmp_path, check=0)[0].startswith("Nothing new")
            assert [asked for asked in server.logs_asked() if asked != (0, 0)] == []


def test_what_many_steps_cover_is_forgotten_as_one(tmp_path, monkeypatch):
    monkeypatch.setattr("nbext.node.coverage._STEPS", 2)
    with FaultNode(CHAIN) as server:
        said(server, tmp_path, contracts=(ITEMS,), from_block="0", to_block="50", check=0)
        server.lie, server.refuse = silent, without_receipts
        fetched_in_steps(server, tmp_path, from_block="0")
        forgotten(server, tmp_path)
        assert covered_by_steps(tmp_path) == []
        # Of another contract nothing is.
        with opened(tmp_path) as coverage:
            assert coverage.covered(ITEMS, TRANSFERS) == [(0, 50)]
            assert list(coverage.missing(coverage.steps)) == [(0, COIN, TRANSFERS)]
        assert is_chains(tmp_path, server, CHAIN, from_block="0")
        assert said(server, tmp_path)[0].startswith("Nothing new")
