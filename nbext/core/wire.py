"""The eight operations: paths, request bodies, answers and columns, once for the client and the service."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, get_args

# Pydantic reads these for the OpenAPI document, and takes the TypedDict of `typing` only from Python 3.12 on.
from typing_extensions import TypedDict

Operator = Literal["AND", "OR"]
FileType = Literal["json", "csv"]
Status = Literal["queued", "running", "completed", "failed", "cancelled", "expired"]
SearchType = Literal["nft", "erc721", "erc1155", "token"]

OPERATORS: tuple[Operator, ...] = get_args(Operator)
FILE_TYPES: tuple[FileType, ...] = get_args(FileType)
SEARCH_TYPES: tuple[SearchType, ...] = get_args(SearchType)
STATUSES: tuple[Status, ...] = get_args(Status)

KEY_HEADER = "x-api-key"

EXECUTE = "/v1/segment/execute"
SEARCH = "/v1/search"
SIGN_UP = "/v1/signup/newsletter"
TOKEN = "/v1/tokens/{chain}/{address}"
NFT = "/v1/nfts/{chain}/{address}"
SEGMENT = "/v1/segment/{id}"
SEGMENT_JSON = "/v1/segment/{id}/json"
SEGMENT_CSV = "/v1/segment/{id}/csv"

# Our own service has these beside the eight operations; a remote need not. DELETE on SEGMENT cancels.
SEGMENT_ARROW = "/v1/segment/{id}/arrow"
ABOUT = "/about"
SCHEMA = "/schema"
EXPLAIN = "/explain"
COUNTS = "/counts"
FUNNEL = "/funnel"
HOLDINGS = "/holdings"
PROFILE = "/profile"
CHANGES = "/changes"
HEALTH = "/healthz"
READY = "/readyz"
METRICS = "/metrics"
LISTS = "/lists"
LIST = "/lists/{id}"
OPENAPI = "/openapi.json"
DOCS = "/docs"

IDEMPOTENCY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
REQUEST_ID_HEADER = "x-request-id"
# The fingerprint of the data that our own service serves now, in each answer to a key.
DATA_HEADER = "x-nbext-data"

PROBLEM_TYPE = "application/problem+json"
ARROW_TYPE = "application/vnd.apache.arrow.stream"
CSV_TYPE = "text/csv; charset=utf-8"
# Segments of one request for counts, and counts: those of all subsets of 12 segments.
MAX_COMPARED, MAX_COUNTS = 128, 4095
# Wallets of one request for what they hold.
MAX_WALLETS = 100
# A list of wallets: the 20 bytes of each address, one after the other.
ADDRESSES_TYPE = "application/octet-stream"


class ExecuteRequest(TypedDict):
    """The body of POST /v1/segment/execute."""

    operator: Operator
    filters: dict[str, Any]
    fileType: FileType
    limit: int


EXECUTE_KEYS = tuple(ExecuteRequest.__annotations__)


class SearchRequest(TypedDict):
    """The body of POST /v1/search. Our service also takes ``limit`` (1 to 100) and ``offset``."""

    type: SearchType
    chain: str
    searchTerm: str
    limit: NotRequired[int]
    offset: NotRequired[int]


SEARCH_KEYS = tuple(SearchRequest.__annotations__)


class SignUpRequest(TypedDict):
    """The body of POST /v1/signup/newsletter."""

    email: str


class Column(TypedDict):
    """One column of a segment's rows.

    ``type`` is ``string``, ``integer`` (fits 64 bits), ``uint256`` (whole numbers of any size, digits as text in
    JSON), ``float64`` or ``timestamp`` (ISO-8601 UTC, to the second). An amount of a token comes as two columns:
    ``unit`` is ``token`` in that of floats, each the float nearest to the exact amount, and ``raw`` in the exact one,
    in the token's smallest unit. Where ``decimals`` is null the exact one is alone.
    """

    name: str
    type: Literal["string", "integer", "uint256", "float64", "timestamp"]
    unit: NotRequired[Literal["token", "raw"]]
    decimals: NotRequired[int | None]
    symbol: NotRequired[str | None]
    chain: NotRequired[str]
    address: NotRequired[str]


class AsOf(TypedDict):
    """The block at which a result was computed; ``timestamp`` is ISO-8601 UTC, or null if the data has none."""

    block: int
    timestamp: str | None


class Counts(TypedDict):
    """How many wallets match, and how many rows the result has."""

    matched: int | None
    returned: int | None


class CommonContract(TypedDict):
    """A contract, and how many wallets of a segment and of its base hold it."""

    chain: str
    contract: str
    symbol: str | None
    name: str | None
    tokenType: str | None
    possibleSpam: bool | None
    wallets: int
    base: int


class CommonActivity(TypedDict):
    """A condition on how old or how active wallets are, and how many of a segment and of its base match it."""

    words: str
    filters: dict[str, Any]
    wallets: int
    base: int


class Profile(TypedDict):
    """What the wallets of a segment hold, those contracts first that they hold most beyond those of the base.

    ``contracts`` is how many contracts at least ``least`` of them hold; ``holdings`` the first 200.
    """

    wallets: int
    base: int
    baseWords: str
    least: int
    contracts: int
    holdings: list[CommonContract]
    activity: list[CommonActivity]


class _Segment(TypedDict):
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


class SegmentAnswer(_Segment, total=False):
    """The answer to executing a segment, and to reading one by its id; its keys tell our own service from others.

    ``profile`` is there of a segment's profile, once it is made; ``since``, the earlier time, of its changes. Where
    annotations are texts, as here, Python takes a key that is NotRequired for a required one.
    """

    profile: Profile
    since: AsOf


class StoredList(TypedDict):
    """The answer to storing a list of wallets, and to asking for one: its id, and how many wallets are in it."""

    id: str
    wallets: int


class Page(TypedDict):
    """Which rows a page holds; ``next`` is the path of the next page, or null on the last one."""

    limit: int
    offset: int
    total: int
    next: str | None


class SegmentRows(TypedDict):
    """The answer to exporting a segment as JSON."""

    id: str
    columns: list[Column]
    data: list[dict[str, Any]]
    page: Page


# Each answer's fields, in the order of its table's columns, with the type of their values: string, integer (64 bits),
# uint256 (digits as text: readers of JSON lose digits beyond 2^53), number, boolean, object.
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
