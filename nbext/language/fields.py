"""The segment language's table: every group, condition, scope key and field, once.

Parsing, the JSON Schema, error messages, help and forms are all made of this table. A field's ``kind``
names how its value is read and described (`nbext.language.field_types`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Raised when a query of the same text would mean something else: it is part of each segment's id.
GRAMMAR = 1
MAX_DEPTH = 16
MAX_CONDITIONS = 200
MAX_LIST = 10_000
MAX_COLLECTIONS = 100
MAX_TOKEN_IDS = 1_000

# What the fields do not say by themselves: for the reference page.
RULES = (
    "Amounts are decimal texts in the token's own unit, exact to the last digit; `\"unit\": \"raw\"` takes the "
    "smallest unit, and is the only way where a token's decimals are unknown. More decimals than the token has is "
    "an error. A float from Python counts by the digits that Python shows of it (`0.1 + 0.2` is 0.30000000000000004): "
    "give a text or a Decimal. Bounds are inclusive.",
    'Without a lower bound, some is meant: `{"max": "10"}` asks for wallets that hold some and at most 10. Only an '
    'explicit `"min": 0` also takes wallets that hold none: then every wallet seen that is not outside the bounds.',
    "Wallets seen are those with a transfer on a chain of the segment's conditions (up to `asOf`); a segment without "
    "such a condition has its own chain. `not` beside OR, or alone, is all wallets seen but those.",
    "Times are ISO-8601 in UTC, or spans such as `90d`, `12h` and `4w` that count back from the data's last block, or "
    "block numbers. The wall clock plays no part: the answer says the block it holds at. `asOf` is one moment for "
    "every chain; a block number is one of the segment's own chain.",
    "A balance is what stood at the end of a block: `heldSince` looks at every block from then on, and not at what "
    "came and went within one. An ERC721's owner is whoever it was last sent to; who sends one that the data had not "
    "seen before is taken to have owned it from the beginning.",
    "A transfer to oneself is one transfer. A mint comes from the zero address; a burn goes there or to 0x...dEaD.",
    "A contract is named by its address or its symbol. A symbol that several contracts bear is refused with the "
    "candidates. Addresses may be written in any case; a mixed-case address must carry its right EIP-55 checksum.",
    "A condition may name its own chain, so a segment may cross chains: a wallet is the same address on each.",
    "A saved segment keeps its own chain, `exclude` and, where it has one, `asOf`; its limit plays no part.",
    f"At most {MAX_CONDITIONS} conditions, those of saved segments counted, groups {MAX_DEPTH} deep, {MAX_LIST:,} "
    "members of a list.",
    "Rows are ordered by address, so a limit keeps the same wallets wherever the segment runs.",
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
class Condition:
    """One condition: what it asks of a wallet, its fields, and which of them go together.

    Attributes
    ----------
    exclusive
        Pairs of fields of which a condition has at most one.
    needs
        Pairs ``(field, others)``: the field is only taken beside one of the others.
    """

    name: str
    help: str
    fields: tuple[Field, ...]
    examples: tuple[dict[str, Any], ...]
    exclusive: tuple[tuple[str, str], ...] = ()
    needs: tuple[tuple[str, tuple[str, ...]], ...] = ()
    # Fields that alone ask nothing.
    idle: frozenset[str] = frozenset({"chain", "unit"})

    def field(self, name: str) -> Field:
        """Return the field of that name."""
        return next(field for field in self.fields if field.name == name)


@dataclass(frozen=True)
class GroupKey:
    """One way to join conditions. ``takes`` is ``list`` (of maps), or ``map`` (one map, or a list of them)."""

    name: str
    help: str
    takes: str
    examples: tuple[Any, ...]


_USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
_BAYC = "0xBC4CA0EdA7647A8aB7C2061c2E118A18a936f13D"
_VITALIK = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"

CHAIN = Field(
    "chain", "chain", "The chain of this condition; without it, the segment's.", examples=("polygon", "eip155:10", 8453)
)
UNIT = Field(
    "unit", "choice", "What amounts are written in: the token's own unit, or its smallest one.",
    default="token", choices=("token", "raw"), examples=("raw",),
)  # fmt: skip
HELD_SINCE = Field(
    "heldSince", "time", "The holding never fell below the least amount asked for since this time.",
    examples=("90d", "2024-01-01", 19_000_000),
)  # fmt: skip

SCOPE = (
    Field("chain", "chain", "The chain of every condition that names none.", default="ethereum", examples=("base",)),
    Field("asOf", "time", "Answer as of this time or block; without it, the data's last block.",
          examples=("2024-06-30T00:00:00Z", "30d", 19_000_000)),
    Field("exclude", "exclude", "Wallets never to return: addresses, and \"burn\" for the zero address and 0x...dEaD. "
          "An empty list excludes none.", default=["burn"], examples=(["burn", _VITALIK], [])),
)  # fmt: skip

GROUPS = (
    GroupKey("all", "Every one of these holds.", "list", ([{"token": {"token": "USDC"}}, {"nft": {"nft": "BAYC"}}],)),
    GroupKey("any", "At least one of these holds.", "list", ([{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "AZUKI"}}],)),
    GroupKey("not", "This does not hold. A list is several keys: each of its members does not hold (beside AND).",
             "map", ({"nft": {"nft": "BAYC"}},)),
)  # fmt: skip

CONDITIONS = (
    Condition(
        "token",
        "Wallets that hold an ERC20 token. Without balance: more than none. With max alone: some, and at most "
        "that. Only an explicit min of 0 also takes wallets that hold none.",
        (
            Field("token", "contract", "The token's address, or its symbol.", required=True, examples=("USDC", _USDC)),
            CHAIN,
            Field("balance", "amounts", "How much the wallet holds, bounds included.", unit="token",
                  examples=({"min": "1000"}, {"min": "0", "max": "0.5"})),
            UNIT,
            HELD_SINCE,
        ),
        ({"token": "USDC", "balance": {"min": "1000"}, "heldSince": "90d"}, {"token": _USDC, "chain": "ethereum"}),
    ),
    Condition(
        "nft",
        "Wallets that own NFTs of a collection. Without count: at least one. Only an explicit min of 0 also takes "
        "wallets that own none.",
        (
            Field("nft", "contract", "The collection's address, or its symbol.", required=True,
                  examples=("BAYC", _BAYC)),
            CHAIN,
            Field("count", "counts", "How many the wallet owns, bounds included.", unit="NFTs",
                  examples=({"min": 2}, {"min": 1, "max": 5})),
            Field("tokenIds", "ids", "Count only these token ids.", most=MAX_TOKEN_IDS, examples=([1, 2, "3"],)),
            HELD_SINCE,
        ),
        ({"nft": "BAYC", "count": {"min": 2}}, {"nft": _BAYC, "tokenIds": [1, "8817"], "heldSince": "2024-01-01"}),
    ),
    Condition(
        "collections",
        "Wallets by how many NFT collections they own from: at least so many of a list, or of all collections.",
        (
            Field("of", "contracts", "The collections, each as an address or a symbol.", most=MAX_COLLECTIONS,
                  examples=(["BAYC", "MAYC", "AZUKI"],)),
            Field("atLeast", "natural", "How many of them the wallet owns from.", unit="collections", default=1,
                  examples=(2,)),
            Field("distinct", "counts", "How many collections of the chain the wallet owns from.", unit="collections",
                  examples=({"min": 5},)),
            CHAIN,
        ),
        ({"of": ["BAYC", "MAYC", "AZUKI"], "atLeast": 2}, {"distinct": {"min": 5}, "chain": "ethereum"}),
        exclusive=(("of", "distinct"),),
        needs=(("atLeast", ("of",)),),
    ),
    Condition(
        "transfer",
        "Wallets that took part in transfers. Without count: at least one. Only an explicit min of 0, of count "
        "or of total, also takes wallets with none.",
        (
            Field("direction", "choice", "The wallet received (in), sent (out), either (any), or was minted to or "
                  "burned from.", default="any", choices=("in", "out", "any", "mint", "burn"), examples=("in",)),
            Field("token", "contract", "Transfers of this token only: its address or symbol.", examples=("USDC",)),
            Field("nft", "contract", "Transfers of this collection only: its address or symbol.", examples=("BAYC",)),
            CHAIN,
            Field("counterparty", "parties", "The other side: an address, or a list of which any will do.",
                  examples=(_VITALIK, [_VITALIK])),
            Field("amount", "amounts", "What each transfer moved; others are not looked at.", unit="token",
                  examples=({"min": "100"},)),
            Field("total", "amounts", "What those transfers moved together.", unit="token",
                  examples=({"min": "10000"},)),
            Field("count", "counts", "How many such transfers there were.", unit="transfers",
                  examples=({"min": 3}, {"min": 0, "max": 0})),
            UNIT,
            Field("after", "time", "Only transfers at or after this time or block.", examples=("90d", "2024-01-01")),
            Field("before", "time", "Only transfers at or before this time or block.", examples=("30d", 19_000_000)),
        ),
        (
            {"direction": "in", "token": "USDC", "total": {"min": "10000"}, "after": "90d"},
            {"direction": "mint", "nft": "BAYC", "count": {"min": 2}},
        ),
        exclusive=(("token", "nft"),),
        needs=(("amount", ("token", "nft")), ("total", ("token", "nft")), ("unit", ("token",))),
    ),
    Condition(
        "activity",
        "Wallets by all their transfers on one chain.",
        (
            Field("first", "window", "When the wallet was first seen.", examples=({"after": "2024-01-01"},)),
            Field("last", "window", "When the wallet was last seen.", examples=({"before": "180d"},)),
            Field("transfers", "counts", "How many transfers it took part in.", unit="transfers",
                  examples=({"min": 10},)),
            Field("activeDays", "counts", "On how many days (UTC) it took part in one.", unit="days",
                  examples=({"min": 5},)),
            CHAIN,
        ),
        ({"first": {"before": "2023-01-01"}, "transfers": {"min": 10}}, {"last": {"after": "30d"}, "chain": "base"}),
    ),
    Condition(
        "wallet",
        "Wallets by what they are, among those seen.",
        (
            Field("in", "addresses", "The wallet is one of these.", examples=([_VITALIK],)),
            Field("contract", "boolean", "true: known to be a contract. false: not known to be one.",
                  examples=(False,)),
        ),
        ({"in": [_VITALIK]}, {"contract": False}),
    ),
    Condition(
        "segment",
        "Wallets of a saved segment, asked again of the data as it is.",
        (Field("id", "segment", "The saved segment's id.", required=True, examples=("sg_ExampleExampleExampleEx",)),),
        ({"id": "sg_ExampleExampleExampleEx"},),
    ),
)  # fmt: skip

CONDITION = {condition.name: condition for condition in CONDITIONS}
GROUP = {group.name: group for group in GROUPS}
SCOPE_KEY = {field.name: field for field in SCOPE}
