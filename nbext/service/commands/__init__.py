"""The commands of whoever runs the service; the data folder that each takes is read here.

    serve       the service itself
    keys        add, list and revoke API keys
    signups     export or delete the newsletter's addresses
    backup      copy what the service stores, while it runs
    check       read everything that is stored, and report what is damaged
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from nbext.errors import ConfigError
from nbext.service.accounts.database import Database
from nbext.service.container import REGISTRY_FILE
from nbext.settings import Settings, default_data_dir

STATE = "service"


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add ``--data``."""
    parser.add_argument(
        "--data", metavar="DIR", type=Path, help="the data folder (default: NBEXT_DATA_DIR, or the user's data folder)"
    )


def data_dir(args: argparse.Namespace) -> Path:
    """Return the data folder that the arguments or the settings name."""
    given: Path | None = args.data
    return given.expanduser() if given else default_data_dir(Settings())


def state_dir(args: argparse.Namespace) -> Path:
    """Return the service's own folder inside the data folder."""
    return data_dir(args) / STATE


@contextlib.contextmanager
def database(args: argparse.Namespace, *, make: bool = False) -> Iterator[Database]:
    """Lend the service's registry.

    Raises
    ------
    ConfigError
        No service ever ran on that folder, and ``make`` is false: a mistyped --data would make an empty registry.
    """
    path = state_dir(args) / REGISTRY_FILE
    # SQLite makes any file that it opens.
    if not make and not path.exists():
        raise ConfigError(f"No service has run on {data_dir(args)}. Name its data folder with --data.")
    with contextlib.closing(Database(path)) as opened:
        yield opened
