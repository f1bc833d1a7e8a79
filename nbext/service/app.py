"""The application: routes in the middle, security around them, and the observer outermost."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from nbext import __version__
from nbext.engine.dataset import Dataset
from nbext.errors import FieldError
from nbext.service.container import REGISTRY_FILE, Container
from nbext.service.generations import Newer
from nbext.service.http.problems import Problem, answer_problem
from nbext.service.limits import Limits
from nbext.service.middleware import LOOPBACK_HOSTS, Log, Observe, Security
from nbext.service.routes import analysis, lookups, operator, segments
from nbext.settings import Secret

_ROUTERS = (segments.router, analysis.router, lookups.router, operator.router)
# Every route of the service; an application's own list may hold routers instead.
ROUTES = [route for router in _ROUTERS for route in router.routes if isinstance(route, APIRoute)]


def create_app(
    dataset: Dataset,
    state_dir: Path,
    *,
    newer: Newer = lambda: None,
    registry: Path | str | None = None,
    owner: Secret | None = None,
    hosts: Iterable[str] = LOOPBACK_HOSTS,
    limits: Limits | None = None,
    log: Log | None = None,
    root_path: str = "",
) -> FastAPI:
    """Return the service over one dataset, which is closed when the application ends.

    ``newer`` returns a dataset to serve in its place from now on, or None; it is asked each second, and the former one
    is closed when what began on it has ended.
    ``state_dir`` has the results, and several services may share it; ``registry`` is the path or URL of all else that
    is stored, by default a file in it. The key ``owner`` is
    accepted beside those in the registry, with every scope and no rate. ``hosts`` are the names that the Host header
    may have, without ports. ``root_path`` is the path below which a proxy serves this, as ``/nbext``: links begin with
    it, and requests may. Events are written to ``log``, by default as JSON lines to stderr.

    Raises
    ------
    StorageError
        The folder's registry cannot be used.
    """
    container = Container(
        dataset,
        state_dir,
        newer=newer,
        registry=registry or state_dir / REGISTRY_FILE,
        owner=owner,
        limits=limits or Limits(),
        log=log or Log(sys.stderr),
    )
    app = FastAPI(
        title="nbext",
        version=__version__,
        lifespan=_lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.container = container
    for router in _ROUTERS:
        app.include_router(router)
    # Only what FastAPI raises itself and would answer in its own form; all other exceptions go on to Observe.
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    # The last one added is the outermost: a refused request is counted and logged, too.
    app.add_middleware(Security, keys=container.keys, rates=container.rates, hosts=hosts)
    app.add_middleware(
        Observe,
        log=container.log,
        metrics=container.metrics,
        root_path=root_path,
        fingerprint=lambda: container.generations.newest.about.fingerprint,
    )
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    container: Container = app.state.container
    # Each event loop has its own limiter, so that it can be narrowed only here. See `Container.wait_for`.
    to_thread.current_default_thread_limiter().total_tokens = container.limits.reading
    # In a thread: a folder with many results takes a while to look through, and signals have to be heard meanwhile.
    await run_in_threadpool(container.open)
    yield
    await run_in_threadpool(container.close)


async def _on_http_error(request: Request, error: Exception) -> Response:
    # The router itself raises these two: no such path, or not with that method.
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allow = ", ".join(sorted(_methods(request)))
        detail = f"This path does not support {request.method}. Use {allow}."
        problem = Problem("method", detail, headers={"Allow": allow})
    else:
        problem = Problem("not-found", "There is nothing at that path.")
    return answer_problem(request, problem)


def _methods(request: Request) -> set[str]:
    """Return the methods of the request's path: each is a route of its own, and the router names only one of them."""
    path = next(
        (route.path for route in ROUTES if route.matches(request.scope)[0] is not Match.NONE), None
    )
    return {method for route in ROUTES if route.path == path for method in route.methods or ()}


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors: list[FieldError] = [
        {
            "pointer": "/".join(str(part) for part in each["loc"][1:]),
            "code": each["type"],
            "detail": each["msg"],
        }
        for each in error.errors()
    ]
    # FastAPI's own answer repeats the caller's input, and fails with 500 where that is NaN.
    detail = "; ".join(f"{each['pointer']}: {each['detail']}" for each in errors)
    return answer_problem(request, Problem("invalid", detail, errors=errors))
