"""The contract of the service, as OpenAPI 3.1: the routes as FastAPI reads them, and the parts that it cannot see.

The routes build answers as plain dicts, which mypy holds to the wire's shapes. FastAPI does not know which shape is of
which route, bodies (`bodies.read_body` reads them), problems (another media type), the key (the middleware checks it),
and the segment language, whose JSON Schema is the language's: all of these are added here.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, NamedTuple

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from pydantic import TypeAdapter
from starlette.responses import Response

from nbext import __version__
from nbext.core import wire
from nbext.language.json_schema import json_schema
from nbext.service.middleware import METRICS_TYPE, OPEN_PATHS
from nbext.service.problems import CODES, Problem
from nbext.service.server import ROUTES

Responses = dict[int | str, dict[str, Any]]
_REF = "#/components/schemas/{model}"
_DESCRIPTION = (
    f"Every request carries its key in the {wire.KEY_HEADER} header, and every answer an id in "
    f"{wire.REQUEST_ID_HEADER}. Errors are problem objects (RFC 9457)."
)
# The tests send those of bodies, and hold all to their schemas.
_EXAMPLES = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))
_NOT_MODIFIED: Responses = {304: {"description": "The caller's version is still current."}}
_UNFINISHED: Responses = {
    202: {
        "model": wire.SegmentAnswer,
        "description": "Accepted; the segment has not finished.",
        "headers": {name: {"schema": {"type": "string"}} for name in ("Location", "Retry-After")},
    }
}
# From an answer's id to the operations that take it, for clients that follow them.
_FOLLOW = {
    name: {"operationId": name, "parameters": {"id": "$response.body#/id"}}
    for name in (
        "read_segment",
        "cancel_segment",
        "export_segment_as_json",
        "export_segment_as_csv",
        "export_segment_as_arrow",
    )
}
_LINKS: Responses = {200: {"links": _FOLLOW}, 202: {**_UNFINISHED[202], "links": _FOLLOW}}
_ADDRESSES = {
    "requestBody": {
        "required": True,
        "content": {
            wire.ADDRESSES_TYPE: {
                "schema": {
                    "type": "string",
                    "format": "binary",
                    "description": "20 bytes for each address, and nothing else.",
                }
            }
        },
    }
}


# Of the operations that wait for a segment, which read it themselves.
_PREFER = {
    "name": "prefer",
    "in": "header",
    "required": False,
    "schema": {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "description": (
            _TEXT
            := "``wait=N`` (RFC 7240): seconds that the caller waits for the segment to finish."
        ),
        "title": "Prefer",
    },
    "description": _TEXT,
}
# Of those that begin a segment, too.
_IDEMPOTENCY = {
    "name": wire.IDEMPOTENCY_HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$", "title": wire.IDEMPOTENCY_HEADER},
    "description": (
        "The same key with the same body is one segment for 24 hours, and the answer to a repeat has"
        f" {wire.REPLAYED_HEADER}: true; another body is 422."
    ),
}
_BEGINNING = {"execute_segment", "profile_segment", "change_segment"}
_WAITING = {*_BEGINNING, "read_segment"}
# Of look-ups, what their paths' parts are, and examples.
_PARTS: dict[str, dict[str, Any]] = {
    "chain": {
        "description": "A chain: its name, an alias, its EIP-155 id, or a CAIP-2 identifier such as eip155:1."
    },
    "address": {
        "description": "A contract's address (0x and 40 hex digits; mixed case carries its EIP-55 checksum), or a"
        " symbol.",
        # What every caller may send without a 422: a mixed-case address has to have its checksum.
        "anyOf": [
            {"pattern": "^0x[0-9a-f]{40}$"},
            {"pattern": "^0x[0-9A-F]{40}$"},
            {"pattern": "^[^0].*$"},
        ],
    },
}
_LOOK_UPS = {
    "read_token": {"chain": "ethereum", "address": "USDC"},
    "read_collection": {"chain": "ethereum", "address": "BAYC"},
}


class Operation(NamedTuple):
    """What the document has of a route beside its function.

    ``answer`` is the shape of JSON, or as text the media type of other answers. ``problems`` are codes, and kinds of
    route as ``problems.toml`` has them; those of a ``body``, a shape, are added.
    """

    tags: str
    answer: Any
    problems: tuple[str, ...] = ()
    responses: Responses | None = None
    more: dict[str, Any] | None = None
    body: Any = None


_RUN = ("run", "idempotency-key-reused")
_FOUND = ("not-found", "ambiguous-symbol")
# The route's function -> what it answers.
OPERATIONS: dict[str, Operation] = {
    "search_collections": Operation(
        "catalog", wire.SearchAnswer, ("not-found",), body=wire.SearchRequest
    ),
    "read_token": Operation("catalog", wire.TokenAnswer, _FOUND, _NOT_MODIFIED),
    "read_collection": Operation("catalog", wire.CollectionAnswer, _FOUND, _NOT_MODIFIED),
    "sign_up": Operation(
        "catalog newsletter",
        wire.SignUpAnswer,
        ("storage", "disk-full", "quota"),
        None,
        {"status_code": 202},
        body=wire.SignUpRequest,
    ),
    "execute_segment": Operation(
        "segments", wire.SegmentAnswer, _RUN, _LINKS, body=wire.ExecuteRequest
    ),
    "profile_segment": Operation(
        "segments", wire.SegmentAnswer, _RUN, _LINKS, body=wire.ProfileRequest
    ),
    "change_segment": Operation(
        "segments", wire.SegmentAnswer, _RUN, _LINKS, body=wire.ChangesRequest
    ),
    "explain_segment": Operation("segments", wire.Explained, ("run",), body=wire.ExplainRequest),
    "count_segments": Operation("analysis", wire.Counted, ("run",), body=wire.CountsRequest),
    "count_conditions": Operation("analysis", wire.Funnel, ("run",), body=wire.ExecuteRequest),
    "read_holdings": Operation("analysis", wire.ARROW_TYPE, ("run",), body=wire.HoldingsRequest),
    "read_segment": Operation(
        "segments", wire.SegmentAnswer, ("not-found", "unavailable"), _UNFINISHED
    ),
    "cancel_segment": Operation(
        "segments",
        wire.SegmentAnswer,
        ("not-found", "finished", "not-ready", "not-yours", "unavailable"),
        _UNFINISHED,
    ),
    "export_segment_as_json": Operation("segments", wire.SegmentRows, ("result",), _NOT_MODIFIED),
    "export_segment_as_csv": Operation("segments", wire.CSV_TYPE, ("result",), _NOT_MODIFIED),
    "export_segment_as_arrow": Operation("segments", wire.ARROW_TYPE, ("result",), _NOT_MODIFIED),
    "store_list": Operation(
        "segments",
        wire.StoredList,
        ("body", "storage", "resource-limit", "disk-full", "quota", "unavailable"),
        None,
        {"status_code": 201, "openapi_extra": _ADDRESSES},
    ),
    "read_list": Operation("segments", wire.StoredList, ("not-found", "unavailable")),
    "read_about": Operation("service", wire.About),
    "read_schema": Operation("service", dict, (), _NOT_MODIFIED),
    "read_health": Operation("service", wire.Health),
    "read_readiness": Operation("service", wire.Readiness, ("unready",)),
    "read_metrics": Operation("service", METRICS_TYPE),
    "read_openapi": Operation("service", dict, (), _NOT_MODIFIED),
    "read_docs": Operation("service", None, (), None, {"response_class": HTMLResponse}),
}


def page() -> str:
    """Return the document; a line for each value, so that a change of it can be read."""
    return json.dumps(document(), indent=1) + "\n"


def document() -> dict[str, Any]:
    """Return the document of all routes."""
    app, bodies = FastAPI(generate_unique_id_function=lambda route: route.name), set[Any]()
    for route in ROUTES:
        told = OPERATIONS[route.name]
        problems, more = [*told.problems], dict(told.more or {})
        if shape := told.body:
            bodies.add(shape)
            problems.append("body")
            content = {
                "schema": {"$ref": _REF.format(model=shape.__name__)},
                "examples": {"example": {"value": _EXAMPLES["bodies"][shape.__name__]}},
            }
            more["openapi_extra"] = {
                "requestBody": {"required": True, "content": {"application/json": content}}
            }
        if route.path in OPEN_PATHS:
            more["openapi_extra"] = {"security": []}
        responses, model = {**(told.responses or {}), **_problems(problems)}, told.answer
        if isinstance(told.answer, str):
            schema = {told.answer: {"schema": {"type": "string"}}}
            responses[200] = {"description": "The answer.", "content": schema}
            model, more["response_class"] = None, Response
        app.add_api_route(
            route.path,
            route.endpoint,
            # Probes of load balancers ask by HEAD; the document needs each operation once.
            methods=[*route.methods - {"HEAD"}],
            name=route.name,
            tags=[*told.tags.split()],
            response_model=model,
            responses=responses,
            **more,
        )
    made = get_openapi(
        title="nbext", version=__version__, description=_DESCRIPTION, routes=app.routes
    )
    shapes: list[tuple[Any, Literal["validation"], TypeAdapter[Any]]] = [
        (shape.__name__, "validation", TypeAdapter(shape))
        for shape in sorted({wire.ProblemAnswer, *bodies}, key=lambda shape: shape.__name__)
    ]
    _, ours = TypeAdapter.json_schemas(shapes, ref_template=_REF)
    ours["$defs"]["ProblemAnswer"]["properties"]["code"]["enum"] = list(CODES)
    made["components"]["schemas"] |= _with_language(ours["$defs"])
    key = {"type": "apiKey", "in": "header", "name": wire.KEY_HEADER}
    made["components"]["securitySchemes"] = {"key": key}
    made["security"] = [{"key": []}]
    for operation in (each for methods in made["paths"].values() for each in methods.values()):
        name = operation["operationId"]
        if name in _WAITING:
            operation.setdefault("parameters", []).append(_PREFER)
        if name in _BEGINNING:
            operation["parameters"].append(_IDEMPOTENCY)
        for part, example in _LOOK_UPS.get(name, {}).items():
            (told,) = (one for one in operation["parameters"] if one["name"] == part)
            told["schema"] |= {**_PARTS[part], "examples": [example]}
            told["description"] = _PARTS[part]["description"]
    # Not in the routes' own `responses`: FastAPI drops every null in them.
    for path, example in _EXAMPLES["answers"].items():
        answer = made["paths"][path]["get"]["responses"]["200"]
        answer["content"]["application/json"]["example"] = example
    return made


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
