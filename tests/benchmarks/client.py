"""The client's speed and memory beside what one writes by hand, and the floors under both.

Five million wallets are ingested and served by ``nbext serve``; each way to a DataFrame of one million or of all of
them then runs in a process of its own, some times, and once more for its peak memory. The measure for it is what a
user would write: ``pd.read_csv(io.BytesIO(requests.get(...).content), dtype=...)``; the floors are the download alone,
and pyarrow's reader over it, to a table of Arrow's. Each table has both columns of the amount. Look-ups go to a service
that takes 20 ms to answer.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from nbext import Client
from nbext.client.decode import Reading
from nbext.client.segment_run import SegmentRun
from nbext.http.deadline import Deadline
from nbext.http.transport import Call
from tests.benchmarks.measure import Took, apart, high_water, median
from tests.benchmarks.table import Row

KEY = "benchmark-key-0123456789"
UNI = "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984"
ROWS, MORE, LOOKUPS = 1_000_000, 5, 500
DESCRIBED: dict[str, Any] = {}
# As one would read the body by hand: floats as floats, exact amounts as their digits.
TYPED: dict[str, Any] = {"address": "str", "UNI_balance": "float64", "UNI_balance_raw": "str"}


def body(rows: int) -> bytes:
    """Rows of a CSV, without the header."""
    return b"".join(b"0x%040x,%d\r\n" % (i * 7919 + 65537, 10 ** (i % 22) + i) for i in range(rows))


# ------------------------------------------------------------------ one way to a table, in its own process


def baseline(url: str, segment: str) -> Any:
    import pandas as pd

    return pd.read_csv(io.BytesIO(download(url, segment)), dtype=TYPED)


def download(url: str, segment: str) -> bytes:
    import requests

    return requests.get(
        f"{url}/v1/segment/{segment}/csv", headers={"x-api-key": KEY}, timeout=600
    ).content


def pyarrow_csv(url: str, segment: str) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    types = {"address": pa.string(), "UNI_balance": pa.float64(), "UNI_balance_raw": pa.string()}
    options = pyarrow.csv.ConvertOptions(column_types=types)
    return pyarrow.csv.read_csv(pa.BufferReader(download(url, segment)), convert_options=options)


def client_csv(url: str, segment: str) -> Any:
    return _rows(url, segment, arrow=False)


def client_arrow(url: str, segment: str) -> Any:
    return _rows(url, segment, arrow=True)


def _rows(url: str, segment: str, *, arrow: bool) -> Any:
    # As execute_segment fetches them, once the service has described the segment: our own service's as Arrow either
    # way, and as CSV what would be a stranger's.
    described, client = DESCRIBED[segment], Client(url, KEY)
    client._service.ours = arrow
    run = SegmentRun(client._service, "download_deadline", "csv", None, segment)
    run.learn(Reading(described))
    return run.table(*run._rows(arrow=arrow))


WAYS = {
    "baseline": baseline,
    "download": download,
    "pyarrow": pyarrow_csv,
    "csv": client_csv,
    "arrow": client_arrow,
}
BESIDE = {
    "baseline": "`requests` and typed `pd.read_csv`",
    "pyarrow": "`requests` and `pyarrow.csv`, to Arrow",
    "download": "the download alone",
}


def went(way: str, url: str, segment: str, runs: int) -> Took:
    """Go one way, in this new process, some times; return the median, and the peak of memory above the imports'."""
    # What is imported by now is no part of what a run costs; nor is what the service says of the segment.
    for module in ("pandas", "pyarrow.csv", "requests"):
        import_module(module)
    answer = Client(url, KEY)._transport.fetch(Call("GET", f"/v1/segment/{segment}", Deadline(60)))
    DESCRIBED[segment] = json.loads(answer.body)
    # The high-water mark starts anew here; it would still hold the imports' peak.
    Path("/proc/self/clear_refs").write_text("5")
    before, took = high_water(), []
    for _ in range(runs):
        began = time.perf_counter()
        table = WAYS[way](url, segment)
        took.append(time.perf_counter() - began)
        assert way == "download" or len(table) == DESCRIBED[segment]["counts"]["returned"]
        del table
    return replace(median(took), megabytes=high_water() - before)


def measured(way: str, url: str, segment: str, runs: int) -> Took:
    """Return the median of some runs in one process, with the peak of one run in another."""
    took = apart(went, way, url, segment, runs)
    return (
        took if runs == 1 else replace(took, megabytes=apart(went, way, url, segment, 1).megabytes)
    )


# ------------------------------------------------------------------ services to ask


def serve(folder: Path) -> tuple[subprocess.Popen, str]:
    """Ingest the wallets and serve them."""
    snapshot = folder / "holders.csv"
    snapshot.write_bytes(b"address,balance\r\n" + body(MORE * ROWS))
    nbext = [sys.executable, "-m", "nbext.cli"]
    subprocess.run(
        [
            *nbext,
            "ingest",
            str(snapshot),
            "--chain",
            "ethereum",
            "--token",
            UNI,
            "--decimals",
            "18",
            "--unit",
            "raw",
            "--block",
            "1",
            "--data",
            str(folder / "data"),
            "--quiet",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    process = subprocess.Popen(
        [*nbext, "serve", "--data", str(folder / "data")],
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "NBEXT_API_KEY": KEY},
    )
    found = None
    while found is None:
        found = re.search(r"http://[\d.:]+", process.stdout.readline())
    return process, found[0]


# ------------------------------------------------------------------ the figures


def rows_of_a_segment(url: str, number: int, ways: Iterable[str], runs: int) -> dict[str, Took]:
    """Return what each way takes for so many rows of ``nbext serve``."""
    told = Client(url, KEY).execute_segment({"token": {"token": UNI}}, limit=number).attrs["nbext"]
    assert told["returned"] == number
    return {way: measured(way, url, told["segment_id"], runs) for way in ways}


def look_ups(count: int) -> Row:
    """Ask for many contracts at once, and for one after the other."""
    from tests.client.faultserver import FaultServer, reply

    server = FaultServer(
        handler=lambda r: reply({"address": r.path[-42:], "symbol": "X"}), latency=0.02
    )
    addresses = [f"0x{i:040x}" for i in range(count)]
    client = Client(server.url, KEY)
    began = time.perf_counter()
    for address in addresses:
        client.tokens("ethereum", address)
    halfway = time.perf_counter()
    client.tokens("ethereum", addresses)
    together = time.perf_counter() - halfway
    server.close()
    return Row(
        f"metadata of {count:,} contracts from a service that takes 20 ms",
        Took(together),
        {"one after the other": Took(halfway - began)},
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``client``."""
    parser.add_argument("--rounds", type=int, default=5)


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield rows for a million wallets, for five million, and for look-ups."""
    with tempfile.TemporaryDirectory() as name:
        process, url = serve(Path(name))
        with process:
            try:
                # The floors are measured once; nor is another service's answer of 256 MB read into memory.
                for number, ways in ((ROWS, WAYS), (MORE * ROWS, ("baseline", "arrow"))):
                    took = rows_of_a_segment(url, number, ways, args.rounds)
                    beside = {told: took[way] for way, told in BESIDE.items() if way in took}
                    for way, told in (
                        ("arrow", "our service, as Arrow"),
                        ("csv", "another, as CSV"),
                    ):
                        if way in took:
                            question = f"{number:,} rows to a DataFrame, from {told}"
                            yield Row(question, took[way], beside)
            finally:
                process.terminate()
    yield look_ups(LOOKUPS)
