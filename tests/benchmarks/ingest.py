"""Ingest beside what DuckDB alone needs to read the same Parquet, sort it by contract and write it.

Each side runs in a process of its own, so that its peak memory is its own. On a machine that does other
things too, the ratio of processor seconds says more than that of wall-clock seconds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.generate import TRANSFERS, World, generate


@dataclass(frozen=True)
class Cost:
    """What one side took: seconds on the clock, seconds of processors, peak gigabytes of memory."""

    wall: float
    cpu: float
    memory: float


def duckdb_alone(source: str, target: str, memory: str) -> None:
    """Read, sort by contract, write."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": memory, "temp_directory": f"{target}/spill"})
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"COPY (FROM '{source}/{TRANSFERS}' ORDER BY token_address, block_number, log_index) "
                       f"TO '{target}/sorted.parquet'")


def nbext_ingest(source: str, target: str, memory: str) -> None:
    """The same rows, and the facts of their contracts, as a generation."""
    from nbext.engine.ingest import ingest

    print(ingest([source], "ethereum", target, memory=memory))


def cost(work: Callable[[str, str, str], None], source: Path, memory: str) -> Cost:
    """Run one side in a new process and a new folder; return what it took."""
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(dir=source.parent) as target, spawn.Pool(1) as pool:
        return pool.apply(_measured, (work, str(source), target, memory))


def _measured(work: Callable[[str, str, str], None], source: str, target: str, memory: str) -> Cost:
    wall, cpu = time.monotonic(), time.process_time()
    work(source, target, memory)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return Cost(time.monotonic() - wall, time.process_time() - cpu, peak)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``ingest``."""
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--wallets", type=int, default=5_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to keep the generated files (default: a temporary folder)")


def run(args: argparse.Namespace) -> None:
    """Print both costs of each round, and the medians of their ratios."""
    with tempfile.TemporaryDirectory() as temporary:
        source = (args.folder or Path(temporary)) / f"rows-{args.rows}-seed-{args.seed}"
        if not (source / "contracts.parquet").is_file():
            shutil.rmtree(source, ignore_errors=True)
            generate(source, World(args.rows, wallets=args.wallets, seed=args.seed))
        ratios = []
        for _ in range(args.rounds):
            alone, ours = cost(duckdb_alone, source, args.memory), cost(nbext_ingest, source, args.memory)
            for name, found in (("DuckDB alone", alone), ("nbext ingest", ours)):
                print(f"{name}: {found.wall:.1f} s, {found.cpu:.1f} s of processors, peak {found.memory:.2f} GB")
            ratios.append((ours.wall / alone.wall, ours.cpu / alone.cpu))
        wall, cpu = (statistics.median(ratio[side] for ratio in ratios) for side in (0, 1))
        print(f"{args.rows:,} transfers: ingest takes {wall:.2f} times the time, {cpu:.2f} times the processors")
