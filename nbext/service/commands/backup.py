"""``nbext backup``: copy what the service stores, while it runs."""

from __future__ import annotations

import argparse
import itertools
import shutil
from pathlib import Path

from nbext.core.atomic_files import whole_folder
from nbext.errors import ConfigError
from nbext.service import commands
from nbext.service.accounts.database import Database
from nbext.service.container import REGISTRY_FILE
from nbext.service.segments.lists import FOLDER as LISTS
from nbext.service.segments.results import Results
from nbext.service.segments.store import SegmentStore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("target", type=Path, help="a new folder for the copy")
    commands.add_data(parser)


def run(args: argparse.Namespace) -> int:
    """Copy the registry, then the results that it names, and the lists of wallets.

    Results never change, so the copy is whole though the service goes on. A result that expires meanwhile is left
    out, and a service on the copy reports it as expired.
    """
    if args.target.exists():
        raise ConfigError(f"{args.target} exists. Name a new folder.")
    with commands.database(args) as database:
        args.target.absolute().parent.mkdir(parents=True, exist_ok=True)
        # Where the disk is full, half a backup with the name of one would be found on the day that it is needed.
        with whole_folder(args.target.absolute()) as building:
            copied = _fill(building, args, database)
    results = f"{copied} result{'s' * (copied != 1)}"
    print(f"{results} and the registry were copied to {args.target}. For chain data, run ingest.")
    return 0


def _fill(target: Path, args: argparse.Namespace, database: Database) -> int:
    """Copy everything into a folder; return how many results."""
    state = target / commands.STATE
    copy = Results(state)
    # The registry first: results that are written from here on are in neither.
    database.backup(state / REGISTRY_FILE)
    results, lists = (commands.state_dir(args) / name for name in (copy.folder.name, LISTS))
    stored = itertools.chain.from_iterable(SegmentStore(database).results())
    copied = sum(_copy(result.file, results, copy.folder) for _, result in stored)
    # Saved segments name them, by their hash.
    (state / LISTS).mkdir(mode=0o700)
    for folder in (target, state):
        folder.chmod(0o700)
    for path in lists.glob("ls_*"):
        _copy(path.name, lists, state / LISTS)
    return copied


def _copy(name: str, source: Path, target: Path) -> bool:
    try:
        shutil.copy2(source / name, target / name)
    except FileNotFoundError:
        return False
    return True
