"""``nbext check``: read the chain data and everything that the service stores, and report what is damaged."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from nbext.engine.storage import damage_of
from nbext.errors import StorageError
from nbext.service import commands
from nbext.service.accounts.database import Database
from nbext.service.container import REGISTRY_FILE
from nbext.service.segments.results import Results
from nbext.service.segments.store import SegmentStore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    commands.add_data(parser)


def run(args: argparse.Namespace) -> int:
    """Check the chain data, the registry and each result's bytes; exit code 1 where something is damaged."""
    data, checked = commands.data_dir(args), 0
    damage = list(damage_of(data))
    # Chain data is checked, too, before any service ran on it; a folder with neither is an error.
    if (commands.state_dir(args) / REGISTRY_FILE).exists() or not (data / "generations").exists():
        with commands.database(args) as database:
            for pieces, line in _results(database, Results(commands.state_dir(args))):
                checked += pieces
                damage += [line] if line else []
    for line in damage:
        print(line)
    print(f"{checked} results checked: {f'{len(damage)} damaged' if damage else 'all intact'}.")
    return 1 if damage else 0


def _results(database: Database, results: Results) -> Iterator[tuple[int, str]]:
    """Yield how many results were looked at, one or none, and what is damaged of them."""
    try:
        if found := database.damage():
            yield 0, f"registry: {found}"
        # Hashes every file again, also those that a running service has compared already.
        for segment in SegmentStore(database).with_status("completed"):
            if segment.result:
                try:
                    results.verify(segment.result, again=True)
                    yield 1, ""
                except StorageError as error:
                    yield 1, f"segment {segment.id}: {error}"
    except StorageError as error:
        yield 0, f"registry: {error}"
