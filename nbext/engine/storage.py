"""Generations: immutable folders of tables, and the one line of text that says which of them is served.

    DATA/generations/000002-5f3a.../tables.duckdb    the tables of `nbext.engine.schema`, only ever read
    DATA/generations/000002-5f3a.../manifest.json    what they hold, and which files they came from
    DATA/current                                     the folder's name

A generation is built in a folder whose name starts with a dot, written through to the disk, and renamed;
`current` is then replaced in one step. A process killed at any moment leaves the old or the new, whole.
`ProcessLock` shows which processes are alive on a folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbext.core.atomic_files import sync, write_whole
from nbext.core.untrusted_text import quoted
from nbext.engine.dataset import ChainExtent, DataAbout
from nbext.engine.schema import TABLES
from nbext.errors import StorageError

FORMAT = 1
TABLES_FILE = "tables.duckdb"
MANIFEST = "manifest.json"
# The generation served, and the one before it for services that still have it open: they look for a new one when
# they are asked next.
KEPT = 2
_BUILDING = ".building-"
_NAME = re.compile(r"(\d{6,})-([0-9a-f]{4,64})\Z")


@dataclass(frozen=True)
class Generation:
    """One generation: its folder and its manifest."""

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def tables(self) -> Path:
        """The DuckDB file of the tables; to be opened read-only."""
        return self.folder / TABLES_FILE

    @property
    def number(self) -> int:
        """How many generations this data folder has had, including this one."""
        return int(self.manifest["number"])

    @property
    def fingerprint(self) -> str:
        """A text that changes when any row of the tables does."""
        return str(self.manifest["fingerprint"])

    @property
    def chains(self) -> tuple[ChainExtent, ...]:
        """The extent of each chain in the tables, in the order of the chains' ids."""
        return tuple(ChainExtent(**chain) for chain in self.manifest["chains"])


def current(data_dir: Path) -> Generation | None:
    """Return the generation that is served, or None if nothing was ever ingested.

    Raises
    ------
    StorageError
        ``current`` names no whole generation.
    """
    pointer = data_dir / "current"
    try:
        name = pointer.read_text("utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{pointer} cannot be read: {error}") from None
    # The name is joined to a path: anything but a generation's own name could lead out of the data folder.
    if not _NAME.match(name):
        raise StorageError(f"{pointer} contains {quoted(name)}, which is not the name of a generation.")
    return read(data_dir / "generations" / name)


def read(folder: Path) -> Generation:
    """Return the generation in a folder.

    Raises
    ------
    StorageError
        Its manifest or its tables are missing, damaged, or of a format that this version does not read.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
        written = manifest["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path} cannot be read: {error!r}. Ingest the data again.") from None
    if written != FORMAT:
        raise StorageError(f"{path} has format {written!r}; this version of nbext reads format {FORMAT}.")
    if not (folder / TABLES_FILE).is_file():
        raise StorageError(f"{folder} has no {TABLES_FILE}. Ingest the data again.")
    return Generation(folder, manifest)


def begin(data_dir: Path) -> Path:
    """Create an empty folder to build a generation in; remove what a killed build left behind.

    The caller holds the data folder's lock: two builds at once would remove each other's folders.
    """
    place = data_dir / "generations"
    place.mkdir(parents=True, exist_ok=True)
    for left in place.glob(f"{_BUILDING}*"):
        shutil.rmtree(left)
    building = place / f"{_BUILDING}{os.getpid()}"
    building.mkdir()
    return building


def publish(data_dir: Path, building: Path, manifest: Mapping[str, Any]) -> Generation:
    """Serve a built folder from now on, and remove the generations that nobody can need.

    ``manifest`` is as in the module's description; ``format`` and ``number`` are filled in here.
    """
    before = current(data_dir)
    whole = {"format": FORMAT, "number": before.number + 1 if before else 1, **manifest}
    write_whole(building / MANIFEST, json.dumps(whole, indent=1, ensure_ascii=True) + "\n")
    for path in (*building.rglob("*"), building):
        sync(path)
    name = f"{whole['number']:06d}-{whole['fingerprint'][:16]}"
    folder = data_dir / "generations" / name
    if folder.exists():  # renamed by a process that was killed before it could switch `current`
        shutil.rmtree(folder)
    building.rename(folder)
    sync(folder.parent)
    write_whole(data_dir / "current", name + "\n")
    prune(data_dir)
    return Generation(folder, whole)


def prune(data_dir: Path, keep: int = KEPT) -> None:
    """Remove all but the current generation and the ones just before it."""
    pointer = (data_dir / "current").read_text("utf-8").strip()
    named = [(_NAME.match(p.name), p) for p in (data_dir / "generations").iterdir()]
    numbered = sorted((int(m.group(1)), p.name, p) for m, p in named if m)
    served = next(number for number, name, _ in numbered if name == pointer)
    before = [path for number, _, path in numbered if number < served]
    # Renamed by a process that was killed before it could switch `current`: never served.
    orphans = [path for number, name, path in numbered if number >= served and name != pointer]
    for path in before[: max(0, len(before) - keep + 1)] + orphans:
        shutil.rmtree(path)


def about(generation: Generation, engine: str) -> DataAbout:
    """Return the description of a generation's data, as read through an engine.

    Raises
    ------
    StorageError
        The manifest is incomplete.
    """
    manifest = generation.manifest
    try:
        return DataAbout(name=manifest["name"], synthetic=manifest["synthetic"], engine=engine,
                         fingerprint=generation.fingerprint, chains=generation.chains)
    except (KeyError, TypeError) as error:
        raise StorageError(f"{generation.folder / MANIFEST} is damaged: {error!r}. Ingest the data again.") from None


def damage_of(data_dir: Path) -> Iterator[str]:
    """Read every byte of the tables that are served, and yield what is damaged."""
    import duckdb

    try:
        served = current(data_dir)
        if served is None:
            return
        about(served, "duckdb")
        with duckdb.connect(str(served.tables), read_only=True, config={"memory_limit": "1GB"}) as tables:
            for table in TABLES:
                # DuckDB compares each block with its checksum when it reads it, so reading all is checking all.
                tables.execute(f"SELECT bit_xor(hash(t)) FROM {table} t").fetchall()
    except StorageError as error:
        yield f"chain data: {error}"
    except duckdb.Error as error:
        assert served is not None
        yield f"chain data: {served.tables}: {str(error).splitlines()[0]}"


class ProcessLock:
    """Shows that its process is alive: a small SQLite file, held in an exclusive transaction.

    The kernel releases the lock when the process ends, also by kill -9; unlike flock it is the same on
    every platform, and unlike a process id it is never taken over by another process.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.name = secrets.token_hex(8)
        self._path = folder / f"{self.name}.lease"
        self._db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        # Never committed: the transaction is the lock, and nothing is stored in it.
        self._db.execute("BEGIN EXCLUSIVE")

    def release(self) -> None:
        """Release the lock and remove its file."""
        self._db.close()
        self._path.unlink(missing_ok=True)

    def is_alive(self, name: str) -> bool:
        """Return whether the process of that lock is alive; remove the file of one that is not."""
        if name == self.name:
            return True
        path = self._path.with_name(f"{name}.lease")
        try:
            with contextlib.closing(_open_lock(path)) as db:
                db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return path.exists()
        path.unlink(missing_ok=True)
        return False

    def others(self) -> list[str]:
        """Return the names of the other locks in the folder, those of ended processes too."""
        return [path.stem for path in self._path.parent.glob("*.lease") if path.stem != self.name]


def _open_lock(path: Path) -> sqlite3.Connection:
    # mode=rw: looking for a lock that is gone must not create its file again.
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)
