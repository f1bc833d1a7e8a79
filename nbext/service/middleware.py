"""What every request passes, from the outside in: `Observe`, then `Security`. Pure ASGI, for every path, known or not.

`Observe` gives each request an id, a line in the log, a count and fixed headers, and every exception of a request ends
there as a problem: one that nobody expected as ``internal``, never as a traceback on the wire. `Security` checks Host,
Origin, key and rate before a byte of the body is read. The log is one JSON object a line. No key, e-mail address, path,
statement or body is ever handed to it: callers pass codes, ids and times.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from traceback import walk_tb
from typing import Any, TextIO
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nbext.core.operations import DOCS, HEALTH, KEY_HEADER, REQUEST_ID_HEADER
from nbext.errors import NbextError
from nbext.service.accounts.keys import Key, KeyRing, Rates
from nbext.service.http.problems import Problem, answer_problem

METRICS_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LEVELS = ("info", "warning", "error")
_FIXED = {
    # A browser that guesses types would run a search term out of a JSON body as HTML.
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
# Any other method is counted as "other": a caller could make up names without end, and each is kept in memory.
_METHODS = ("GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH")
# Neither reveals anything of the data or of who asks; a browser and a load balancer carry no key.
OPEN_PATHS = (HEALTH, DOCS)
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


class Observe:
    """Watches every request from its first byte to the last of its answer."""

    def __init__(self, app: ASGIApp, *, log: Log, metrics: Metrics) -> None:
        self._app, self._log, self._metrics = app, log, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, then log and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, began, status = secrets.token_hex(8), time.perf_counter(), None
        scope["nbext.request_id"] = request_id

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID_HEADER] = request_id
                headers.update(_FIXED)
                # Answers hold what only this key may see: no cache stores them unless a route says so.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            status = 499  # nobody is there to be answered; the number is nginx's
        except Exception as error:  # noqa: BLE001 - the service's outermost handler
            # Our own errors are answers; where one cuts an answer short, or another comes, the operator has to look.
            if status is not None or not isinstance(error, NbextError):
                kind, where = type(error).__name__, place_of(error)
                self._log.error("request failed", request_id=request_id, error=kind, where=where)
            if status is not None:
                # Headers and a part of the body are out: only an early end shows the caller that the rest is missing.
                raise _CutShort from None
            await answer_problem(Request(scope), error)(scope, receive, watched)
        finally:
            self._record(scope, request_id, status, time.perf_counter() - began)

    def _record(self, scope: Scope, request_id: str, status: int | None, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        key = scope.get("nbext.key")
        self._metrics.count(method, route, status or 0, seconds)
        self._log.info(
            "request", request_id=request_id, method=method, route=route, status=status,
            ms=round(seconds * 1000, 1), key=key.id if key else None,
        )


class _CutShort(Exception):
    """An answer could not be finished."""


class Security:
    """Passes on what names this host, is sent by no foreign page and carries a key; raises the problem of all else."""

    def __init__(self, app: ASGIApp, *, keys: KeyRing, rates: Rates, hosts: Iterable[str]) -> None:
        self._app, self._keys, self._rates = app, keys, rates
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request and pass it on."""
        if scope["type"] == "http":
            scope["nbext.key"] = self._admit(scope["path"], Headers(scope=scope))
        await self._app(scope, receive, send)

    def _admit(self, path: str, headers: Headers) -> Key | None:
        """Return the key of a request that may pass, None where the path needs none; else raise the problem."""
        host = headers.get("host", "")
        # A page that rebinds its name to this address still sends its own name as Host.
        if _name_of(host) not in self._hosts:
            raise Problem("foreign-host", "The Host header does not name this service.")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        same = origin is None or urlsplit(origin).netloc.lower() == host.lower()
        # A script of this page sends same-origin; a person who types the address sends none.
        if not same or site not in ("none", "same-origin"):
            raise Problem("foreign-origin", "A page of another origin may not send requests to this service.")
        if path in OPEN_PATHS:
            return None
        text = headers.get(KEY_HEADER)
        if not text:
            raise Problem("key-missing", f"Send your key in the {KEY_HEADER} header.")
        key = self._keys.find(text)
        if key is None:
            raise Problem("key-unknown", f"The service does not know the key in the {KEY_HEADER} header.")
        self._rates.take(key)
        return key


def _name_of(host: str) -> str:
    """Return the name in a Host header, without its port; empty where it cannot be read."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:  # a bracket without its other
        return ""


class Metrics:
    """Counters of one service; each has its own, so that several can live in one process."""

    def __init__(self) -> None:
        self._all = CollectorRegistry()
        ProcessCollector(registry=self._all)
        self._requests = Counter(
            "nbext_requests", "Requests answered", ["method", "route", "status"], registry=self._all
        )
        self._seconds = Histogram(
            "nbext_request_seconds", "Seconds to answer", ["route"], buckets=_SECONDS, registry=self._all
        )

    def watch(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        """Add a gauge that is read when the metrics are."""
        Gauge(name, help_text, registry=self._all).set_function(read)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Add an answer to the counts by method, route and status, and to the histogram of seconds."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all of them in Prometheus' text format."""
        return generate_latest(self._all)


class Log:
    """Writes events to a stream by structlog, with processors of its own: a host application has other settings.

    structlog loads a console renderer that takes a third of a second: it is imported when there is a first line.
    """

    def __init__(self, stream: TextIO, *, level: str = "info") -> None:
        self._stream, self._least = stream, _LEVELS.index(level)

    def info(self, event: str, **values: Any) -> None:
        """Write that something ordinary happened."""
        if self._least == 0:
            self._logger.info(event, **values)

    def warning(self, event: str, **values: Any) -> None:
        """Write that something went wrong that the service could handle."""
        if self._least <= 1:
            self._logger.warning(event, **values)

    def error(self, event: str, **values: Any) -> None:
        """Write that a request failed by a fault of the service."""
        self._logger.error(event, **values)

    @cached_property
    def _logger(self) -> Any:
        import structlog

        processors = (
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
            structlog.processors.JSONRenderer(sort_keys=True),
        )
        bound = structlog.make_filtering_bound_logger(0)
        return structlog.wrap_logger(structlog.WriteLogger(self._stream), processors=processors, wrapper_class=bound)


def place_of(error: BaseException) -> str:
    """Return where an error arose, as module and line: what an operator needs.

    The error's text is left out: it may hold a statement, a path or what a caller sent.
    """
    place = ""
    for frame, line in walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
        place = f"{module}:{frame.f_code.co_name}:{line}" if module.startswith("nbext") else place
    return place
