"""The folder of lists of wallets: up to millions of addresses, sent once and named by their hash.

A file has the 20 bytes of each address, in order and each once, and never changes; its name is the hash of these bytes.
It is received, sorted and stored without ever being in memory as a whole. The time of its last change is when it was
last used, to an hour.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nbext.core.addresses import WIDTH, list_id
from nbext.core.atomic_files import PART, files_in, sync
from nbext.engine.query.set_tree import WalletList
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key
from nbext.service.problems import Problem, invalid
from nbext.service.segments.files import StoredFiles

# Addresses that are compared, or moved, at a time.
_BLOCK = 1_000_000
# A use is noted at most this often (seconds): each makes the other services of the folder hash the list again.
_NOTED = 3600.0
# What ends the name of a private key's list.
_PRIVATE = ".private"


class Lists(StoredFiles):
    """The stored lists of one data folder. Several services may share it: a file is whole or absent."""

    name = "lists"

    def __init__(self, state: Path, database: Database) -> None:
        super().__init__(state, database.id)
        self._database = database
        # One at a time: to sort it each has all of a list in memory, though it is the system's cache; and of two that
        # arrive together each would take the last room for its own.
        self._storing = threading.Lock()

    @contextlib.contextmanager
    def room(self) -> Iterator[Path]:
        """Lend a new file to receive a list in."""
        handle, name = tempfile.mkstemp(PART, ".", self.folder)
        os.close(handle)
        part = Path(name)
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)

    def store(self, part: Path, key: Key | None = None) -> WalletList:
        """Name a received file by its contents, sorted and each address once; the problem is 422 for another file."""
        size = part.stat().st_size
        if size == 0 or size % WIDTH:
            raise invalid(
                "size",
                f"The body has {size:,} bytes. Send the {WIDTH} bytes of each address, and at least one address.",
            )
        with self._storing:
            _sort(part)
            sync(part)
            name, wallets = list_id(_blocks(part)), part.stat().st_size // WIDTH
            path = self._path(name, key)
            if not path.exists():
                self.trim(arrived=wallets * WIDTH, key=key)
            part.replace(path)
            sync(self.folder)
        self.trust(path.name)
        return WalletList(name, wallets, path)

    def find(self, name: str, key: Key | None = None) -> WalletList | None:
        """Return a list by its id, noting that it was used; None where there is none, or its bytes have changed.

        ``key`` sees the lists that it may see; without one, all. Unavailable: it cannot be read now.
        """
        for path in self._paths(name, key):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - _NOTED:
                    os.utime(path)
            found = self.condition(path.name, intact=lambda path: list_id(_blocks(path)) == name)
            if found == "here":
                return WalletList(name, path.stat().st_size // WIDTH, path)
            if found == "damaged":
                # Whoever asks by it gets to hear that it is gone, and sends it again.
                self.set_aside(path.name)
        return None

    def _path(self, name: str, key: Key | None) -> Path:
        # The owner's have no share, so that nobody counts them.
        if key is None or key.id == "owner":
            return self.folder / name
        return self.folder / f"{name}.{key.id}{_PRIVATE * key.private}"

    def _paths(self, name: str, key: Key | None) -> Iterator[Path]:
        """Yield where a list may be that the key sees, its own first."""
        yield self._path(name, key)
        # Ids travel in shared notebooks: a private key's lists are its own, and it sees no others.
        if key is None or not key.private:
            for path in self.folder.glob(f"{name}*"):
                if key is None or path.suffix != _PRIVATE:
                    yield path

    def trim(self, *, arrived: int = 0, key: Key | None = None, aged: bool = False) -> None:
        """Delete the lists that are too old, if ``aged``, then the least recently used until the rest fits.

        None that was used within the hour gives way, whoever's it is: the problem is 507 where one of a key has
        ``arrived``, of so many bytes, and does not fit then. A key may take a quarter of the room, as of results.
        """
        policy, now = self._database.policy, time.time()
        shares = [("The lists of wallets that are in use", "", policy.list_bytes)]
        if key is not None and key.id != "owner":
            shares.append(
                ("This key's lists that are in use", f".{key.id}", policy.list_bytes // 4)
            )
        for whose, mark, most in shares:
            named = [each for each in self._stored() if mark in each[2].name]
            total = sum(size for _, size, _ in named) + arrived
            for used_at, size, path in named:
                # A use within the hour may have been noted an hour before.
                gives_way = total > most and abs(now - used_at) > 2 * _NOTED
                if gives_way or (aged and now - used_at > policy.keep_days * 86400):
                    self.remove(path.name)
                    total -= size
            if arrived and total > most:
                detail = (
                    f"{whose} take {total - arrived:,} of {most:,} bytes. Try again in an hour."
                )
                raise Problem("quota", detail)

    def _stored(self) -> list[tuple[float, int, Path]]:
        """Return when each list was last used, with its size, the least recently used first."""
        stored = []
        for path in self.folder.glob("ls_*"):
            # Another round of this, or another service, may delete it meanwhile.
            with contextlib.suppress(FileNotFoundError):
                stat = path.stat()
                stored.append((stat.st_mtime, stat.st_size, path))
        return sorted(stored)


def verified_lists(state: Path) -> Iterator[tuple[str, bool]]:
    """Yield the file name of each list of a service's folder, and whether its bytes are those it is named by."""
    for path in files_in(state / Lists.name, "ls_*"):
        # Deleted meanwhile, as old ones are, is not damaged.
        with contextlib.suppress(FileNotFoundError):
            yield path.name, list_id(_blocks(path)) == path.name.partition(".")[0]


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _sort(path: Path) -> None:
    """Sort a file of addresses in its place, and leave each of them once."""
    # Its pages are the file's: the memory that a sort of 200 MB takes is the system's cache.
    addresses = np.memmap(path, f"S{WIDTH}", mode="r+")
    pairs = [
        slice(at, min(at + _BLOCK, len(addresses) - 1))
        for at in range(0, len(addresses) - 1, _BLOCK)
    ]
    if all((addresses[pair] < addresses[1:][pair]).all() for pair in pairs):
        return
    addresses.sort()
    kept = 1
    for pair in pairs:
        # What is moved is never behind where it moves to, so that the next pair is read as it was.
        new = addresses[1:][pair][addresses[pair] != addresses[1:][pair]]
        addresses[kept : kept + len(new)] = new
        kept += len(new)
    del addresses
    os.truncate(path, kept * WIDTH)
