"""The segment language's groups, scope keys, shared fields and limits; the conditions are in ``conditions/``.

Parsing, the JSON Schema, error messages, help and forms are all made of these. A field's ``kind`` names how its value
is read and described (`nbext.language.field_types`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Raised when a query of the same text would mean something else: it is part of each segment's id.
GRAMMAR = 2
# Every level takes several frames in each step: far below Python's own 1,000, far above what people nest.
MAX_DEPTH = 16
# Each is a statement of its own on DuckDB: this bounds what one request may cost.
MAX_CONDITIONS = 200
# Of these each is counted twice where a segment has no wallet.
MAX_EXPLAINED = 10
# Spark gets the list as text in the statement: 10,000 addresses are 450 KB.
MAX_LIST = 10_000
MAX_COLLECTIONS = 100
# An id of more than 26 digits is three comparisons in the statement, not an element of a list.
MAX_TOKEN_IDS = 1_000


@dataclass(frozen=True)
class Field:
    """One field of a condition, or one scope key.

    Attributes
    ----------
    kind
        How the value is read: a name of `nbext.language.field_types.KINDS`.
    unit
        What a number counts, where it counts something.
    choices
        The words that a field of kind ``choice`` takes.
    most
        The greatest length of a list.
    """

    name: str
    kind: str
    help: str
    unit: str | None = None
    default: Any = None
    examples: tuple[Any, ...] = ()
    required: bool = False
    choices: tuple[str, ...] = ()
    most: int = MAX_LIST


@dataclass(frozen=True)
class GroupKey:
    """One way to join conditions. ``takes`` is ``list`` (of maps), or ``map`` (one map, or a list of them)."""

    name: str
    help: str
    takes: str
    examples: tuple[Any, ...]


# Known to every reader, so that an example needs no explanation.
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
BAYC = "0xBC4CA0EdA7647A8aB7C2061c2E118A18a936f13D"
VITALIK = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"

CHAIN = Field(
    "chain",
    "chain",
    "The chain of this condition; without it, the segment's.",
    examples=("polygon", "eip155:10", 8453),
)
UNIT = Field(
    "unit",
    "choice",
    "What amounts are written in: the token's own unit, or its smallest one.",
    default="token",
    choices=("token", "raw"),
    examples=("raw",),
)
HELD_SINCE = Field(
    "heldSince",
    "time",
    "Since this time (a date: its 00:00 UTC) the holding never fell below min; without min, never to zero.",
    examples=("90d", "2024-01-01", 19_000_000),
)

SCOPE = (
    Field(
        "chain",
        "chain",
        "The chain of conditions that do not name one.",
        default="ethereum",
        examples=("base",),
    ),
    Field(
        "asOf",
        "until",
        "Answer as of this time or block; a date is the end of its day. Without it, the data's last "
        "block.",
        examples=("2024-06-30T00:00:00Z", "30d", 19_000_000),
    ),
    Field(
        "exclude",
        "exclude",
        'Wallets never to return: addresses, and "burn" for the zero address and 0x...dEaD. '
        "An empty list excludes none.",
        default=["burn"],
        examples=(["burn", VITALIK], []),
    ),
    Field(
        "orderBy",
        "order",
        'The column that orders the rows, with "-" in front for the largest first; ties by '
        "address. The limit returns the first rows of all that match. Without it: by address.",
        examples=("-UNI_balance", "firstSeen", "-address"),
    ),
    Field(
        "columns",
        "columns",
        "More columns beside the balances: when the wallet was first and last seen on the "
        "segment's chain, how many transfers it took part in there, and on how many days.",
        choices=("firstSeen", "lastSeen", "transfers", "activeDays"),
        examples=(["firstSeen", "transfers"],),
    ),
)

GROUPS = (
    GroupKey(
        "all",
        "Every one of these holds.",
        "list",
        ([{"token": {"token": "USDC"}}, {"nft": {"nft": "BAYC"}}],),
    ),
    GroupKey(
        "any",
        "At least one of these holds.",
        "list",
        ([{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "AZUKI"}}],),
    ),
    GroupKey(
        "not",
        "This does not hold. A list is several keys: each of its members does not hold (beside AND).",
        "map",
        ({"nft": {"nft": "BAYC"}},),
    ),
)

GROUP = {group.name: group for group in GROUPS}
SCOPE_KEY = {field.name: field for field in SCOPE}
