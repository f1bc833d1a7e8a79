"""Beside the eight operations: whose data this is, the language's schema, health, metrics, and the contract."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from nbext import __version__
from nbext.core.chains import chain_of
from nbext.core.operations import ABOUT, DOCS, HEALTH, METRICS, OPENAPI, SCHEMA, iso
from nbext.language.fields import GRAMMAR
from nbext.service.container import FromContainer, Reader
from nbext.service.http.bodies import cacheable_answer, json_answer
from nbext.service.http.openapi import NOT_MODIFIED, About, Health, document, problems, text
from nbext.service.middleware import METRICS_TYPE

router = APIRouter(tags=["service"])
# Whoever may ask these needs no key: see OPEN_PATHS.
_OPEN: dict[str, Any] = {"security": []}


@router.get(ABOUT, response_model=About, responses=problems())
def read_about(container: FromContainer, key: Reader) -> Response:
    """Which service this is, and whose data it has."""
    data = container.dataset.about
    answer: About = {
        "service": "nbext", "version": __version__, "grammar": GRAMMAR, "engine": data.engine,
        "data": {
            "name": data.name, "synthetic": data.synthetic, "fingerprint": data.fingerprint,
            "chains": [
                {
                    "chain": chain_of(extent.chain_id).name, "chainId": extent.chain_id,
                    "firstBlock": extent.first_block, "lastBlock": extent.last_block,
                    "lastTimestamp": iso(extent.last_timestamp),
                }
                for extent in data.chains
            ],
        },
        "links": {"schema": SCHEMA, "openapi": OPENAPI},
    }
    return json_answer(answer)


@router.get(SCHEMA, response_model=dict, responses={**NOT_MODIFIED, **problems()})
def read_schema(request: Request, container: FromContainer, key: Reader) -> Response:
    """The JSON Schema of a segment's filters."""
    return cacheable_answer(request, container.segments.language.json_schema())


@router.get(HEALTH, response_model=Health, responses=problems(), openapi_extra=_OPEN)
async def read_health() -> Response:
    """Whether the service answers; needs no key and reveals nothing else."""
    return json_answer({"status": "ok"})


@router.get(METRICS, response_class=Response, responses={**text(METRICS_TYPE), **problems()})
def read_metrics(container: FromContainer, key: Reader) -> Response:
    """Counters for Prometheus."""
    return Response(container.metrics.text(), headers={"Content-Type": METRICS_TYPE})


@router.get(OPENAPI, response_model=dict, responses={**NOT_MODIFIED, **problems()})
def read_openapi(request: Request, key: Reader) -> Response:
    """The contract, as OpenAPI 3.1."""
    return cacheable_answer(request, document(request.app))


@router.get(DOCS, response_class=HTMLResponse, responses=problems(), openapi_extra=_OPEN)
def read_docs(request: Request) -> HTMLResponse:
    """The operations on one page: no script, no style, nothing from elsewhere."""
    # Descriptions come from docstrings of ours; they are escaped all the same.
    made = document(request.app)
    rows = "".join(
        f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{escape(operation['description'])}</dd>"
        for path, methods in made["paths"].items()
        for method, operation in methods.items()
    )
    title, about = f"{made['info']['title']} {made['info']['version']}", escape(made["info"]["description"])
    return HTMLResponse(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>'
        f"<p>{about} The whole contract is at <code>{OPENAPI}</code>, the segment language at <code>{SCHEMA}</code>."
        f"</p><dl>{rows}</dl></html>"
    )
