"""Total deadlines: a watchdog shuts a call's socket when its time runs out.

A socket's own timeout counts from byte to byte, so a service that drips bytes holds a call for ever.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from contextvars import ContextVar

from nbext.settings import Secret


class Deadline:
    """The moment at which a call must have ended, retries and pauses included."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.began = time.monotonic()
        self.end = self.began + seconds

    def remaining(self) -> float:
        """Return the seconds that are left, never less than zero."""
        return max(0.0, self.end - time.monotonic())

    def spent(self) -> float:
        """Return the seconds since the call began."""
        return time.monotonic() - self.began


class Watch:
    """The sockets of one exchange; at the deadline, or when aborted, they are shut.

    ``key`` is what the exchange sends as x-api-key, or None. ``fresh`` asks for a new connection: one that
    lay idle may have been closed by the service, and then nobody knows whether the request ran.
    """

    def __init__(self, deadline: Deadline, key: Secret | None = None, *, fresh: bool = False) -> None:
        self.deadline, self.key, self.fresh = deadline, key, fresh
        self.fired = False
        self.sent = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()

    def hold(self, sock: socket.socket) -> None:
        """Remember a socket, by a descriptor of our own: TLS takes the first one away from its object."""
        with self._lock:
            if self.fired:
                _shut(sock)
            else:
                self._sockets.append(_duplicate(sock))

    def fire(self) -> None:
        """Shut the sockets: whoever reads from them or writes to them is woken at once."""
        with self._lock:
            self.fired = True
            for sock in self._sockets:
                _shut(sock)

    def release(self) -> None:
        """Let the sockets go; the exchange is over."""
        WATCHDOG.disarm(self)
        with self._lock:
            for sock in self._sockets:
                sock.close()
            self._sockets.clear()


def _duplicate(sock: socket.socket) -> socket.socket:
    return socket.socket(sock.family, sock.type, sock.proto, fileno=os.dup(sock.fileno()))


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
        """Fire the watch when its deadline comes, unless it is disarmed before."""
        with self._changed:
            self._live.add(watch)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="nbext-watchdog", daemon=True)
                self._thread.start()
            if watch.deadline.end < self._wakes_at:
                self._changed.notify()

    def disarm(self, watch: Watch) -> None:
        """Forget the watch."""
        with self._changed:
            self._live.discard(watch)

    def _run(self) -> None:
        while True:
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

# The watch of the exchange that this thread is in; the connection, deep below, reads it.
CURRENT: ContextVar[Watch | None] = ContextVar("nbext_watch", default=None)
