"""``python -m tests.benchmarks NAME``: figures of one run on this machine, not tests.

all         run all of these, one after the other, and write one table
analysis    30 segments side by side, and one through time, beside DuckDB SQL and pandas
append      a day added to stored data, questions after thirty of them, and compaction
client      a million rows to a DataFrame, five million, and many look-ups
fetch       a node's logs into files, and into the data
cluster     ingest on a Spark cluster of two workers, table by table beside DuckDB's
first       the first answer in a new kernel, straight after `%load_ext` and a while after it
ingest      ingest beside what DuckDB needs to read, sort and write the same rows
install     what `pip install` brings, and a newcomer's way to the first DataFrame
notebook    cells beside JupySQL's, each in a new shell
payout      claims, trees and files of a payout
query       segments beside raw SQL, polars, pandas and arrays in memory
stories     a data scientist's questions of the sample, as cells
service     ten thousand requests over 64 connections, with one process and with two; what two gain
serving     cached and new segments, and look-ups, beside a service of sixty lines

generate    write made-up transfers of any size
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from tests.benchmarks import generate, together


def main(words: list[str]) -> int:
    """Run the benchmark that is named; return how many failed."""
    top = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("benchmark", choices=sorted([*together.PARTS, "all", "generate"]))
    name = top.parse_args(words[:1]).benchmark
    module = import_module(f"tests.benchmarks.{'together' if name == 'all' else name}")
    parser = argparse.ArgumentParser(
        prog=f"python -m tests.benchmarks {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    args = parser.parse_args(words[1:])
    if name == "generate":
        generate.run(args)
        return 0
    return together.run(together.PARTS if name == "all" else [name], args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
