"""Calls that end on time: total deadlines, and watches that a timer or Ctrl-C fires.

A socket's own timeout counts from byte to byte, so a service that drips bytes holds a call for ever. Here each exchange
has a `Watch` over its sockets; at the deadline a timer fires it, at Ctrl-C the call's `Scope` does.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from nbext.settings import Secret


@dataclass(frozen=True)
class Deadline:
    """The seconds in which a call must have ended, retries and pauses included."""

    seconds: float
    # The monotonic clock: a laptop that corrects its time must not end a call, nor lengthen it.
    began: float = field(default_factory=time.monotonic)

    def remaining(self) -> float:
        """Return the seconds that are left, never less than zero."""
        return max(0.0, self.began + self.seconds - time.monotonic())


@dataclass(eq=False, repr=False)
class Watch:
    """The sockets of one exchange; at the deadline, or at Ctrl-C, they are shut.

    ``key`` is what the exchange sends as x-api-key, or None. ``fresh`` asks for a new connection: an idle one may have
    been closed by the service, and then nobody knows whether the request ran. ``trust`` makes the context of a TLS
    connection, and ``proxy`` is the address of the proxy that the request goes through, without a password. ``turn`` is
    called with a connection that has sent its request, before the answer is read from it.
    """

    deadline: Deadline
    fresh: bool = False
    key: Secret | None = None
    trust: Callable[[], ssl.SSLContext] | None = None
    proxy: str | None = None
    turn: Callable[[Any], None] | None = None
    fired: bool = False
    sent: bool = False
    _sockets: list[socket.socket] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hold(self, sock: socket.socket) -> None:
        """Remember a socket, so that `fire` can shut it."""
        with self._lock:
            if self.fired:
                _shut(sock)
            else:
                # By a descriptor of our own: TLS takes the first one away from its object.
                self._sockets.append(socket.socket(fileno=os.dup(sock.fileno())))

    def fire(self) -> None:
        """Shut the sockets: whoever reads from them or writes to them is woken at once."""
        with self._lock:
            self.fired = True
            for sock in self._sockets:
                _shut(sock)

    def release(self) -> None:
        """Close the descriptors; the exchange is over."""
        with self._lock:
            for sock in self._sockets:
                sock.close()
            self._sockets.clear()


def _shut(sock: socket.socket) -> None:
    # Already shut by the other side: nothing is left to wake.
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


# The watch of the exchange that this thread is in: urllib3 opens connections without a way to pass one along.
CURRENT: ContextVar[Watch] = ContextVar("nbext_watch")


@dataclass(eq=False)
class Scope:
    """One call of the user: the exchanges under way for it on all threads, and the segment that runs for it."""

    watches: set[Watch] = field(default_factory=set)
    ended: threading.Event = field(default_factory=threading.Event)
    # The segment that the service is still working on; an interrupt has our own service stop it.
    segment_id: str | None = None
    # Whether a stranger's answer was read in it: an error may then be about that.
    remembered: bool = False

    def end(self) -> None:
        """End every exchange, and every pause between two attempts."""
        self.ended.set()
        # A copy: exchanges on other threads leave the set meanwhile.
        for watch in list(self.watches):
            watch.fire()


# The scope of the user's call that this thread works for.
SCOPE: ContextVar[Scope | None] = ContextVar("nbext_scope", default=None)


@contextlib.contextmanager
def watched(watch: Watch, scope: Scope) -> Iterator[None]:
    """Have what this thread opens and reads belong to the watch, until the end of the block."""
    scope.watches.add(watch)
    # In this order: an end that came before the watch was added fires it here, a later one fires it itself.
    if scope.ended.is_set():
        watch.fire()
    timer = threading.Timer(watch.deadline.remaining(), watch.fire)
    timer.daemon = True
    timer.start()
    current = CURRENT.set(watch)
    try:
        yield
    finally:
        CURRENT.reset(current)
        timer.cancel()
        watch.release()
        scope.watches.discard(watch)
