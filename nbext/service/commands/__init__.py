"""The commands of whoever runs the service; the data folder that each takes is read here.

serve       the service itself
policy      what is stored, and for how long
keys        add, list, rotate and revoke API keys
signups     export or delete the newsletter's addresses
audit       print who did what
backup      copy what the service stores, while it runs
check       read everything that is stored, and report what is damaged
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from nbext.core.untrusted_text import quoted
from nbext.errors import ConfigError, DiskFull
from nbext.service.accounts.audit import Audit
from nbext.service.accounts.database import Database
from nbext.service.container import REGISTRY_FILE, free_reserve
from nbext.service.limits import Policy
from nbext.settings import Settings, data_place, default_data_dir, service_folder

STATE = "service"


def above_zero(text: str) -> float:
    """Read an option's number above 0."""
    with contextlib.suppress(ValueError):
        # Of GiB less is no byte, and more is a number that no registry can hold.
        if 1e-9 <= (number := float(text)) <= 1e9:
            return number
    raise argparse.ArgumentTypeError(f"{text} is not a number above 0, from 1e-9 to 1e9.")


def at_least_zero(text: str) -> float:
    """Read an option's number from 0 on."""
    with contextlib.suppress(ValueError):
        if float(text) == 0:
            return 0.0
    return above_zero(text)


def span(text: str) -> float:
    """Read an option's span of time, as seconds."""
    found = re.fullmatch(r"([1-9]\d{0,4})([hdw])", text, re.ASCII)
    if not found:
        raise argparse.ArgumentTypeError(
            f"{quoted(text)} is not a span of time. Write 12h, 90d or 4w."
        )
    return int(found[1]) * {"h": 3600.0, "d": 86_400.0, "w": 604_800.0}[found[2]]


def add_data(parser: argparse.ArgumentParser, *, notebook: bool = True) -> None:
    """Add ``--data`` and ``--registry``; or, in its place, ``--notebook`` for a notebook's own service on that data."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=data_place,
        help="the data folder (default: NBEXT_DATA_DIR, or the user's data folder), or the URL that an ingest on Spark "
        "filled",
    )
    registry = parser.add_mutually_exclusive_group()
    registry.add_argument(
        "--registry",
        metavar="URL",
        default=os.environ.get("NBEXT_REGISTRY") or None,
        help="the PostgreSQL database that many services share, postgresql://user@host/database (default:"
        " NBEXT_REGISTRY, which keeps a password off the command line; without, a SQLite file in the data folder)",
    )
    if notebook:
        registry.add_argument(
            "--notebook",
            action="store_true",
            help="a notebook's own service on that data, in place of the one that nbext serve runs",
        )


class ServicePlace(NamedTuple):
    """Where a service is: its data, its own folder, and its registry; as texts, where these are URLs."""

    data: Path | str
    state: Path
    registry: Path | str


def service_place(args: argparse.Namespace) -> ServicePlace:
    """Return where the service is that the arguments, or the settings, name."""
    data: Path | str = args.data or default_data_dir(Settings())
    notebook = getattr(args, "notebook", False)
    state = service_folder(data, notebook=notebook)
    url = None if notebook else args.registry
    return ServicePlace(data, state, state / REGISTRY_FILE if url is None else url)


@contextlib.contextmanager
def database(
    args: argparse.Namespace, *, make: bool = False, policy: Policy | None = None
) -> Iterator[Database]:
    """Lend the service's registry; ``policy`` is that of a new one.

    Raises
    ------
    ConfigError
        No service ever ran on that folder, and ``make`` is false: a mistyped --data would make an empty registry.
    StorageError
        The registry has no tables, and ``make`` is false; it is damaged, or cannot be reached.
    """
    data, state, registry = service_place(args)
    # SQLite makes any file that it opens.
    if isinstance(registry, Path) and not make and not registry.exists():
        raise ConfigError(f"No service has run on {data}. Name its data folder with --data.")
    # On a full disk SQLite cannot even read where nobody else has it open; and a key that leaked is ended there, too.
    free_reserve(state)
    try:
        with contextlib.closing(Database(registry, make=make, policy=policy)) as opened:
            yield opened
    except DiskFull:
        where = state if isinstance(registry, Path) else "the PostgreSQL registry"
        raise DiskFull(
            f"The disk of {where} is full. Free some of it, and run the command again."
        ) from None


@contextlib.contextmanager
def handling(signum: int, handler: Any) -> Iterator[None]:
    """Have a signal handled so; to end as Ctrl-C does takes away what is half written."""
    former = signal.signal(signum, handler)
    try:
        yield
    finally:
        signal.signal(signum, former)


def note(database: Database, action: str, target: str | None) -> None:
    """Write in the audit log what a command did, before it ends."""
    audit = Audit(database)
    audit.note(action, key_id=None, target=target, client="command line")
    audit.flush()
