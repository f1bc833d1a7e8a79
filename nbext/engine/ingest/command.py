"""The command lines of a data folder: ``nbext ingest``, ``nbext sources``, ``nbext remove`` and ``nbext compact``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nbext.core.addresses import looks_like_address, normalised
from nbext.core.untrusted_text import quoted
from nbext.engine.open import DEFAULT_MEMORY, add_spark_conf, master_and_options, with_options
from nbext.errors import UsageError, did_you_mean
from nbext.settings import current, data_folder, data_place, default_data_dir

if TYPE_CHECKING:
    from nbext.engine.ingest.report import Report

_EXAMPLES = """\
examples:
  nbext ingest transfers/*.parquet tokens.csv --chain ethereum
  nbext ingest uniswap.tokenlist.json
  nbext ingest export-tokenholders.csv --chain ethereum --token 0x... --decimals 18 --block 12000000

nbext recognises a file by its columns: ethereum-etl's and BigQuery's token_transfers, tokens, contracts and blocks;
cryo's erc20_transfers, erc721_transfers and their metadata; Etherscan's tokentx, tokennfttx and token1155tx, and
its pages' CSV exports; Dune's Transfer, TransferSingle and TransferBatch events, tokens.transfers and nft.transfers;
Blockscout's token transfers; other holder snapshots; token lists. Files are CSV, CSV.gz, Parquet, JSON (also as the
APIs of Etherscan, Dune, Blockscout, Ethplorer, Covalent and Moralis answer it) or NDJSON.
Any other table of transfers: --map from=SENDER,to=RECIPIENT,amount=AMOUNT,time=WHEN,hash=TX --token UNI, with your
columns' names, and block=BLOCK where it has one. --dry-run shows how the first rows are read.
Each run adds to the data. Rows that an earlier run ingested are skipped; a file that is given again with other options
replaces what it gave, and for another chain is another file. `nbext sources` lists the files, `nbext remove` takes one
out, or all."""


class ShellCommand(NamedTuple):
    """What `nbext.cli` asks of a command: to declare its arguments, and to run and return its exit code."""

    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _declare_ingest(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLES}\n\nThe columns of each format, [those] that it may lack in brackets:\n{_columns()}"
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder, or a glob")
    parser.add_argument(
        "--chain", help="the chain of files that do not name one: ethereum, 10, eip155:137, ..."
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=data_place,
        help="the data folder (default: your user data folder); with --engine, the URL of one",
    )
    parser.add_argument(
        "--engine",
        metavar="URL",
        help="a Spark cluster that builds the tables anew of all these files, such as spark://HOST:PORT",
    )
    add_spark_conf(parser)
    parser.add_argument(
        "--token",
        action="append",
        default=[],
        metavar="[SYMBOL=]ADDRESS",
        help="the token of a holder snapshot or CSV export that does not name it, also as a known symbol: UNI",
    )
    parser.add_argument(
        "--map",
        metavar="THEIRS=OURS,...",
        default="",
        help="columns of these files by the names that a known format has: amount=value,to=to_address",
    )
    parser.add_argument(
        "--date-format",
        metavar="FORMAT",
        help="how times are written, if not as 2025-01-31 12:00:00: '%%d/%%m/%%Y %%H:%%M'",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="change nothing, but show how the first rows of each file would be read",
    )
    parser.add_argument(
        "--decimals",
        type=int,
        metavar="N",
        help="decimals of a snapshot's or CSV export's tokens, if no metadata has them",
    )
    parser.add_argument(
        "--unit",
        choices=("token", "raw"),
        help="the unit of a snapshot's balances, or of a table's amounts (default: token)",
    )
    parser.add_argument(
        "--block", type=int, metavar="N", help="the block of a snapshot that does not name it"
    )
    parser.add_argument(
        "--date",
        type=_date,
        metavar="DATE",
        help="in its place: when the snapshot was made, in UTC; a date alone is its end",
    )
    parser.add_argument(
        "--replace-from",
        type=int,
        metavar="BLOCK",
        help="after a reorganisation: these files replace everything of --chain from that block on",
    )
    _declare_working(parser)


def _declare_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=data_folder,
        help="the data folder (default: your user data folder)",
    )


def _declare_working(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="memory limit (default 4GB); what exceeds it is spilled to disk",
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")


def _folder(args: argparse.Namespace) -> Path:
    from nbext.engine.ingest.sources import check_folder

    if args.data:
        check_folder(args.data)
    return args.data or default_data_dir(current())


def _ingest(args: argparse.Namespace) -> int:
    """Ingest the files and print the report; return 1 if a file is refused, a row bad, or compaction failed, else 0."""
    # Here, so that `nbext --help` and wrong arguments do not wait for DuckDB and Arrow to load.
    from nbext.engine.ingest import ingest
    from nbext.engine.ingest.derive.snapshots import SnapshotOptions

    options = SnapshotOptions(
        tokens=_tokens(args.token),
        decimals=args.decimals,
        unit=args.unit,
        block=args.block,
        date=args.date,
        date_format=args.date_format,
    )
    renamed = _renamed(args.map)
    if args.engine:
        return _on_a_cluster(args, renamed)
    data = args.data or default_data_dir(current())
    if isinstance(data, str):
        raise UsageError(
            f"--data: {quoted(data)} is a URL, which only a cluster writes to. Add --engine "
            "spark://HOST:PORT, or name a folder of this machine."
        )
    with bar(quiet=args.quiet) as progress:
        report = ingest(
            args.paths,
            args.chain,
            data,
            options=options,
            renamed=renamed,
            replace_from=args.replace_from,
            dry_run=args.dry_run,
            memory=args.memory or DEFAULT_MEMORY,
            progress=progress,
            served=_print_report,
        )
    if report.uncompacted:
        print(report.uncompacted)
    # So that a script notices; the data is served all the same.
    return 1 if report.refused or report.bad_rows or report.uncompacted else 0


# Options of `nbext ingest` that a cluster does not have.
_OF_ONE_MACHINE = (
    "token",
    "decimals",
    "unit",
    "block",
    "date",
    "date_format",
    "dry_run",
    "replace_from",
    "memory",
)


def _on_a_cluster(args: argparse.Namespace, renamed: dict[str, str]) -> int:
    from nbext.engine.ingest.cluster.run import ingest

    if given := [name for name in _OF_ONE_MACHINE if getattr(args, name) not in (None, [], False)]:
        raise UsageError(
            f"--{given[0].replace('_', '-')} is for ingest on one machine. Leave it out, or leave out "
            "--engine."
        )
    if not isinstance(args.data, str):
        raise UsageError(
            "--data: a cluster needs the URL of a folder that all of its machines see. Write --data "
            "hdfs://HOST/nbext or --data file:///srv/nbext."
        )
    master, conf = master_and_options(with_options(args.engine, args.spark_conf))
    if master.startswith("sc:"):
        raise UsageError(
            "--engine: ingest is a program of Spark's own. Write spark://HOST:PORT, yarn or "
            "k8s://https://HOST:PORT; a Connect server can ask the tables afterwards."
        )
    with bar(quiet=args.quiet) as progress:
        report = ingest(
            args.paths, args.chain, args.data, master, conf, renamed=renamed, progress=progress
        )
    print(report)
    print("Services on that URL serve it within ten seconds.")
    return 1 if report.bad_rows else 0


def _print_report(report: Report) -> None:
    print(report)
    if report.changed:
        print(
            "Services that run on this folder serve it within two seconds, notebooks from their next cell on."
        )


def _print_sources(args: argparse.Namespace) -> int:
    """Print the files in the order in which they were ingested: checksum, path, kind, rows, chain, time, options."""
    from nbext.engine import storage
    from nbext.engine.ingest.sources import source_lines

    data = _folder(args)
    lines = source_lines(storage.current_generation(data))
    print("\n".join(lines) or f"{data} has no files that were ingested.")
    return 0


def _declare_remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="?",
        metavar="SOURCE",
        help="the file: its path, its name, or the first digits of its checksum (`nbext sources`)",
    )
    parser.add_argument("--all", action="store_true", help="in its place: every file")
    parser.add_argument("--chain", help="only what was ingested for this chain")
    _declare_compact(parser)


def _remove(args: argparse.Namespace) -> int:
    """Take a file, or all files, out of the data and print what is served then."""
    from nbext.engine.ingest import remove

    if args.all == (args.source is not None):
        raise UsageError("Name a file of `nbext sources`, or write --all for every file.")
    with bar(quiet=args.quiet) as progress:
        report = remove(
            args.source,
            _folder(args),
            chain=args.chain,
            memory=args.memory or DEFAULT_MEMORY,
            progress=progress,
        )
    _print_report(report)
    return 0


def _declare_compact(parser: argparse.ArgumentParser) -> None:
    _declare_folder(parser)
    _declare_working(parser)


def _compact(args: argparse.Namespace) -> int:
    """Compact the data folder, and print what is served; queries do not wait, and answers stay the same."""
    from nbext.engine.ingest.run import compact

    data = _folder(args)
    with bar(quiet=args.quiet) as progress:
        made = compact(data, memory=args.memory or DEFAULT_MEMORY, progress=progress)
    served = f"Now serving generation {made}, with the same rows."
    print(served if made else "There is nothing to compact.")
    return 0


INGEST = ShellCommand(_declare_ingest, _ingest)
SOURCES = ShellCommand(_declare_folder, _print_sources)
REMOVE = ShellCommand(_declare_remove, _remove)
COMPACT = ShellCommand(_declare_compact, _compact)


def _date(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        says = f"{text[:40]!r} is not a date. Write 2025-01-31 or 2025-01-31T12:00:00Z."
        raise argparse.ArgumentTypeError(says) from None
    if len(text) <= len("2025-01-31"):
        found = found.replace(hour=23, minute=59, second=59)
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def _columns() -> str:
    from nbext.engine.ingest.formats import CHAIN_NAMES, formats

    each = f"  any of them, for its rows' chain\n    [{'|'.join(CHAIN_NAMES)}]"
    return "\n".join([each, *(f"  {one.name}\n    {one.described()}" for one in formats())])


def _renamed(text: str) -> dict[str, str]:
    from nbext.engine.ingest.formats import column_names, token_advice

    known, renamed = column_names(), dict[str, str]()
    for pair in filter(None, text.split(",")):
        theirs, _, ours = (part.strip().lower() for part in pair.partition("="))
        if not theirs or not ours or {theirs, ours}.isdisjoint(known):
            says = f"--map: {quoted(pair, 80)} does not name a column of a known format."
            advice = f"{token_advice(theirs)}{token_advice(ours)}" or did_you_mean(ours, known)
            raise UsageError(f"{says}{advice} Write --map amount=value,contract=token_address.")
        if renamed.setdefault(theirs, ours) != ours:
            raise UsageError(f"--map: {quoted(theirs)} is given two names. Leave one of them out.")
    return renamed


def _tokens(given: list[str]) -> dict[str, str]:
    tokens = {}
    for text in given:
        symbol, named, address = text.rpartition("=")
        if looks_like_address(address):
            # Refused where its checksum does not match: holders of a mistyped token would be nobody's.
            address = normalised(address, "--token")
        elif named or not address or address[:2].lower() == "0x":
            raise UsageError(
                f"--token: {address[:80]!r} is not an address. Write --token 0x... or --token SYMBOL=0x..."
            )
        if symbol.lower() in tokens:
            which = f"of the symbol {quoted(symbol)}" if symbol else "of files that name none"
            raise UsageError(f"--token: two tokens are given {which}. Leave one of them out.")
        tokens[symbol.lower()] = address
    return tokens


@contextmanager
def bar(*, quiet: bool) -> Iterator[Callable[[str, float], None] | None]:
    """Yield a progress callback that draws on a terminal; None where there is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:>20}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    # What is printed meanwhile stands above the bar, in lines that the terminal breaks, or goes where it is sent.
    console, above = Console(stderr=True, soft_wrap=True), sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=above) as drawn:
        task = drawn.add_task("reading", total=1.0)
        yield lambda step, done: drawn.update(task, description=step, completed=done)
