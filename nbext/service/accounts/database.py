"""The registry: its tables, connections and transactions, in one SQLite file, or a PostgreSQL database that many share.

SQLite's WAL lets several services and commands read and write one file side by side; synchronous=FULL makes a commit
survive a power cut, as PostgreSQL's own default does; `Database.write` says which need not. The statements are in the
modules of what they store, `keys`, `audit`, `signups` and `segments.store`, one text for both; no other module of the
service has any.

Times are seconds since 1970. A registry with another number than VERSION is refused: a change of the tables needs the
next number.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import sqlite3
import threading
import time
from collections import namedtuple
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nbext.errors import ConfigError, DiskFull, StorageError
from nbext.service.limits import Policy

# The number of the tables below, which a registry has in its table ``registry``.
VERSION = 3

# As SQLite reads them; `_Server` has the same types by other names. STRICT: else SQLite stores a text where a number
# belongs.
_TABLES = """
-- One row: what this registry is, and what holds for all services on it. The row is a lock, too: see `Database.write`.
CREATE TABLE registry (
    number INTEGER PRIMARY KEY,
    -- The folders of results and lists have it, too: see `nbext.service.segments.files`.
    id TEXT NOT NULL,
    -- The lease of the service that cleans up for all.
    leader TEXT,
    keep_days REAL NOT NULL,
    audit_days REAL NOT NULL,
    keep_bytes INTEGER NOT NULL,
    key_bytes INTEGER NOT NULL,
    list_bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    rate TEXT,
    created_at REAL NOT NULL,
    revoked_at REAL,
    expires_at REAL,
    -- 1: it reads its own segments only.
    private INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX keys_by_name ON keys (name) WHERE revoked_at IS NULL;

-- After a rotation a key's former text is accepted for a while.
CREATE TABLE former_keys (
    digest TEXT PRIMARY KEY,
    key_id TEXT NOT NULL,
    until REAL NOT NULL
) STRICT;

CREATE TABLE segments (
    id TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    request TEXT NOT NULL,
    facts TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    matched INTEGER,
    returned INTEGER,
    preview TEXT,
    error TEXT,
    created_at REAL NOT NULL,
    started_at REAL,
    completed_at REAL,
    used_at REAL NOT NULL,
    file TEXT,
    size INTEGER,
    sha256 TEXT,
    -- The service that runs it, by the name of its lease; 1 where somebody asked to cancel it.
    lease TEXT,
    cancel INTEGER NOT NULL DEFAULT 0,
    -- The key that made it, whose share of the queue and of the disk it takes; its place: see `SegmentStore.enqueue`.
    key_id TEXT NOT NULL DEFAULT '',
    -- 1: no other key sees it.
    private INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL DEFAULT 0,
    turn INTEGER NOT NULL DEFAULT 0,
    -- How many services began to run it and did not end in order.
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Bytes of the file and of the texts of this row.
    stored INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX segments_by_use ON segments (status, used_at, stored);
CREATE INDEX segments_by_turn ON segments (status, turn, priority);
CREATE INDEX segments_by_file ON segments (file);
CREATE INDEX segments_by_key ON segments (key_id, stored);

CREATE TABLE idempotency (
    key_id TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    segment TEXT NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (key_id, name)
) STRICT;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

CREATE TABLE signups (
    address TEXT PRIMARY KEY,
    email TEXT NOT NULL,
    consented_at REAL NOT NULL,
    -- The key that recorded it, which may record so many a day.
    key_id TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX signups_by_key ON signups (key_id, consented_at);

-- How many requests a key was allowed in the window that began then, and in the one before.
CREATE TABLE rates (
    key_id TEXT PRIMARY KEY,
    began REAL NOT NULL,
    taken INTEGER NOT NULL,
    former INTEGER NOT NULL
) STRICT;

-- Who did what: a key's id, what it did, to which segment or key, from which address.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    key_id TEXT,
    action TEXT NOT NULL,
    target TEXT,
    client TEXT
) STRICT;
CREATE INDEX audit_by_time ON audit (at)
"""
_NAMES = re.findall("CREATE TABLE ([a-z_]+)", _TABLES)

# What says that the file itself is wrong: damaged, or without a table that it had. All else may pass.
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_OF_THE_SERVER = {"08", "28", "3D", "53", "57", "58"}
# How long a server that gave no answer is left alone (seconds).
_SILENCE_SECONDS = 1.0
# How long a connection may take, and the answer to a statement (seconds). No timeout of a server that hangs helps, and
# none of the network's, whose acknowledgements go on: each wait for an answer ends here, and closes its connection.
CONNECT_SECONDS = 2
ANSWER_SECONDS = 2.5
_VALUE = re.compile(r":(\w+)")
# A named tuple, of the columns that a statement finds.
Row = Any


class Unreachable(StorageError):
    """The registry cannot be used now, as far as anyone can tell: its server does not answer, or its file's disk."""


class _File:
    """A registry in a SQLite file."""

    error: type[Exception] = sqlite3.Error
    # IMMEDIATE: a transaction that began as a reader fails at its first write where another service wrote. With NORMAL
    # a power cut takes back the last commits, which callers believe to be stored.
    begin = ("PRAGMA synchronous = FULL", "BEGIN IMMEDIATE")
    hasty = ("PRAGMA synchronous = NORMAL", "BEGIN IMMEDIATE")
    snapshot = ("BEGIN",)
    # The transaction is one already.
    making = locking = None
    found = "SELECT name FROM sqlite_master WHERE type = 'table'"
    tables = _TABLES
    # Connections at most, and how many of them stay open while nobody uses them: to open one takes longer than a look.
    most = idle = 64
    # Transactions of one process that write at once.
    writers = 1
    # What a cursor that fetches a few rows at a time is made with.
    stream: tuple[str, ...] = ()

    def __init__(self, path: Path, make: bool) -> None:
        self.name, self.path = path.name, path
        if make and not path.exists():
            log = path.with_name(f"{path.name}-wal")
            if log.exists():
                raise StorageError(
                    f"{path} is missing, and {log.name}, which has its last changes, is there. Bring it back; to begin"
                    " anew, move its folder away."
                )
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(0o600)

    def connect(self) -> Any:
        # mode=rw: of a file that was moved away SQLite would make another, and delete the changes in the log beside it.
        # None: else Python's module begins transactions by rules of its own. Threads use a connection in turn.
        db = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=15,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            db.cursor().execute("PRAGMA journal_mode = WAL")
            self.path.chmod(0o600)
        except BaseException:
            db.close()
            raise
        return db

    def statement(self, sql: str) -> str:
        return sql

    def words(self, error: Exception) -> str:
        return str(error)

    def kind_of(self, error: Exception) -> type[StorageError] | None:
        # The low byte is the kind. What Python's module raises itself has none.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return DiskFull
        if code in _DAMAGED:
            return StorageError
        return Unreachable if isinstance(error, sqlite3.OperationalError) else None


class _Server:
    """A registry in a PostgreSQL database."""

    # No part of the URL: mistyped, a password is its host or its database.
    name, path = "The registry's database", None
    begin, snapshot = ("BEGIN",), ("BEGIN ISOLATION LEVEL REPEATABLE READ",)
    hasty = ("BEGIN", "SET LOCAL synchronous_commit = off")
    # CREATE TABLE of two services at once fails in one of them. Any number that no other program locks.
    making = f"SELECT pg_advisory_xact_lock({0x6E62657874})"
    locking = "SELECT number FROM registry FOR UPDATE"
    found = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    tables = (
        _TABLES.replace(
            "id INTEGER PRIMARY KEY", "id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
        )
        .replace(" INTEGER", " BIGINT")
        .replace(" REAL", " DOUBLE PRECISION")
        .replace(" STRICT", "")
    )
    # A server has a bound on connections: some threads wait for one.
    most = writers = 16
    idle = 8
    stream = ("copied",)

    def __init__(self, url: str) -> None:
        # An extra, which only a registry on a server needs.
        if not find_spec("psycopg"):
            raise ConfigError(
                'A PostgreSQL registry needs psycopg. Install it: pip install "nbext[postgres]"'
            )
        import psycopg

        self.error: type[Exception] = psycopg.Error
        self._url, self._kind = url, psycopg.OperationalError
        try:
            _ = urlsplit(url).port
            psycopg.conninfo.conninfo_to_dict(url)
        except (ValueError, psycopg.Error):
            raise ConfigError(
                "The registry's URL cannot be read. Write postgresql://user@host/database."
            ) from None

        class Bounded(psycopg.Connection[Any]):
            """A connection whose statements end in time, with an OperationalError where nobody answers."""

            def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
                return super().wait(self._timed(gen), *args, **options)

            def _timed(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
                # psycopg resumes it a few times a second with nothing where nothing has come.
                until, come = time.monotonic() + ANSWER_SECONDS, None
                while True:
                    try:
                        come = yield gen.send(come)
                    except StopIteration as done:
                        return done.value
                    if not come and time.monotonic() > until:
                        self.pgconn.finish()
                        raise psycopg.OperationalError("the server does not answer")

        self._connection = Bounded

    def connect(self) -> Any:
        # Each SELECT would be three messages in a transaction.
        return self._connection.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS)

    @staticmethod
    @lru_cache(maxsize=1000)
    def statement(sql: str) -> str:
        return _VALUE.sub(r"%(\1)s", sql)

    def words(self, error: Exception) -> str:
        # Of a server's only the type: its words name hosts and users.
        return type(error).__name__

    def kind_of(self, error: Exception) -> type[StorageError] | None:
        # The class is that of connections, resources or the system; without any it was not reached.
        state = getattr(error, "sqlstate", None) or ("08" if isinstance(error, self._kind) else "")
        if state == "53100":
            return DiskFull
        return Unreachable if state[:2] in _OF_THE_SERVER else None


@lru_cache(maxsize=1000)
def _row_of(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names, rename=True)


@dataclass
class Lent:
    """A connection while it is lent. A statement names its values, as ``:which``; a list's stand in brackets."""

    _db: Any
    _place: _File | _Server

    def _run(self, sql: str, values: dict[str, Any]) -> Any:
        for name, value in [*values.items()]:
            if isinstance(value, list):
                more = {f"{name}_{number}": each for number, each in enumerate(value)}
                # None at all is nowhere among them, and everything not.
                marks = ", ".join(f":{each}" for each in more) or "SELECT NULL WHERE 1 = 0"
                sql = re.sub(rf":{name}\b", f"({marks})", sql)
                values = {**values, **more}
                del values[name]
        cursor = self._db.cursor()
        cursor.execute(self._place.statement(sql), values)
        return cursor

    def rows(self, sql: str, **values: Any) -> list[Row]:
        """Return what a statement finds."""
        cursor = self._run(sql, values)
        row = _row_of(tuple(column[0] for column in cursor.description))
        return [row._make(each) for each in cursor.fetchall()]

    def change(self, sql: str, **values: Any) -> int:
        """Run a statement; return how many rows it changed."""
        return int(self._run(sql, values).rowcount)

    def add(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows to a table, at least one, all of the same columns."""
        statement = self._place.statement(insert_into(table, rows[0]))
        self._db.cursor().executemany(statement, rows)

    def parts_of(self, table: str) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows of a table, a thousand at a time."""
        with contextlib.closing(self._db.cursor(*self._place.stream)) as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            while rows := cursor.fetchmany(1000):
                names = [column[0] for column in cursor.description]
                yield [dict(zip(names, row, strict=True)) for row in rows]


def insert_into(table: str, columns: Iterable[str]) -> str:
    """Return the statement that adds a row with values for these columns."""
    names = list(columns)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES (:{', :'.join(names)})"


class Database:
    """Connections to one registry, by its file's path or the URL of a PostgreSQL database.

    Readers ask at once; the writers of one process in turn where it is a file. ``policy`` is that of a new registry.

    Attributes
    ----------
    id : str
        What the registry calls itself, in hex digits: another one, also an empty one in its place, has another.
    policy : Policy
        What holds for all services of the registry; `learn` reads it again.

    Raises
    ------
    StorageError
        The file is not a SQLite file, or the registry is not of this nbext; the server cannot be reached; it has no
        tables, and ``make`` is false. Whenever it is used: it is damaged, or the disk is full.
    ConfigError
        The URL is of no PostgreSQL database, or its driver is not installed.
    """

    def __init__(
        self, place: Path | str, *, make: bool = True, policy: Policy | None = None
    ) -> None:
        if isinstance(place, Path):
            self._place: _File | _Server = _File(place, make)
        # No part of the URL is repeated: it may hold a password.
        elif place.startswith(("postgresql://", "postgres://")):
            self._place = _Server(place)
        else:
            raise ConfigError("A registry's URL is postgresql://user@host/database.")
        self.path, self.name = self._place.path, self._place.name
        # Until then what gave no answer is not asked again, by readers and by writers: else all threads wait for it in
        # turn. A file that somebody else is writing is read all the same.
        self._silent_until = [0.0, 0.0]
        self._open: list[Any] = []
        self._room = threading.BoundedSemaphore(self._place.most)
        # Threads of one process queue here: SQLite's own lock makes its callers sleep and try again, and starves some.
        # A commit shared by all who wait was measured and removed: p99 of 64 connections was 425 ms with it and 416 ms
        # without (medians of three paired runs). It mattered only where quick requests shared the threads of writers.
        self._turn = threading.Semaphore(self._place.writers)
        self._prepare(make, policy or Policy())

    def _prepare(self, make: bool, policy: Policy) -> None:
        """Make the tables where there are none; each start pays for one look at the version."""
        # Where that fails, there is no such table yet.
        with contextlib.suppress(StorageError, self._place.error):
            if self.learn() == VERSION:
                return
        with self.write() as db:
            if self._place.making:
                db.change(self._place.making)
            names = [row[0] for row in db.rows(self._place.found)]
            if not names and not make:
                it = "It" if self.path else "No service has run on it yet, or it"
                raise StorageError(
                    f"{self.name} has no tables. {it} is not a registry, or a copy that was cut off."
                )
            if not names:
                for statement in self._place.tables.split(";\n"):
                    db.change(statement)
                new = {"number": VERSION, "id": secrets.token_hex(16)}
                db.add("registry", [{**new, **asdict(policy)}])
        # Made by another service while this one waited for its turn, or by another nbext.
        known = "registry" in names or not names
        found = self.learn() if known else "none"
        if found != VERSION:
            raise StorageError(
                f"{self.name} is not a registry of this nbext (version {found}; this one reads {VERSION})."
                " Use the nbext that made it, or name another data folder."
            )

    def learn(self) -> int:
        """Read what the registry is and what holds for all of its services; return the number of its tables."""
        # By name: another nbext's table has other columns.
        row = self.rows("SELECT * FROM registry")[0]._asdict()
        self.id, self.policy = (
            row.get("id", ""),
            Policy(**{name: row[name] for name in asdict(Policy()) if name in row}),
        )
        return int(row["number"])

    def set_policy(self, policy: Policy) -> None:
        """Change what holds for all services of the registry, which learn it within seconds."""
        values = asdict(policy)
        self.change(
            f"UPDATE registry SET {', '.join(f'{name} = :{name}' for name in values)}", **values
        )
        self.learn()

    @contextlib.contextmanager
    def write(self, *, alone: bool = False, lasting: bool = True) -> Iterator[Lent]:
        """Lend a connection inside a transaction: at the end all of it is on the disk, or none.

        No other one that is ``alone`` is under way in any service: what it finds is still so when it writes. One that
        is not ``lasting`` waits for no disk: a power cut undoes it, unless one that is came after it.
        """
        statements = self._place.begin if lasting else self._place.hasty
        with self._turn, self._mapped(writing=True), self._begun(statements) as db:
            if alone and self._place.locking:
                db.change(self._place.locking)
            yield db

    def rows(self, sql: str, **values: Any) -> list[Row]:
        """Return what a statement finds; it sees what was committed before it."""
        with self._mapped(), self._lent() as db:
            return db.rows(sql, **values)

    def scalar(self, sql: str, **values: Any) -> Any:
        """Return the first value of the one row that a statement finds."""
        return self.rows(sql, **values)[0][0]

    def change(self, sql: str, **values: Any) -> int:
        """Do one change as a transaction of its own; return how many rows it changed."""
        with self.write() as db:
            return db.change(sql, **values)

    @contextlib.contextmanager
    def _begun(self, statements: Iterable[str]) -> Iterator[Lent]:
        with self._lent() as db:
            for each in statements:
                db.change(each)
            yield db
            # Python's own commit() says nothing where SQLite has ended the transaction by itself, and all is lost.
            db.change("COMMIT")

    @contextlib.contextmanager
    def _lent(self) -> Iterator[Lent]:
        """Lend a connection; open one where all are lent. What was not committed is taken back."""
        if not self._room.acquire(timeout=ANSWER_SECONDS):
            raise Unreachable(f"{self.name} has no connection to spare")
        try:
            db = self._connected()
            try:
                yield Lent(db, self._place)
            finally:
                with contextlib.suppress(self._place.error):
                    # Where nothing is left to take back, this asks nobody.
                    db.rollback()
                    if len(self._open) < self._place.idle:
                        self._open.append(db)
                        db = None
                if db:
                    db.close()
        finally:
            self._room.release()

    def _connected(self) -> Any:
        with contextlib.suppress(IndexError):
            db = self._open.pop()
            # A server may have been restarted.
            with contextlib.suppress(self._place.error):
                if not self.path:
                    db.execute("SELECT 1")
                return db
            db.close()
            # Nor do the others answer: each would be waited for.
            self.close()
        return self._place.connect()

    @contextlib.contextmanager
    def _mapped(self, writing: bool = False) -> Iterator[None]:
        began = time.monotonic()
        if began < self._silent_until[writing]:
            raise Unreachable(f"{self.name} gave no answer a moment ago")
        try:
            yield
        except self._place.error as error:
            kind = self._place.kind_of(error)
            if kind is None:
                raise
            if kind is Unreachable and time.monotonic() - began > 1:
                self._silent_until[writing] = time.monotonic() + _SILENCE_SECONDS
            words = self._place.words(error)
            raise kind(f"{self.name} cannot be used as the service's registry: {words}") from None

    def backup(self, target: Path) -> None:
        """Copy all that is stored, as it is now, into a new SQLite file, while others go on writing."""
        with (
            contextlib.closing(Database(target)) as copy,
            self._mapped(),
            self._begun(self._place.snapshot) as source,
        ):
            # The copy is the same registry: its results are found in the copy of the folder.
            copy.change("DELETE FROM registry")
            for table in _NAMES:
                for rows in source.parts_of(table):
                    with copy.write() as db:
                        db.add(table, rows)

    def damage(self) -> str | None:
        """Return what SQLite's own check finds wrong, or None; a PostgreSQL server's operator has tools of its own."""
        if not self.path:
            return None
        found = "; ".join(row[0] for row in self.rows("PRAGMA integrity_check(3)"))
        return None if found == "ok" else found

    def close(self) -> None:
        """Close the connections that are not lent."""
        while self._open:
            self._open.pop().close()
