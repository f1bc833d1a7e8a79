"""Locks between processes, of one kind on every platform: a small SQLite file, held in an exclusive transaction.

The operating system releases one when its process ends, also by kill -9. It is never inherited by a child, as
flock's is, and never taken over by another process, as a process id is. Nothing is stored in the file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from nbext.core.atomic_files import files_in


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made and stays: one that is deleted could be held twice.

    Raises
    ------
    BlockingIOError
        Another process, or another thread, holds it.
    OSError
        The file cannot be made or written.
    """
    path.touch()  # says why it cannot be written; SQLite says only that it cannot be opened
    try:
        db = _hold(path)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise BlockingIOError(errno.EAGAIN, "locked", str(path)) from None
        raise OSError(errno.EACCES, str(error), str(path)) from None
    with contextlib.closing(db):
        yield


class ProcessLock:
    """Shows that its process is alive, by a lock of a random name among those of others in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.name = secrets.token_hex(8)
        self._path = folder / f"{self.name}.lease"
        # Held before it has its name: another process takes one that nobody holds for that of an ended one.
        made = self._path if os.name == "nt" else self._path.with_suffix(".new")
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._db = _hold(made)
        if made != self._path:
            made.rename(self._path)

    def release(self) -> None:
        """Release the lock and remove its file."""
        self._db.close()
        self._path.unlink(missing_ok=True)

    def is_alive(self, name: str) -> bool:
        """Return whether the process of that lock is alive, as far as anyone can tell; remove the file of an ended one.

        Where this process's own lock is not in the folder, the folder is another: nobody can tell.
        """
        if name == self.name:
            return True
        path = self._path.with_name(f"{name}.lease")
        try:
            _hold(path).close()
        except sqlite3.OperationalError:
            return path.exists() or not self._path.exists()
        path.unlink(missing_ok=True)
        return False

    def others(self) -> list[str]:
        """Return the names of the other locks in the folder, those of ended processes too."""
        return [
            path.stem for path in files_in(self._path.parent, "*.lease") if path.stem != self.name
        ]


def _hold(path: Path) -> sqlite3.Connection:
    # mode=rw: looking for a lock that is gone must not create its file again.
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        db.execute("PRAGMA journal_mode = MEMORY")  # no second file beside it
        # Never committed: the transaction is the lock.
        db.execute("BEGIN EXCLUSIVE")
    except BaseException:
        db.close()
        raise
    return db
