"""``nbext ingest``: the command line of ingest."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nbext.core.addresses import looks_like_address
from nbext.errors import UsageError
from nbext.settings import Settings, default_data_dir

_EXAMPLES = """\
examples:
  nbext ingest transfers/*.parquet tokens.csv --chain ethereum
  nbext ingest uniswap.tokenlist.json
  nbext ingest export-tokenholders.csv --chain ethereum --token 0x... --decimals 18 --block 12000000

nbext recognises a file by its columns: ethereum-etl's and BigQuery's token_transfers, tokens, contracts and blocks;
cryo's erc20_transfers, erc721_transfers and their metadata; Etherscan's tokentx, tokennfttx, token1155tx and holder
exports; other holder snapshots; token lists. Files are CSV, CSV.gz, Parquet or JSON.
Each run adds to the data. Rows that an earlier run ingested are skipped."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or a glob")
    parser.add_argument("--chain", help="the chain of files that do not name one: ethereum, 10, eip155:137, ...")
    parser.add_argument("--data", metavar="DIR", type=Path, help="the data folder (default: your user data folder)")
    parser.add_argument("--token", action="append", default=[], metavar="[SYMBOL=]ADDRESS",
                        help="the token of a holder snapshot that does not name it")
    parser.add_argument("--decimals", type=int, metavar="N",
                        help="decimals of a snapshot's token, if no metadata has them")
    parser.add_argument("--unit", choices=("token", "raw"), default="token", help="the unit of a snapshot's balances")
    parser.add_argument("--block", type=int, metavar="N", help="the block of a snapshot that does not name it")
    parser.add_argument("--memory", default=None, metavar="SIZE",
                        help="memory limit (default 4GB); what exceeds it is spilled to disk")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")


def run(args: argparse.Namespace) -> int:
    """Ingest the files and print the report; return 1 if a file was refused or a row was bad, else 0."""
    # Here, so that `nbext --help` and wrong arguments do not wait for DuckDB and Arrow to load.
    from nbext.engine.ingest import ingest
    from nbext.engine.ingest.derive.snapshots import SnapshotOptions
    from nbext.engine.ingest.stage import DEFAULT_MEMORY

    options = SnapshotOptions(tokens=_tokens(args.token), decimals=args.decimals, unit=args.unit, block=args.block)
    with _bar(quiet=args.quiet) as progress:
        report = ingest(args.paths, args.chain, args.data or default_data_dir(Settings()), options=options,
                        memory=args.memory or DEFAULT_MEMORY, progress=progress)
    print(report)
    # So that a script notices; the data is served all the same.
    return 1 if report.refused or report.bad_rows else 0


def _tokens(given: list[str]) -> dict[str, str]:
    tokens = {}
    for text in given:
        symbol, _, address = text.rpartition("=")
        if not looks_like_address(address):
            raise UsageError(
                f"--token: {address[:80]!r} is not an address. Write --token 0x... or --token SYMBOL=0x...")
        tokens[symbol.lower()] = address.lower()
    return tokens


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Callable[[str, float], None] | None]:
    """Yield a progress callback that draws on a terminal; None where there is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:>20}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda step, done: bar.update(task, description=step, completed=done)
