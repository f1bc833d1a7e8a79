"""The data folder that a command works on, and what the service keeps in it."""

from __future__ import annotations

import argparse
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
    """Return the service's own folder in it."""
    return data_dir(args) / STATE


def database(args: argparse.Namespace, *, make: bool = False) -> Database:
    """Return the service's registry; ConfigError where no service ever ran there, unless it is to be made."""
    path = state_dir(args) / REGISTRY_FILE
    if not make and not path.exists():
        raise ConfigError(f"no service has kept anything in {data_dir(args)}. Name its data folder with --data.")
    return Database(path)
