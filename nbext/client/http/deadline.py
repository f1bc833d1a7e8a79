"""Calls that end on time: total deadlines, and connections that a watchdog or Ctrl-C can shut.

A socket's own timeout counts from byte to byte, so a service that drips bytes holds a call for ever. Here each exchange
has a `Watch` over its sockets; at the deadline the `Watchdog` fires it, at Ctrl-C the call's `Scope` does.

The API key is added here, below requests: no session, prepared request, cache entry or redirect ever holds it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextvars import ContextVar, Token
from typing import Any, Self

import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from nbext.core.operations import KEY_HEADER
from nbext.errors import DeadlineExceeded
from nbext.settings import Secret

# Servers close idle connections after some seconds (uvicorn: 5); one older than this is not trusted again.
IDLE_SECONDS = 4.0
POOL_SIZE = 64
# How often a wait for a connection looks whether its watch has fired.
_TICK = 0.05


class Deadline:
    """The moment at which a call must have ended, retries and pauses included."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # The monotonic clock: a laptop that corrects its time must not end a call, nor lengthen it.
        self.began = time.monotonic()
        self.end = self.began + seconds

    def remaining(self) -> float:
        """Return the seconds that are left, never less than zero."""
        return max(0.0, self.end - time.monotonic())

    def spent(self) -> float:
        """Return the seconds since the call began."""
        return time.monotonic() - self.began


class Watch:
    """The sockets of one exchange; at the deadline, or at Ctrl-C, they are shut.

    ``key`` is what the exchange sends as x-api-key, or None. ``fresh`` asks for a new connection: an idle one may have
    been closed by the service, and then nobody knows whether the request ran.
    """

    def __init__(self, deadline: Deadline, *, fresh: bool = False) -> None:
        self.deadline, self.fresh = deadline, fresh
        self.key: Secret | None = None
        self.fired = False
        self.sent = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()

    def hold(self, sock: socket.socket) -> None:
        """Remember a socket, so that `fire` can shut it."""
        with self._lock:
            if self.fired:
                _shut(sock)
            else:
                # By a descriptor of our own: TLS takes the first one away from its object.
                copy = socket.socket(sock.family, sock.type, sock.proto, fileno=os.dup(sock.fileno()))
                self._sockets.append(copy)

    def fire(self) -> None:
        """Shut the sockets: whoever reads from them or writes to them is woken at once."""
        with self._lock:
            self.fired = True
            for sock in self._sockets:
                _shut(sock)

    def release(self) -> None:
        """Close the descriptors; the exchange is over."""
        WATCHDOG.disarm(self)
        with self._lock:
            for sock in self._sockets:
                sock.close()
            self._sockets.clear()


def _shut(sock: socket.socket) -> None:
    # Already shut by the other side: nothing is left to wake.
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


class Watchdog:
    """One thread that fires watches at their deadlines; it sleeps while there are none."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        # Also after a fork: threads and the state of locks do not survive it.
        self._changed = threading.Condition()
        self._live: set[Watch] = set()
        self._thread: threading.Thread | None = None
        self._wakes_at = float("inf")

    def arm(self, watch: Watch) -> None:
        """Fire the watch at its deadline, unless it is disarmed before."""
        with self._changed:
            self._live.add(watch)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="nbext-watchdog", daemon=True)
                self._thread.start()
            # Waking the thread for each call would cost every call a switch of threads.
            if watch.deadline.end < self._wakes_at:
                self._changed.notify()

    def disarm(self, watch: Watch) -> None:
        """Forget the watch."""
        with self._changed:
            self._live.discard(watch)

    def _run(self) -> None:
        while True:
            # Fired without the lock: shutting a socket must not hold up who arms the next.
            for watch in self._due():
                watch.fire()

    def _due(self) -> list[Watch]:
        with self._changed:
            now = time.monotonic()
            due = [watch for watch in self._live if watch.deadline.end <= now]
            self._live.difference_update(due)
            if not due:
                self._wakes_at = min((watch.deadline.end for watch in self._live), default=float("inf"))
                self._changed.wait(None if self._wakes_at == float("inf") else max(0.0, self._wakes_at - now))
            return due


WATCHDOG = Watchdog()
os.register_at_fork(after_in_child=WATCHDOG._reset)

# The watch of the exchange that this thread is in: urllib3 opens connections without a way to pass one along.
CURRENT: ContextVar[Watch | None] = ContextVar("nbext_watch", default=None)


class Scope:
    """One call of the user: the exchanges under way for it on all threads, and the segment that runs for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: set[Watch] = set()
        self.ended = threading.Event()
        # The segment that the service is still working on; an interrupt has our own service stop it.
        self.segment_id: str | None = None

    def __enter__(self) -> Self:
        self._outer: Token[Scope | None] = SCOPE.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        SCOPE.reset(self._outer)
        self.end()

    def add(self, watch: Watch) -> None:
        """Add an exchange; after the end it is ended at once."""
        with self._lock:
            self._watches.add(watch)
        if self.ended.is_set():
            watch.fire()

    def remove(self, watch: Watch) -> None:
        """Remove an exchange that is over."""
        with self._lock:
            self._watches.discard(watch)

    def end(self) -> None:
        """End every exchange, and every pause between two attempts."""
        self.ended.set()
        with self._lock:
            for watch in self._watches:
                watch.fire()


# The scope of the user's call that this thread works for.
SCOPE: ContextVar[Scope | None] = ContextVar("nbext_scope", default=None)


def _opened(connect: Callable[[], Any], watch: Watch) -> Any:
    """Return a new socket, unless the watch fires before it is there."""
    opening: Future[Any] = Future()

    def run() -> None:
        try:
            sock, failure = connect(), None
        except (OSError, HTTPError) as error:
            sock, failure = None, error
        if not opening.set_running_or_notify_cancel():
            # Nobody waits any more.
            if sock is not None:
                sock.close()
        elif failure is not None:
            opening.set_exception(failure)
        else:
            opening.set_result(sock)

    # In a thread of its own: no time-out and no Ctrl-C ends the look-up of a host's name.
    threading.Thread(target=run, name="nbext-connect", daemon=True).start()
    try:
        while not wait([opening], _TICK).done and not watch.fired:
            pass
    finally:
        given_up = opening.cancel()
    if given_up:
        raise DeadlineExceeded("")
    return opening.result()


class _Watched(HTTPConnection):
    """What both kinds of connection add to urllib3's."""

    _last_used = 0.0

    def _new_conn(self) -> Any:
        watch = CURRENT.get()
        if watch is None:
            return super()._new_conn()
        sock = _opened(super()._new_conn, watch)
        watch.hold(sock)
        return sock

    @property
    def is_connected(self) -> bool:
        """Whether the connection may be used again."""
        watch = CURRENT.get()
        if time.monotonic() - self._last_used > IDLE_SECONDS or (watch is not None and watch.fresh):
            return False
        return super().is_connected

    def request(  # type: ignore[override]  # urllib3 widens http.client's signature in its own way
        self, method: str, url: str, body: Any = None, headers: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        """Send a request, with the key where the watch has one."""
        watch = CURRENT.get()
        if watch is None:
            return super().request(method, url, body=body, headers=headers, **options)
        if self.sock is not None:
            watch.hold(self.sock)
        if watch.key is not None:
            headers = {**(headers or {}), KEY_HEADER: watch.key.reveal()}
        try:
            super().request(method, url, body=body, headers=headers, **options)
        finally:
            # Once connected, bytes may have left, whatever happened next.
            watch.sent = watch.sent or self.sock is not None
            self._last_used = time.monotonic()


class _WatchedTLS(_Watched, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Watched


class _TLSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _WatchedTLS


POOLS = {"http": _Pool, "https": _TLSPool}


class WatchedAdapter(HTTPAdapter):
    """requests' adapter over the connections above."""

    def __init__(self) -> None:
        # urllib3's own retries know neither our deadline nor what may be sent twice.
        super().__init__(pool_maxsize=POOL_SIZE, max_retries=0)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pool, of our connections."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: Any, **options: Any) -> Any:
        """Make the pool of a proxy, of our connections."""
        manager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = POOLS
        return manager
