"""Connections that a watch can shut, the certificates that they trust, the key's header; and the cache.

The API key's header is added here, below requests: no session, prepared request, cache entry or redirect ever holds it.

Metadata is cached for as long as the service's own headers allow (RFC 9111) by CacheControl, the library that pip uses.
Its controller decides; its adapter is not used, which writes each answer to a temporary file.
"""

from __future__ import annotations

import os
import platform
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from cachecontrol.cache import DictCache
from cachecontrol.controller import CacheController
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from nbext import __version__
from nbext.core.untrusted_text import MAX_SHOWN, quoted, visible
from nbext.core.wire import KEY_HEADER
from nbext.errors import ConfigError, DeadlineExceeded
from nbext.http.base_url import is_loopback
from nbext.http.deadline import CURRENT, Watch

# Servers close idle connections after some seconds (uvicorn: 5); one older than this is not trusted again.
IDLE_SECONDS = 4.0
POOL_SIZE = 64
# How often a wait for a connection looks whether its watch has fired.
_TICK = 0.05
# A record has about a kilobyte: ten thousand of them are ten megabytes.
MAX_ENTRIES, MAX_BODY = 10_000, 1_000_000
# Files of certificates that requests, curl and OpenSSL know, in the order in which one counts.
VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


def _opened(connect: Callable[[], Any], watch: Watch) -> Any:
    """Return a new socket, unless the watch fires before it is there."""
    opening: Future[Any] = Future()

    def run() -> None:
        try:
            opening.set_result(connect())
        except (OSError, HTTPError) as error:
            opening.set_exception(error)

    # In a thread of its own: no time-out and no Ctrl-C ends the look-up of a host's name.
    threading.Thread(target=run, name="nbext-connect", daemon=True).start()
    try:
        while not wait([opening], _TICK).done and not watch.fired:
            pass
    finally:
        given_up = not opening.done()
        if given_up:
            # What opens late is closed.
            opening.add_done_callback(lambda late: late.exception() or late.result().close())
    if given_up:
        raise DeadlineExceeded("")
    return opening.result()


class _Watched(HTTPConnection):
    """What both kinds of connection add to urllib3's."""

    _last_used = 0.0
    # What Python's own library prints where somebody raises this has the headers, and the key.
    debuglevel = 0

    def _new_conn(self) -> Any:
        watch = CURRENT.get()
        sock = _opened(super()._new_conn, watch)
        watch.hold(sock)
        return sock

    @property
    def is_connected(self) -> bool:
        """Whether the connection may be used again."""
        is_old = CURRENT.get().fresh or time.monotonic() - self._last_used > IDLE_SECONDS
        return not is_old and super().is_connected

    def request(  # type: ignore[override]  # urllib3 widens http.client's signature in its own way
        self, method: str, url: str, *, headers: Any = None, **options: Any
    ) -> None:
        """Send a request, with the key where the watch has one."""
        watch = CURRENT.get()
        if self.sock is not None:
            watch.hold(self.sock)
        if watch.key is not None:
            headers = {**(headers or {}), KEY_HEADER: watch.key.reveal()}
        try:
            super().request(method, url, headers=headers, **options)
        finally:
            # Once connected, bytes may have left, whatever happened next.
            watch.sent = watch.sent or self.sock is not None
            self._last_used = time.monotonic()

    def getresponse(self) -> Any:
        """Return the head of the answer, once it is the watch's turn."""
        if turn := CURRENT.get().turn:
            turn(self)
        return super().getresponse()


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
        if trust := CURRENT.get().trust:
            self.ssl_context = trust()
        super().connect()


def _watch(manager: Any) -> Any:
    """Have a manager of urllib3's, also one for SOCKS, open connections that a watch can shut; return it."""
    pools = manager.pool_classes_by_scheme
    manager.pool_classes_by_scheme = {scheme: _pool(pool) for scheme, pool in pools.items()}
    return manager


@cache
def _pool(given: Any) -> Any:
    of = given.ConnectionCls
    # The manager of a proxy is the same for each request.
    if issubclass(of, _Watched):
        return given
    own = _WatchedTLS if issubclass(of, HTTPSConnection) else _Watched
    return type("_Pool", (given,), {"ConnectionCls": type(own.__name__, (own, of), {})})


class WatchedAdapter(HTTPAdapter):
    """requests' adapter over the connections above."""

    def __init__(self) -> None:
        # urllib3's own retries know neither our deadline nor what may be sent twice.
        super().__init__(pool_maxsize=POOL_SIZE, max_retries=0)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pool, of our connections."""
        super().init_poolmanager(*args, **options)
        _watch(self.poolmanager)

    def proxy_manager_for(self, proxy: Any, **options: Any) -> Any:
        """Make the pool of a proxy, of our connections."""
        return _watch(super().proxy_manager_for(proxy, **options))

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Leave it to the watch's context, which requests would add its own certificates to."""


def session(accept: str, encoding: str) -> requests.Session:
    """Return a session over the connections above, which reads nothing from the environment: no .netrc."""
    made = requests.Session()
    made.trust_env = False
    for scheme in ("http://", "https://"):
        made.mount(scheme, WatchedAdapter())
    made.headers = requests.structures.CaseInsensitiveDict(
        {"User-Agent": f"nbext/{__version__}", "Accept": accept, "Accept-Encoding": encoding}
    )
    return made


def send(
    session: requests.Session,
    request: requests.Request,
    watch: Watch,
    *,
    timeout: tuple[float, float],
) -> requests.Response:
    """Send a request, through the proxy that the environment names, and follow no redirect; the body is to be read."""
    url = request.url
    # A proxy would be asked for its own loopback, not for ours.
    local = is_loopback(urlsplit(url).hostname or "")
    proxies = {} if local else requests.utils.get_environ_proxies(url)
    watch.proxy = _without_password(requests.utils.select_proxy(url, proxies))
    prepared = session.prepare_request(request)
    return session.get_adapter(url).send(prepared, stream=True, timeout=timeout, proxies=proxies)


def _without_password(proxy: str | None) -> str | None:
    if not proxy:
        return None
    scheme, _, rest = proxy.rpartition("://")
    return f"{scheme or 'http'}://{visible(rest.rpartition('@')[2].rstrip('/'), 100)}"


class _Latest(DictCache):
    """The answers stored last, up to a bound, in memory."""

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
