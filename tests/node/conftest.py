"""A coverage to read into, and readers over servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nbext.core.chains import chain_of
from nbext.engine import storage
from nbext.fetch import Output, Request
from nbext.fetch.run import fetch
from nbext.node.contracts import TRANSFERS
from nbext.node.coverage import Coverage, open_coverage
from nbext.node.reader import RangeReader
from nbext.node.rpc import Node
from nbext.settings import Secret
from tests.node.faults import COIN, ITEMS, Chain


@pytest.fixture
def coverage(tmp_path):
    with open_coverage(tmp_path, chain_of("ethereum")) as found:
        yield found


@pytest.fixture
def reader_of(coverage):
    """Return a function that makes a reader of some servers' URLs."""
    nodes = []

    def made(*servers, contracts=(COIN, ITEMS), in_flight=3, **options):
        node = Node([Secret(server.url) for server in servers], **options)
        nodes.append(node)
        return RangeReader(node, coverage, dict.fromkeys(contracts, TRANSFERS), in_flight)

    yield made
    for node in nodes:
        node.close()


def said(server, data, **request):
    """Fetch by `nbext.fetch`, and return the lines that it says."""
    lines: list[str] = []
    fetch(
        [Secret(server.url)],
        Request(**{"contracts": (COIN, ITEMS), "to_block": "latest", **request}),
        data,
        Output(lines.append),
    )
    return lines


@contextmanager
def opened(data: Path) -> Iterator[Coverage]:
    """Lend what a data folder has of a chain, as a fetch finds it."""
    served = storage.current_generation(data)
    with open_coverage(data, chain_of("ethereum")) as coverage:
        coverage.only_those_in(served.manifest["files"] if served else ())
        yield coverage


def read_all(reader: RangeReader, chain: Chain) -> list[dict]:
    """Read a chain from its first block to its last; return the rows of all parts, in order."""
    reader.read(reader.plan(dict.fromkeys(reader.topics, 0), chain.blocks), chain.blocks)
    return rows_in(reader.coverage)


def rows_in(coverage: Coverage) -> list[dict]:
    """Return the rows of all parts, in order."""
    rows = [
        row
        for path in sorted(coverage.parts.glob("*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]
    return sorted(rows, key=lambda row: (row["block"], row["log_index"], row["place"]))


def expected_rows(chain: Chain) -> list[tuple]:
    """Return what of each row must come of a chain, read without our own decoder."""
    found = []
    for number, logs in sorted(chain.logs.items()):
        for log in logs:
            words = [int(log["data"][at : at + 64], 16) for at in range(2, len(log["data"]), 64)]
            who = [f"0x{topic[-40:]}" for topic in log["topics"][-2:]]
            values = (
                [(words[0], None)]
                if log["address"] == COIN
                else list(zip(words[3:9], words[10:16], strict=True))
            )
            found += [
                (
                    number,
                    int(log["logIndex"], 16),
                    place,
                    log["address"],
                    *who,
                    str(value),
                    None if count is None else str(count),
                )
                for place, (value, count) in enumerate(values)
            ]
    return found


def told(rows: list[dict]) -> list[tuple]:
    """Return rows of parts in the form of `expected_rows`."""
    names = ("block", "log_index", "place", "contract", "sender", "recipient", "value", "count")
    return [tuple(row[name] for name in names) for row in rows]


def blocks_in(coverage: Coverage) -> dict[int, tuple[str, int]]:
    """Return hash and time of each block in the parts."""
    return {
        number: (found, time)
        for path in coverage.parts.glob("*.parquet")
        for number, (found, time) in json.loads(pq.read_schema(path).metadata[b"nbext"])["blocks"]
        # Of the block before the first one the hash alone is known.
        if time is not None
    }


__all__ = ["blocks_in", "expected_rows", "opened", "read_all", "rows_in", "said", "told"]
