"""Beside the eight operations: whose data this is, the language's schema, health, metrics, the contract."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from nbext.core.operations import ABOUT, DOCS, HEALTH, METRICS, OPENAPI, SCHEMA
from nbext.service.container import FromContainer, Reader
from nbext.service.http.responses import json_answer, kept_answer
from nbext.service.middleware.metrics import TEXT_TYPE
from nbext.service.routes.about import about

router = APIRouter(tags=["service"])


@router.get(ABOUT)
def read_about(container: FromContainer, key: Reader) -> Response:
    """Which service this is, and whose data it has."""
    return json_answer(about(container.dataset.about))


@router.get(SCHEMA)
def read_schema(request: Request, container: FromContainer, key: Reader) -> Response:
    """The JSON Schema of a segment's filters."""
    return kept_answer(request, container.segments.language.json_schema())


@router.get(HEALTH)
async def read_health() -> Response:
    """Whether the service answers; needs no key and tells nothing else."""
    return json_answer({"status": "ok"})


@router.get(METRICS)
def read_metrics(container: FromContainer, key: Reader) -> Response:
    """Counters for Prometheus."""
    return Response(container.metrics.text(), headers={"Content-Type": TEXT_TYPE})


@router.get(OPENAPI)
def read_openapi(request: Request, key: Reader) -> Response:
    """The contract, as OpenAPI 3.1."""
    from nbext.service.http.openapi import document

    return kept_answer(request, document(request.app))


@router.get(DOCS)
def read_docs(request: Request) -> HTMLResponse:
    """The contract, as a page."""
    from nbext.service.http.docs_page import page
    from nbext.service.http.openapi import document

    return HTMLResponse(page(document(request.app)))
