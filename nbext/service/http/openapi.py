"""The OpenAPI document: the wire's shapes as FastAPI reads them, and the parts that it cannot see.

The routes build answers as plain dicts, which mypy holds to their types. FastAPI does not know bodies (`bodies.body_of`
reads them), problems (another media type), the key (the middleware checks it), and the segment language, whose JSON
Schema is the language's. `document` adds these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from starlette.responses import Response

from nbext.core import wire
from nbext.language.json_schema import json_schema
from nbext.service.http.bodies import body_of
from nbext.service.http.problems import CODES, Problem

_REF = "#/components/schemas/{model}"
_DESCRIPTION = (
    f"Every request carries its key in the {wire.KEY_HEADER} header, and every answer an id in "
    f"{wire.REQUEST_ID_HEADER}. Errors are problem objects (RFC 9457)."
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


def _problems(named: Collection[str]) -> Responses:
    """Return the responses for the problems of these codes or kinds of route, and for those of all routes."""
    kinds = {kind for problem in CODES.values() for kind in problem.get("of", ())}
    assert kinds.union(CODES).issuperset(named), f"one of these is mistyped: {named}"
    by_status: dict[int, list[str]] = {}
    for code, problem in CODES.items():
        if code in named or {"all", *named}.intersection(problem.get("of", ())):
            by_status.setdefault(problem["status"], []).append(code)
    return {
        status: {
            "description": "; ".join(f"{CODES[code]['title']} ({code})" for code in those),
            "content": {
                wire.PROBLEM_TYPE: {
                    "schema": {"$ref": _REF.format(model="ProblemAnswer")},
                    "examples": {
                        code: {
                            "value": Problem(code, f"{CODES[code]['title']}.").body(
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


def route(
    add: Callable[..., Any], path: str, answer: Any, *problems: str, **more: Any
) -> Callable[[F], F]:
    """Return the decorator ``add`` of a router, with the document's part: answer, body, and problems.

    ``answer`` is the shape of JSON, or as text the media type of other answers.
    ``problems`` are codes, and kinds of route as ``problems.toml`` has them; that it reads a body is seen here: a
    parameter ``body`` is a shape of the wire, which `body_of` reads.
    """

    def decorated(function: F) -> F:
        shape, named = get_type_hints(function).get("body"), [*problems]
        if shape is not None:
            _BODIES.add(shape)
            named.append("body")
            function.__annotations__["body"] = Annotated[shape, body_of(shape)]
            content = {
                "schema": {"$ref": _REF.format(model=shape.__name__)},
                "examples": {"example": {"value": _EXAMPLES["bodies"][shape.__name__]}},
            }
            more["openapi_extra"] = {
                "requestBody": {"required": True, "content": {"application/json": content}}
            }
        responses, model = {**more.pop("responses", {}), **_problems(named)}, answer
        if isinstance(answer, str):
            schema = {answer: {"schema": {"type": "string"}}}
            responses[200] = {"description": "The answer.", "content": schema}
            model, more["response_class"] = None, Response
        made: F = add(path, response_model=model, responses=responses, **more)(function)
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
    # A reference is relative to its document: what was "#/$defs/token" there is a component here.
    own, here = json.dumps("#/$defs/")[:-1], json.dumps(_REF.format(model="filters."))[:-1]
    language = json.loads(json.dumps(json_schema()).replace(own, here))
    fields = language["properties"]
    fields = {**fields["filters"]["properties"], **fields}

    def filled(schema: dict[str, Any]) -> dict[str, Any]:
        # It names a field of a request, whose schema it has beside what else is said here.
        name = schema.pop("x_language", None)
        return {**fields[name], **schema} if name else schema

    parts = {f"filters.{name}": part for name, part in language["$defs"].items()}
    return {**json.loads(json.dumps(bodies), object_hook=filled), **parts}
