"""Our service beside one of sixty lines (`minimal`): cached and new segments, token look-ups; each round asks both."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from nbext.engine import storage
from tests.benchmarks.generate import World, add_kept_world_arguments
from tests.benchmarks.measure import median
from tests.benchmarks.query import prepared
from tests.benchmarks.table import Row
from tests.service.process import KEY, serve

CONNECTIONS = 16


@dataclass
class Side:
    """One of the two services: where it is, its process, and how its requests are written."""

    address: tuple[str, int]
    pid: int
    execute: Callable[[str, int, int], bytes]
    token: Callable[[str], bytes]
    taken: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)

    def ask(self, requests: Sequence[bytes], connections: int) -> None:
        """Send requests over some connections, and note the seconds that it took, and those of the processor."""
        before, began = self._worked(), time.perf_counter()
        asyncio.run(self._send(requests, connections))
        self.taken.append(time.perf_counter() - began)
        self.worked.append(self._worked() - before)

    def _worked(self) -> float:
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    async def _send(self, requests: Sequence[bytes], connections: int) -> None:
        left = iter(requests)

        async def connection() -> None:
            reader, writer = await asyncio.open_connection(*self.address)
            for request in left:
                writer.write(request)
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                assert head.split()[1] in (b"200", b"202"), head
                length = int(head.partition(b"content-length:")[2].split()[0])
                await reader.readexactly(length)
            writer.close()

        await asyncio.gather(*(connection() for _ in range(connections)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_kept_world_arguments(parser)
    parser.add_argument("--rounds", type=int, default=5)


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each kind of request."""
    world = World(args.rows, seed=args.seed)
    _, data = prepared(args, world)
    large, small = world.contract_address(0), world.contract_address(200)
    least = count(2)
    with _ours(args.folder / "served", data) as ours, _minimal(data) as minimal:
        both = (ours, minimal)

        def asked(question: str, made: Callable[[Side], list[bytes]], connections: int) -> Row:
            for side in both:
                side.ask(made(side), connections)
                side.taken.clear(), side.worked.clear()
            for _ in range(args.rounds):
                for side in both:
                    side.ask(made(side), connections)
            print(
                f"{question}: {_ratio(minimal.taken, ours.taken)} of its speed,"
                f" {_ratio(minimal.worked, ours.worked)} by the processor's time",
                file=sys.stderr,
            )
            return Row(
                question, median(ours.taken), {"a service of 60 lines": median(minimal.taken)}
            )

        yield asked(
            "1,600 cached segments over 16 connections",
            lambda side: [side.execute(small, 1, 1000)] * 1600,
            CONNECTIONS,
        )
        yield asked(
            "1,600 token look-ups over 16 connections",
            lambda side: [side.token(small)] * 1600,
            CONNECTIONS,
        )
        yield asked(
            "a new segment of all holders of the largest token",
            lambda side: [side.execute(large, next(least), 1_000_000)],
            1,
        )
        yield asked(
            "32 new segments of up to 1,000 rows over 16 connections",
            lambda side: [side.execute(small, next(least), 1000) for _ in range(32)],
            CONNECTIONS,
        )


def _ratio(one: list[float], other: list[float]) -> str:
    return f"{statistics.median(one) / max(statistics.median(other), 0.001):.2f}"


def _request(method: str, path: str, body: object = None, **headers: str) -> bytes:
    text = b"" if body is None else json.dumps(body).encode()
    named = {"Host": "127.0.0.1", "Content-Length": str(len(text)), **headers}
    if text:
        named["Content-Type"] = "application/json"
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + text


@contextmanager
def _ours(state: Path, data: Path) -> Iterator[Side]:
    # A folder of its own beside the data: what it stores is no part of them.
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir()
    for name in ("generations", "current"):
        (state / name).symlink_to((data / name).absolute())

    def execute(token: str, least: int, limit: int) -> bytes:
        held = {"token": token, "unit": "raw", "balance": {"min": str(least)}}
        body = {"filters": {"token": held, "exclude": []}, "limit": limit}
        return _request("POST", "/v1/segment/execute", body, **{"x-api-key": KEY})

    def token(address: str) -> bytes:
        return _request("GET", f"/v1/tokens/ethereum/{address}", **{"x-api-key": KEY})

    with serve(state, key=KEY) as process:
        url = urlsplit(process.url)
        yield Side((url.hostname, url.port), process.process.pid, execute, token)


@contextmanager
def _minimal(data: Path) -> Iterator[Side]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    tables = storage.current_generation(data).tables
    words = [sys.executable, "-m", "tests.benchmarks.minimal", str(tables), str(address[1])]

    def execute(token: str, least: int, limit: int) -> bytes:
        return _request("POST", "/execute", {"token": token, "min": least, "limit": limit})

    def token(address: str) -> bytes:
        return _request("GET", f"/tokens/{address}")

    process = subprocess.Popen(words)
    try:
        _wait_for(address)
        yield Side(address, process.pid, execute, token)
    finally:
        process.kill()
        process.wait()


def _wait_for(address: tuple[str, int]) -> None:
    until = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError), socket.create_connection(address):
            return
        assert time.monotonic() < until
        time.sleep(0.05)
