"""``nbext remove``: take a file that was ingested out of the data."""

from __future__ import annotations

import argparse

from nbext.engine.ingest import command
from nbext.settings import Settings, data_folder, default_data_dir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="the file: its path, its name, or the first digits of its checksum (`nbext sources`)",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=data_folder,
        help="the data folder (default: your user data folder)",
    )
    command.add_working(parser)


def run(args: argparse.Namespace) -> int:
    """Take the file's rows out, and print the report."""
    from nbext.engine.ingest import remove
    from nbext.engine.ingest.stage import DEFAULT_MEMORY

    data = args.data or default_data_dir(Settings())
    with command.bar(quiet=args.quiet) as progress:
        report = remove(args.source, data, memory=args.memory or DEFAULT_MEMORY, progress=progress)
    command.print_report(report)
    return 0
