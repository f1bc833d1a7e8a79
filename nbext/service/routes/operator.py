"""Beside the eight operations: whose data this is, the language's schema, health, metrics, and the contract."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from nbext import __version__
from nbext.core import wire
from nbext.core.chains import chain_of
from nbext.core.times import iso
from nbext.language.fields import GRAMMAR
from nbext.language.json_schema import json_schema
from nbext.service.bodies import cacheable_answer, json_answer
from nbext.service.container import CHECKS, Container, Reader
from nbext.service.contract import DOCUMENT, PAGE
from nbext.service.middleware import METRICS_TYPE
from nbext.service.problems import Problem

router = APIRouter()
# Probes of load balancers ask by HEAD, too.
_for_probes = partial(router.api_route, methods=["GET", "HEAD"])


@router.get(wire.ABOUT)
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
        # What of the service a caller may want beside the operations.
        "links": {
            "schema": caller.link(wire.SCHEMA),
            "openapi": caller.link(wire.OPENAPI),
            "lists": caller.link(wire.LISTS),
        },
    }
    return json_answer(answer)


@router.get(wire.SCHEMA)
def read_schema(caller: Reader) -> Response:
    """The JSON Schema of a segment's filters."""
    return cacheable_answer(caller, json_schema())


@_for_probes(wire.HEALTH)
async def read_health() -> Response:
    """Whether the service answers; needs no key and reveals nothing else."""
    return json_answer({"status": "ok"})


@_for_probes(wire.READY)
async def read_readiness(request: Request) -> Response:
    """Whether the service can run segments: disk, registry, data and queue; needs no key. 503 names what is wrong."""
    container: Container = request.app.state.container
    if wrong := await container.unready():
        raise Problem("unready", " ".join(wrong.values()), checks=list(wrong))
    data = "sample" if container.generations.newest.about.synthetic else "ingested"
    return json_answer({"status": "ready", "data": data, "checks": dict.fromkeys(CHECKS, "ok")})


@router.get(wire.METRICS)
def read_metrics(caller: Reader) -> Response:
    """Counters for Prometheus; those of private keys are shown to the scope admin alone."""
    container = caller.container
    shown = container.metrics.text(caller.key, container.generations.newest.about)
    return Response(shown, headers={"Content-Type": METRICS_TYPE})


@router.get(wire.OPENAPI)
def read_openapi(caller: Reader) -> Response:
    """The contract, as OpenAPI 3.1."""
    return cacheable_answer(caller, DOCUMENT)


@router.get(wire.DOCS)
def read_docs(request: Request) -> HTMLResponse:
    """The operations on one page: no script, no style, nothing from elsewhere."""
    return HTMLResponse(PAGE.replace("ROOT", request.scope["root_path"]))
