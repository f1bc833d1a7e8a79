"""`nbext fetch` from a server on loopback that answers at once: rows a second, memory, and the time spent waiting.

python -m tests.benchmarks fetch --logs 1_000_000
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nbext.core.chains import chain_of
from nbext.fetch import Output, Request
from nbext.fetch.run import fetch
from nbext.node.contracts import TRANSFER
from nbext.node.coverage import open_coverage
from nbext.node.reader import RangeReader
from nbext.node.rpc import Node
from nbext.settings import Secret
from tests.benchmarks.measure import Took, apart, high_water
from tests.benchmarks.table import Row
from tests.node.faults import bloom_of

COIN = "0x" + "c0" * 20
IN_A_BLOCK, WALLETS = 10, 50_000
# What each block's filter has.
_OF_ALL = bloom_of([COIN, TRANSFER])
MEMORY = "128MB"
# Without it cryo asks for one block at a time; ours comes to as many.
CRYO_BLOCKS = 500
# ethereum-etl 2 imports what Python 3.11 no longer has. cryo has wheels for few versions of Python: it is compared
# where it was installed beside the extra `bench`.
RIVALS: dict[str, Took | str] = {"ethereum-etl": "does not start on Python 3.11"}


class Many:
    """A node whose blocks have ten transfers each: the first ones mint to each wallet, the others move a little."""

    def __init__(self, logs: int) -> None:
        self.head = logs // IN_A_BLOCK

    def answer(self, call: dict[str, Any]) -> str:
        """Return a result as JSON."""
        method, params = (
            call["method"],
            call.get("params", []),
        )  # cryo leaves out those that are empty
        if method == "eth_getLogs":
            first, last = (int(params[0][name], 16) for name in ("fromBlock", "toBlock"))
            return (
                "["
                + ",".join(self._logs(number) for number in range(first, last + 1) if number)
                + "]"
            )
        if method == "eth_getBlockByNumber":
            number = int(params[0], 16)
            bloom = _OF_ALL if number else 0
            for _, *wallets, _ in self._moves(number):
                bloom |= _bits(wallets[0]) | _bits(wallets[1])
            return (
                f'{{"number":"{number:#x}","hash":"0x{number:064x}","parentHash":"0x{max(0, number - 1):064x}",'
                f'"timestamp":"{1_600_000_000 + 12 * number:#x}","logsBloom":"0x{bloom:0512x}"}}'
            )
        if method == "eth_getBlockReceipts":
            return f'[{{"logs":[{self._logs(number) if (number := int(params[0], 16)) else ""}]}}]'
        answers = {
            "eth_chainId": "0x1",
            "eth_blockNumber": hex(self.head),
            "eth_getCode": "0x60",
            "eth_call": "0x",
        }
        return json.dumps(answers[method])

    def _moves(self, number: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield what a block moves: the number of the transfer, sender, receiver and amount."""
        first = (number - 1) * IN_A_BLOCK
        for nth in range(first, first + IN_A_BLOCK if number else first):
            is_mint = nth < WALLETS
            sender = 0 if is_mint else nth * 7919 % WALLETS + 1
            amount = 10**24 if is_mint else nth % 10**6 * 10**12
            yield nth, sender, nth * 104_729 % WALLETS + 1, amount

    def _logs(self, number: int) -> str:
        return ",".join(
            f'{{"address":"{COIN}","topics":["{TRANSFER}","0x{sender:064x}","0x{receiver:064x}"],'
            f'"data":"0x{amount:064x}","blockNumber":"{number:#x}","blockHash":"0x{number:064x}",'
            f'"blockTimestamp":"{1_600_000_000 + 12 * number:#x}","transactionHash":"0x{nth:064x}",'
            f'"transactionIndex":"{index:#x}","logIndex":"{index:#x}","removed":false}}'
            for index, (nth, sender, receiver, amount) in enumerate(self._moves(number))
        )


@cache
def _bits(wallet: int) -> int:
    return bloom_of([f"0x{wallet:064x}"])


def _serve(logs: int, said: Connection) -> None:
    node = Many(logs)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made = [
                f'{{"jsonrpc":"2.0","id":{one["id"]},"result":{node.answer(one)}}}'
                for one in (body if isinstance(body, list) else [body])
            ]
            raw = (f"[{','.join(made)}]" if isinstance(body, list) else made[0]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *words: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    said.send(server.server_port)
    server.serve_forever()


def _read(url: str, folder: Path, head: int) -> Took:
    """Read all logs into files; return what that took."""
    _as_the_command_does()
    node = Node([Secret(url)])
    started = time.monotonic()
    with open_coverage(folder, chain_of("ethereum")) as coverage:
        reader = RangeReader(node, coverage, {COIN: (TRANSFER,)}, Request.in_flight)
        while not reader.read(reader.plan({COIN: 1}, head), head):
            pass
    seconds = time.monotonic() - started
    return Took(seconds, megabytes=high_water())


def _cryo(url: str, folder: Path, head: int) -> Took | str:
    """Have cryo read the same logs into Parquet; it asks for no header, and so has neither times nor checks."""
    try:
        import cryo
    except ImportError:
        return "not installed"
    started = time.monotonic()
    cryo.freeze(
        "erc20_transfers",
        blocks=[f"1:{head + 1}"],
        contract=[COIN],
        rpc=url,
        output_dir=str(folder),
        u256_types=["string"],
        inner_request_size=CRYO_BLOCKS,
        chunk_size=8 * CRYO_BLOCKS,
        max_concurrent_requests=Request.in_flight,
        verbose=False,
    )
    took = Took(time.monotonic() - started, megabytes=high_water())
    found = sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
    if found != head * IN_A_BLOCK:
        raise RuntimeError(f"cryo wrote {found:,} rows")
    return took


def _as_the_command_does() -> None:
    """Look for circles among objects as seldom, and have Arrow give memory back, as ``nbext fetch`` does."""
    gc.set_threshold(100_000)
    pa.set_memory_pool(pa.system_memory_pool())


def _fetch(url: str, folder: Path) -> Took:
    _as_the_command_does()
    started = time.monotonic()
    request = Request((COIN,), to_block="latest", check=0, memory=MEMORY)
    fetch([Secret(url)], request, folder, Output(lambda line: None), ending=threading.Event())
    return Took(time.monotonic() - started, megabytes=high_water())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``fetch``."""
    parser.add_argument(
        "--logs",
        type=int,
        default=1_000_000,
        help="how many logs the node has (default: %(default)s)",
    )


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of reading alone, and of a whole fetch with ingest."""
    logs = getattr(args, "logs", 1_000_000)
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(logs, theirs), daemon=True
    )
    server.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}/"
        with tempfile.TemporaryDirectory() as work:
            took = apart(_read, url, Path(work) / "read", logs // IN_A_BLOCK)
            (Path(work) / "cryo").mkdir()
            cryo = apart(_cryo, url, Path(work) / "cryo", logs // IN_A_BLOCK)
            yield Row(
                f"{logs:,} logs from a node into files: {logs / took.seconds:,.0f} a second",
                took,
                {"cryo, unchecked and without times": cryo, **RIVALS},
            )
            took = apart(_fetch, url, Path(work) / "whole")
            name = f"`nbext fetch --memory {MEMORY}` of {logs:,} logs, ingested: {logs / took.seconds:,.0f} a second"
            yield Row(name, took)
    finally:
        server.kill()
        server.join()
