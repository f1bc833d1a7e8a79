"""``nbext check``: read the chain data and everything that the service stores, and report what is damaged."""

from __future__ import annotations

import argparse
from pathlib import Path

from nbext.core.atomic_files import files_in
from nbext.engine.storage import damage_of
from nbext.errors import ConfigError, StorageError
from nbext.service import commands
from nbext.service.segments.files import Unavailable
from nbext.service.segments.lists import verified_lists
from nbext.service.segments.results import ResultFolder
from nbext.service.segments.service import expired
from nbext.service.segments.store import SegmentStore

_MISSING = "is missing"
_WRONG = {"absent": _MISSING, "damaged": "has other bytes than were written"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "--give-up",
        action="store_true",
        help="take the results whose files are missing for lost: their segments have expired",
    )
    commands.add_data(parser)


def run(args: argparse.Namespace) -> int:
    """Check the chain data, the registry and each stored file's bytes; exit code 1 where something is damaged."""
    (data, state, place), checked = commands.service_place(args), 0
    if isinstance(data, str):
        raise ConfigError(
            f"{data} is a URL, whose files have no checksums here. Name a data folder with --data."
        )
    ingested = (data / "generations").exists()
    damage = list(damage_of(data))
    # Chain data is checked, too, before any service ran on it; a folder with neither is an error.
    registry = place if isinstance(place, Path) else "the PostgreSQL registry"
    if not isinstance(place, Path) or place.exists() or not ingested:
        try:
            with commands.database(args) as database:
                if found := database.damage():
                    damage.append(f"registry: {found}")
                store, results = SegmentStore(database), ResultFolder(state, database.id)
                if args.give_up:
                    results.claim(expected=False)
                for segment_id, result in store.results():
                    checked += 1
                    try:
                        wrong = _WRONG.get(results.check(result))
                    except Unavailable:
                        wrong = "cannot be read now"
                    if wrong == _MISSING and args.give_up:
                        store.expire([result], expired("The result's file was lost."))
                    elif wrong:
                        damage.append(f"segment {segment_id}: result {result.file} {wrong}")
        except StorageError as error:
            damage.append(f"registry: {error}")
    # Where another registry is looked at, or a former one is gone, the results are there and nobody finds them.
    folder = state / ResultFolder.name
    files = sum(map(_is_whole, files_in(folder, "*.arrow")))
    if files and not checked:
        damage.append(f"registry: {registry} names none of the {files} files in {folder}")
    lists = list(verified_lists(state))
    damage += [
        f"list {name} has other bytes than were stored" for name, intact in lists if not intact
    ]
    for line in damage:
        print(line)
    total = f"{len(damage)} damaged" if damage else "all intact"
    print(
        f"Checked {registry} and {'the chain data' if ingested else 'no chain data, because none was ingested'}."
    )
    print(f"{checked} results and {len(lists)} lists checked: {total}.")
    return 1 if damage else 0


def _is_whole(path: Path) -> bool:
    """Return whether a result was written to its end: what a service writes now, or was killed at, is no loss."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - 6))
        return file.read() == b"ARROW1"
