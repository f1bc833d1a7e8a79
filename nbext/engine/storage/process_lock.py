"""Which processes are alive on a data folder: each holds a lock that ends with it, however it ends."""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from pathlib import Path


class Lease:
    """A sign of life: a small SQLite file, held in an exclusive transaction.

    The kernel lets the lock go when the process ends, also by kill -9; unlike flock it is the same on
    every platform, and unlike a process id it is never taken over by another process.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.name = secrets.token_hex(8)
        self._path = folder / f"{self.name}.lease"
        self._db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        # Never committed: the transaction is the sign of life, and nothing is stored in it.
        self._db.execute("BEGIN EXCLUSIVE")

    def release(self) -> None:
        """End the lease."""
        self._db.close()
        self._path.unlink(missing_ok=True)

    def is_alive(self, name: str) -> bool:
        """Return whether the holder of that lease is alive; remove the file of one that is not."""
        if name == self.name:
            return True
        path = self._path.with_name(f"{name}.lease")
        try:
            with contextlib.closing(_open(path)) as db:
                db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return path.exists()
        path.unlink(missing_ok=True)
        return False

    def others(self) -> list[str]:
        """Return the names of the other leases in the folder, ended ones too."""
        return [path.stem for path in self._path.parent.glob("*.lease") if path.stem != self.name]


def _open(path: Path) -> sqlite3.Connection:
    # mode=rw: looking for a lease that is gone must not create its file again.
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)
