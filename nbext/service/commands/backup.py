"""``nbext backup``: copy what the service stores, while it runs."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from nbext.core.atomic_files import sync
from nbext.errors import ConfigError
from nbext.service import commands
from nbext.service.container import REGISTRY_FILE
from nbext.service.segments.results import Results
from nbext.service.segments.store import SegmentStore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("target", type=Path, help="a new folder for the copy")
    commands.add_data(parser)


def run(args: argparse.Namespace) -> int:
    """Copy the registry, then the results that it names.

    Results never change, so the copy is whole though the service goes on. A result that expires meanwhile is left
    out, and a service on the copy reports it as expired.
    """
    if args.target.exists():
        raise ConfigError(f"{args.target} exists. Name a new folder.")
    with commands.database(args) as database:
        state = args.target / commands.STATE
        copy = Results(state)
        # The registry first: results that are written from here on are in neither.
        database.backup(state / REGISTRY_FILE)
        copied = [_copy(name, Results(commands.state_dir(args)), copy) for name in SegmentStore(database).files()]
    sync(state)
    print(f"{sum(copied)} results and the registry were copied to {args.target}. For chain data, run ingest.")
    return 0


def _copy(name: str, source: Results, target: Results) -> bool:
    try:
        shutil.copy2(source.folder / name, target.folder / name)
    except FileNotFoundError:
        return False
    return True
