"""Beside the eight operations: whose data this is, the language's schema, health, metrics, and the contract."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from nbext import __version__
from nbext.core import wire
from nbext.core.chains import chain_of
from nbext.core.times import iso
from nbext.language.fields import GRAMMAR
from nbext.language.json_schema import json_schema
from nbext.service.container import CHECKS, Container, Reader
from nbext.service.http.bodies import cacheable_answer, json_answer
from nbext.service.http.openapi import NOT_MODIFIED, document, route
from nbext.service.http.problems import Problem
from nbext.service.middleware import METRICS_TYPE

router = APIRouter(tags=["service"])
# What of the service a caller may want beside the operations.
_LINKS = {"schema": wire.SCHEMA, "openapi": wire.OPENAPI, "lists": wire.LISTS}
# Whoever may ask these needs no key: see OPEN_PATHS.
_OPEN: dict[str, Any] = {"security": []}


@route(router.get, wire.ABOUT, wire.About)
def read_about(caller: Reader) -> Response:
    """Which service this is, and whose data it has."""
    data = caller.container.generations.newest.about
    answer: wire.About = {
        "service": "nbext",
        "version": __version__,
        "grammar": GRAMMAR,
        "engine": data.engine,
        "data": {
            "name": data.name,
            "synthetic": data.synthetic,
            "fingerprint": data.fingerprint,
            "chains": [
                {
                    "chain": chain_of(extent.chain_id).name,
                    "chainId": extent.chain_id,
                    "firstBlock": extent.first_block,
                    "lastBlock": extent.last_block,
                    "lastTimestamp": iso(extent.last_timestamp),
                }
                for extent in data.chains
            ],
        },
        "links": {name: caller.link(path) for name, path in _LINKS.items()},
    }
    return json_answer(answer)


@route(router.get, wire.SCHEMA, dict, responses=NOT_MODIFIED)
def read_schema(caller: Reader) -> Response:
    """The JSON Schema of a segment's filters."""
    return cacheable_answer(caller, json_schema())


@route(router.get, wire.HEALTH, wire.Health, openapi_extra=_OPEN)
async def read_health() -> Response:
    """Whether the service answers; needs no key and reveals nothing else."""
    return json_answer({"status": "ok"})


@route(router.get, wire.READY, wire.Readiness, "unready", openapi_extra=_OPEN)
async def read_readiness(request: Request) -> Response:
    """Whether the service can run segments: disk, registry, data and queue; needs no key. 503 names what is wrong."""
    container: Container = request.app.state.container
    wrong = await container.unready()
    if wrong:
        raise Problem("unready", " ".join(wrong.values()), checks=list(wrong))
    data = "sample" if container.generations.newest.about.synthetic else "ingested"
    return json_answer({"status": "ready", "data": data, "checks": dict.fromkeys(CHECKS, "ok")})


# Probes of load balancers ask by HEAD; the contract's document needs each operation once.
router.add_api_route(wire.HEALTH, read_health, methods=["HEAD"], include_in_schema=False)
router.add_api_route(wire.READY, read_readiness, methods=["HEAD"], include_in_schema=False)


@route(router.get, wire.METRICS, METRICS_TYPE)
def read_metrics(caller: Reader) -> Response:
    """Counters for Prometheus; those of private keys are shown to the scope admin alone."""
    shown = caller.container.metrics.text(caller.key)
    return Response(shown, headers={"Content-Type": METRICS_TYPE})


@route(router.get, wire.OPENAPI, dict, responses=NOT_MODIFIED)
def read_openapi(caller: Reader) -> Response:
    """The contract, as OpenAPI 3.1."""
    return cacheable_answer(caller, document(caller.request.app))


@route(router.get, wire.DOCS, None, response_class=HTMLResponse, openapi_extra=_OPEN)
def read_docs(request: Request) -> HTMLResponse:
    """The operations on one page: no script, no style, nothing from elsewhere."""
    # Descriptions come from docstrings of ours; they are escaped all the same.
    made = document(request.app)
    root = request.scope.get("root_path", "")
    contract, schema = f"{root}{wire.OPENAPI}", f"{root}{wire.SCHEMA}"
    rows = "".join(
        f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{escape(operation['description'])}</dd>"
        for path, methods in made["paths"].items()
        for method, operation in methods.items()
    )
    title, about = (
        f"{made['info']['title']} {made['info']['version']}",
        escape(made["info"]["description"]),
    )
    return HTMLResponse(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>'
        f"<p>{about} The whole contract is at <code>{contract}</code>, the segment language at <code>{schema}</code>."
        f"</p><dl>{rows}</dl></html>"
    )
