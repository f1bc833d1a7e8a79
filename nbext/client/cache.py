"""Metadata that was read before, for as long as the service's own headers allow (RFC 9111, by CacheControl).

CacheControl is the library that pip itself uses: small, maintained, and an adapter of requests. It keeps the
answers in this process's memory; nothing is written to disk, and the key is in none of it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from cachecontrol import CacheControlAdapter
from cachecontrol.cache import BaseCache

from nbext.client.connections import WatchedAdapter

MAX_ENTRIES = 10_000


class Latest(BaseCache):
    """The answers used last, up to a bound."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def get(self, key: str) -> bytes | None:
        """Return an answer, or None."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def set(self, key: str, value: bytes, expires: Any = None) -> None:
        """Keep an answer; the one that was not used for longest goes."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > MAX_ENTRIES:
                self._kept.popitem(last=False)

    def delete(self, key: str) -> None:
        """Forget an answer."""
        with self._lock:
            self._kept.pop(key, None)


class CachingAdapter(CacheControlAdapter, WatchedAdapter):
    """Our connections behind CacheControl."""

    def __init__(self) -> None:
        super().__init__(cache=Latest())
