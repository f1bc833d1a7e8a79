"""Connections that obey the watch of the exchange they carry, and that alone put the key on the wire.

The key is added here, below requests: no session, prepared request, cache entry or redirect ever holds it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from nbext.client.http.deadline import CURRENT, Watch
from nbext.core.operations import KEY_HEADER
from nbext.errors import DeadlineExceeded

# Servers close idle connections after some seconds (uvicorn: 5); one older than this is not trusted again.
IDLE_SECONDS = 4.0
POOL_SIZE = 64
# How often a wait for a connection looks whether its watch has fired.
_TICK = 0.05


def _opened(connect: Callable[[], Any], watch: Watch) -> Any:
    """Return a new socket, unless the watch fires before it is there.

    It is opened in a thread of its own: no time-out and no Ctrl-C ends the look-up of a host's name.
    """
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
        """Say whether the connection may be used again."""
        watch = CURRENT.get()
        if time.monotonic() - self._last_used > IDLE_SECONDS or (watch is not None and watch.fresh):
            return False
        return super().is_connected

    def request(  # type: ignore[override]  # urllib3 widens http.client's signature in its own way
        self, method: str, url: str, body: Any = None, headers: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        """Send a request, with the key where the watch says so."""
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
