"""A client of the service that is set: a remote one where ``base_url`` is, else our own, embedded in this process.

The embedded service is a uvicorn thread on loopback, with a random port and key: it needs no account and no network.
Ctrl-C in a cell ends the cell, not the service: only the main thread receives the interrupt. A forked child asks its
parent's service: a second one in the child would wait for ever for a lock that a thread of the parent held at the fork.
"""

from __future__ import annotations

import atexit
import os
import secrets
import socket
import threading
import time
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from nbext.client import Client
from nbext.core.provenance import AnswerWarning
from nbext.errors import NoService, ServiceDied, StorageError
from nbext.settings import Secret, Settings, current, default_data_dir, service_folder

if TYPE_CHECKING:
    from nbext.service.server import Server

_NEEDED = ("fastapi", "uvicorn", "duckdb")
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_running: dict[tuple[Path, str], Embedded] = {}
_starting = threading.Lock()
_ending = threading.Event()


def connect(
    base_url: str | None = None,
    api_key: str | Secret | None = None,
    *,
    settings: Settings | None = None,
) -> Client:
    """Return a client of the service that the settings name.

    In a notebook these are the session's, so that `%nbext set base_url URL` counts here too. Without a ``base_url``
    (argument, session, NBEXT_BASE_URL, ``[tool.nbext]``) the embedded service starts on loopback, over the data that
    ``nbext ingest`` stored, or over synthetic sample data if there is none: where a folder was named, an
    `AnswerWarning` says so.

    Raises
    ------
    NoService
        ``base_url`` is not set, and ``nbext[local]`` is not installed.
    ConfigError
        A setting or the key cannot be used.
    """
    settings = settings or current()
    if url := base_url or settings["base_url"]:
        # Not one of the settings: those are shown, listed and read from files.
        return Client(url, api_key or os.environ.get("NBEXT_API_KEY") or "", settings=settings)
    client = embedded(settings)
    folder = default_data_dir(settings)
    if settings["data_dir"] and client.about()["data"]["synthetic"]:
        said = f"{folder} has no ingested data. The synthetic sample answers, with wallets that nobody has."
        warnings.warn(said, AnswerWarning, stacklevel=2)
    return client


def embedded(settings: Settings) -> Client:
    """Return a client of the embedded service, for callers that say by themselves whose data answers."""
    running = start_service(default_data_dir(settings), engine=settings["engine"])
    return Client(running.base_url, running.api_key, settings=settings, restart=running.restart)


def start_service(data_dir: Path, engine: str = "duckdb://") -> Embedded:
    """Return the embedded service over a data folder, serving what was ingested until now; start it unless it runs.

    NoService: fastapi, uvicorn or duckdb is not installed. ServiceDied: it ended while it started; its log says
    why. ConfigError, StorageError: the engine's URL or the data folder cannot be used.
    """
    if not all(find_spec(name) for name in _NEEDED):
        raise NoService
    data_dir = data_dir.expanduser().absolute()
    with _starting:
        running = _running.get((data_dir, engine))
        if running is None or not running.is_alive:
            running = _running[(data_dir, engine)] = Embedded(data_dir, engine)
        else:
            # It may have begun before an ingest that has just ended.
            running.refresh()
    return running


def refresh(data_dir: Path, engine: str = "duckdb://") -> str | None:
    """Have the service over a folder serve what was ingested until now; return the fingerprint of what it serves.

    It looks each second by itself: this is for a cell right after an ingest. None where no service of this process
    runs there.
    """
    running = _running.get((data_dir.expanduser().absolute(), engine))
    return running.refresh() if running is not None else None


@atexit.register
def _stop_all() -> None:
    # A thread of a form that misses its service would start it again while the interpreter ends, and the DuckDB of
    # such a thread aborts the process. One that starts just now is in the table afterwards.
    _ending.set()
    if _starting.acquire(timeout=_STOP_SECONDS):
        _starting.release()
    for running in list(_running.values()):
        running.stop()


def _after_fork() -> None:
    # The parent's table is this child's too, but the lock may be one that a thread of the parent held, and the child's
    # copy of a listening socket would take connections that nobody answers once the parent has ended.
    _starting.acquire(blocking=False)
    _starting.release()
    for running in _running.values():
        running.is_parents = True
        running.listener.close()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


class Embedded:
    """One service in a thread of this process; its log at ``log_path`` has JSON lines, warnings and errors only.

    Registry, results and lists are in a folder of the user's own: of the data folder it only reads the chain data, so
    that it neither deletes nor counts what a team's service stores there.
    """

    def __init__(
        self, data_dir: Path, engine: str, *, port: int = 0, api_key: Secret | None = None
    ) -> None:
        if _ending.is_set():
            raise ServiceDied("Python is ending, so the embedded service does not start again.")
        self._data_dir, self._engine = data_dir, engine
        # In a forked child: it is asked here, and neither run nor ended.
        self.is_parents = False
        self.api_key = api_key or Secret(secrets.token_urlsafe(32))
        self.log_path = service_folder(data_dir, notebook=True) / "embedded.log"
        # Imported here: this loads FastAPI, which only an embedded service needs.
        from nbext.service.server import listen

        try:
            self.listener = listen("127.0.0.1", port)
        except OSError:  # another process took the former port meanwhile
            self.listener = listen("127.0.0.1", 0)
        self._port = self.listener.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self._port}"
        try:
            self._server = self._make()
        except BaseException:  # Ctrl-C too: a second start must find the port free
            self.listener.close()
            raise
        self._thread = threading.Thread(target=self._serve, name="nbext-service", daemon=True)
        self._thread.start()
        until = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise ServiceDied(f"The embedded service did not start. Its log: {self.log_path}")
            time.sleep(0.005)  # uvicorn has no event to wait for

    def __repr__(self) -> str:
        return f"Embedded({self.base_url!r}, {'running' if self.is_alive else 'ended'})"

    @property
    def is_alive(self) -> bool:
        """Whether the service answers requests."""
        if self.is_parents:
            try:
                socket.create_connection(("127.0.0.1", self._port), _STOP_SECONDS).close()
            except OSError:
                return False
            return True
        return self._thread.is_alive() and not self._server.should_exit

    def refresh(self) -> str | None:
        """Serve what was ingested until now, and return its fingerprint; None in a forked child, and at the end."""
        if self.is_parents or not self.is_alive:
            return None
        self._generations.refresh()
        fingerprint: str = self._generations.newest.about.fingerprint
        return fingerprint

    def stop(self) -> None:
        """End the service; segments that run are queued again for its next start. A forked child only forgets it."""
        if not self.is_parents:
            self._server.should_exit = True
            self._thread.join(timeout=_STOP_SECONDS)
        _running.pop((self._data_dir, self._engine), None)

    def restart(self) -> Embedded:
        """Return a new service over the same folder, with the same key and, if it is free, the same port."""
        with _starting:
            self.stop()
            again = Embedded(self._data_dir, self._engine, port=self._port, api_key=self.api_key)
            _running[(self._data_dir, self._engine)] = again
        return again

    def _make(self) -> Server:
        # First of all by the caller's thread, in a cell: imported by one of the service's, pandas would take a notebook
        # for a terminal. See `WarmUp` in nbext/notebook/session.py.
        import_module("pandas")

        # Imported here: these load FastAPI and DuckDB, which only an embedded service needs.
        from nbext.engine.open import Newest
        from nbext.service.container import Container
        from nbext.service.limits import Limits
        from nbext.service.middleware import Log
        from nbext.service.server import Server, create_app

        data = Newest(self._data_dir, self._engine)
        dataset = data.open()
        try:
            folder = self.log_path.parent
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as error:
                raise StorageError(
                    f"{folder} cannot be made ({error.strerror}): the notebook's own service stores its results"
                    " there. Set XDG_STATE_HOME to a folder that you may write to."
                ) from None
            self._log = self.log_path.open("a", encoding="utf-8", buffering=1)
            container = Container(
                dataset,
                folder,
                newer=data.newer,
                owner=self.api_key,
                limits=Limits(query_seconds=data.query_seconds),
                policy={"audit_days": 0.0},
                log=Log(self._log, quiet=True),
            )
            self._generations = container.generations
        except BaseException:  # Ctrl-C too: an open DuckDB file blocks the next ingest
            dataset.close()
            raise
        return Server(create_app(container), grace=0.5)

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self.listener])
        finally:
            self.listener.close()
            self._log.close()
