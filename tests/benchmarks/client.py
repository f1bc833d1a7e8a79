"""The client's speed and memory, as ratios: ``python -m tests.benchmarks client``.

A million wallets are ingested and served by ``nbext serve``; each way to a DataFrame then runs in a process of
its own, five times, and once more for its peak memory. The measure for it is what a user would write:
``pd.read_csv(io.BytesIO(requests.get(...).content), dtype=...)``. Five million rows come from a plain server,
since a segment keeps at most one. Look-ups go to a service that takes 20 ms to answer.
"""

from __future__ import annotations

import argparse
import http.server
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path

from nbext import Client
from nbext.client import frames
from nbext.client.deadline import Deadline
from nbext.client.transport import Call

KEY = "benchmark-key-0123456789"
UNI = "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984"
ROWS, RUNS, LOOKUPS = 1_000_000, 5, 500
DESCRIBED: dict = {}
COLUMNS = [{"name": "address", "type": "string"}, {"name": "UNI_balance", "type": "uint256"}]


def body(rows: int, start: int = 0) -> bytes:
    """Rows of a CSV, without the header."""
    return b"".join(b"0x%040x,%d\r\n" % (i * 7919 + 65537, 10 ** (i % 22) + i) for i in range(start, start + rows))


# ------------------------------------------------------------------ one way to a table, in its own process


def baseline(url: str, segment: str):
    import pandas as pd
    import requests

    answer = requests.get(f"{url}/v1/segment/{segment}/csv", headers={"x-api-key": KEY}, timeout=600)
    return pd.read_csv(io.BytesIO(answer.content), dtype={"address": "str", "UNI_balance": "str"})


def client_csv(url: str, segment: str):
    return _rows(url, segment, arrow=False)


def client_arrow(url: str, segment: str):
    return _rows(url, segment, arrow=True)


def _rows(url: str, segment: str, *, arrow: bool):
    # As execute_segment fetches them, once the service has described the segment.
    described = DESCRIBED[segment]
    run = Client(url, KEY)._run("csv", "download_deadline", None, segment)
    links = {"arrow": described["links"]["arrow"]} if arrow else {}
    return run.fetch(frames.types_of(described["columns"]), {"returned": described["counts"]["returned"]}, links)


WAYS = {"baseline": baseline, "csv": client_csv, "arrow": client_arrow}


def child(way: str, url: str, segment: str, runs: int) -> None:
    """Print how long each run took, the peak of memory above the imports', and how many rows came."""
    # What is imported by now is no part of what a run costs; nor is what the service says of the segment.
    for module in ("pandas", "pyarrow.csv", "requests"):
        import_module(module)
    answer = Client(url, KEY)._transport.fetch(Call("GET", f"/v1/segment/{segment}", Deadline(60)))
    DESCRIBED[segment] = json.loads(answer.body)
    # The high-water mark starts anew here; ru_maxrss would still hold the parent's from before the exec.
    Path("/proc/self/clear_refs").write_text("5")
    before = high_water()
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        table = WAYS[way](url, segment)
        took.append(time.perf_counter() - began)
        rows = len(table)
        del table
    print(json.dumps({"seconds": took, "peak_mb": (high_water() - before) / 1000, "rows": rows}))


def high_water() -> int:
    """The most memory that this process has held, in kB."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])


def measured(way: str, url: str, segment: str, runs: int) -> dict:
    command = [sys.executable, "-m", "tests.benchmarks", "client", "--way", way, "--url", url, "--segment", segment,
               "--runs", str(runs)]  # fmt: skip
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# ------------------------------------------------------------------ services to ask


def serve(folder: Path) -> tuple[subprocess.Popen, str]:
    """Ingest a million wallets and serve them."""
    snapshot = folder / "holders.csv"
    snapshot.write_bytes(b"address,balance\r\n" + body(ROWS))
    nbext = [sys.executable, "-m", "nbext.cli"]
    subprocess.run([*nbext, "ingest", str(snapshot), "--chain", "ethereum", "--token", UNI, "--decimals", "18",
                    "--unit", "raw", "--block", "1", "--data", str(folder / "data"), "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    process = subprocess.Popen([*nbext, "serve", "--data", str(folder / "data")], stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL, env={**os.environ, "NBEXT_API_KEY": KEY})  # fmt: skip
    found = None
    while found is None:
        found = re.search(r"http://[\d.:]+", process.stdout.readline())
    return process, found[0]


class Millions(http.server.BaseHTTPRequestHandler):
    """A service with one segment of five million rows."""

    protocol_version = "HTTP/1.1"
    rows, piece, arrow = 0, b"", b""

    def do_GET(self) -> None:
        if self.path.endswith(("/csv", "/arrow")):
            self._pour()
            return
        told = {"id": "big", "status": "completed", "columns": COLUMNS, "links": {"arrow": "/v1/segment/big/arrow"},
                "counts": {"matched": self.rows, "returned": self.rows}}  # fmt: skip
        self._head("application/json", len(json.dumps(told)))
        self.wfile.write(json.dumps(told).encode())

    def _pour(self) -> None:
        if self.path.endswith("/arrow"):
            self._head("application/vnd.apache.arrow.stream", len(self.arrow))
            self.wfile.write(self.arrow)
            return
        header = b"address,UNI_balance\r\n"
        self._head("text/csv", len(header) + 5 * len(self.piece))
        self.wfile.write(header)
        for _ in range(5):
            self.wfile.write(self.piece)

    def _head(self, kind: str, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def millions() -> str:
    import pyarrow as pa

    Millions.piece, Millions.rows = body(ROWS), 5 * ROWS
    lines = Millions.piece.split(b"\r\n")[:-1]
    batch = pa.record_batch({
        "address": pa.array([line[:42].decode() for line in lines]),
        "UNI_balance": pa.array([line[43:].decode() for line in lines]),
    })
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as out:
        for _ in range(5):
            for start in range(0, ROWS, 1 << 16):
                out.write_batch(batch.slice(start, 1 << 16))
    Millions.arrow = sink.getvalue()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Millions)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


# ------------------------------------------------------------------ the figures


def rows_of_a_segment() -> None:
    with tempfile.TemporaryDirectory() as name:
        process, url = serve(Path(name))
        try:
            told = Client(url, KEY).execute_segment({"token": {"token": UNI}}, limit=ROWS).attrs["nbext"]
            segment, found = told["segment_id"], {}
            for way in WAYS:
                found[way] = measured(way, url, segment, RUNS)
                found[way]["peak_mb"] = measured(way, url, segment, 1)["peak_mb"]
        finally:
            process.terminate()
            process.wait(30)
    base = found["baseline"]
    print(f"{told['returned']:,} rows from nbext serve to a DataFrame, median of {RUNS}")
    for way, figures in found.items():
        median = statistics.median(figures["seconds"])
        times, share = statistics.median(base["seconds"]) / median, figures["peak_mb"] / base["peak_mb"]
        print(f"  {way:9} {median:6.2f} s  {times:5.1f}x  peak {figures['peak_mb']:6.0f} MB  {share:4.2f} of baseline")


def five_million() -> None:
    url = millions()
    print("five million rows from a plain server")
    for way in ("csv", "arrow"):
        figures = measured(way, url, "big", 1)
        assert figures["rows"] == 5 * ROWS
        print(f"  {way:9} {figures['seconds'][0]:6.2f} s  peak {figures['peak_mb']:6.0f} MB")


def look_ups() -> None:
    from tests.client.faultserver import FaultServer, reply

    server = FaultServer(handler=lambda r: reply({"address": r.path[-42:], "symbol": "X"}), latency=0.02)
    addresses = [f"0x{i:040x}" for i in range(LOOKUPS)]
    client = Client(server.url, KEY)
    began = time.perf_counter()
    for address in addresses:
        client.tokens("ethereum", address)
    one_by_one = time.perf_counter() - began
    began = time.perf_counter()
    client.tokens("ethereum", addresses)
    together = time.perf_counter() - began
    ratio = one_by_one / together
    print(f"{LOOKUPS} look-ups at 20 ms: {one_by_one:.2f} s one by one, {together:.2f} s together: {ratio:.1f}x")
    server.close()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what a process for one way is told; without, all figures are made."""
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--url")
    parser.add_argument("--segment")
    parser.add_argument("--runs", type=int, default=RUNS)


def run(args: argparse.Namespace) -> None:
    """Print the figures."""
    if args.way:
        child(args.way, args.url, args.segment, args.runs)
        return
    rows_of_a_segment()
    five_million()
    look_ups()
