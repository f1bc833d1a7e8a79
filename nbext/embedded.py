"""The embedded service: a uvicorn thread in this process, on loopback, with a random port and key.

It needs no account and no network. Ctrl-C in a cell ends the cell, not the service: only the main thread receives the
interrupt. A forked child starts a service of its own, because a thread does not survive a fork.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import secrets
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nbext.errors import NoService, ServiceDied
from nbext.settings import Secret

if TYPE_CHECKING:
    from nbext.service.server import Server

_NEEDED = ("fastapi", "uvicorn", "ibis", "duckdb")
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_running: dict[tuple[int, Path, str], Embedded] = {}
_starting = threading.Lock()
_ending = threading.Event()


def start(data_dir: Path, engine: str = "duckdb://") -> Embedded:
    """Return the embedded service over a data folder; start it unless it runs already.

    NoService: fastapi, uvicorn, ibis or duckdb is not installed. ServiceDied: it ended while it started; its log says
    why. ConfigError, StorageError: the engine's URL or the data folder cannot be used.
    """
    if not all(importlib.util.find_spec(name) for name in _NEEDED):
        raise NoService
    data_dir = data_dir.expanduser().absolute()
    # With the process id: a forked child inherits the table, but not the threads in it.
    name = (os.getpid(), data_dir, engine)
    with _starting:
        running = _running.get(name)
        if running is None or not running.is_alive:
            running = _running[name] = Embedded(data_dir, engine)
    return running


@atexit.register
def _stop_all() -> None:
    # A thread of a form that misses its service would start it again while the interpreter ends, and the DuckDB of
    # such a thread aborts the process. One that starts just now is in the table afterwards; the limit is for a forked
    # child, which may inherit the lock taken.
    _ending.set()
    if _starting.acquire(timeout=_STOP_SECONDS):
        _starting.release()
    for (process, _, _), running in list(_running.items()):
        if process == os.getpid():
            running.stop()


class Embedded:
    """One service in a thread of this process; its log at ``log_path`` has JSON lines, warnings and errors only."""

    def __init__(self, data_dir: Path, engine: str, *, port: int = 0, api_key: Secret | None = None) -> None:
        if _ending.is_set():
            raise ServiceDied("Python is ending, so the embedded service does not start again.")
        self._data_dir, self._engine = data_dir, engine
        self.api_key = api_key or Secret(secrets.token_urlsafe(32))
        self.log_path = data_dir / "service" / "embedded.log"
        self._listener = _listen(port)
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        try:
            self._server = self._make()
        except BaseException:  # Ctrl-C too: a second start must find the port free
            self._listener.close()
            raise
        self._thread = threading.Thread(target=self._serve, name="nbext-service", daemon=True)
        self._thread.start()
        self._await_start()

    def __repr__(self) -> str:
        return f"Embedded({self.base_url!r}, {'running' if self.is_alive else 'ended'})"

    @property
    def is_alive(self) -> bool:
        """Whether the service answers requests."""
        return self._thread.is_alive() and not self._server.should_exit

    def stop(self) -> None:
        """End the service; segments that run are queued again for its next start."""
        self._server.should_exit = True
        self._thread.join(timeout=_STOP_SECONDS)
        _running.pop((os.getpid(), self._data_dir, self._engine), None)

    def restart(self) -> Embedded:
        """Return a new service over the same data, with the same key and, if it is free, the same port."""
        with _starting:
            self.stop()
            again = Embedded(
                self._data_dir, self._engine, port=int(self.base_url.rpartition(":")[2]), api_key=self.api_key
            )
            _running[(os.getpid(), self._data_dir, self._engine)] = again
        return again

    def _make(self) -> Server:
        # Imported here: these load FastAPI, Ibis and DuckDB, which only an embedded service needs.
        from nbext.engine.open import open_dataset
        from nbext.service.app import create_app
        from nbext.service.limits import Limits
        from nbext.service.middleware import Log
        from nbext.service.server import Server

        dataset = open_dataset(self._data_dir, self._engine)
        try:
            self.log_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._log = self.log_path.open("a", encoding="utf-8", buffering=1)
            # The first cell is often a %token: it must not wait for the imports that only a segment needs.
            app = create_app(
                dataset, self.log_path.parent, owner=self.api_key, limits=Limits(warm_up_seconds=5.0),
                log=Log(self._log, level="warning"),
            )
        except BaseException:  # Ctrl-C too: an open DuckDB file blocks the next ingest
            dataset.close()
            raise
        return Server(app, grace=0.5)

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        finally:
            self._listener.close()
            self._log.close()

    def _await_start(self) -> None:
        until = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise ServiceDied(f"The embedded service did not start. Its log: {self.log_path}")
            time.sleep(0.005)  # uvicorn has no event to wait for


def _listen(port: int) -> socket.socket:
    from nbext.service.server import listen

    try:
        return listen("127.0.0.1", port)
    except OSError:  # another process took the former port meanwhile
        return listen("127.0.0.1", 0)
