"""``nbext backup``: copy what the service stores, while it runs."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
from pathlib import Path

from nbext.core.atomic_files import PART, files_in, whole_folder
from nbext.core.locks import exclusive
from nbext.errors import ConfigError
from nbext.service import commands
from nbext.service.accounts.database import Database
from nbext.service.container import REGISTRY_FILE
from nbext.service.segments.lists import Lists
from nbext.service.segments.results import ResultFolder
from nbext.service.segments.store import SegmentStore

# Held while a backup is written: what lies beside one that nobody holds was left by one that was killed.
_HELD = "backup.lock"


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
    target, state = args.target.absolute(), commands.service_place(args).state
    with commands.database(args) as database:
        target.parent.mkdir(parents=True, exist_ok=True)
        # What backups that were killed have left.
        for held in target.parent.glob(f".*{PART}/{_HELD}"):
            with contextlib.suppress(BlockingIOError):  # another backup writes it now
                with exclusive(held):
                    pass
                shutil.rmtree(held.parent)
        # Where the disk is full, half a backup with the name of one would be found on the day that it is needed.
        ending = commands.handling(signal.SIGTERM, signal.default_int_handler)
        with ending, whole_folder(target) as building:
            with exclusive(building / _HELD):
                copied = _fill(building, database, state)
            (building / _HELD).unlink()
    results = f"{copied} result{'s' * (copied != 1)}"
    print(f"{results} and the registry were copied to {args.target}. For chain data, run ingest.")
    return 0


def _fill(building: Path, database: Database, state: Path) -> int:
    """Copy all into a folder; return how many results there are."""
    made = building / commands.STATE
    copy, lists = ResultFolder(made, database.id), Lists(made, database)
    for folder in (copy, lists):
        folder.claim(expected=False)
    # The registry first: results that are written from here on are in neither.
    database.backup(made / REGISTRY_FILE)
    names = [result.file for _, result in SegmentStore(database).results()]
    copied = sum(_copy(name, state / copy.folder.name, copy.folder) for name in names)
    # Saved segments name them, by their hash.
    for path in files_in(state / lists.folder.name, "ls_*"):
        _copy(path.name, path.parent, lists.folder)
    for made_here in (building, made):
        made_here.chmod(0o700)
    return copied


def _copy(name: str, source: Path, target: Path) -> bool:
    try:
        shutil.copy2(source / name, target / name)
    except FileNotFoundError:
        return False
    return True
