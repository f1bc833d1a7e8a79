"""The outermost layer: a request id for each request, a line in the log, a count, and the last catch.

An error that nobody expected ends here as the problem ``internal``: never a traceback on the wire.
"""

from __future__ import annotations

import secrets
import time

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nbext.core.operations import REQUEST_ID_HEADER
from nbext.service.http.problems import answer_problem
from nbext.service.middleware.logs import Log, place_of
from nbext.service.middleware.metrics import Metrics
from nbext.service.segments.long_poll import Gone

_METHODS = ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH")


class Observe:
    """Watches every request from its first byte to the last of its answer."""

    def __init__(self, app: ASGIApp, *, log: Log, metrics: Metrics) -> None:
        self._app, self._log, self._metrics = app, log, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand one request on, and tell how it went."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        watched = _Watched(scope, send)
        try:
            await self._app(scope, receive, watched.send)
        except (ClientDisconnect, Gone):
            watched.status = 499  # nobody is there to be answered; the number is nginx's
        except Exception as error:  # noqa: BLE001 - the service's outermost handler
            await self._fail(watched, receive, error)
        finally:
            self._tell(watched)

    async def _fail(self, watched: _Watched, receive: Receive, error: Exception) -> None:
        self._log.error(
            "request failed", request_id=watched.id, error=type(error).__name__, where=place_of(error)
        )
        if watched.status is None:
            await answer_problem(Request(watched.scope), error)(watched.scope, receive, watched.send)
        else:
            # Headers and a part of the body are out: only an early end tells the caller that the rest is missing.
            raise _CutShort from None

    def _tell(self, watched: _Watched) -> None:
        scope, seconds = watched.scope, time.perf_counter() - watched.began
        route = getattr(scope.get("route"), "path", "unknown")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        key = scope.get("nbext.key")
        self._metrics.count(method, route, watched.status or 0, seconds)
        self._log.info(
            "request", request_id=watched.id, method=method, route=route, status=watched.status,
            ms=round(seconds * 1000, 1), key=key.id if key else None,
        )


class _CutShort(Exception):
    """An answer could not be finished."""


class _Watched:
    """One request on its way: its id, when it began, and the status of its answer."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope, self._send = scope, send
        self.id = secrets.token_hex(8)
        self.began = time.perf_counter()
        self.status: int | None = None
        scope["nbext.request_id"] = self.id

    async def send(self, message: Message) -> None:
        """Pass a message on; the head of the answer gets the request id."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID_HEADER] = self.id
        await self._send(message)
