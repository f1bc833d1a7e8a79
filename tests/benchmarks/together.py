"""All comparisons, one after the other, each in a process of its own: what fails takes nothing else with it.

python -m tests.benchmarks all --rows 10_000_000 --folder FOLDER --write
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module

from tests.benchmarks import table
from tests.benchmarks.generate import add_kept_world_arguments
from tests.benchmarks.measure import apart
from tests.benchmarks.table import Row

# Each has add_arguments(parser) and rows(args).
PARTS = (
    "query",
    "analysis",
    "ingest",
    "append",
    "cluster",
    "notebook",
    "first",
    "stories",
    "client",
    "service",
    "serving",
    "fetch",
    "payout",
    "install",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``all``: those of its parts."""
    add_kept_world_arguments(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--write", action="store_true", help="write the table into nbext/reference/performance.md"
    )
    parser.set_defaults(memory="4GB", ingests=1)


def run(parts: Sequence[str], args: argparse.Namespace) -> int:
    """Print the table of some parts; return how many of them failed."""
    rows: list[Row] = []
    failed = []
    for part in parts:
        try:
            rows += apart(rows_of, part, args)
        except Exception:  # noqa: BLE001  what the other parts find is worth its minutes
            traceback.print_exc()
            failed.append(part)
    made = table.rendered(rows, table.today(), table.machine())
    print(made)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    elif getattr(args, "write", False):
        table.write(made)
    return len(failed)


def rows_of(part: str, args: argparse.Namespace) -> list[Row]:
    """Return the rows of a part; each is told as soon as it is there."""
    return list(_told(part, import_module(f"tests.benchmarks.{part}").rows(args)))


def _told(part: str, rows: Iterator[Row]) -> Iterator[Row]:
    began = time.monotonic()
    print(f"{part} ...", file=sys.stderr, flush=True)
    for row in rows:
        print(
            f"{part}, {time.monotonic() - began:.0f} s: {' | '.join(row.cells())}",
            file=sys.stderr,
            flush=True,
        )
        yield row
