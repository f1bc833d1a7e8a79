"""What every request passes: `Observe`. Pure ASGI, for every path, known or not.

`Observe` gives each request an id, a line in the log, a count and fixed headers, and every exception of a request ends
there as a problem: one that nobody expected as ``internal``, never as a traceback on the wire. It checks Host, Origin,
key and rate before a byte of the body is read. The log is one JSON object a line. No key, e-mail address, path,
statement or body is ever handed to it: callers pass codes, ids and times.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import multiprocessing
import re
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partialmethod
from http import HTTPMethod
from traceback import walk_tb
from typing import Any, TextIO

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nbext.core.chains import chain_of
from nbext.core.times import iso_ms
from nbext.core.wire import (
    DATA_HEADER,
    DOCS,
    HEALTH,
    IDEMPOTENCY_HEADER,
    KEY_HEADER,
    READY,
    REQUEST_ID_HEADER,
)
from nbext.engine.dataset import DataAbout
from nbext.errors import NbextError, StorageError
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key, KeyRing, Rates
from nbext.service.problems import Problem, answer_problem, stopping

METRICS_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# As bytes: made for each answer, they are a fiftieth of a small request's work.
_FIXED = (
    # A browser that guesses types would run a search term out of a JSON body as HTML.
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
)
# Any other method is counted as "other": a caller could make up names without end, and each is kept in memory.
_METHODS = frozenset(HTTPMethod)
# Each key has four counters, which the service holds in memory.
MOST_KEYS = 1_000
# None reveals anything of the data or of who asks; a browser and a load balancer carry no key.
OPEN_PATHS = (HEALTH, READY, DOCS)
# A URL's parser would also take a user in front, as in evil@127.0.0.1.
_HOST = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9._-]{1,253}))(?::\d{1,5})?"
)
# A request's id is a name of the process and a number: random bytes for each would be a call to the system.
_PROCESS, _NUMBERS = secrets.token_hex(4), itertools.count()
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass
class Observe:
    """Watches every request from its first byte to the last of its answer; only one that is admitted goes on.

    ``hosts`` are in lower case.
    """

    app: ASGIApp
    keys: KeyRing
    rates: Rates
    wait_for: Callable[..., Any]
    events: Log
    metrics: Metrics
    fingerprint: Callable[[], str]
    hosts: Collection[str]
    root_path: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, then log and count it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, began = f"{_PROCESS}{next(_NUMBERS):08x}", time.perf_counter()
        status, sent = None, 0
        scope["nbext.request_id"] = request_id
        # What the request takes of this process's shares, until its answer is sent.
        held = scope["nbext.held"] = contextlib.ExitStack()
        # Not by the server, which would put it in front of every path: some proxies take it off, others do not.
        scope["root_path"] = self.root_path

        async def watched(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.raw.extend(_FIXED)
                headers.append(REQUEST_ID_HEADER, request_id)
                if scope.get("nbext.key"):
                    headers.append(DATA_HEADER, self.fingerprint())
                # Answers hold what only this key may see: no cache stores them unless a route says so.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)
            sent += len(message.get("body", b""))

        try:
            scope["nbext.key"] = await self.admit(scope)
            await self.app(scope, receive, watched)
        except ClientDisconnect:
            status = 499  # nobody is there to be answered; the number is nginx's
        except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 - the service's outermost handler
            # uvicorn cancels what is not answered when the service has to end.
            error = raised if isinstance(raised, Exception) else stopping()
            # Our own errors are answers; where one cuts an answer short, or another comes, the operator has to look.
            if (
                status is not None
                or not isinstance(error, NbextError)
                or isinstance(error, StorageError)
            ):
                self.events.error("request failed", error, request_id=request_id)
            if status is not None:
                # Headers and a part of the body are out: only an early end shows the caller that the rest is missing.
                # Not the error itself: a notebook shows what uvicorn logs, with the text of what is raised here.
                raise _CutShort from None
            await answer_problem(Request(scope), error)(scope, receive, watched)
        finally:
            held.close()
            seconds, key = time.perf_counter() - began, scope.get("nbext.key")
            route = getattr(scope.get("route"), "path", "unknown")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self.metrics.count(
                method, route, status or 0, key, seconds, sent, scope.get("nbext.rows", 0)
            )
            self.events.info(
                "request",
                request_id=request_id,
                method=method,
                route=route,
                status=status,
                ms=round(seconds * 1000, 1),
                key=key.id if key else None,
            )

    async def admit(self, scope: Scope) -> Key | None:
        """Return the key of a request that may pass, None where the path needs none; else raise the problem."""
        headers = Headers(scope=scope)
        # Which of the two says where the next request begins differs between servers: a proxy may take a part of this
        # body for the request of another caller (request smuggling).
        if "content-length" in headers and "transfer-encoding" in headers:
            raise Problem(
                "bad-header",
                "The request has both Content-Length and Transfer-Encoding. Send one of them.",
                headers={"Connection": "close"},
            )
        host = headers.get("host", "")
        # A page that rebinds its name to this address still sends its own name as Host.
        if _name_of(host) not in self.hosts:
            raise Problem("foreign-host", "The Host header does not name this service.")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        # A browser's has no path; what is not an origin at all is foreign, too.
        same = origin is None or origin.lower().partition("://")[2] == host.lower()
        # A script of this page sends same-origin; a person who types the address sends none.
        if not same or site not in ("none", "same-origin"):
            raise Problem(
                "foreign-origin", "A page of another origin may not send requests to this service."
            )
        if scope["path"].removeprefix(scope["root_path"]) in OPEN_PATHS:
            return None
        # A proxy in front may have read another one of them.
        for name in (KEY_HEADER, IDEMPOTENCY_HEADER):
            if (count := len(headers.getlist(name))) > 1:
                raise Problem("bad-header", f"The request has {count} {name} headers. Send one.")
        sent = headers.get(KEY_HEADER)
        if not sent:
            raise Problem("key-missing", f"Send your key in the {KEY_HEADER} header.")
        # The event loop waits for no disk: a key that was not found lately is looked up in a thread.
        key = self.keys.known(sent) or await run_in_threadpool(self.keys.find, sent)
        if key is None:
            raise Problem(
                "key-unknown", f"The service does not know the key in the {KEY_HEADER} header."
            )
        if not self.rates.spend(key):
            await self.wait_for(self.rates.take, key)
        return key


class _CutShort(Exception):
    """An answer could not be finished."""


def _name_of(host: str) -> str:
    """Return the name in a Host header, without its port; empty where it is not one name and at most a port.

    >>> _name_of("[::1]:8080"), _name_of("Segments.Example:80"), _name_of("evil@127.0.0.1"), _name_of("a, 127.0.0.1")
    ('::1', 'segments.example', '', '')
    """
    found = _HOST.fullmatch(host)
    return (found["v6"] or found["name"]).lower() if found else ""


@dataclass
class _Seen(CollectorRegistry):
    """Metrics as a caller sees them: without those of some keys, and, of one of several on a port, of which process.

    Each scrape is answered by whichever process accepts it: without the label their counters would be taken for one
    that goes up and down.
    """

    every: Iterable[Metric]
    hidden: Mapping[str, bool]

    def collect(self) -> Iterator[Metric]:
        """Yield them, which is all that is asked of this registry."""
        of_several = multiprocessing.parent_process() is not None
        label = {"process": multiprocessing.current_process().name} if of_several else {}
        for metric in self.every:
            metric.samples = [
                each._replace(labels={**each.labels, **label})
                for each in metric.samples
                if not self.hidden.get(each.labels.get("key", ""))
            ]
            yield metric


class Metrics:
    """Counters of one service; each has its own, so that several can live in one process."""

    def __init__(self, watched: Iterable[tuple[str, str, Callable[[], float]]]) -> None:
        self._all = every = CollectorRegistry()
        # Gauges that are read when the metrics are.
        for name, text, read in watched:
            Gauge(f"nbext_{name}", text, registry=every).set_function(read)
        self._requests = Counter(
            "nbext_requests", "Requests answered", ["method", "route", "status"], registry=every
        )
        self._seconds = Histogram(
            "nbext_request_seconds",
            "Seconds to answer",
            ["route"],
            buckets=_SECONDS,
            registry=every,
        )
        self.refused = Counter(
            "nbext_connections_refused", "Connections past the limit", registry=every
        )
        ProcessCollector(registry=every)
        self._of_keys = [
            Counter(f"nbext_key_{name}", text, ["key"], registry=every)
            for name, text in (
                ("requests", "Requests by key"),
                ("seconds", "Seconds that a key's requests took"),
                ("sent_bytes", "Bytes of the answers to a key"),
                ("rows", "Rows exported to a key"),
            )
        ]
        # Whether it is private, of each that has its own.
        self._keys: dict[str, bool] = {}

    def count(self, method: str, route: str, status: int, key: Key | None, *amounts: float) -> None:
        """Add an answer to the counts: its seconds, bytes and rows; past MOST_KEYS keys, to those of ``other``."""
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(route).observe(amounts[0])
        if key is None:
            return
        if len(self._keys) < MOST_KEYS:
            self._keys[key.id] = key.private
        label = key.id if key.id in self._keys else "other"
        for counter, amount in zip(self._of_keys, (1, *amounts), strict=True):
            counter.labels(label).inc(amount)

    def text(self, key: Key, data: DataAbout) -> bytes:
        """Return those that a key may see in Prometheus' text format, with the data that is served.

        Private keys' own are for the scope admin.
        """
        hidden = {} if "admin" in key.scopes else self._keys
        return generate_latest(_Seen([*self._all.collect(), *_of_data(data)], hidden))


def _of_data(data: DataAbout) -> list[Metric]:
    served, block, time = (
        GaugeMetricFamily(f"nbext_data{name}", text, labels=labels)
        for name, text, labels in (
            ("", "1 for the data that is served", ["name", "fingerprint"]),
            ("_last_block", "The data's last block", ["chain"]),
            ("_last_timestamp_seconds", "The time of the data's last block", ["chain"]),
        )
    )
    served.add_metric([data.name, data.fingerprint], 1)
    for extent in data.chains:
        chain = [chain_of(extent.chain_id).name]
        block.add_metric(chain, extent.last_block)
        if extent.last_timestamp is not None:
            time.add_metric(chain, extent.last_timestamp)
    return [served, block, time]


class Log(logging.Handler):
    """Writes events to a stream, a JSON object a line; ``quiet``: warnings and errors only.

    As a handler it writes what libraries log, by the place of their code: their texts may hold what a caller sent.
    """

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        super().__init__(logging.WARNING)
        self._stream, self._quiet = stream, quiet
        # Each line whole, of however many threads.
        self._writing = threading.Lock()
        # What `once` has reported, until it is done again.
        self._failing: set[tuple[Any, ...]] = set()
        # When the last line of `counted` was written, and how many it has had since.
        self._counted: dict[tuple[Any, ...], tuple[float, int]] = {}

    def of_the_process(self) -> None:
        """Write what libraries log and warn of, and threads leave uncaught, as lines of this log, too, from now on."""
        logging.captureWarnings(True)
        logging.getLogger().handlers[:] = [self]
        threading.excepthook = lambda failed: self.error("thread ended", failed.exc_value)

    @contextlib.contextmanager
    def once(
        self, event: str, *kinds: type[Exception], level: str = "warning", **values: Any
    ) -> Iterator[None]:
        """Go on after errors of these kinds; write of them the first, until the same is done without one."""
        work = (event, *values.values())
        try:
            yield
            self._failing.discard(work)
        except kinds as error:
            if work not in self._failing:
                self._write(level, event, error, **values)
            self._failing.add(work)

    def counted(self, event: str, cause: BaseException | None = None, **values: Any) -> None:
        """Write a warning that anyone may cause at will: once a second, with how many ``more`` there were before."""
        work, now = (event, *values.values()), time.monotonic()
        at, more = self._counted.get(work, (-1.0, 0))
        if now - at < 1:
            self._counted[work] = (at, more + 1)
            return
        self._counted[work] = (now, 0)
        self.warning(event, cause, **values, more=more)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line of what a library logs, or count it."""
        cause = record.exc_info[1] if record.exc_info else None
        where = f"{record.module}:{record.lineno}"
        self.counted("library", cause, logger=record.name, place=where)

    def _write(
        self, level: str, event: str, cause: BaseException | None = None, **values: Any
    ) -> None:
        if self._quiet and level == "info":
            return
        line = {"at": iso_ms(time.time()), "event": event, "level": level, **values}
        if cause:
            line |= _described(cause)
        # A log on a full disk, or to a reader that is gone, is no reason to answer nobody.
        with self._writing, contextlib.suppress(OSError):
            self._stream.write(json.dumps(line, sort_keys=True, default=repr) + "\n")
            self._stream.flush()

    # Something ordinary happened.
    info = partialmethod(_write, "info")
    # Something went wrong that the service could handle.
    warning = partialmethod(_write, "warning")
    # A request failed by a fault of the service.
    error = partialmethod(_write, "error")


def _described(error: BaseException) -> dict[str, str]:
    """Return an error as a line of the log has it: its type, and as module and line where it arose.

    Its text is left out, as it may hold a statement or what a caller sent. That of a file or a registry that cannot be
    used is the ``cause``: it names files and hosts, and is told to nobody else.
    """
    place = ""
    for frame, line in walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "")
        # All statements pass the registry's module: what tells is whose statement it was.
        if module.startswith("nbext") and module != Database.__module__:
            place = f"{module}:{frame.f_code.co_name}:{line}"
    cause = {"cause": str(error)} if isinstance(error, StorageError | OSError) else {}
    return {"error": type(error).__name__, "where": place, **cause}
