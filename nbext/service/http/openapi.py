"""The contract as an OpenAPI 3.1 document: the routes' own paths and parameters, the wire's shapes, examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI

from nbext.core import operations as wire
from nbext.engine.dataset import Catalog
from nbext.service.http import examples
from nbext.service.http.filters_shape import filters_shape
from nbext.service.http.problems import CODES
from nbext.service.http.shapes import SHAPES, Schema, ref
from nbext.service.middleware.metrics import TEXT_TYPE
from nbext.service.middleware.security import OPEN_PATHS

_JSON = "application/json"
# What every request with a key may meet, and every body.
_ALWAYS = (
    "bad-header", "key-missing", "key-unknown", "scope", "foreign-host", "foreign-origin", "rate-limit", "internal",
)
_BODY = ("not-json", "slow-request", "too-large", "media-type", "invalid")
_SEGMENT = ("invalid-segment", "ambiguous-symbol")
_RUN = ("too-many-segments", "busy", "stopping", "query-timeout", "resource-limit", "storage", "cancelled", "expired")
_RESULT = ("not-found", "invalid", "not-ready", "not-completed", "expired", "storage")
_CARD = ("not-found", "invalid", "ambiguous-symbol")


@dataclass(frozen=True)
class Told:
    """What the document adds to one route: its bodies, and the problems it can answer with."""

    answers: dict[int, str | None]
    problems: tuple[str, ...] = ()
    body: str | None = None
    media_type: str = _JSON
    not_modified: bool = False
    headers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


# What an answer's id leads to, by the names of the routes.
_FOLLOWING = (
    "read_segment", "cancel_segment", "export_segment_as_json", "export_segment_as_csv", "export_segment_as_arrow",
)
_WAITING = {202: ("Location", "Retry-After")}
OPERATIONS: dict[tuple[str, str], Told] = {
    ("post", wire.EXECUTE): Told(
        {200: "Segment", 202: "Segment"}, (*_BODY, *_SEGMENT, *_RUN, "idempotency-key-reused"), "ExecuteRequest",
        headers=_WAITING,
    ),
    ("post", wire.EXPLAIN): Told({200: "Explained"}, (*_BODY, *_SEGMENT, *_RUN), "ExplainRequest"),
    ("get", wire.SEGMENT): Told({200: "Segment", 202: "Segment"}, ("not-found", "invalid"), headers=_WAITING),
    ("delete", wire.SEGMENT): Told({200: "Segment", 202: "Segment"}, ("not-found", "invalid", "finished")),
    ("get", wire.SEGMENT_JSON): Told({200: "SegmentRows"}, _RESULT, not_modified=True),
    ("get", wire.SEGMENT_CSV): Told({200: None}, _RESULT, media_type=wire.CSV_TYPE, not_modified=True),
    ("get", wire.SEGMENT_ARROW): Told({200: None}, _RESULT, media_type=wire.ARROW_TYPE, not_modified=True),
    ("post", wire.SEARCH): Told({200: "SearchAnswer"}, (*_BODY, "not-found"), "SearchRequest"),
    ("get", wire.TOKEN): Told({200: "Token"}, _CARD, not_modified=True),
    ("get", wire.NFT): Told({200: "Collection"}, _CARD, not_modified=True),
    ("post", wire.SIGN_UP): Told({202: "SignUpAnswer"}, _BODY, "SignUpRequest"),
    ("get", wire.ABOUT): Told({200: "About"}),
    ("get", wire.SCHEMA): Told({200: None}, not_modified=True),
    ("get", wire.HEALTH): Told({200: "Health"}),
    ("get", wire.METRICS): Told({200: None}, media_type=TEXT_TYPE),
    ("get", wire.OPENAPI): Told({200: None}, not_modified=True),
    ("get", wire.DOCS): Told({200: None}, media_type="text/html; charset=utf-8"),
}


def document(app: FastAPI) -> dict[str, Any]:
    """Return the document; made once for an application."""
    made: dict[str, Any] | None = getattr(app.state, "openapi", None)
    if made is None:
        made = app.state.openapi = _made(app)
    return made


def _made(app: FastAPI) -> dict[str, Any]:
    made = app.openapi()
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            _tell(operation, method, path)
    made["components"] = {
        "schemas": {**SHAPES, **_language(app.state.container.dataset.catalog)},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": wire.KEY_HEADER}},
    }
    made["security"] = [{"key": []}]
    return made


def _tell(operation: dict[str, Any], method: str, path: str) -> None:
    told = OPERATIONS[method, path]
    if path in OPEN_PATHS:
        operation["security"] = []
    if told.body:
        content = {"schema": ref(told.body), "examples": {"example": {"value": examples.BODIES[told.body]}}}
        operation["requestBody"] = {"required": True, "content": {_JSON: content}}
    operation["responses"] = {
        **{str(status): _answer(told, status, shape) for status, shape in told.answers.items()},
        **({"304": {"description": "The caller's version still holds."}} if told.not_modified else {}),
        **_problems(() if path in OPEN_PATHS else told.problems),
    }


def _answer(told: Told, status: int, shape: str | None) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": ref(shape) if shape else _bytes(told.media_type)}
    if shape in examples.ANSWERS:
        content["examples"] = {"example": {"value": examples.ANSWERS[shape]}}
    names = (wire.REQUEST_ID_HEADER, *told.headers.get(status, ()))
    follow = {name: {"operationId": name, "parameters": {"id": "$response.body#/id"}} for name in _FOLLOWING}
    return {
        **({"links": follow} if told.body == "ExecuteRequest" else {}),
        "description": {200: "The answer.", 202: "Taken; not finished, or nothing more to tell."}[status],
        "headers": {name: {"schema": {"type": "string"}} for name in names},
        "content": {told.media_type: content},
    }


def _bytes(media_type: str) -> Schema:
    return {"type": "object"} if media_type == _JSON else {"type": "string"}


def _problems(codes: Iterable[str]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in (*_ALWAYS, *codes):
        by_status.setdefault(CODES[code][0], []).append(code)
    return {
        str(status): {
            "description": "; ".join(f"{CODES[code][1]} ({code})" for code in those),
            "content": {
                wire.PROBLEM_TYPE: {
                    "schema": ref("Problem"),
                    "examples": {code: {"value": examples.problem(code)} for code in those},
                }
            },
        }
        for status, those in sorted(by_status.items())
    }


def _language(catalog: Catalog) -> dict[str, Schema]:
    """Return the shapes of the segment language: the part that bodies are told with, and the whole."""
    from nbext.language import language

    schema = _moved(language.json_schema())
    parts = {f"filters.{name}": part for name, part in schema.pop("$defs").items()}
    schema.pop("$schema")
    counting = {"type": "boolean", "default": False, "description": "Count each condition alone, too."}
    told = {**schema, "properties": {**schema["properties"], "filters": filters_shape(catalog)}}
    explained = {**told, "properties": {**told["properties"], "parts": counting}}
    return {"ExecuteRequest": told, "ExplainRequest": explained, "SegmentRequest": schema, **parts}


def _moved(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: inner.replace("#/$defs/", "#/components/schemas/filters.") if key == "$ref" else _moved(inner)
            for key, inner in value.items()
        }
    return [_moved(inner) for inner in value] if isinstance(value, list) else value
