"""What crosses HTTP, defined once: paths, headers, and the shapes of bodies and answers.

FastAPI writes the OpenAPI document from the shapes, and `nbext.core.rules` holds values to them; importing this module
loads neither FastAPI nor pydantic.
"""

# No annotations as texts: there Python takes a key that is NotRequired for a required one.

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, get_args

from annotated_types import Ge, Le, Len, MaxLen

# Pydantic takes the TypedDict of `typing` only from Python 3.12 on.
from typing_extensions import TypedDict, is_typeddict

from nbext.core.addresses import LIST_ID_PATTERN
from nbext.core.chains import CHAINS, DEFAULT_CHAIN, chain_names, chain_of
from nbext.core.rules import MAX_EMAIL, MAX_LIMIT, MAX_SEARCH_TERM, SEGMENT_ID_PATTERN, Rule
from nbext.core.untrusted_text import shown
from nbext.errors import FieldError, ValidationError, did_you_mean

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
# Wallets that one request for what they hold names one by one.
MAX_WALLETS = 1_000
# A list of wallets: the 20 bytes of each address, one after the other.
ADDRESSES_TYPE = "application/octet-stream"
# Hits of one search, and how far into them a page may begin.
DEFAULT_HITS, MAX_HITS, MAX_OFFSET = 20, 100, 1_000_000
# How many wallets of a segment have to hold a contract of its profile, where the request does not say.
LEAST = 5


def _text(pattern: str, **schema: Any) -> Rule:
    return Rule(core={"type": "str", "pattern": pattern}, type="string", pattern=pattern, **schema)


def _of_the_language(name: str, absent: tuple[str, str] | None = None, **schema: Any) -> Rule:
    """Return the rule of a field that the segment language checks: here it may be anything."""
    return Rule(core={"type": "any"}, absent=absent, x_language=name, **schema)


# Readers of JSON lose digits beyond 2^53.
Uint256 = Annotated[str, _text("^[0-9]{1,78}$", description="A whole number of up to 256 bits.")]
SegmentId = Annotated[str, _text(f"^{SEGMENT_ID_PATTERN}$")]
# Not looked into: a page has a hundred thousand.
Row = Annotated[
    dict[str, Any],
    Rule(core={"type": "is-instance", "cls": dict}, type="object", additionalProperties=True),
]
_Operator = Annotated[Operator, _of_the_language("operator")]
_Filters = Annotated[dict[str, Any], _of_the_language("filters")]
_Time = Annotated[str | int, _of_the_language("asOf")]


class ExecuteRequest(TypedDict):
    """Which wallets to return: conditions, how they are joined, and how many rows."""

    operator: NotRequired[_Operator]
    filters: _Filters
    fileType: NotRequired[Annotated[FileType, _of_the_language("fileType")]]
    limit: NotRequired[Annotated[int, _of_the_language("limit")]]


EXECUTE_KEYS = tuple(ExecuteRequest.__annotations__)


class ExplainRequest(ExecuteRequest):
    """The body of an explanation: a segment request, and whether to count its parts."""

    parts: NotRequired[
        Annotated[
            bool,
            Rule(
                "type",
                "parts is true or false.",
                default=False,
                description="Count each condition alone, too.",
            ),
        ]
    ]


class SegmentFilters(TypedDict):
    """A segment by its conditions alone."""

    operator: NotRequired[_Operator]
    filters: _Filters


def _places(body: Mapping[str, Any]) -> str:
    segments = body.get("segments")
    last = len(segments) if isinstance(segments, list) else MAX_COMPARED
    return (
        f"A count is a list of places of segments, each once: 0 to {last - 1}. After one of these, "
        f"-1 to {-last} are those whose wallets are left out: -1 is place 0, -2 place 1."
    )


class CountsRequest(TypedDict):
    """The body of a request for counts: segments, and for each count the places of those it is of.

    A place below zero, which is ``~place`` in Python, leaves the wallets of that segment out.
    """

    segments: Annotated[
        list[
            Annotated[
                SegmentFilters,
                Rule(
                    "type",
                    'A segment here is an object with "filters", and "operator" where it is not AND.',
                ),
            ]
        ],
        Len(1, MAX_COMPARED),
        Rule("size", f"segments is a list of 1 to {MAX_COMPARED} requests."),
    ]
    counts: Annotated[
        list[
            Annotated[
                list[Annotated[int, Ge(-MAX_COMPARED), Le(MAX_COMPARED - 1)]],
                Len(1, MAX_COMPARED),
                Rule(
                    "range",
                    _places,
                    uniqueItems=True,
                    description="Places of some of the segments; -1 - place: without the wallets of that one.",
                ),
            ]
        ],
        Len(1, MAX_COUNTS),
        Rule("size", f"counts is a list of 1 to {MAX_COUNTS:,} lists of places."),
    ]
    amounts: NotRequired[
        Annotated[
            bool | str,
            Rule(
                "type",
                "amounts is true, false, or the symbol or address of a contract.",
                default=False,
                description="Return what each segment holds, too: of the contract of this symbol or address, or of the "
                "first of its rows.",
            ),
        ]
    ]


def check_places(body: CountsRequest) -> None:
    """Refuse a count that names a place twice, one that no segment has, or only what it is not of.

    No shape can say this.
    """
    for place, one in enumerate(body["counts"]):
        named = {~each if each < 0 else each for each in one}
        if one[0] < 0 or len(named) < len(one) or max(named) >= len(body["segments"]):
            raise ValidationError.of(f"/counts/{place}", "range", _places(body))


class HoldingsRequest(TypedDict):
    """The body of a request for what wallets hold."""

    wallets: Annotated[
        list[
            Annotated[
                str,
                # A list in a segment may also name saved segments. What else an address is, the language says; in lower
                # case here, because no pattern can say that its capitals are its checksum.
                Rule(
                    "type",
                    "A wallet is an address: 0x and 40 hex digits.",
                    core={"type": "str", "pattern": f"^(0x|{LIST_ID_PATTERN}$)"},
                    type="string",
                    pattern=f"^(0x[0-9a-f]{{40}}|{LIST_ID_PATTERN})$",
                    description="An address; or, alone, the id of a stored list of wallets.",
                ),
            ]
        ],
        Len(1, MAX_WALLETS),
        Rule("size", f"wallets is a list of 1 to {MAX_WALLETS:,} addresses."),
    ]
    chain: NotRequired[
        Annotated[
            str | int,
            _of_the_language(
                "chain", description="The chain of the holdings; without it all chains of the data."
            ),
        ]
    ]
    asOf: NotRequired[_Time]


class ProfileRequest(SegmentFilters):
    """The body of a request for a profile."""

    base: NotRequired[
        Annotated[
            SegmentFilters,
            Rule(
                "type",
                'A base is an object with "filters", and "operator" where it is not AND.',
                description="Whom the segment is compared with; without it all wallets seen on its chains.",
            ),
        ]
    ]
    least: NotRequired[
        Annotated[
            int,
            Ge(1),
            Le(MAX_LIMIT),
            Rule(
                "range",
                f"least is a whole number from 1 to {MAX_LIMIT:,}.",
                default=LEAST,
                description="How many wallets of the segment have to hold a contract.",
            ),
        ]
    ]


class ChangesRequest(SegmentFilters):
    """The body of a request for changes."""

    since: Annotated[
        str | int,
        _of_the_language(
            "asOf",
            ("missing", "since is missing: a time, a span back such as 30d, or a block."),
            description="The earlier time.",
        ),
    ]


def _check_type(given: Any) -> None:
    if given not in SEARCH_TYPES:
        hint = did_you_mean(given, SEARCH_TYPES) if isinstance(given, str) else ""
        allowed = f"Allowed: {', '.join(SEARCH_TYPES)}."
        raise ValidationError.of(
            "/type", "type", f"{shown(given)} is not a type of contract.{hint} {allowed}"
        )


_NO_TERM = 'A search needs a term: a name, a symbol or an address, or "" for all by holders.'


def _check_term(given: Any) -> None:
    if not isinstance(given, str):
        raise ValidationError.of("/searchTerm", "required", _NO_TERM)
    if len(given) > MAX_SEARCH_TERM:
        detail = (
            f"A search term has at most {MAX_SEARCH_TERM} characters; this one has {len(given):,}."
        )
        raise ValidationError.of("/searchTerm", "length", detail)
    if "\x00" in given:
        raise ValidationError.of(
            "/searchTerm", "character", "A search term cannot have a NUL character."
        )


class SearchRequest(TypedDict):
    """The body of a search; ``limit`` and ``offset`` are our own service's."""

    type: NotRequired[Annotated[SearchType, Rule(by=_check_type, default="nft")]]
    chain: NotRequired[
        Annotated[
            str | int,
            Rule(
                core={"type": "any"},
                by=chain_of,
                enum=[*chain_names(), *(chain.id for chain in CHAINS)],
                default=DEFAULT_CHAIN.name,
                description="A name or EIP-155 id; the usual aliases and CAIP-2 identifiers are accepted too.",
            ),
        ]
    ]
    searchTerm: Annotated[
        str,
        MaxLen(MAX_SEARCH_TERM),
        Rule(
            absent=("required", _NO_TERM),
            by=_check_term,
            pattern=r"^[^\u0000]*$",
            description="A name, symbol or address; no pattern. Empty: all, by holders.",
        ),
    ]
    limit: NotRequired[
        Annotated[
            int,
            Ge(1),
            Le(MAX_HITS),
            Rule("range", f"limit is a whole number from 1 to {MAX_HITS:,}.", default=DEFAULT_HITS),
        ]
    ]
    offset: NotRequired[
        Annotated[
            int,
            Ge(0),
            Le(MAX_OFFSET),
            Rule("range", f"offset is a whole number from 0 to {MAX_OFFSET:,}.", default=0),
        ]
    ]


def email_of(given: object) -> str:
    """Return an e-mail address as it is stored, or raise ValidationError that says what is wrong with it."""
    if not isinstance(given, str):
        raise ValidationError.of("/email", "type", "An e-mail address is a string.")
    # email-validator takes seconds on a megabyte: the length is checked first.
    if len(given) > MAX_EMAIL:
        detail = (
            f"An e-mail address has at most {MAX_EMAIL} characters; this one has {len(given):,}."
        )
        raise ValidationError.of("/email", "length", detail)
    # It takes 30 ms to load, and most sessions and services never have an address.
    from email_validator import EmailNotValidError, validate_email

    try:
        return validate_email(given, check_deliverability=False).normalized
    except EmailNotValidError as error:
        raise ValidationError.of("/email", "email", str(error)) from None


class SignUpRequest(TypedDict):
    """The body of a sign-up."""

    email: Annotated[
        str,
        MaxLen(MAX_EMAIL),
        Rule(
            absent=("required", 'A sign-up needs an address: {"email": "reader@example.com"}'),
            by=email_of,
            # No pattern can say what email-validator accepts: this one says the usual addresses, and `not` the names
            # that are reserved and that it refuses.
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_+]{0,60}@([a-z][a-z0-9]{0,30}\.){1,3}[a-z]{2,12}$",
            **{"not": {"pattern": r"\.(arpa|invalid|local|localhost|onion|test)$"}},
            description="An e-mail address. Internationalised addresses are accepted too.",
        ),
    ]


class Column(TypedDict):
    """One column of a segment's rows.

    ``type`` is ``string``, ``integer`` (fits 64 bits), ``uint256`` (whole numbers of any size, digits as text in
    JSON), ``float64`` or ``timestamp`` (ISO-8601 UTC, to the second). An amount of a token comes as two columns:
    ``unit`` is ``token`` in that of floats, each the float nearest to the exact amount, and ``raw`` in the exact one,
    in the token's smallest unit. Where ``decimals`` is null the exact one is alone. A ``share`` is the float nearest to
    the exact amount divided by ``supply``; null where that is.
    """

    name: str
    type: Literal["string", "integer", "uint256", "float64", "timestamp"]
    unit: NotRequired[Literal["token", "raw", "share"]]
    decimals: NotRequired[int | None]
    supply: NotRequired[Uint256 | None]
    symbol: NotRequired[str | None]
    chain: NotRequired[str]
    address: NotRequired[str]


class AsOf(TypedDict):
    """The block at which a result was computed.

    ``timestamp`` is ISO-8601 UTC, or null if the data has none; ``hash`` is the block's, where the data has it.
    """

    block: int
    timestamp: str | None
    hash: NotRequired[Annotated[str, _text("^0x[0-9a-f]{64}$")]]


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


class SegmentAnswer(TypedDict):
    """The answer to executing a segment, and to reading one by its id; its keys tell our own service from others.

    ``fingerprint`` is that of the data. ``profile`` is there of a segment's profile, once it is made;
    ``since``, the earlier time, of its changes.
    """

    id: SegmentId
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
    preview: list[Row]
    links: dict[str, str]
    createdAt: str
    completedAt: str | None
    durationMs: int | None
    cached: bool
    warnings: list[str]
    error: dict[str, Any] | None
    fingerprint: NotRequired[str]
    profile: NotRequired[Profile]
    since: NotRequired[AsOf]


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
    data: list[Row]
    page: Page


class _ContractAnswer(TypedDict):
    """Which contract it is."""

    chain: str
    chainId: int
    address: str
    checksumAddress: str
    name: str | None
    symbol: str | None


class TokenAnswer(_ContractAnswer):
    """The metadata of an ERC20 token; ``warnings`` say what of it may be incomplete, or is inferred."""

    decimals: int | None
    totalSupply: Uint256 | None
    logo: str | None
    verified: bool | None
    possibleSpam: bool | None
    deployedBlockNumber: int | None
    holders: int | None
    transfers: int | None
    asOf: AsOf | None
    warnings: list[str]


class CollectionAnswer(_ContractAnswer):
    """The metadata of an NFT collection; ``warnings`` as of a token."""

    tokenType: str | None
    totalSupply: Uint256 | None
    ownerCount: int | None
    contractDeployer: str | None
    floorPrice: float | None
    logo: str | None
    verified: bool | None
    possibleSpam: bool | None
    deployedBlockNumber: int | None
    transfers: int | None
    asOf: AsOf | None
    warnings: list[str]


class SearchHit(TypedDict):
    """One contract that a search found; ``score`` is how well it fits."""

    chain: str
    chainId: int
    address: str
    name: str | None
    symbol: str | None
    tokenType: str | None
    totalSupply: Uint256 | None
    ownerCount: int | None
    verified: bool | None
    possibleSpam: bool | None
    imageUrl: str | None
    score: float


class SearchAnswer(TypedDict):
    """The answer to a search: one page of its hits, best first; without any, ``warnings`` say what is near."""

    type: SearchType
    chain: str
    searchTerm: str
    total: int
    limit: int
    offset: int
    items: list[SearchHit]
    warnings: list[str]


class SignUpAnswer(TypedDict):
    """The answer to a sign-up."""

    email: str
    status: str
    delivered: bool


class Extent(TypedDict):
    """The blocks of one chain that the data covers."""

    chain: str
    chainId: int
    firstBlock: int
    lastBlock: int
    lastTimestamp: str | None


class Data(TypedDict):
    """The data that a service answers from."""

    name: str
    synthetic: bool
    fingerprint: str
    chains: list[Extent]


class About(TypedDict):
    """Which service this is, and whose data it has."""

    service: str
    version: str
    grammar: int
    engine: str
    data: Data
    links: dict[str, str]


class Part(TypedDict):
    """One condition of a segment, counted alone."""

    words: str
    matched: int


class Asked(TypedDict):
    """What a segment of a request means; ``chains`` are those whose wallets it sees."""

    words: str
    canonical: dict[str, Any]
    asOf: AsOf
    chains: list[str]
    warnings: list[str]


class Explained(Asked):
    """What a segment would do; with ``parts``, how many wallets match it and each of its conditions alone."""

    id: str
    sql: str | None
    plan: str | None
    matched: NotRequired[int]
    parts: NotRequired[list[Part]]


class Sum(TypedDict):
    """What a segment's wallets hold together of the first token or collection of its rows."""

    symbol: str | None
    decimals: int | None
    amount: float | None
    amountRaw: str


class CountedSegment(Asked):
    """What a segment of a request for counts means; ``chains`` are those whose wallets it sees.

    ``held`` is there where amounts are asked, null of one without balances.
    """

    held: NotRequired[Sum | None]


class Counted(TypedDict):
    """How many wallets segments have in common, in the order asked; what each segment means; and of which data."""

    counts: list[int]
    segments: list[CountedSegment]
    fingerprint: str


class FunnelCondition(TypedDict):
    """A condition that must hold, counted alone, and together with those before it."""

    words: str
    filters: dict[str, Any]
    alone: int
    remaining: int


class Funnel(Asked):
    """The conditions of a segment that must all hold, in order; ``fingerprint`` is that of the data.

    ``sample`` has the segment's first wallets, as many as the request's ``limit`` and at most 10.
    """

    steps: list[FunnelCondition]
    sample: list[str]
    fingerprint: str


class ChainEnd(TypedDict):
    """The block of a chain that balances are of."""

    chain: str
    block: int
    timestamp: str | None


class Holdings(TypedDict):
    """What an answer of holdings says beside its rows: JSON under ``nbext`` in the metadata of their Arrow schema."""

    asOf: AsOf
    chains: list[ChainEnd]
    warnings: list[str]


# The columns of its rows, which are Arrow.
HELD_FIELDS = {
    "address": "string",
    "chain": "string",
    "contract": "string",
    "symbol": "string",
    "name": "string",
    "tokenType": "string",
    "amount": "float64",
    "amount_raw": "uint256",
    "share": "float64",
    "verified": "boolean",
    "possibleSpam": "boolean",
}


class Health(TypedDict):
    """Whether the service answers."""

    status: Literal["ok"]


class Readiness(TypedDict):
    """Whether the service can run segments: each check by name. ``sample`` where nothing has been ingested."""

    status: Literal["ready"]
    data: Literal["ingested", "sample"]
    checks: dict[str, Literal["ok"]]


class ProblemAnswer(TypedDict):
    """An error (RFC 9457). ``code`` is stable; ``detail`` is for people."""

    type: Annotated[str, Rule(format="uri")]
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: str
    errors: list[FieldError]


# A body and an answer have the fields of their shape and no others: one that is added, and not here, fails the tests.
for _shape in list(vars().values()):
    if is_typeddict(_shape) and _shape is not ProblemAnswer:
        _shape.__pydantic_config__ = {
            # The language names what is unknown in these itself.
            "extra": "ignore" if _shape in (ExecuteRequest, ExplainRequest) else "forbid",
            "json_schema_extra": {"additionalProperties": False},
        }

_KINDS = {str: "string", int: "integer", Uint256: "uint256", float: "number", bool: "boolean"}


def _fields(shape: Any) -> dict[str, str]:
    return {
        name: next((_KINDS[each] for each in (hint, *get_args(hint)) if each in _KINDS), "object")
        for name, hint in shape.__annotations__.items()
        if name != "warnings"
    }


# Each answer's fields but its warnings, in the order of its table's columns, with the type of their values: string,
# integer (64 bits), uint256 (digits as text), number, boolean, object.
TOKEN_FIELDS, NFT_FIELDS = _fields(TokenAnswer), _fields(CollectionAnswer)
SEARCH_FIELDS, SIGN_UP_FIELDS = _fields(SearchHit), _fields(SignUpAnswer)
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
