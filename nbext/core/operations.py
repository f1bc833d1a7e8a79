"""The eight operations: their paths, bodies and answers, once, for the client and for the service."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

# Pydantic reads these for the OpenAPI document, and takes the TypedDict of `typing` only from Python 3.12 on.
from typing_extensions import TypedDict

Operator = Literal["AND", "OR"]
FileType = Literal["json", "csv"]
Status = Literal["queued", "running", "completed", "failed", "cancelled", "expired"]
SearchType = Literal["nft", "erc721", "erc1155", "token"]

OPERATORS: tuple[Operator, ...] = ("AND", "OR")
FILE_TYPES: tuple[FileType, ...] = ("json", "csv")
SEARCH_TYPES: tuple[SearchType, ...] = ("nft", "erc721", "erc1155", "token")
STATUSES: tuple[Status, ...] = ("queued", "running", "completed", "failed", "cancelled", "expired")

KEY_HEADER = "x-api-key"

EXECUTE = "/v1/segment/execute"
SEARCH = "/v1/search"
SIGN_UP = "/v1/signup/newsletter"
TOKEN = "/v1/tokens/{chain}/{address}"
NFT = "/v1/nfts/{chain}/{address}"
SEGMENT = "/v1/segment/{id}"
SEGMENT_JSON = "/v1/segment/{id}/json"
SEGMENT_CSV = "/v1/segment/{id}/csv"

# Beside the eight operations, our own service answers these; a remote need not. DELETE on SEGMENT cancels.
SEGMENT_ARROW = "/v1/segment/{id}/arrow"
ABOUT = "/about"
SCHEMA = "/schema"
EXPLAIN = "/explain"
HEALTH = "/healthz"
METRICS = "/metrics"
OPENAPI = "/openapi.json"
DOCS = "/docs"

# Headers beside the key's.
IDEMPOTENCY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
REQUEST_ID_HEADER = "x-request-id"

PROBLEM_TYPE = "application/problem+json"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
CSV_TYPE = "text/csv; charset=utf-8"


class ExecuteRequest(TypedDict):
    """The body of POST /v1/segment/execute."""

    operator: Operator
    filters: dict[str, Any]
    fileType: FileType
    limit: int


class SearchRequest(TypedDict):
    """The body of POST /v1/search. Our service also takes ``limit`` (1 to 100) and ``offset``."""

    type: SearchType
    chain: str
    searchTerm: str
    limit: NotRequired[int]
    offset: NotRequired[int]


class SignUpRequest(TypedDict):
    """The body of POST /v1/signup/newsletter."""

    email: str


class Column(TypedDict):
    """One column of a segment's rows.

    ``type`` is ``string``, ``integer`` (fits 64 bits) or ``uint256`` (digits as text in JSON).
    ``decimals`` is set where the column is an amount of a token in its smallest unit.
    """

    name: str
    type: Literal["string", "integer", "uint256"]
    decimals: NotRequired[int | None]
    symbol: NotRequired[str | None]
    chain: NotRequired[str]
    address: NotRequired[str]


class AsOf(TypedDict):
    """The block a result holds at; ``timestamp`` is ISO-8601 UTC, null where the data has none."""

    block: int
    timestamp: str | None


class Counts(TypedDict):
    """How many wallets match, and how many rows the result keeps."""

    matched: int | None
    returned: int | None


class SegmentAnswer(TypedDict):
    """The answer of execute, and of reading a segment by its id."""

    id: str
    status: Status
    operator: Operator
    filters: dict[str, Any]
    fileType: FileType
    limit: int
    chain: str
    chainId: int
    asOf: AsOf | None
    counts: Counts
    truncated: bool
    columns: list[Column]
    preview: list[dict[str, Any]]
    links: dict[str, str]
    createdAt: str
    completedAt: str | None
    durationMs: int | None
    cached: bool
    warnings: list[str]
    error: dict[str, Any] | None


class Page(TypedDict):
    """Where a page of rows stands; ``next`` is a path, or null on the last page."""

    limit: int
    offset: int
    total: int
    next: str | None


class SegmentRows(TypedDict):
    """The answer of exporting a segment as JSON."""

    id: str
    columns: list[Column]
    data: list[dict[str, Any]]
    page: Page


# The answers' fields in the order of the tables made of them, each with the type of its values.
# Types: string, integer (64 bits), uint256 (digits as text), number, boolean, object.
TOKEN_FIELDS: dict[str, str] = {
    "chain": "string",
    "chainId": "integer",
    "address": "string",
    "checksumAddress": "string",
    "name": "string",
    "symbol": "string",
    "decimals": "integer",
    "totalSupply": "uint256",
    "logo": "string",
    "verified": "boolean",
    "possibleSpam": "boolean",
    "deployedBlockNumber": "integer",
    "holders": "integer",
    "transfers": "integer",
    "asOf": "object",
}
NFT_FIELDS: dict[str, str] = {
    "chain": "string",
    "chainId": "integer",
    "address": "string",
    "checksumAddress": "string",
    "name": "string",
    "symbol": "string",
    "tokenType": "string",
    "totalSupply": "uint256",
    "ownerCount": "integer",
    "contractDeployer": "string",
    "floorPrice": "number",
    "logo": "string",
    "verified": "boolean",
    "possibleSpam": "boolean",
    "deployedBlockNumber": "integer",
    "transfers": "integer",
    "asOf": "object",
}
SEARCH_FIELDS: dict[str, str] = {
    "chain": "string",
    "chainId": "integer",
    "address": "string",
    "name": "string",
    "symbol": "string",
    "tokenType": "string",
    "totalSupply": "uint256",
    "ownerCount": "integer",
    "verified": "boolean",
    "possibleSpam": "boolean",
    "imageUrl": "string",
    "score": "number",
}
SIGN_UP_FIELDS: dict[str, str] = {"email": "string", "status": "string", "delivered": "boolean"}
SEGMENT_FIELDS: dict[str, str] = {
    "id": "string",
    "status": "string",
    "operator": "string",
    "filters": "object",
    "fileType": "string",
    "limit": "integer",
    "chain": "string",
    "chainId": "integer",
    "asOf": "object",
    "matched": "integer",
    "returned": "integer",
    "truncated": "boolean",
    "createdAt": "string",
    "completedAt": "string",
    "durationMs": "integer",
    "cached": "boolean",
    "warnings": "object",
    "error": "object",
}
