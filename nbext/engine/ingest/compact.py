"""``nbext compact``: fold what runs have added to a data folder into a new base."""

from __future__ import annotations

import argparse

from nbext.engine.ingest import command
from nbext.settings import Settings, data_folder, default_data_dir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=data_folder,
        help="the data folder (default: your user data folder)",
    )
    command.add_working(parser)


def run(args: argparse.Namespace) -> int:
    """Compact the data folder, and print what is served; queries do not wait, and answers stay the same."""
    # Here, so that wrong arguments do not wait for DuckDB and Arrow to load.
    from nbext.engine.ingest.run import compact
    from nbext.engine.ingest.stage import DEFAULT_MEMORY
    from nbext.engine.ingest.taken import check_folder

    if args.data:
        check_folder(args.data)
    with command.bar(quiet=args.quiet) as progress:
        made = compact(
            args.data or default_data_dir(Settings()),
            memory=args.memory or DEFAULT_MEMORY,
            progress=progress,
        )
    print(
        f"Now serving generation {made}, with the same rows."
        if made
        else "There is nothing to compact."
    )
    return 0
