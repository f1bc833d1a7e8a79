"""Ingest beside what DuckDB alone needs to read the same Parquet, sort it by contract and write it.

Each side runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.benchmarks.generate import TRANSFERS, World, add_kept_world_arguments, generated
from tests.benchmarks.measure import Took, apart, high_water, median
from tests.benchmarks.table import Row


def duckdb_alone(source: str, target: str, memory: str) -> None:
    """Read, sort by contract, write."""
    import duckdb

    connection = duckdb.connect(
        config={"memory_limit": memory, "temp_directory": f"{target}/spill"}
    )
    connection.execute("SET enable_progress_bar = false")
    connection.execute(
        f"COPY (FROM '{source}/{TRANSFERS}' ORDER BY token_address, block_number, log_index) "
        f"TO '{target}/sorted.parquet'"
    )


def nbext_ingest(source: str, target: str, memory: str) -> None:
    """The same rows, and the facts of their contracts, as a generation."""
    from nbext.engine.ingest import ingest

    print(ingest([source], "ethereum", target, memory=memory))


def cost(work: Callable[[str, str, str], None], source: Path, memory: str) -> Took:
    """Run one side in a new process and a new folder; return what it took."""
    with tempfile.TemporaryDirectory(dir=source.parent) as target:
        return apart(_measured, work, str(source), target, memory)


def _measured(work: Callable[[str, str, str], None], source: str, target: str, memory: str) -> Took:
    started = time.monotonic()
    work(source, target, memory)
    return Took(time.monotonic() - started, megabytes=high_water())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``ingest``."""
    add_kept_world_arguments(parser)
    parser.add_argument("--memory", default="4GB", help="what DuckDB may take on either side")
    parser.add_argument("--ingests", type=int, default=1, help="how often each side runs")


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield the one row: the medians of both sides."""
    source = generated(args.folder, World(args.rows, seed=args.seed))
    alone, ours = [], []
    for _ in range(args.ingests):
        alone.append(cost(duckdb_alone, source, args.memory))
        ours.append(cost(nbext_ingest, source, args.memory))
    yield Row(
        f"`nbext ingest` of {args.rows:,} transfers, all tables prepared",
        _middle(ours),
        {"DuckDB to read, sort and write them alone": _middle(alone)},
    )


def _middle(costs: list[Took]) -> Took:
    memory = statistics.median(cost.megabytes or 0 for cost in costs)
    return replace(median([cost.seconds for cost in costs]), megabytes=memory)
