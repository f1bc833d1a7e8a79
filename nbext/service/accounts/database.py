"""The SQLite file behind keys, segments, sign-ups and idempotency keys: its tables, connections and transactions.

WAL lets several services and commands read and write one file side by side; synchronous=FULL makes a commit
survive a power cut. The statements are in the modules of what they store, `keys`, `signups` and `segments.store`;
no other module of the service has SQL.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from nbext.errors import StorageError

VERSION = 1
# The kinds of error that are the file's or the disk's fault; any other is a fault of ours, and keeps its type.
_OF_THE_FILE = {
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB,
}  # fmt: skip
_TABLES = """
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL,
    rate TEXT, created_at REAL NOT NULL, revoked_at REAL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS keys_by_name ON keys (name) WHERE revoked_at IS NULL;
CREATE TABLE IF NOT EXISTS segments (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, request TEXT NOT NULL, facts TEXT NOT NULL,
    fingerprint TEXT NOT NULL, matched INTEGER, returned INTEGER, preview TEXT, error TEXT,
    created_at REAL NOT NULL, started_at REAL, completed_at REAL, used_at REAL NOT NULL,
    file TEXT, size INTEGER, sha256 TEXT, owner TEXT, cancel INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS segments_by_status ON segments (status, used_at);
CREATE TABLE IF NOT EXISTS idempotency (
    key_id TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, segment TEXT NOT NULL, created_at REAL NOT NULL,
    PRIMARY KEY (key_id, name)
) STRICT;
CREATE TABLE IF NOT EXISTS signups (
    address TEXT PRIMARY KEY, email TEXT NOT NULL, consented_at REAL NOT NULL
) STRICT;
"""


class Database:
    """Connections to one SQLite file: readers at once, writers in turn.

    Raises
    ------
    StorageError
        The file is not a SQLite file, or was made by a newer nbext. Whenever it is used: it is damaged, or the disk
        is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        # Threads of one process queue here: SQLite's own lock makes its callers sleep and try again, and starves some.
        # A commit shared by all who wait was measured and removed: p99 of 64 connections was 425 ms with it and 416 ms
        # without (medians of three paired runs). It mattered only where quick requests shared the threads of writers.
        self._turn = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._prepare()

    def _prepare(self) -> None:
        with self.write() as db:
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if found > VERSION:
                raise StorageError(
                    f"{self.path.name} was made by a newer nbext (format {found}; this one reads up to {VERSION}). "
                    "Upgrade nbext, or name another data folder."
                )
            for statement in _TABLES.split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")

    def _connect(self) -> sqlite3.Connection:
        # isolation_level=None: else Python's module begins and commits transactions by rules of its own.
        db = sqlite3.connect(self.path, timeout=15, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode = WAL")
        # With NORMAL a power cut takes back the last commits, which callers believe to be stored.
        db.execute("PRAGMA synchronous = FULL")
        self.path.chmod(0o600)
        return db

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; each statement sees what was committed before it."""
        try:
            try:
                db = self._idle.pop()  # not "if self._idle": another thread may take the last in between
            except IndexError:
                db = self._connect()
            try:
                yield db
            finally:
                self._idle.append(db)
        except sqlite3.DatabaseError as error:
            # Only errors that SQLite itself raises have a code; its low byte is the kind.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _OF_THE_FILE:
                raise
            raise StorageError(f"{self.path.name} cannot be used as the service's registry: {error}") from None

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection inside a transaction: at the end all of it is on the disk, or none."""
        with self._turn, self.read() as db:
            # IMMEDIATE: a transaction that began as a reader fails at its first write where another service wrote.
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                # SQLite ends the transaction by itself where the disk is full.
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def backup(self, target: Path) -> None:
        """Copy the file as it is now, while others go on writing."""
        with self.read() as db, contextlib.closing(sqlite3.connect(target)) as copy:
            db.backup(copy)

    def damage(self) -> str | None:
        """Return what SQLite's own check finds wrong, or None."""
        with self.read() as db:
            found = "; ".join(row[0] for row in db.execute("PRAGMA integrity_check(3)"))
        return None if found == "ok" else found

    def close(self) -> None:
        """Close the connections that are not lent."""
        while self._idle:
            self._idle.pop().close()
