"""Metadata that was read before, for as long as the service's own headers allow (RFC 9111, by CacheControl).

CacheControl is the library that pip itself uses: small and maintained. Its controller decides; its adapter
is not used, which writes each answer to a temporary file. Answers stay in memory here, and none has the key.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import requests
from cachecontrol.cache import BaseCache
from cachecontrol.controller import CacheController

from nbext.client.http.deadline import WatchedAdapter

# A record has about a kilobyte: ten thousand of them are ten megabytes.
MAX_ENTRIES, MAX_BODY = 10_000, 1_000_000


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
        """Store an answer; beyond the bound, the one that was not used for longest is dropped."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > MAX_ENTRIES:
                self._kept.popitem(last=False)

    def delete(self, key: str) -> None:
        """Forget an answer."""
        with self._lock:
            self._kept.pop(key, None)


class CachingAdapter(WatchedAdapter):
    """Our connections behind CacheControl's rules."""

    def __init__(self) -> None:
        super().__init__()
        self._controller = CacheController(Latest(), cache_etags=True)

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """Answer from the cache where that is allowed; else ask, and store what may be stored."""
        kept = self._controller.cached_request(request)
        if kept:
            return self.build_response(request, kept)
        request.headers.update(self._controller.conditional_headers(request))
        response = super().send(request, *args, **options)
        if response.status_code == 304:
            # Nothing follows the head; the connection is free once that is read.
            response.raw.read()
            return self.build_response(request, self._controller.update_cached_response(request, response.raw))
        if response.status_code == 200:
            response.raw = _Keeping(response.raw, partial(self._controller.cache_response, request, response.raw))
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
