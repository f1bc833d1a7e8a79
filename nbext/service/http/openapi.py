"""The OpenAPI document: the shapes of bodies and answers as FastAPI reads them, and the parts that it cannot see.

Answers are the wire's TypedDicts and models made from its tables of fields, so that a field has one definition for
client and service. The routes build answers as plain dicts, which mypy holds to these types; bodies are read by
`bodies.read_body`, which reports every error with its pointer, and their models only describe them.

FastAPI does not know problems (another media type), the key (the middleware checks it), and the segment language, whose
JSON Schema is the language's. `document` adds these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model, with_config
from pydantic.json_schema import models_json_schema
from typing_extensions import TypedDict

from nbext.core import wire
from nbext.core.chains import CHAINS, DEFAULT_CHAIN, chain_names
from nbext.core.constants import MAX_EMAIL, MAX_LIMIT, MAX_SEARCH_TERM
from nbext.core.wire import (
    AsOf,
    Column,
    CommonActivity,
    CommonContract,
    Counts,
    Page,
    Profile,
    SearchType,
    SegmentAnswer,
    SegmentRows,
    StoredList,
)
from nbext.service.http.problems import CODES, Problem
from nbext.service.metadata import DEFAULT_HITS, MAX_HITS, MAX_OFFSET
from nbext.service.segments.profile import LEAST

# An answer has the fields of its shape and no others: a field that is added but not described fails the tests.
_CLOSED = ConfigDict(extra="forbid")
for _shape in (
    AsOf,
    Column,
    CommonActivity,
    CommonContract,
    Counts,
    Page,
    Profile,
    SegmentAnswer,
    SegmentRows,
    StoredList,
):
    with_config(_CLOSED)(_shape)

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    # JSON numbers lose digits beyond 2^53 in most readers.
    "uint256": Annotated[
        str, Field(pattern="^[0-9]{1,78}$", description="A whole number of up to 256 bits.")
    ],
    "number": float,
    "boolean": bool,
    "object": dict[str, Any],
}
_NEVER_NULL = {
    "chain",
    "chainId",
    "address",
    "checksumAddress",
    "score",
    "email",
    "status",
    "delivered",
}


def _model(name: str, table: Mapping[str, str]) -> type[BaseModel]:
    """Return the model of an answer whose fields the wire lists in a table."""
    fields: dict[str, Any] = {
        field: (_TYPES[kind] if field in _NEVER_NULL else _TYPES[kind] | None, ...)
        for field, kind in table.items()
    }
    return create_model(name, __config__=_CLOSED, **fields)


Token = _model("Token", wire.TOKEN_FIELDS)
Collection = _model("Collection", wire.NFT_FIELDS)
SignUpAnswer = _model("SignUpAnswer", wire.SIGN_UP_FIELDS)
_Hits: Any = list[_model("SearchHit", wire.SEARCH_FIELDS)]  # type: ignore[misc]  # made at run time
SearchAnswer = create_model(
    "SearchAnswer",
    __config__=_CLOSED,
    type=(SearchType, ...),
    chain=(str, ...),
    searchTerm=(str, ...),
    total=(int, ...),
    limit=(int, ...),
    offset=(int, ...),
    items=(_Hits, ...),
)


@with_config(_CLOSED)
class Extent(TypedDict):
    """The blocks of one chain that the data covers."""

    chain: str
    chainId: int
    firstBlock: int
    lastBlock: int
    lastTimestamp: str | None


@with_config(_CLOSED)
class Data(TypedDict):
    """The data that a service answers from."""

    name: str
    synthetic: bool
    fingerprint: str
    chains: list[Extent]


@with_config(_CLOSED)
class About(TypedDict):
    """Which service this is, and whose data it has."""

    service: str
    version: str
    grammar: int
    engine: str
    data: Data
    links: dict[str, str]


@with_config(_CLOSED)
class Part(TypedDict):
    """One condition of a segment, counted alone."""

    words: str
    matched: int


@with_config(_CLOSED)
class Explained(TypedDict):
    """What a segment would do."""

    id: str
    canonical: dict[str, Any]
    words: str
    sql: str | None
    plan: str | None
    parts: NotRequired[list[Part]]


@with_config(_CLOSED)
class Asked(TypedDict):
    """What a segment of a request for counts means."""

    words: str
    canonical: dict[str, Any]
    asOf: AsOf
    warnings: list[str]


@with_config(_CLOSED)
class Sum(TypedDict):
    """What a segment's wallets hold together of the first token or collection of its rows."""

    symbol: str | None
    decimals: int | None
    amount: float | None
    amountRaw: str


@with_config(_CLOSED)
class Compared(Asked):
    """What a segment of a request for counts means; ``held`` where amounts are asked, null of one without balances."""

    held: NotRequired[Sum | None]


@with_config(_CLOSED)
class Counted(TypedDict):
    """How many wallets segments have in common, in the order asked; and what each segment means."""

    counts: list[int]
    segments: list[Compared]


@with_config(_CLOSED)
class Step(TypedDict):
    """A condition that must hold, counted alone, and together with those before it."""

    words: str
    filters: dict[str, Any]
    alone: int
    remaining: int


@with_config(_CLOSED)
class Funnel(Asked):
    """The conditions of a segment that must all hold, in order; ``chains`` are those whose wallets it sees.

    ``sample`` has the segment's first wallets, as many as the request's ``limit`` and at most 10.
    """

    chains: list[str]
    steps: list[Step]
    sample: list[str]


@with_config(_CLOSED)
class ChainEnd(TypedDict):
    """The block of a chain that balances are of."""

    chain: str
    block: int
    timestamp: str | None


@with_config(_CLOSED)
class Held(TypedDict):
    """What a wallet holds of one contract: ``amount`` in the token's unit, null where its decimals are not known."""

    address: str
    chain: str
    contract: str
    symbol: str | None
    name: str | None
    tokenType: str | None
    decimals: int | None
    amount: float | None
    amountRaw: str
    verified: bool | None
    possibleSpam: bool | None


@with_config(_CLOSED)
class Holdings(TypedDict):
    """What wallets hold, by wallet and chain: spam last, and before it what most wallets hold first."""

    asOf: AsOf
    chains: list[ChainEnd]
    warnings: list[str]
    holdings: list[Held]


@with_config(_CLOSED)
class Health(TypedDict):
    """Whether the service answers."""

    status: Literal["ok"]


class Readiness(TypedDict):
    """Whether the service can run segments: each check by name. ``sample`` where nothing has been ingested."""

    status: Literal["ready"]
    data: Literal["ingested", "sample"]
    checks: dict[str, Literal["ok"]]


class FieldFault(BaseModel, extra="forbid"):
    """What is wrong with one field."""

    pointer: str
    code: str
    detail: str


class ProblemAnswer(BaseModel):
    """An error (RFC 9457). ``code`` is stable; ``detail`` is for people."""

    type: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    title: str
    status: int
    detail: str
    instance: str
    code: Annotated[str, Field(json_schema_extra={"enum": list(CODES)})]
    request_id: str
    errors: list[FieldFault]


class SearchRequest(BaseModel, extra="forbid"):
    """The body of a search."""

    type: SearchType = "nft"
    chain: Annotated[
        str | int,
        WithJsonSchema(
            {
                "enum": [*chain_names(), *(chain.id for chain in CHAINS)],
                "description": "A name or EIP-155 id; the usual aliases and CAIP-2 identifiers are accepted too.",
            }
        ),
    ] = DEFAULT_CHAIN.name
    searchTerm: Annotated[  # noqa: N815 - the wire's name
        str,
        Field(
            max_length=MAX_SEARCH_TERM,
            description="A name, symbol or address; no pattern. Empty: all, by holders.",
            json_schema_extra={"pattern": r"^[^\u0000]*$"},
        ),
    ]
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = DEFAULT_HITS
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = 0


class SignUpRequest(BaseModel, extra="forbid"):
    """The body of a sign-up."""

    email: Annotated[
        str,
        Field(
            max_length=MAX_EMAIL,
            description="An e-mail address. Internationalised addresses are accepted too.",
            # No pattern can say what email-validator accepts: this one says the usual addresses, and `not` the names
            # that are reserved and that it refuses.
            json_schema_extra={
                "pattern": r"^[A-Za-z0-9][A-Za-z0-9_+]{0,60}@([a-z][a-z0-9]{0,30}\.){1,3}[a-z]{2,12}$",
                "not": {"pattern": r"\.(arpa|invalid|local|localhost|onion|test)$"},
            },
        ),
    ]


_REF = "#/components/schemas/{model}"
_DESCRIPTION = (
    f"Every request carries its key in the {wire.KEY_HEADER} header, and every answer an id in "
    f"{wire.REQUEST_ID_HEADER}. Errors are problem objects (RFC 9457)."
)
# What every request with a key may meet, every body, and every body that is a segment.
_ALWAYS = (
    "bad-header",
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
)

# The tests send these, and hold them to their schemas, as they do the examples of answers at the end.
_SEGMENT: dict[str, Any] = {
    "operator": "AND",
    "filters": {"token": {"token": "USDC"}, "not": {"nft": {"nft": "BAYC", "count": {"min": 1}}}},
    "fileType": "json",
    "limit": 1000,
}
_BODY_EXAMPLES: dict[str, dict[str, Any]] = {
    "ExecuteRequest": _SEGMENT,
    "ExplainRequest": {**_SEGMENT, "parts": True},
    "CountsRequest": {
        "segments": [{"filters": {"nft": {"nft": "BAYC"}}}, {"filters": {"nft": {"nft": "MAYC"}}}],
        "counts": [[0], [1], [0, 1]],
    },
    "HoldingsRequest": {
        "wallets": ["0xd8da6bf26964af9d7eed9e03e53415d37aa96045"],
        "chain": "ethereum",
    },
    "ProfileRequest": {"filters": {"nft": {"nft": "BAYC"}}, "least": 5},
    "ChangesRequest": {"filters": {"nft": {"nft": "BAYC"}}, "since": "20h"},
    "SearchRequest": {"type": "nft", "chain": "ethereum", "searchTerm": "bored ape"},
    "SignUpRequest": {"email": "reader@example.com"},
}

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
                wire.PROBLEM_TYPE: {
                    "schema": {"$ref": _REF.format(model="ProblemAnswer")},
                    "examples": {code: {"value": _example(code)} for code in those},
                }
            },
        }
        for status, those in sorted(by_status.items())
    }


def _example(code: str) -> dict[str, Any]:
    return Problem(code, f"{CODES[code][1]}.").body(
        instance=wire.EXECUTE, request_id="5f1c0a9be2d34c77"
    )


RESULT = {
    **NOT_MODIFIED,
    **problems(
        "not-found",
        "invalid",
        "not-ready",
        "not-completed",
        "expired",
        "too-many-at-once",
        "busy",
        "storage",
    ),
}
CONTRACT = {**NOT_MODIFIED, **problems("not-found", "invalid", "ambiguous-symbol")}


def text(media_type: str) -> Responses:
    """Return the response of a route that answers with text or bytes of this type."""
    return {
        200: {"description": "The answer.", "content": {media_type: {"schema": {"type": "string"}}}}
    }


def json_body(model: str) -> dict[str, Any]:
    """Return what a route adds to its operation so that its body is described."""
    content = {
        "schema": {"$ref": _REF.format(model=model)},
        "examples": {"example": {"value": _BODY_EXAMPLES[model]}},
    }
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


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
        _, ours = models_json_schema(
            [(model, "validation") for model in (ProblemAnswer, SearchRequest, SignUpRequest)],
            ref_template=_REF,
        )
        made["components"]["schemas"] |= ours["$defs"] | _language()
        key = {"type": "apiKey", "in": "header", "name": wire.KEY_HEADER}
        made["components"]["securitySchemes"] = {"key": key}
        made["security"] = [{"key": []}]
        # Not in the routes' own `responses`: FastAPI drops every null in them.
        for path, example in _ANSWER_EXAMPLES.items():
            made["paths"][path]["get"]["responses"]["200"]["content"]["application/json"][
                "example"
            ] = example
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
    counted = {
        "type": "boolean",
        "default": False,
        "description": "Count each condition alone, too.",
    }
    explain = {**schema, "properties": {**schema["properties"], "parts": counted}}
    one = {
        **schema,
        "properties": {name: schema["properties"][name] for name in ("operator", "filters")},
    }
    place = {"type": "integer", "minimum": 0, "maximum": wire.MAX_COMPARED - 1}
    several = {"type": "array", "minItems": 1, "maxItems": wire.MAX_COMPARED}
    counts = {
        "type": "object",
        "additionalProperties": False,
        "required": ["segments", "counts"],
        "properties": {
            "segments": {**several, "items": one},
            "amounts": {
                "type": ["boolean", "string"],
                "default": False,
                "description": "Return what each segment holds, too: of the contract of this symbol or "
                "address, or of the first of its rows.",
            },
            "counts": {
                "type": "array",
                "minItems": 1,
                "maxItems": wire.MAX_COUNTS,
                "items": {
                    **several,
                    "items": place,
                    "uniqueItems": True,
                    "description": "Places of some of the segments.",
                },
            },
        },
    }
    scope = schema["properties"]["filters"]["properties"]
    least = {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_LIMIT,
        "default": LEAST,
        "description": "How many wallets of the segment have to hold a contract.",
    }
    compared = {
        **one,
        "description": "Whom the segment is compared with; without it all wallets seen on its chains.",
    }
    profile = {**one, "properties": {**one["properties"], "base": compared, "least": least}}
    changes = {
        **one,
        "required": [*one.get("required", []), "since"],
        "properties": {
            **one["properties"],
            "since": {**scope["asOf"], "description": "The earlier time."},
        },
    }
    # In lower case: no pattern can say that the capitals of an address are its checksum.
    address = {"type": "string", "pattern": "^0x[0-9a-f]{40}$"}
    holdings = {
        "type": "object",
        "additionalProperties": False,
        "required": ["wallets"],
        "properties": {
            "wallets": {
                "type": "array",
                "minItems": 1,
                "maxItems": wire.MAX_WALLETS,
                "items": address,
            },
            "chain": {
                **scope["chain"],
                "description": "The chain of the holdings; without it all chains of the data.",
            },
            "asOf": scope["asOf"],
        },
    }
    return {
        "ExecuteRequest": schema,
        "ExplainRequest": explain,
        "CountsRequest": counts,
        "HoldingsRequest": holdings,
        "ProfileRequest": profile,
        "ChangesRequest": changes,
        **parts,
    }


def _moved(value: Any) -> Any:
    # A reference is relative to its document: what was "#/$defs/token" there is a component here.
    if isinstance(value, dict):
        return {
            key: inner.replace("#/$defs/", _REF.format(model="filters."))
            if key == "$ref"
            else _moved(inner)
            for key, inner in value.items()
        }
    return [_moved(inner) for inner in value] if isinstance(value, list) else value


_USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
_ID = "sg_3oLHuCLomFc3fOZYR73fqkua"
_OWN = wire.SEGMENT.format(id=_ID)
_OF_USDC = {"decimals": 6, "symbol": "USDC", "chain": "ethereum", "address": _USDC}
_COLUMNS = [
    {"name": "address", "type": "string"},
    {"name": "USDC_balance", "type": "float64", "unit": "token", **_OF_USDC},
    {"name": "USDC_balance_raw", "type": "uint256", "unit": "raw", **_OF_USDC},
]
_ROWS = [
    {
        "address": "0x00000000219ab540356cbb839cbe05303d7705fa",
        "USDC_balance": 1250.5,
        "USDC_balance_raw": "1250500000",
    }
]
_ANSWER_EXAMPLES: dict[str, dict[str, Any]] = {
    wire.SEGMENT: {
        "id": _ID,
        "status": "completed",
        **_SEGMENT,
        "chain": "ethereum",
        "chainId": 1,
        "asOf": {"block": 24136000, "timestamp": "2026-01-01T00:00:11Z"},
        "counts": {"matched": 1, "returned": 1},
        "truncated": False,
        "columns": _COLUMNS,
        "preview": _ROWS,
        "links": {"self": _OWN, **{form: f"{_OWN}/{form}" for form in ("json", "csv", "arrow")}},
        "createdAt": "2026-01-02T09:30:00.000Z",
        "completedAt": "2026-01-02T09:30:00.041Z",
        "durationMs": 41,
        "cached": False,
        "warnings": [],
        "error": None,
    },
    wire.SEGMENT_JSON: {
        "id": _ID,
        "columns": _COLUMNS,
        "data": _ROWS,
        "page": {"limit": 100000, "offset": 0, "total": 1, "next": None},
    },
}
