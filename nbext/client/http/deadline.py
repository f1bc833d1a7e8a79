"""Calls that end on time: total deadlines, connections that a watchdog or Ctrl-C can shut, and cached answers.

A socket's own timeout counts from byte to byte, so a service that drips bytes holds a call for ever. Here each exchange
has a `Watch` over its sockets; at the deadline the `Watchdog` fires it, at Ctrl-C the call's `Scope` does.

The API key's header is added here, below requests: no session, prepared request, cache entry or redirect ever holds it.

Metadata is cached for as long as the service's own headers allow (RFC 9111) by CacheControl, the library that pip uses.
Its controller decides; its adapter is not used, which writes each answer to a temporary file.
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import requests
import urllib3
from cachecontrol.cache import DictCache
from cachecontrol.controller import CacheController
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from nbext.core.untrusted_text import MAX_SHOWN, quoted
from nbext.core.wire import KEY_HEADER
from nbext.errors import ConfigError, DeadlineExceeded
from nbext.settings import Secret

# Servers close idle connections after some seconds (uvicorn: 5); one older than this is not trusted again.
IDLE_SECONDS = 4.0
POOL_SIZE = 64
# How often a wait for a connection looks whether its watch has fired.
_TICK = 0.05
# A record has about a kilobyte: ten thousand of them are ten megabytes.
MAX_ENTRIES, MAX_BODY = 10_000, 1_000_000
# Files of certificates that requests, curl and OpenSSL know, in the order in which one counts.
VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


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
    connection, and ``proxy`` is the address of the proxy that the request goes through, without a password.
    """

    deadline: Deadline
    fresh: bool = False
    key: Secret | None = None
    trust: Callable[[], ssl.SSLContext] | None = None
    proxy: str | None = None
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
                copy = socket.socket(
                    sock.family, sock.type, sock.proto, fileno=os.dup(sock.fileno())
                )
                self._sockets.append(copy)

    def fire(self) -> None:
        """Shut the sockets: whoever reads from them or writes to them is woken at once."""
        with self._lock:
            self.fired = True
            for sock in self._sockets:
                _shut(sock)

    def release(self) -> None:
        """Close the descriptors; the exchange is over."""
        WATCHDOG.live.discard(self)
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
        self.reset()

    def reset(self) -> None:
        """Begin without any watch."""
        # Also after a fork: threads and the state of locks do not survive it.
        self._changed = threading.Condition()
        # Exchanges leave it without the lock; list() copies it in one step, whatever other threads do.
        self.live: set[Watch] = set()
        self._thread: threading.Thread | None = None
        self._wakes_at = float("inf")

    def arm(self, watch: Watch) -> None:
        """Fire the watch at its deadline, unless it is released before."""
        with self._changed:
            self.live.add(watch)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="nbext-watchdog", daemon=True
                )
                self._thread.start()
            # Waking the thread for each call would cost every call a switch of threads.
            if time.monotonic() + watch.deadline.remaining() < self._wakes_at:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                left = {watch: watch.deadline.remaining() for watch in list(self.live)}
                due = [watch for watch, seconds in left.items() if not seconds]
                self.live.difference_update(due)
                if not due:
                    seconds = min(left.values(), default=None)
                    self._wakes_at = float("inf") if seconds is None else time.monotonic() + seconds
                    self._changed.wait(seconds)
            # Fired without the lock: shutting a socket must not hold up who arms the next.
            for watch in due:
                watch.fire()


WATCHDOG = Watchdog()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=WATCHDOG.reset)

# The watch of the exchange that this thread is in: urllib3 opens connections without a way to pass one along.
CURRENT: ContextVar[Watch | None] = ContextVar("nbext_watch", default=None)


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
        self,
        method: str,
        url: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **options: Any,
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


def tls_context(ca_bundle: str | None) -> ssl.SSLContext:
    """Return a context that trusts ``ca_bundle``, else what the environment names, else the system's store.

    One for each connection: truststore's holds a lock through a handshake, and a handshake that hangs must not hold up
    another call.
    """
    named = [("ca_bundle", ca_bundle), *((name, os.environ.get(name)) for name in VARIABLES)]
    for source, path in named:
        if path:
            return _of_file(source, Path(path).expanduser())
    import truststore

    found = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    paths = ssl.get_default_verify_paths()
    has_store = paths.cafile or (paths.capath and any(Path(paths.capath).iterdir()))
    if not has_store and platform.system() not in ("Windows", "Darwin"):
        # A minimal container has no certificates.
        import certifi

        found.load_verify_locations(certifi.where())
    return found


def _of_file(source: str, path: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        made.load_verify_locations(**{"capath" if path.is_dir() else "cafile": str(path)})
    except ssl.SSLError:
        why = "has no certificate in PEM form (-----BEGIN CERTIFICATE-----)"
    except OSError as error:
        why = f"cannot be read ({error.strerror or error})"
    else:
        return made
    named = quoted(str(path), MAX_SHOWN)
    raise ConfigError(
        f"{source}: {named} {why}. Name a file of CA certificates, or leave {source} out."
    )


class _WatchedTLS(_Watched, HTTPSConnection):
    def connect(self) -> None:
        watch = CURRENT.get()
        if watch is not None and watch.trust is not None:
            self.ssl_context = watch.trust()
        super().connect()


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
        manager.pool_classes_by_scheme = (
            _socks_pools() if proxy.lower().startswith("socks") else POOLS
        )
        return manager

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Leave it to the watch's context, which requests would add its own certificates to."""


@cache
def _socks_pools() -> dict[str, Any]:
    """Return the pools whose connections go through a SOCKS proxy; reached only where PySocks is installed."""
    from urllib3.contrib import socks

    plain = type("_WatchedSocks", (_Watched, socks.SOCKSConnection), {})
    tls = type("_WatchedSocksTLS", (_WatchedTLS, socks.SOCKSHTTPSConnection), {})
    return {
        "http": type("_SocksPool", (socks.SOCKSHTTPConnectionPool,), {"ConnectionCls": plain}),
        "https": type("_SocksTLSPool", (socks.SOCKSHTTPSConnectionPool,), {"ConnectionCls": tls}),
    }


class _Latest(DictCache):
    """The answers used last, up to a bound, in memory."""

    def get(self, key: str) -> bytes | None:
        with self.lock:
            # The last in the order again: the first is the one that was not used for longest.
            if key in self.data:
                self.data[key] = self.data.pop(key)
            return self.data.get(key)

    def set(self, key: str, value: bytes, expires: Any = None) -> None:
        super().set(key, value)
        with self.lock:
            while len(self.data) > MAX_ENTRIES:
                self.data.pop(next(iter(self.data)))


class CachingAdapter(WatchedAdapter):
    """Our connections behind CacheControl's rules."""

    def __init__(self) -> None:
        super().__init__()
        self._controller = CacheController(_Latest(), cache_etags=True)

    def send(
        self, request: requests.PreparedRequest, *args: Any, **options: Any
    ) -> requests.Response:
        """Answer from the cache where that is allowed; else ask, and store what may be stored."""
        kept = self._controller.cached_request(request)
        if kept:
            return self.build_response(request, kept)
        request.headers.update(self._controller.conditional_headers(request))
        response = super().send(request, *args, **options)
        if response.status_code == 304:
            # Nothing follows the head; the connection is free once that is read.
            response.raw.read()
            return self.build_response(
                request, self._controller.update_cached_response(request, response.raw)
            )
        if response.status_code == 200:
            response.raw = _Keeping(
                response.raw, partial(self._controller.cache_response, request, response.raw)
            )
        return response


class _Keeping:
    """A body that is stored, as it came over the wire, once it was read to its end: a part must not pass for it."""

    def __init__(self, raw: Any, keep: Callable[[bytes], None]) -> None:
        self._raw, self._keep = raw, keep
        self._body = bytearray()

    def read(self, size: int | None = None, decode_content: bool = False) -> bytes:
        piece: bytes = self._raw.read(size, decode_content=decode_content)
        if len(self._body) <= MAX_BODY:
            self._body += piece
            if size and not piece and len(self._body) <= MAX_BODY:
                self._keep(bytes(self._body))
        return piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)
