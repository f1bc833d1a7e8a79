"""The SQLite file behind keys, segments, sign-ups and idempotency keys.

WAL lets several services and commands read and write one file side by side; synchronous=FULL makes a
commit survive a power cut: what was acknowledged is kept.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from nbext.errors import StorageError
from nbext.service.accounts.transactions import Transactions

VERSION = 1
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
        self._guard = threading.Lock()
        self._transactions = Transactions(self._connect)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._prepare()

    def _prepare(self) -> None:
        with self.write() as db:
            found = db.execute("PRAGMA user_version").fetchone()[0]
            if found > VERSION:
                raise StorageError(f"{self.path.name} was made by a newer nbext (format {found}, known: {VERSION})")
            for statement in _TABLES.split(";\n"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=15, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        self.path.chmod(0o600)
        return db

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; each statement sees what was committed before it."""
        with self._told():
            with self._guard:
                db = self._idle.pop() if self._idle else None
            db = db or self._connect()
            try:
                yield db
            finally:
                with self._guard:
                    self._idle.append(db)

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection inside a transaction: all of it is kept at the end, or none."""
        with self._told(), self._transactions.take_part() as db:
            yield db

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Say in our own words that the file or the disk is at fault."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            # Only errors that SQLite itself raises have a code; its low byte is the kind.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _OF_THE_FILE:
                raise
            raise StorageError(f"{self.path.name} cannot be used as the service's registry: {error}") from None

    def backup(self, target: Path) -> None:
        """Copy the file as it stands, while others go on writing."""
        with self.read() as db, contextlib.closing(sqlite3.connect(target)) as copy:
            db.backup(copy)

    def damage(self) -> str | None:
        """Return what SQLite's own check finds wrong, or None."""
        with self.read() as db:
            found = "; ".join(row[0] for row in db.execute("PRAGMA integrity_check(3)"))
        return None if found == "ok" else found

    def close(self) -> None:
        """Close the connections that are not lent."""
        self._transactions.close()
        with self._guard:
            for db in self._idle:
                db.close()
            self._idle.clear()
