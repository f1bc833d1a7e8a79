"""The registry: connections and transactions of one SQLite file, or of one PostgreSQL database that many share.

SQLite's WAL lets several services and commands read and write one file side by side; synchronous=FULL makes a commit
survive a power cut, as PostgreSQL's own default does. The tables are in `schema`, the statements in the modules of
what they store, `keys`, `signups` and `segments.store`, one set for both; no other module of the service has any.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Executable,
    Row,
    UpdateBase,
    create_engine,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, ProgrammingError
from sqlalchemy.pool import NullPool

from nbext.errors import ConfigError, DiskFull, StorageError
from nbext.service.accounts import schema

# The kinds of error that are the file's or the disk's fault; any other is a fault of ours, and keeps its type.
_OF_THE_FILE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
}
_OF_THE_SERVER = {"08", "28", "3D", "53", "57", "58"}
# Any number that no other program locks.
_MAKING = 0x6E62657874
Values = Mapping[str, Any]
ROLES = ("queue", "caretaker")


class Unreachable(StorageError):
    """The registry's server does not answer, or refuses: it may do so again soon."""


class Database:
    """Connections to one registry, by its file's path or the URL of a PostgreSQL database.

    Readers ask at once; the writers of one process in turn where it is a file.

    Raises
    ------
    StorageError
        The file is not a SQLite file, or the registry is not of this nbext; the server cannot be reached; it has no
        tables, and ``make`` is false. Whenever it is used: it is damaged, or the disk is full.
    ConfigError
        The URL is of no PostgreSQL database, or its driver is not installed.
    """

    def __init__(self, place: Path | str, *, make: bool = True) -> None:
        self.path = place if isinstance(place, Path) else None
        if self.path:
            self.name = self.path.name
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._engine = create_engine(
                f"sqlite:///{place}", poolclass=NullPool, connect_args={"timeout": 15}
            )
            event.listen(self._engine, "connect", self._on_connect)
            self._reading = self._engine
        else:
            url = _url_of(str(place))
            self.name = f"The database {url.database}"
            # A server has a bound on connections: some threads wait for one. pre_ping: it may have been restarted.
            self._engine = create_engine(url, pool_size=8, max_overflow=8, pool_pre_ping=True)
            # Else each SELECT is three messages: BEGIN and ROLLBACK around it.
            self._reading = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        # Open connections to the file that nobody uses now. A pool's check-out and reset, and SQLAlchemy's events of
        # transactions, take three times as long as the look itself: 0.10 ms instead of 0.03, and 0.30 ms instead of
        # 0.11 for a change.
        self._open: list[Connection] = []
        # Threads of one process queue here: SQLite's own lock makes its callers sleep and try again, and starves some.
        # A commit shared by all who wait was measured and removed: p99 of 64 connections was 425 ms with it and 416 ms
        # without (medians of three paired runs). It mattered only where quick requests shared the threads of writers.
        self._turn: contextlib.AbstractContextManager[Any] = (
            threading.Lock() if self.path else contextlib.nullcontext()
        )
        self._prepare(make)

    def _on_connect(self, db: sqlite3.Connection, _: Any) -> None:
        # None: else Python's module begins transactions by rules of its own. See `_begun`.
        db.isolation_level = None
        db.execute("PRAGMA journal_mode = WAL")
        # With NORMAL a power cut takes back the last commits, which callers believe to be stored.
        db.execute("PRAGMA synchronous = FULL")
        assert self.path
        self.path.chmod(0o600)

    def _prepare(self, make: bool) -> None:
        """Make the tables where there are none; each start pays for one look at the version."""
        # Where that fails, there is no such table yet.
        with contextlib.suppress(OperationalError, ProgrammingError), self.read() as db:
            if db.scalar(select(schema.version.c.number)) == schema.VERSION:
                return
        with self.write() as db:
            if not self.path:
                # CREATE TABLE of two services at once fails in one of them. The lock ends with the transaction.
                db.execute(select(func.pg_advisory_xact_lock(_MAKING)))
            names = inspect(db).get_table_names()
            if not names and not make:
                it = "It" if self.path else "No service has run on it yet, or it"
                raise StorageError(
                    f"{self.name} has no tables. {it} is not a registry, or a copy that was cut off."
                )
            if not names:
                schema.metadata.create_all(db)
                db.execute(insert(schema.version).values(number=schema.VERSION))
                db.execute(insert(schema.roles), [{"name": name} for name in ROLES])
            # Made by another service while this one waited for its turn, or by another nbext.
            known = schema.version.name in names or not names
            found = db.scalar(select(schema.version.c.number)) if known else "none"
        if found != schema.VERSION:
            raise StorageError(
                f"{self.name} is not a registry of this nbext (version {found}; this one reads {schema.VERSION})."
                " Use the nbext that made it, or name another data folder."
            )

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Lend a connection; each statement sees what was committed before it."""
        with self._mapped(), self._lent() if self.path else self._reading.connect() as db:
            yield db

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """Lend a connection inside a transaction: at the end all of it is on the disk, or none."""
        with (
            self._turn,
            self._mapped(),
            self._begun("BEGIN IMMEDIATE") if self.path else self._engine.begin() as db,
        ):
            yield db

    def rows(self, found: Executable, values: Values | None = None) -> Sequence[Row[Any]]:
        """Return what a statement finds."""
        with self.read() as db:
            return db.execute(found, values).all()

    def scalar(self, found: Executable) -> Any:
        """Return the first value that a statement finds, or None."""
        with self.read() as db:
            return db.scalar(found)

    def change(self, change: UpdateBase, values: Values | None = None) -> int:
        """Do one change as a transaction of its own; return how many rows it changed."""
        with self.write() as db:
            return db.execute(change, values).rowcount

    @contextlib.contextmanager
    def _begun(self, statement: str) -> Iterator[Connection]:
        # IMMEDIATE: a transaction that began as a reader fails at its first write where another service wrote.
        with self._lent() as db:
            db.exec_driver_sql(statement)
            yield db
            # Python's own commit() says nothing where SQLite has ended the transaction by itself, and all is lost.
            db.exec_driver_sql("COMMIT")

    @contextlib.contextmanager
    def _lent(self) -> Iterator[Connection]:
        """Lend a connection to the file; open one where all are lent. An error takes back what was not committed."""
        try:
            db = self._open.pop()
        except IndexError:
            db = self._engine.connect()
        try:
            yield db
        except BaseException:
            db.rollback()
            self._open.append(db)
            raise
        self._open.append(db)

    @contextlib.contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            # Only errors that SQLite itself raises have a code; its low byte is the kind. Of PostgreSQL's the class is
            # that of connections, resources or the system; without any the server was not reached.
            code = getattr(error.orig, "sqlite_errorcode", None)
            state = getattr(error.orig, "sqlstate", "") or (
                "08" if isinstance(error, OperationalError) else ""
            )
            if (
                (code & 0xFF in _OF_THE_FILE)
                if code
                else (not self.path and state[:2] in _OF_THE_SERVER)
            ):
                reason = str(error.orig).splitlines()[0]
                full = (code is not None and code & 0xFF == sqlite3.SQLITE_FULL) or state == "53100"
                kind = DiskFull if full else StorageError if self.path else Unreachable
                raise kind(
                    f"{self.name} cannot be used as the service's registry: {reason}"
                ) from None
            raise

    def backup(self, target: Path) -> None:
        """Copy all that is stored, as it is now, into a new SQLite file, while others go on writing."""
        server = self._engine.execution_options(isolation_level="REPEATABLE READ")
        stored = [
            table
            for table in schema.metadata.sorted_tables
            if table not in (schema.version, schema.roles)
        ]
        with (
            contextlib.closing(Database(target)) as copy,
            self._mapped(),
            self._begun("BEGIN") if self.path else server.connect() as source,
        ):
            for table in stored:
                for rows in (
                    source.execute(select(table).execution_options(yield_per=1000))
                    .mappings()
                    .partitions()
                ):
                    with copy.write() as db:
                        db.execute(insert(table), [dict(row) for row in rows])

    def damage(self) -> str | None:
        """Return what SQLite's own check finds wrong, or None; a PostgreSQL server's operator has tools of its own."""
        if not self.path:
            return None
        with self.read() as db:
            found = "; ".join(db.exec_driver_sql("PRAGMA integrity_check(3)").scalars())
        return None if found == "ok" else found

    def close(self) -> None:
        """Close the connections that are not lent."""
        while self._open:
            self._open.pop().close()
        self._engine.dispose()


def _url_of(text: str) -> URL:
    # No part of the URL is repeated: it may hold a password.
    if not text.startswith(("postgresql://", "postgres://")):
        raise ConfigError("A registry's URL is postgresql://user@host/database.")
    if not find_spec("psycopg"):
        raise ConfigError(
            'A PostgreSQL registry needs psycopg. Install it: pip install "nbext[postgres]"'
        )
    try:
        return make_url(text).set(drivername="postgresql+psycopg")
    except ArgumentError:
        raise ConfigError(
            "The registry's URL cannot be read. Write postgresql://user@host/database."
        ) from None
