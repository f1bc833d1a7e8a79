"""The OpenAPI document: what FastAPI reads off the routes, and the parts that it cannot see there.

FastAPI knows JSON answers and their models. It does not know problems (another media type), bodies that are read by
`bodies.read_body`, the key (the middleware checks it), and the segment language, whose JSON Schema is the language's.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from nbext.core.operations import (
    EXECUTE,
    KEY_HEADER,
    PROBLEM_TYPE,
    REQUEST_ID_HEADER,
    SEGMENT,
    SEGMENT_JSON,
    SegmentAnswer,
)
from nbext.service.http.models import ProblemAnswer, SearchRequest, SignUpRequest
from nbext.service.http.problems import CODES, Problem

_REF = "#/components/schemas/{model}"
_DESCRIPTION = (
    f"Every request carries its key in the {KEY_HEADER} header, and every answer an id in {REQUEST_ID_HEADER}. "
    "Errors are problem objects (RFC 9457)."
)
# What every request with a key may meet, and every body, segment, run of a segment, result, and look-up of a contract.
_ALWAYS = (
    "bad-header", "key-missing", "key-unknown", "scope", "foreign-host", "foreign-origin", "rate-limit", "internal",
)
BODY = ("not-json", "slow-request", "too-large", "media-type", "invalid")
LANGUAGE = ("invalid-segment", "ambiguous-symbol")
RUN = ("too-many-segments", "busy", "stopping", "query-timeout", "resource-limit", "storage", "cancelled", "expired")
RESULT = ("not-found", "invalid", "not-ready", "not-completed", "expired", "storage")
CONTRACT = ("not-found", "invalid", "ambiguous-symbol")

Responses = dict[int | str, dict[str, Any]]
NOT_MODIFIED: Responses = {304: {"description": "The caller's version is still current."}}
UNFINISHED: Responses = {
    202: {
        "model": SegmentAnswer,
        "description": "Accepted; the segment has not finished.",
        "headers": {name: {"schema": {"type": "string"}} for name in ("Location", "Retry-After")},
    }
}


def problems(*codes: str) -> Responses:
    """Return the responses for the problems of these codes, and for those that every route may answer with."""
    by_status: dict[int, list[str]] = {}
    for code in (*_ALWAYS, *codes):
        by_status.setdefault(CODES[code][0], []).append(code)
    return {
        status: {
            "description": "; ".join(f"{CODES[code][1]} ({code})" for code in those),
            "content": {
                PROBLEM_TYPE: {
                    "schema": {"$ref": _REF.format(model="ProblemAnswer")},
                    "examples": {code: {"value": _example(code)} for code in those},
                }
            },
        }
        for status, those in sorted(by_status.items())
    }


def _example(code: str) -> dict[str, Any]:
    return Problem(code, f"{CODES[code][1]}.").body(instance=EXECUTE, request_id="5f1c0a9be2d34c77")


def text(media_type: str) -> Responses:
    """Return the response of a route that answers with text or bytes of this type."""
    return {200: {"description": "The answer.", "content": {media_type: {"schema": {"type": "string"}}}}}


def json_body(model: str, example: dict[str, Any]) -> dict[str, Any]:
    """Return what a route adds to its operation so that its body is described."""
    content = {"schema": {"$ref": _REF.format(model=model)}, "examples": {"example": {"value": example}}}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def links_to(*operations: str) -> Responses:
    """Return the links from an answer's id to the operations that take it, for clients that follow them."""
    follow = {name: {"operationId": name, "parameters": {"id": "$response.body#/id"}} for name in operations}
    return {200: {"links": follow}, 202: {**UNFINISHED[202], "links": follow}}


def document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of an application; it is made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes)
        _, ours = models_json_schema(
            [(model, "validation") for model in (ProblemAnswer, SearchRequest, SignUpRequest)], ref_template=_REF
        )
        made["components"]["schemas"] |= ours["$defs"] | _language()
        made["components"]["securitySchemes"] = {"key": {"type": "apiKey", "in": "header", "name": KEY_HEADER}}
        made["security"] = [{"key": []}]
        # Not in the routes' own `responses`: FastAPI drops every null that stands in them.
        for path, example in _ANSWER_EXAMPLES.items():
            made["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["example"] = example
        # Two threads may both come here; each makes the whole before anyone sees it.
        app.openapi_schema = made
    return app.openapi_schema


def _language() -> dict[str, Any]:
    """Return the bodies of execute and explain, with the parts of the segment language that they refer to."""
    # The language loads the engine's libraries: a service imports it when it is first needed.
    from nbext.language.json_schema import json_schema

    schema = _moved(json_schema())
    parts = {f"filters.{name}": part for name, part in schema.pop("$defs").items()}
    schema.pop("$schema")
    counted = {"type": "boolean", "default": False, "description": "Count each condition alone, too."}
    explain = {**schema, "properties": {**schema["properties"], "parts": counted}}
    return {"ExecuteRequest": schema, "ExplainRequest": explain, **parts}


def _moved(value: Any) -> Any:
    # A reference is relative to its document: what was "#/$defs/token" there is a component here.
    if isinstance(value, dict):
        return {
            key: inner.replace("#/$defs/", _REF.format(model="filters.")) if key == "$ref" else _moved(inner)
            for key, inner in value.items()
        }
    return [_moved(inner) for inner in value] if isinstance(value, list) else value


# One segment from its request to its rows; the tests hold each example to its schema, and send the bodies.
_USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
_ID = "sg_3oLHuCLomFc3fOZYR73fqkua"
_COLUMNS = [
    {"name": "address", "type": "string"},
    {"name": "USDC_balance", "type": "uint256", "decimals": 6, "symbol": "USDC", "chain": "ethereum", "address": _USDC},
]
_ROWS = [{"address": "0x00000000219ab540356cbb839cbe05303d7705fa", "USDC_balance": "1250000000"}]
EXECUTE_EXAMPLE: dict[str, Any] = {
    "operator": "AND",
    "filters": {"token": {"token": "USDC"}, "not": {"nft": {"nft": "BAYC", "count": {"min": 1}}}},
    "fileType": "json",
    "limit": 1000,
}
_ANSWER_EXAMPLES: dict[str, dict[str, Any]] = {
    SEGMENT: {
        "id": _ID,
        "status": "completed",
        **EXECUTE_EXAMPLE,
        "chain": "ethereum",
        "chainId": 1,
        "asOf": {"block": 24136000, "timestamp": "2026-01-01T00:00:11Z"},
        "counts": {"matched": 1, "returned": 1},
        "truncated": False,
        "columns": _COLUMNS,
        "preview": _ROWS,
        "links": {
            "self": SEGMENT.format(id=_ID),
            **{form: f"{SEGMENT.format(id=_ID)}/{form}" for form in ("json", "csv", "arrow")},
        },
        "createdAt": "2026-01-02T09:30:00.000Z",
        "completedAt": "2026-01-02T09:30:00.041Z",
        "durationMs": 41,
        "cached": False,
        "warnings": [],
        "error": None,
    },
    SEGMENT_JSON: {
        "id": _ID, "columns": _COLUMNS, "data": _ROWS, "page": {"limit": 100000, "offset": 0, "total": 1, "next": None},
    },
}
