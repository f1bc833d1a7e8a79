"""The application, and uvicorn as it needs it: it closes connections that are too slow, and ends in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import h11
import uvicorn
from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

from nbext.core.strict_json import to_json
from nbext.core.wire import PROBLEM_TYPE
from nbext.errors import ValidationError
from nbext.service.container import Container
from nbext.service.middleware import LOOPBACK_HOSTS, Observe
from nbext.service.problems import Problem
from nbext.service.routes import lookups, operator, segments

ROUTES = [
    route
    for router in (lookups.router, segments.router, operator.router)
    for route in router.routes
    if isinstance(route, APIRoute)
]
# How long a caller that reads nothing may hold an answer up (seconds).
STALLED_SECONDS = 60.0
# What the system may hold of an answer that it cannot send yet (bytes).
UNSENT_BYTES = 256 << 10
# Descriptors that connections leave to files: results, lists, the registry's, DuckDB's.
_FILES = 160
_MOST_CONNECTIONS = 4096
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
# How long running segments may go on when the service is asked to end (seconds).
GRACE_SECONDS = 5.0
# And how long what it has open may take to close: with the grace, and what answers under way take, less than 20.
_CLOSE_SECONDS = 8.0


def create_app(
    container: Container,
    *,
    hosts: Iterable[str] = LOOPBACK_HOSTS,
    root_path: str = "",
    on_ready: Callable[[], None] = lambda: None,
) -> FastAPI:
    """Return the application: routes, and around them what observes and admits requests.

    ``hosts`` are the names that the Host header may have, without ports. ``root_path`` is the path below which a proxy
    serves this, as ``/nbext``: links begin with it, and requests may. The container is opened and closed with it,
    and ``on_ready`` called when it is open, in the event loop.
    """
    app = FastAPI(
        # Not by their routers, each of which looks at a request before its routes do: a tenth of a small one's work.
        routes=[*ROUTES],
        lifespan=_lifespan,
        # Nor a page of FastAPI's own.
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.container, app.state.on_ready = container, on_ready
    # Only what FastAPI raises itself and would answer in its own form; all other exceptions go on to Observe.
    for kind in (HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _on_error)
    app.add_middleware(
        Observe,
        keys=container.keys,
        rates=container.rates,
        wait_for=container.wait_for,
        events=container.log,
        metrics=container.metrics,
        fingerprint=lambda: container.generations.newest.about.fingerprint,
        hosts={host.lower() for host in hosts if host},
        root_path=root_path,
    )
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    container: Container = app.state.container
    # Each event loop has its own limiter, so that it can be narrowed only here. See `Container.wait_for`.
    to_thread.current_default_thread_limiter().total_tokens = container.limits.reading
    # In a thread: a folder with many results takes a while to look through, and signals have to be heard meanwhile.
    await run_in_threadpool(container.open)
    app.state.on_ready()
    yield
    # What hangs, as data that is just being opened or a registry without an answer, is left to end with the process.
    closing = threading.Thread(target=container.close, name="nbext-close", daemon=True)
    closing.start()
    await run_in_threadpool(closing.join, _CLOSE_SECONDS)


async def _on_error(request: Request, error: Exception) -> NoReturn:
    if isinstance(error, RequestValidationError):
        # FastAPI's own answer repeats the caller's input, and fails with 500 where that is NaN.
        raise ValidationError(
            [
                {
                    "pointer": "/".join(map(str, each["loc"][1:])),
                    "code": each["type"],
                    "detail": each["msg"],
                }
                for each in error.errors()
            ]
        )
    # The router itself raises these two: no such path, or not with that method.
    if found := request.scope.get("route"):
        # Each method of a path is a route of its own, and the router names only one of them.
        methods = {
            each for route in ROUTES if route.path == found.path for each in route.methods or ()
        }
        allow = ", ".join(sorted(methods))
        detail = f"This path does not support {request.method}. Use {allow}."
        raise Problem("method", detail, headers={"Allow": allow})
    raise Problem("not-found", "There is nothing at that path.")


def most_connections() -> int:
    """Return how many connections leave enough descriptors for files."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return _MOST_CONNECTIONS
    limits: Any = resource
    soft = int(limits.getrlimit(limits.RLIMIT_NOFILE)[0])
    return min(_MOST_CONNECTIONS, max(soft - _FILES, soft // 4))


class TimelyProtocol(H11Protocol):
    """A connection of a service that has room for it, whose requests have to arrive in time.

    Without descriptors left no file could be opened, and nobody's next connection be accepted: those past a number in
    all, and from one address, are refused and counted.

    uvicorn closes idle connections only after a first answer: one that sends half a head, or a byte now
    and then, stays open for ever. Here a head has ``arrive_seconds`` from its first byte (or from the
    connection's beginning), whatever trickles in meanwhile. Bodies are timed where they are read.
    """

    # Of the server: uvicorn makes the connections itself. How many there are from which address, and may be in all.
    container: Container
    inside: Counter[str]
    most: int
    _address: str | None = None
    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        # One address cannot take the place of all others; a proxy in front of the service has one, too.
        if self.inside.total() >= self.most or self.inside[address] >= self.most * 3 // 4:
            self.container.metrics.refused.inc()
            self.container.log.counted("connection refused")
            transport.write(_FULL)
            transport.close()
            return
        self._address = address
        self.inside[address] += 1
        # The system would buffer up to 4 MB for a caller who stalls. Not SO_SNDBUF, which bounds what is under way,
        # too: a caller far away would read slowly.
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            transport.get_extra_info("socket").setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES
            )
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Read bytes; the wait ends when the head is complete."""
        super().data_received(data)
        # After a whole request h11 is IDLE again only when the next may begin: on a kept connection it is timed anew.
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._expect_head()
        elif self._late is not None:
            self._late.cancel()
            self._late = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        if self._address is not None:
            self.inside[self._address] -= 1
            if not self.inside[self._address]:
                del self.inside[self._address]
        for timer in (self._late, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for the caller to read on."""
        super().pause_writing()
        # A caller that reads nothing holds its answer in memory, and a service that ends waits for it.
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the caller reads on."""
        if self._stalled is not None:
            self._stalled.cancel()
        super().resume_writing()

    def _expect_head(self) -> None:
        # Not started again by each byte: one byte every nine seconds would hold the connection for ever.
        if self._late is None:
            seconds = self.container.limits.arrive_seconds
            self._late = self.loop.call_later(seconds, self.transport.abort)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a problem, too."""
        problem = Problem(
            "not-http", "The request is not HTTP/1.1. Speak plain HTTP to this port, without TLS."
        )
        body = to_json(problem.body(instance="", request_id=""))
        head = (
            f"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: {PROBLEM_TYPE}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        # Of a body that is not HTTP the answer may be under way: this would be taken for a part of it.
        if self.conn.our_state is not h11.SEND_BODY:
            self.transport.write(head.encode() + body)
        # There is no telling where the next request would begin.
        self.transport.close()


class Server(uvicorn.Server):
    """One service on one socket."""

    def __init__(
        self, app: FastAPI, *, grace: float = GRACE_SECONDS, proxies: Sequence[str] = ()
    ) -> None:
        container: Container = app.state.container
        own = {"container": container, "inside": Counter(), "most": most_connections()}
        super().__init__(
            uvicorn.Config(
                app,
                http=type("Protocol", (TimelyProtocol,), own),
                ws="none",
                lifespan="on",
                loop="asyncio",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=10,
                timeout_graceful_shutdown=int(grace) + 5,
                proxy_headers=bool(proxies),
                forwarded_allow_ips=list(proxies),
            )
        )
        self._container, self._grace = container, grace

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in order: segments finish or are put back, then answers go out, then connections close."""
        # A thread of its own: when the interpreter ends, asyncio's executor takes no more work.
        winding_down = threading.Thread(
            target=self._container.segments.scheduler.close,
            args=(self._grace,),
            name="nbext-wind-down",
        )
        winding_down.start()
        await super().shutdown(sockets)
        while winding_down.is_alive():
            await asyncio.sleep(0.01)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGINT and SIGTERM; an orderly end is exit code 0.

        uvicorn raises the signal once more when it has ended, which a supervisor reads as a crash.
        """
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a listening socket; port 0 takes any that is free. Several that are ``shared`` may have one port.

    asyncio switches Nagle's algorithm off only on sockets that say they are TCP: without IPPROTO_TCP every
    answer on a kept connection waits 40 ms for an acknowledgement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name != "nt":  # there it lets two services have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared and hasattr(socket, "SO_REUSEPORT"):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        listener.listen(2048)
    except (OSError, OverflowError):  # a port beyond 65535 overflows
        listener.close()
        raise
    return listener
