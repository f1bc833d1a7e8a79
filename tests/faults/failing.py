"""Counts the calls of a story to the system, and has one of them fail, once or for a while."""

from __future__ import annotations

import builtins
import errno
import io
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

CODES = (errno.EIO, errno.EMFILE, errno.EACCES, errno.ENOSPC)
_NAMED = ("open", "stat", "lstat", "replace", "rename", "link", "unlink", "mkdir", "scandir")
_DAY = 86_400


class Failing:
    """While it is entered and armed, calls about files below a folder and about sockets are counted.

    A file's reads and writes are calls, too; ``calls`` has the name of each since it was armed.
    """

    def __init__(self, folder: Path, *, sockets: bool = True) -> None:
        self._folder, self._sockets = f"{folder}{os.sep}", sockets
        self._armed, self._fails, self._code = False, range(0), errno.EIO
        self._of: str | tuple[str, ...] = ""
        # How far the clock is off (seconds).
        self.clock_off = 0.0
        self.calls: list[str] = []
        self._lock = threading.Lock()
        self._before: list[tuple[Any, str, Any]] = []

    @contextmanager
    def armed(
        self,
        fails: int | None = None,
        code: int = errno.EIO,
        *,
        times: int = 1,
        of: str | tuple[str, ...] = "",
    ) -> Iterator[None]:
        """Count from 0, and have call number ``fails`` fail, and as many as make ``times``; none where it is None.

        Of those whose name begins with ``of``, or one of these.
        """
        self._of = of
        failing = range(0) if fails is None else range(fails, fails + times)
        self.calls, self._fails, self._code, self._armed = [], failing, code, True
        try:
            yield
        finally:
            self._armed = False

    def __enter__(self) -> Failing:
        for name in _NAMED:
            self._wrap(os, name, self._about_a_path(name))
        self._wrap(os, "fsync", self._always("fsync"))
        self._wrap(io, "open", self._opened)
        self._wrap(builtins, "open", self._opened)
        self._wrap(pa, "OSFile", self._about_a_path("arrow file"))
        self._wrap(duckdb, "connect", self._duckdb)
        for module in (sqlite3, sqlite3.dbapi2):
            self._wrap(module, "connect", self._sqlite)
        for name in ("connect", "sendall", "recv_into") if self._sockets else ():
            self._wrap(socket.socket, name, self._reset(name))
        with suppress(ImportError):
            import psycopg

            for name in ("connect", "execute"):
                owner = psycopg.Connection if name == "connect" else psycopg.Cursor
                self._wrap(owner, name, self._of_postgres(name, psycopg.OperationalError))
        self._wrap(time, "time", self._clock)
        return self

    def __exit__(self, *_: object) -> None:
        for owner, name, former in reversed(self._before):
            setattr(owner, name, former)

    def _wrap(self, owner: Any, name: str, made: Callable[[Callable[..., Any]], Any]) -> None:
        former = getattr(owner, name)
        self._before.append((owner, name, former))
        setattr(owner, name, made(former))

    def count(self, call: str) -> bool:
        """Count a call; return whether it is the one that fails."""
        with self._lock:
            if not self._armed or not call.startswith(self._of):
                return False
            self.calls.append(call)
            return len(self.calls) - 1 in self._fails

    def check(self, call: str, path: Any = None) -> None:
        """Count a call that raises an OSError where it is the one that fails."""
        if self.count(call):
            raise OSError(self._code, os.strerror(self._code), path)

    def _below(self, path: Any) -> bool:
        if not isinstance(path, str | os.PathLike):
            return False
        return str(Path(path).absolute()).startswith(self._folder)

    def _about_a_path(self, name: str) -> Any:
        def made(former: Callable[..., Any]) -> Callable[..., Any]:
            def call(path: Any, *values: Any, **options: Any) -> Any:
                if self._below(path):
                    self.check(name, path)
                return former(path, *values, **options)

            return call

        return made

    def _always(self, name: str) -> Any:
        def made(former: Callable[..., Any]) -> Callable[..., Any]:
            def call(*values: Any) -> Any:
                self.check(name)
                return former(*values)

            return call

        return made

    def _opened(self, former: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", buffering: int = -1, *text: Any, **more: Any) -> Any:
            if not self._below(file):
                return former(file, mode, buffering, *text, **more)
            self.check("open", file)
            found = former(file, mode, buffering, *text, **more)
            raw = getattr(found, "raw", getattr(getattr(found, "buffer", None), "raw", None))
            if raw is None or "+" in mode:
                return found
            return self._counted(found, file, mode, text, more)

        return opened

    def _counted(self, found: Any, file: Any, mode: str, text: Any, more: Any) -> Any:
        """Return the same file with each of its reads and writes counted."""
        found.close()
        plain = "".join(letter for letter in mode if letter in "rwax").replace("x", "a")
        raw = _Raw(self, file, plain.replace("w", "a"))
        binary = io.BufferedReader(raw) if plain == "r" else io.BufferedWriter(raw)
        if "b" in mode:
            return binary
        named = dict(zip(("encoding", "errors", "newline"), text, strict=False)) | {
            name: more[name] for name in ("encoding", "errors", "newline") if name in more
        }
        return io.TextIOWrapper(binary, **named, write_through=True)

    def _duckdb(self, former: Callable[..., Any]) -> Callable[..., Any]:
        def connect(database: Any = ":memory:", *values: Any, **options: Any) -> Any:
            if self._below(database) and self.count("DuckDB file"):
                raise duckdb.IOException(f"IO Error: {os.strerror(self._code)}")
            return former(database, *values, **options)

        return connect

    def _sqlite(self, former: Callable[..., Any]) -> Callable[..., Any]:
        def connect(*values: Any, **options: Any) -> Any:
            if self.count("SQLite file"):
                raise _of_sqlite(sqlite3.SQLITE_CANTOPEN, "unable to open database file")
            made = former(*values, factory=_Connection, **options)
            made.failing = self
            return made

        return connect

    def _reset(self, name: str) -> Any:
        def made(former: Callable[..., Any]) -> Callable[..., Any]:
            def call(*values: Any) -> Any:
                if self.count(f"socket {name}"):
                    raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
                return former(*values)

            return call

        return made

    def _of_postgres(self, name: str, error: type[Exception]) -> Any:
        def made(former: Callable[..., Any]) -> Any:
            def call(*values: Any, **options: Any) -> Any:
                if self.count(f"PostgreSQL {name}"):
                    raise error(os.strerror(self._code))
                return former(*values, **options)

            # Looked up in the class, it is bound to it already.
            return staticmethod(call) if name == "connect" else call

        return made

    def _clock(self, former: Callable[[], float]) -> Callable[[], float]:
        # A clock does not fail; it is set.
        return lambda: former() + self.clock_off - (_DAY if self.count("clock") else 0)


def _of_sqlite(code: int, text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code  # as SQLite's own errors have it
    return error


class _Raw(io.FileIO):
    def __init__(self, failing: Failing, path: Any, mode: str) -> None:
        super().__init__(path, mode)
        self._failing = failing

    def readinto(self, buffer: Any) -> Any:
        self._failing.check("read")
        return super().readinto(buffer)

    def readall(self) -> Any:
        self._failing.check("read")
        return super().readall()

    def write(self, data: Any) -> Any:
        self._failing.check("write")
        return super().write(data)


class _Connection(sqlite3.Connection):
    failing: Failing

    def cursor(self, *_: Any) -> Any:
        made = super().cursor(_Cursor)
        made.failing = self.failing
        return made

    def commit(self) -> None:
        if self.failing.count("SQLite commit"):
            raise _of_sqlite(sqlite3.SQLITE_IOERR, "disk I/O error")
        super().commit()


class _Cursor(sqlite3.Cursor):
    failing: Failing

    def execute(self, *values: Any) -> Any:
        if self.failing.count("SQLite statement"):
            raise _of_sqlite(sqlite3.SQLITE_IOERR, "disk I/O error")
        return super().execute(*values)

    def executemany(self, *values: Any) -> Any:
        if self.failing.count("SQLite statement"):
            raise _of_sqlite(sqlite3.SQLITE_IOERR, "disk I/O error")
        return super().executemany(*values)
