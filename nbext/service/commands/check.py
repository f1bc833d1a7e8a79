"""``nbext check``: read everything that the service keeps, and say what is damaged."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from nbext.errors import StorageError
from nbext.service.commands import folder
from nbext.service.database import Database
from nbext.service.registry import Registry
from nbext.service.results import Results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    folder.add_data(parser)


def run(args: argparse.Namespace) -> int:
    """Check the registry and each result's bytes; exit code 1 where something is damaged. Changes nothing."""
    database = folder.database(args)
    try:
        damage = list(_damage(database, Results(folder.state_dir(args))))
        kept = len(Registry(database).files())
    finally:
        database.close()
    for line in damage:
        print(line)
    print(f"{kept} results checked: {f'{len(damage)} damaged' if damage else 'all intact'}.")
    return 1 if damage else 0


def _damage(database: Database, results: Results) -> Iterator[str]:
    found = database.damage()
    if found:
        yield f"registry: {found}"
    for segment in Registry(database).with_status("completed"):
        if segment.kept:
            try:
                results.verify(segment.kept, again=True)
            except StorageError as error:
                yield f"segment {segment.id}: {error}"
