"""The shapes of bodies and answers, as FastAPI and Pydantic read them into the OpenAPI document.

Answers are the wire's TypedDicts and models made from its tables of fields, so that a field has one definition for
client and service. The routes build answers as plain dicts, which mypy holds to these types; bodies are read by
`bodies.read_body`, which reports every error with its pointer, and their models only describe them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model, with_config
from typing_extensions import TypedDict

from nbext.core.chains import CHAINS, DEFAULT_CHAIN, chain_names
from nbext.core.constants import MAX_EMAIL, MAX_SEARCH_TERM
from nbext.core.operations import (
    NFT_FIELDS,
    SEARCH_FIELDS,
    SIGN_UP_FIELDS,
    TOKEN_FIELDS,
    AsOf,
    Column,
    Counts,
    Page,
    SearchType,
    SegmentAnswer,
    SegmentRows,
)
from nbext.service.http.problems import CODES
from nbext.service.metadata import DEFAULT_HITS, MAX_HITS, MAX_OFFSET

# An answer has the fields of its shape and no others: a field that is added but not described fails the tests.
_CLOSED = ConfigDict(extra="forbid")
for _shape in (AsOf, Column, Counts, Page, SegmentAnswer, SegmentRows):
    with_config(_CLOSED)(_shape)

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    # JSON numbers lose digits beyond 2^53 in most readers.
    "uint256": Annotated[str, Field(pattern="^[0-9]{1,78}$", description="A whole number of up to 256 bits.")],
    "number": float,
    "boolean": bool,
    "object": dict[str, Any],
}
_NEVER_NULL = {"chain", "chainId", "address", "checksumAddress", "score", "email", "status", "delivered"}


def _model(name: str, table: Mapping[str, str]) -> type[BaseModel]:
    """Return the model of an answer whose fields the wire lists in a table."""
    fields: dict[str, Any] = {
        field: (_TYPES[kind] if field in _NEVER_NULL else _TYPES[kind] | None, ...) for field, kind in table.items()
    }
    return create_model(name, __config__=_CLOSED, **fields)


Token = _model("Token", TOKEN_FIELDS)
Collection = _model("Collection", NFT_FIELDS)
SignUpAnswer = _model("SignUpAnswer", SIGN_UP_FIELDS)
_Hits: Any = list[_model("SearchHit", SEARCH_FIELDS)]  # type: ignore[misc]  # a model made at run time is no type to mypy
SearchAnswer = create_model(
    "SearchAnswer", __config__=_CLOSED, type=(SearchType, ...), chain=(str, ...), searchTerm=(str, ...),
    total=(int, ...), limit=(int, ...), offset=(int, ...),
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
class Health(TypedDict):
    """Whether the service answers."""

    status: Literal["ok"]


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
            min_length=1, max_length=MAX_SEARCH_TERM, description="A name, symbol or address; no pattern.",
            # At least one character that is not a space, and no NUL.
            json_schema_extra={"pattern": r"^[^\u0000]*[^\s\u0000][^\u0000]*$"},
        ),
    ]
    limit: Annotated[int, Field(ge=1, le=MAX_HITS)] = DEFAULT_HITS
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = 0


class SignUpRequest(BaseModel, extra="forbid"):
    """The body of a sign-up."""

    email: Annotated[
        str,
        Field(
            max_length=MAX_EMAIL, description="An e-mail address. Internationalised addresses are accepted too.",
            # No pattern can say what email-validator accepts: this one says the usual addresses, and `not` the names
            # that are reserved and that it refuses.
            json_schema_extra={
                "pattern": r"^[A-Za-z0-9][A-Za-z0-9_+]{0,60}@([a-z][a-z0-9]{0,30}\.){1,3}[a-z]{2,12}$",
                "not": {"pattern": r"\.(arpa|invalid|local|localhost|onion|test)$"},
            },
        ),
    ]
