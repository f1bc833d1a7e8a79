"""The registry: its tables, connections and transactions, in one SQLite file, or a PostgreSQL database that many share.

SQLite's WAL lets several services and commands read and write one file side by side; synchronous=FULL makes a commit
survive a power cut, as PostgreSQL's own default does. The statements are in the modules of what they store, `keys`,
`audit`, `signups` and `segments.store`, one set for both; no other module of the service has any.

Times are seconds since 1970. A registry with another number than VERSION is refused: a change of the tables needs the
next number.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import (
    INTEGER,
    REAL,
    URL,
    BigInteger,
    Column,
    Connection,
    Double,
    Engine,
    Executable,
    Index,
    MetaData,
    Row,
    Table,
    Text,
    UpdateBase,
    create_engine,
    delete,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import NullPool
from sqlalchemy.types import TypeEngine

from nbext.errors import ConfigError, DiskFull, StorageError
from nbext.service.limits import Policy

# The number of the tables below, which a registry has in its table ``registry``.
VERSION = 2

metadata = MetaData()
# SQLite's STRICT knows neither BIGINT nor DOUBLE; PostgreSQL's own REAL has 24 bits, too few for seconds since 1970.
Whole: TypeEngine[int] = BigInteger().with_variant(INTEGER(), "sqlite")
Real: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")


def _needed(name: str, kind: Any, **options: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, **options)


def _number(name: str) -> Column[Any]:
    return _needed(name, Whole, server_default=text("0"))


def _table(name: str, *columns: Column[Any]) -> Table:
    # STRICT: else SQLite stores a text where a number belongs.
    return Table(name, metadata, *columns, sqlite_strict=True)


# One row: what this registry is, and what holds for all services on it. The row is a lock, too: whoever enters a
# segment, or takes a part of a rate, holds it.
registry = _table(
    "registry",
    Column("number", Whole, primary_key=True),
    # It stands in the folders of results and lists, too: see `nbext.service.segments.files`.
    _needed("id", Text),
    # The lease of the service that cleans up for all.
    Column("leader", Text),
    *(
        _needed(name, Whole if isinstance(value, int) else Real)
        for name, value in asdict(Policy()).items()
    ),
)

keys = _table(
    "keys",
    Column("id", Text, primary_key=True),
    _needed("name", Text),
    _needed("digest", Text, unique=True),
    _needed("scopes", Text),
    Column("rate", Text),
    _needed("created_at", Real),
    Column("revoked_at", Real),
    Column("expires_at", Real),
    # 1: it reads its own segments only.
    _number("private"),
)
Index(
    "keys_by_name",
    keys.c.name,
    unique=True,
    sqlite_where=keys.c.revoked_at.is_(None),
    postgresql_where=keys.c.revoked_at.is_(None),
)

# After a rotation a key's former text is accepted for a while.
former_keys = _table(
    "former_keys",
    Column("digest", Text, primary_key=True),
    _needed("key_id", Text),
    _needed("until", Real),
)

segments = _table(
    "segments",
    Column("id", Text, primary_key=True),
    _needed("status", Text),
    _needed("request", Text),
    _needed("facts", Text),
    _needed("fingerprint", Text),
    Column("matched", Whole),
    Column("returned", Whole),
    Column("preview", Text),
    Column("error", Text),
    _needed("created_at", Real),
    Column("started_at", Real),
    Column("completed_at", Real),
    _needed("used_at", Real),
    Column("file", Text),
    Column("size", Whole),
    Column("sha256", Text),
    # The service that runs it, by the name of its lease; 1 where somebody asked to cancel it.
    Column("lease", Text),
    _number("cancel"),
    # The key that made it, whose share of the queue and of the disk it takes; its place: see `SegmentStore.enqueue`.
    _needed("key_id", Text, server_default=text("''")),
    # 1: no other key sees it.
    _number("private"),
    _number("priority"),
    _number("turn"),
    # How many services began to run it and did not end in order.
    _number("attempts"),
    # Bytes of the file and of the texts of this row.
    _number("stored"),
)
Index("segments_by_use", segments.c.status, segments.c.used_at, segments.c.stored)
Index("segments_by_turn", segments.c.status, segments.c.turn, segments.c.priority)
Index("segments_by_file", segments.c.file)
Index("segments_by_key", segments.c.key_id, segments.c.stored)

idempotency = _table(
    "idempotency",
    Column("key_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    _needed("body", Text),
    _needed("segment", Text),
    _needed("created_at", Real),
)
Index("idempotency_by_age", idempotency.c.created_at)

signups = _table(
    "signups",
    Column("address", Text, primary_key=True),
    _needed("email", Text),
    _needed("consented_at", Real),
    # The key that recorded it, which may record so many a day.
    _needed("key_id", Text, server_default=text("''")),
)
Index("signups_by_key", signups.c.key_id, signups.c.consented_at)

# How many requests a key was allowed in the window that began then.
rates = _table(
    "rates",
    Column("key_id", Text, primary_key=True),
    Column("began", Real, primary_key=True),
    _number("taken"),
)

# Who did what: a key's id, what it did, to which segment or key, from which address.
audit = _table(
    "audit",
    Column("id", Whole, primary_key=True, autoincrement=True),
    _needed("at", Real),
    Column("key_id", Text),
    _needed("action", Text),
    Column("target", Text),
    Column("client", Text),
)
Index("audit_by_time", audit.c.at)

# What says that the file itself is wrong: damaged, or without a table that it had. All else may pass.
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
_OF_THE_SERVER = {"08", "28", "3D", "53", "57", "58"}
# Any number that no other program locks.
_MAKING = 0x6E62657874
# How long a server that gave no answer is left alone (seconds).
_SILENCE_SECONDS = 1.0
Values = Mapping[str, Any]


class Unreachable(StorageError):
    """The registry cannot be used now, as far as anyone can tell: its server does not answer, or its file's disk."""


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
            # No part of the URL: mistyped, a password is its host or its database.
            self.name = "The registry's database"
            self._engine = bounded_engine(url)
            # Else each SELECT is three messages: BEGIN and ROLLBACK around it.
            self._reading = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        # Until then a server that gave no answer is not asked again: else all threads wait for it, one after the other.
        self._silent_until = 0.0
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
        self._prepare(make, policy or Policy())

    def _on_connect(self, db: sqlite3.Connection, _: Any) -> None:
        # None: else Python's module begins transactions by rules of its own. See `_begun`.
        db.isolation_level = None
        db.execute("PRAGMA journal_mode = WAL")
        # With NORMAL a power cut takes back the last commits, which callers believe to be stored.
        db.execute("PRAGMA synchronous = FULL")
        assert self.path
        self.path.chmod(0o600)

    def _prepare(self, make: bool, policy: Policy) -> None:
        """Make the tables where there are none; each start pays for one look at the version."""
        # Where that fails, there is no such table yet.
        with contextlib.suppress(StorageError, ProgrammingError):
            if self.learn() == VERSION:
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
                metadata.create_all(db)
                new = {"number": VERSION, "id": secrets.token_hex(16)}
                db.execute(insert(registry), {**new, **asdict(policy)})
        # Made by another service while this one waited for its turn, or by another nbext.
        known = registry.name in names or not names
        found = self.learn() if known else "none"
        if found != VERSION:
            raise StorageError(
                f"{self.name} is not a registry of this nbext (version {found}; this one reads {VERSION})."
                " Use the nbext that made it, or name another data folder."
            )

    def learn(self) -> int:
        """Read what the registry is and what holds for all of its services; return the number of its tables."""
        # By name: another nbext's table has other columns.
        with self.read() as db:
            row = db.execute(text("SELECT * FROM registry")).mappings().one()
        self.id, self.policy = (
            row.get("id", ""),
            Policy(**{name: row[name] for name in asdict(Policy()) if name in row}),
        )
        return int(row["number"])

    def set_policy(self, policy: Policy) -> None:
        """Change what holds for all services of the registry, which learn it within seconds."""
        self.change(update(registry), asdict(policy))
        self.learn()

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

    def change(self, change: UpdateBase, values: Values | Sequence[Values] | None = None) -> int:
        """Do one change as a transaction of its own, of each row of values; return how many rows it changed."""
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
        began = time.monotonic()
        if began < self._silent_until:
            raise Unreachable(f"{self.name} gave no answer a moment ago")
        try:
            yield
        except PoolTimeout:
            raise Unreachable(f"{self.name} has no connection to spare") from None
        except DBAPIError as error:
            kind = self._kind_of(error)
            if kind is None:
                raise
            if kind is Unreachable and time.monotonic() - began > 1:
                self._silent_until = time.monotonic() + _SILENCE_SECONDS
            # Of a server's only the type: its words name hosts and users.
            words = str(error.orig).splitlines()[0] if self.path else type(error.orig).__name__
            raise kind(f"{self.name} cannot be used as the service's registry: {words}") from None

    def _kind_of(self, error: DBAPIError) -> type[StorageError] | None:
        """Return the error of ours for one of the database, or None for a fault of ours, which keeps its type."""
        if self.path:
            # The low byte is the kind. What Python's module raises itself has none.
            code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                return DiskFull
            if code in _DAMAGED:
                return StorageError
            return Unreachable if isinstance(error, OperationalError) else None
        # Of PostgreSQL's the class is that of connections, resources or the system; without any it was not reached.
        state = getattr(error.orig, "sqlstate", "") or (
            "08" if isinstance(error, OperationalError) else ""
        )
        if state == "53100":
            return DiskFull
        return Unreachable if state[:2] in _OF_THE_SERVER else None

    def backup(self, target: Path) -> None:
        """Copy all that is stored, as it is now, into a new SQLite file, while others go on writing."""
        server = self._engine.execution_options(isolation_level="REPEATABLE READ")
        with (
            contextlib.closing(Database(target)) as copy,
            self._mapped(),
            self._begun("BEGIN") if self.path else server.connect() as source,
        ):
            # The copy is the same registry: its results are found in the copy of the folder.
            copy.change(delete(registry))
            for table in metadata.sorted_tables:
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
    except (ArgumentError, ValueError):  # no number as the port
        raise ConfigError(
            "The registry's URL cannot be read. Write postgresql://user@host/database."
        ) from None


# How long a connection may take, and the answer to a statement (seconds). No timeout of a server that hangs helps, and
# none of the network's, whose acknowledgements go on: each wait for an answer ends here, and closes its connection.
CONNECT_SECONDS = 2
ANSWER_SECONDS = 2.5


def bounded_engine(url: URL) -> Engine:
    """Return an engine whose connections and statements end in time, with an OperationalError where nobody answers."""
    # An extra, which only a registry on a server needs.
    import psycopg

    class Bounded(psycopg.Connection[Any]):
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

    # A server has a bound on connections: some threads wait for one. pre_ping: it may have been restarted.
    engine = create_engine(
        url,
        pool_size=8,
        max_overflow=8,
        pool_timeout=ANSWER_SECONDS,
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_SECONDS},
    )

    def connect(_: Any, __: Any, words: Any, options: Any) -> Bounded:
        return Bounded.connect(*words, **options)

    event.listen(engine, "do_connect", connect)
    return engine
