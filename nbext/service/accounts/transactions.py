"""Transactions of several threads, committed together: one wait for the disk serves all that came meanwhile."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future


class Transactions:
    """The one connection that a process writes with, lent to its threads in turn.

    Each thread's part is a savepoint. A thread that leaves it hands the open transaction to the next that
    waits for its turn; the last of them commits, and none goes on before that: what it wrote is on the disk.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._db: sqlite3.Connection | None = None
        # Threads of one process queue here; only other processes meet SQLite's own lock.
        self._turn = threading.Lock()
        self._guard = threading.Lock()
        self._coming = 0
        self._kept: Future[None] | None = None

    @contextlib.contextmanager
    def take_part(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection: all that is done with it is on the disk at the end, or none of it."""
        with self._guard:
            self._coming += 1
        with self._turn:
            with self._guard:
                self._coming -= 1
            db, kept = self._joined()
            try:
                with _savepoint(db):
                    yield db
            finally:
                self._hand_over(db, kept)
        kept.result()

    def _joined(self) -> tuple[sqlite3.Connection, Future[None]]:
        """Return the connection, and what tells when the transaction is kept; begin one where there is none."""
        if self._db is None:
            self._db = self._connect()
        if self._kept is None:
            self._db.execute("BEGIN IMMEDIATE")
            self._kept = Future()
        return self._db, self._kept

    def _hand_over(self, db: sqlite3.Connection, kept: Future[None]) -> None:
        """Leave the transaction to the next in turn; commit it where there is none, or where it broke."""
        with self._guard:
            if self._coming and db.in_transaction:
                return
        self._kept = None
        try:
            db.execute("COMMIT")
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            kept.set_exception(error)
        else:
            kept.set_result(None)

    def close(self) -> None:
        """Close the connection, where nobody is about to use it."""
        with self._turn:
            if self._db is not None and self._kept is None:
                self._db.close()
                self._db = None


@contextlib.contextmanager
def _savepoint(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        # A full disk ends the whole transaction, and the savepoint with it.
        if db.in_transaction:
            db.execute("ROLLBACK TO part")
            db.execute("RELEASE part")
        raise
    db.execute("RELEASE part")
