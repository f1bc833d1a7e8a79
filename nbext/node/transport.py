"""HTTP connections to nodes: trusted as the system trusts, and read one answer at a time where a `Turn` is taken.

Several requests are under way at once, and their answers may all come in the same moment. Each is read from the
connection and written to the disk before the next one is touched: what kill -9 finds received and not written is one
answer at most. The others are still the network's.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import truststore
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.util.wait import wait_for_read

# Seconds after which nobody waits for an answer that is still coming: it is not received yet.
_PATIENCE = 1.0
_turn = threading.local()


class Turn:
    """Whose answer is read. Threads share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have this thread take its turn when the first bytes of its answer are there, until the end of the block."""
        _turn.lock, _turn.has = self._lock, False
        try:
            yield
        finally:
            if _turn.has:
                self._lock.release()
            _turn.lock, _turn.has = None, False


class _InTurn:
    """A connection that waits for its thread's turn before it reads an answer."""

    sock: Any
    timeout: Any

    def getresponse(self) -> Any:
        lock: threading.Lock | None = getattr(_turn, "lock", None)
        if lock is not None and not _turn.has:
            wait_for_read(self.sock, timeout=self.timeout)
            _turn.has = lock.acquire(timeout=_PATIENCE)
        return super().getresponse()  # type: ignore[misc]  # that of the connection that this is mixed into


class _Http(_InTurn, HTTPConnection):
    pass


class _Https(_InTurn, HTTPSConnection):
    pass


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


class Adapter(HTTPAdapter):
    """Trusts what the system trusts, and so a company's own certificates."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pools, as requests does."""
        super().init_poolmanager(
            *args, ssl_context=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT), **options
        )
        self.poolmanager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
