"""The OpenAPI document: the wire's shapes as FastAPI reads them, and the parts that it cannot see.

The routes build answers as plain dicts, which mypy holds to their types. FastAPI does not know bodies (`bodies.body_of`
reads them), problems (another media type), the key (the middleware checks it), and the segment language, whose JSON
Schema is the language's. `document` adds these.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from nbext.core import wire
from nbext.language.json_schema import json_schema
from nbext.service.http.bodies import body_of
from nbext.service.http.problems import CODES, Problem

_REF = "#/components/schemas/{model}"
_DESCRIPTION = (
    f"Every request carries its key in the {wire.KEY_HEADER} header, and every answer an id in "
    f"{wire.REQUEST_ID_HEADER}. Errors are problem objects (RFC 9457)."
)
# What every request with a key may meet, every body, and every body that is a segment.
_ALWAYS = (
    "bad-header",
    "invalid",
    "key-missing",
    "key-unknown",
    "scope",
    "foreign-host",
    "foreign-origin",
    "rate-limit",
    "internal",
    "registry",
)
BODY = (
    "not-json",
    "slow-request",
    "too-large",
    "media-type",
    "invalid",
    "too-many-at-once",
    "busy",
)
RUN = (
    *BODY,
    "invalid-segment",
    "ambiguous-symbol",
    "too-many-segments",
    "stopping",
    "query-timeout",
    "resource-limit",
    "storage",
    "disk-full",
    "quota",
    "cancelled",
    "expired",
    "unavailable",
)

RESULT = (
    "not-found",
    "invalid",
    "not-ready",
    "not-completed",
    "expired",
    "too-many-at-once",
    "busy",
    "storage",
    "unavailable",
)

# The tests send those of bodies, and hold all to their schemas.
_EXAMPLES = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))

# The shapes that the routes describe and FastAPI does not see.
_BODIES: set[Any] = {wire.ProblemAnswer}
F = TypeVar("F", bound=Callable[..., Any])
Responses = dict[int | str, dict[str, Any]]
NOT_MODIFIED: Responses = {304: {"description": "The caller's version is still current."}}
UNFINISHED: Responses = {
    202: {
        "model": wire.SegmentAnswer,
        "description": "Accepted; the segment has not finished.",
        "headers": {name: {"schema": {"type": "string"}} for name in ("Location", "Retry-After")},
    }
}


def _problems(*codes: str) -> Responses:
    """Return the responses for the problems of these codes, and for those that every route may answer with."""
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys((*_ALWAYS, *codes)):
        by_status.setdefault(CODES[code][0], []).append(code)
    return {
        status: {
            "description": "; ".join(f"{CODES[code][1]} ({code})" for code in those),
            "content": {
                wire.PROBLEM_TYPE: {
                    "schema": {"$ref": _REF.format(model="ProblemAnswer")},
                    "examples": {
                        code: {
                            "value": Problem(code, f"{CODES[code][1]}.").body(
                                instance=wire.EXECUTE, request_id="5f1c0a9be2d34c77"
                            )
                        }
                        for code in those
                    },
                }
            },
        }
        for status, those in sorted(by_status.items())
    }


def text(media_type: str) -> Responses:
    """Return the response of a route that answers with text or bytes of this type."""
    return {
        200: {"description": "The answer.", "content": {media_type: {"schema": {"type": "string"}}}}
    }


def route(
    add: Callable[..., Any], path: str, answer: Any, *codes: str, **more: Any
) -> Callable[[F], F]:
    """Return the decorator ``add`` of a router, with the document's part: answer, problems by code, and the body.

    A parameter ``body`` is a shape of the wire, which `body_of` reads.
    """

    def decorated(function: F) -> F:
        shape = get_type_hints(function).get("body")
        if shape is not None:
            _BODIES.add(shape)
            function.__annotations__["body"] = Annotated[shape, body_of(shape)]
            content = {
                "schema": {"$ref": _REF.format(model=shape.__name__)},
                "examples": {"example": {"value": _EXAMPLES["bodies"][shape.__name__]}},
            }
            more["openapi_extra"] = {
                "requestBody": {"required": True, "content": {"application/json": content}}
            }
        responses = {**more.pop("responses", {}), **_problems(*codes)}
        made: F = add(path, response_model=answer, responses=responses, **more)(function)
        return made

    return decorated


def links_to(*operations: str) -> Responses:
    """Return the links from an answer's id to the operations that take it, for clients that follow them."""
    follow = {
        name: {"operationId": name, "parameters": {"id": "$response.body#/id"}}
        for name in operations
    }
    return {200: {"links": follow}, 202: {**UNFINISHED[202], "links": follow}}


def document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of an application; it is made once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes
        )
        shapes: list[tuple[Any, Literal["validation"], TypeAdapter[Any]]] = [
            (shape.__name__, "validation", TypeAdapter(shape)) for shape in _BODIES
        ]
        _, ours = TypeAdapter.json_schemas(shapes, ref_template=_REF)
        ours["$defs"]["ProblemAnswer"]["properties"]["code"]["enum"] = list(CODES)
        made["components"]["schemas"] |= _with_language(ours["$defs"])
        key = {"type": "apiKey", "in": "header", "name": wire.KEY_HEADER}
        made["components"]["securitySchemes"] = {"key": key}
        made["security"] = [{"key": []}]
        # Not in the routes' own `responses`: FastAPI drops every null in them.
        for path, example in _EXAMPLES["answers"].items():
            made["paths"][path]["get"]["responses"]["200"]["content"]["application/json"][
                "example"
            ] = example
        # Two threads may both come here; each makes the whole before anyone sees it.
        app.openapi_schema = made
    return app.openapi_schema


def _with_language(bodies: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas of bodies, with those of the segment language in their places, and the parts of these."""
    language = json_schema()
    fields = language["properties"]
    fields = {**fields["filters"]["properties"], **fields}
    parts = {f"filters.{name}": part for name, part in language["$defs"].items()}
    filled: dict[str, Any] = _filled({**bodies, **parts}, fields)
    return filled


def _filled(value: Any, fields: dict[str, Any]) -> Any:
    """Return a schema with the language's in place of each ``x_language``, which names a field of a request."""
    if isinstance(value, list):
        return [_filled(inner, fields) for inner in value]
    if not isinstance(value, dict):
        return value
    if "x_language" in value:
        more = {name: inner for name, inner in value.items() if name != "x_language"}
        return _filled({**fields[value["x_language"]], **more}, fields)
    return {
        # A reference is relative to its document: what was "#/$defs/token" there is a component here.
        name: inner.replace("#/$defs/", _REF.format(model="filters."))
        if name == "$ref"
        else _filled(inner, fields)
        for name, inner in value.items()
    }
