"""The segment language's groups, scope keys, shared fields, limits and rules; the conditions are in ``conditions/``.

Parsing, the JSON Schema, error messages, help and forms are all made of these. A field's ``kind`` names how its value
is read and described (`nbext.language.field_types`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Raised when a query of the same text would mean something else: it is part of each segment's id.
GRAMMAR = 1
# Every level takes several frames in each step: far below Python's own 1,000, far above what people nest.
MAX_DEPTH = 16
# Each is a statement of its own on DuckDB: this bounds what one request may cost.
MAX_CONDITIONS = 200
# A warehouse gets the list as text in the statement: BigQuery's may have 1 MB, and 10,000 addresses are 450 KB.
MAX_LIST = 10_000
MAX_COLLECTIONS = 100
# An id of more than 26 digits is three comparisons in the statement, not an element of a list.
MAX_TOKEN_IDS = 1_000

# What the fields do not say by themselves: for the reference page.
RULES = (
    "Amounts are decimal texts in the token's own unit, exact to the last digit; `\"unit\": \"raw\"` takes the "
    "smallest unit, and is the only way where the data does not have a token's decimals. More decimals than the token "
    "has is an error. A float from Python counts by the digits that Python shows of it (`0.1 + 0.2` is "
    "0.30000000000000004): write a text or a Decimal. Bounds are inclusive.",
    'A bound without `min` starts above zero: `{"max": "10"}` asks for wallets that hold some and at most 10. Only an '
    'explicit `"min": 0` also matches wallets that hold none: every wallet seen that is not outside the bounds.',
    "Wallets seen are those with a transfer on a chain of the segment's conditions (up to `asOf`); a segment without "
    "such a condition has its own chain. `not` beside OR, or alone, is all wallets seen but those.",
    "Times are ISO-8601 in UTC, or spans such as `90d`, `12h` and `4w` that count back from the data's last block, or "
    "block numbers. They do not depend on the time of day: the answer says which block it is for. `asOf` is one "
    "moment for every chain; a block number is one of the segment's own chain.",
    "A balance is the one at the end of a block: `heldSince` looks at every block from then on, and not at what "
    "came and went within one. An ERC721's owner is whoever it was last sent to; whoever sends one that the data has "
    "not seen before counts as its owner from the beginning.",
    "A transfer to oneself is one transfer. A mint comes from the zero address; a burn goes there or to 0x...dEaD.",
    "A contract is named by its address or its symbol. A symbol that several contracts have is refused with the "
    "candidates. Addresses may be written in any case; a mixed-case address must carry its right EIP-55 checksum.",
    "A condition may name its own chain, so a segment may cross chains: a wallet is the same address on each.",
    "A saved segment has its own chain, `exclude` and, where it has one, `asOf`; its limit does not matter.",
    f"At most {MAX_CONDITIONS} conditions, those of saved segments counted, groups {MAX_DEPTH} deep, {MAX_LIST:,} "
    "members of a list.",
    "Rows are ordered by address, so a limit returns the same wallets on every engine.",
)


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


# In examples.
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
BAYC = "0xBC4CA0EdA7647A8aB7C2061c2E118A18a936f13D"
VITALIK = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"

CHAIN = Field(
    "chain", "chain", "The chain of this condition; without it, the segment's.", examples=("polygon", "eip155:10", 8453)
)
UNIT = Field(
    "unit", "choice", "What amounts are written in: the token's own unit, or its smallest one.",
    default="token", choices=("token", "raw"), examples=("raw",),
)  # fmt: skip
HELD_SINCE = Field(
    "heldSince", "time", "Since this time the holding never fell below min; without min, never to zero.",
    examples=("90d", "2024-01-01", 19_000_000),
)  # fmt: skip

SCOPE = (
    Field("chain", "chain", "The chain of conditions that do not name one.", default="ethereum", examples=("base",)),
    Field("asOf", "time", "Answer as of this time or block; without it, the data's last block.",
          examples=("2024-06-30T00:00:00Z", "30d", 19_000_000)),
    Field("exclude", "exclude", "Wallets never to return: addresses, and \"burn\" for the zero address and 0x...dEaD. "
          "An empty list excludes none.", default=["burn"], examples=(["burn", VITALIK], [])),
)  # fmt: skip

GROUPS = (
    GroupKey("all", "Every one of these holds.", "list", ([{"token": {"token": "USDC"}}, {"nft": {"nft": "BAYC"}}],)),
    GroupKey("any", "At least one of these holds.", "list", ([{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "AZUKI"}}],)),
    GroupKey("not", "This does not hold. A list is several keys: each of its members does not hold (beside AND).",
             "map", ({"nft": {"nft": "BAYC"}},)),
)  # fmt: skip

GROUP = {group.name: group for group in GROUPS}
SCOPE_KEY = {field.name: field for field in SCOPE}
