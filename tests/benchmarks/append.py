"""Days added to a data folder: what a day costs, what queries cost after thirty of them, and what compaction takes.

python -m tests.benchmarks append --rows 10_000_000 --folder FOLDER
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks.generate import (
    FIRST_BLOCK,
    FIRST_TIME,
    SECONDS_PER_BLOCK,
    World,
    add_kept_world_arguments,
    chunks,
)
from tests.benchmarks.measure import Took, apart, high_water, median
from tests.benchmarks.query import HOLDERS, Ours, case_of, other_kinds, plain, prepared
from tests.benchmarks.table import Row

DAYS, A_DAY = 30, 50_000


def days(folder: Path, world: World) -> list[list[str]]:
    """Write the transfers that follow a world's, and the times of their blocks; return the files of each day."""
    files = []
    for chunk in chunks(replace(world, rows=world.rows + DAYS * A_DAY), first=world.rows):
        for start in range(0, len(chunk), A_DAY):
            day = chunk.slice(start, A_DAY)
            blocks = np.unique(day["block_number"].to_numpy())
            times = FIRST_TIME + (blocks - FIRST_BLOCK) * SECONDS_PER_BLOCK
            paths = [
                folder / f"day-{len(files)}-{name}.parquet" for name in ("transfers", "blocks")
            ]
            pq.write_table(day, paths[0])
            pq.write_table(pa.table({"number": blocks, "timestamp": times}), paths[1])
            files.append(list(map(str, paths)))
    return files


def add(data_dir: str, files: list[str]) -> Took:
    """Ingest a day's files."""
    from nbext.engine.ingest import ingest

    started = time.monotonic()
    report = ingest(files, "ethereum", data_dir)
    assert report.rebuilt is None, report.rebuilt
    return Took(time.monotonic() - started, megabytes=high_water())


def compact(data_dir: str) -> Took:
    """Fold the days into the base."""
    from nbext.engine.ingest.run import compact as folded

    started = time.monotonic()
    folded(data_dir)
    return Took(time.monotonic() - started, megabytes=high_water())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``append``."""
    add_kept_world_arguments(parser)
    parser.add_argument(
        "--rounds", type=int, default=5, help="a third of how often each question is asked"
    )


def rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of adding, of each question beside the compacted data, and of compacting."""
    world = World(args.rows, seed=args.seed)
    _, base = prepared(args, world)
    with tempfile.TemporaryDirectory(dir=args.folder) as work:
        grown, compacted = Path(work) / "grown", Path(work) / "compacted"
        # Generations are never written to again: links are as good as copies.
        shutil.copytree(base, grown, copy_function=os.link)
        costs = [apart(add, str(grown), files) for files in days(Path(work), world)]
        memory = max(cost.megabytes or 0 for cost in costs)
        yield Row(
            f"`nbext ingest` of {A_DAY:,} transfers more, onto {args.rows:,}",
            replace(median([cost.seconds for cost in costs]), megabytes=memory),
        )
        shutil.copytree(grown, compacted, copy_function=os.link)
        yield Row(f"`nbext compact` after {DAYS} such runs", apart(compact, str(compacted)))
        yield from beside(world, Ours(grown), Ours(compacted), 3 * args.rounds)


def beside(world: World, grown: Ours, compacted: Ours, rounds: int) -> Iterator[Row]:
    """Ask both in turns, so that what else the machine does is felt by both."""
    cases = [case_of(compacted, world, name, ranks) for name, ranks in HOLDERS.items()]
    questions = {
        f'"at least X of A, and B, and not C", {case.name} contracts': plain(case) for case in cases
    }
    for name, filters in {**questions, **other_kinds(cases[0], world)}.items():
        taken: list[list[float]] = [[], []]
        for _ in range(rounds + 1):
            found = []
            for side, seconds in zip((grown, compacted), taken, strict=True):
                started = time.perf_counter()
                answer = side.rows(filters)
                seconds.append(time.perf_counter() - started)
                found.append(answer.rows)
            assert found[0] == found[1], name
        ours, theirs = (Took(statistics.median(seconds[1:]), rounds) for seconds in taken)
        yield Row(f"{name}, after {DAYS} such runs", ours, {"compacted": theirs})
    grown.dataset.close()
    compacted.dataset.close()
