"""``python -m tests.benchmarks NAME``: figures of one run on this machine, not tests.

    generate    write made-up transfers of any size
    client      a million rows to a DataFrame, five million, and many look-ups
    ingest      ingest beside what DuckDB needs to read, sort and write the same rows
    query       segments beside raw SQL, polars, pandas and arrays in memory
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

# Each module has add_arguments(parser) and run(args).
BENCHMARKS = {name: f"tests.benchmarks.{name}" for name in ("client", "generate", "ingest", "query")}


def main(words: list[str]) -> None:
    """Run the benchmark that is named."""
    top = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("benchmark", choices=sorted(BENCHMARKS))
    module = import_module(BENCHMARKS[top.parse_args(words[:1]).benchmark])
    parser = argparse.ArgumentParser(prog=f"python -m tests.benchmarks {words[0]}", description=module.__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    module.add_arguments(parser)
    module.run(parser.parse_args(words[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
