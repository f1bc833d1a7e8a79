"""The conditions of the segment language, each in a file of its own.

    condition    what every condition defines; its docstring says how to add one
    token        by the balance of a token; what heldSince means
    nft          by the NFTs of a collection, or of some token ids
    collections  by how many collections
    transfer     by transfers in a window
    activity     by first and last transfer, their number, their days
    wallet       by what the wallet is
    saved        by a saved segment

Parsing, the JSON Schema, completion, forms and pages are made from `CONDITIONS`, and from `GROUPS` and `SCOPE`, the
other keys that may be written beside conditions.
"""

from __future__ import annotations

from nbext.core.wire import FILE_TYPES, OPERATORS
from nbext.language.conditions.activity import ActivityCondition
from nbext.language.conditions.collections import CollectionsCondition
from nbext.language.conditions.condition import VITALIK, Condition
from nbext.language.conditions.nft import NftCondition
from nbext.language.conditions.saved import SavedSegmentCondition
from nbext.language.conditions.token import TokenCondition
from nbext.language.conditions.transfer import TransferCondition
from nbext.language.conditions.wallet import WalletCondition
from nbext.language.fields import Field
from nbext.language.model import FACTS, SHARE

_ALL: tuple[type[Condition], ...] = (
    TokenCondition,
    NftCondition,
    CollectionsCondition,
    TransferCondition,
    ActivityCondition,
    WalletCondition,
    SavedSegmentCondition,
)
# By name, in the order in which messages, pages and forms list them.
CONDITIONS: dict[str, type[Condition]] = {condition.name: condition for condition in _ALL}


OPERATOR = Field(
    "operator",
    "choice",
    "How the direct children of filters are joined.",
    default="AND",
    choices=OPERATORS,
)
FILE_TYPE = Field(
    "fileType",
    "choice",
    "The form of the export that links point to first.",
    default="json",
    choices=FILE_TYPES,
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
        'address; "amount" is the only amount of the rows. The limit returns the first rows of all '
        "that match. Without it: by address.",
        examples=("-UNI_balance", "firstSeen", "-address", "-amount"),
    ),
    Field(
        "columns",
        "columns",
        "More columns beside the balances: when the wallet was first and last seen on the "
        "segment's chain, how many transfers it took part in there, and on how many days; of the "
        "transfer condition how much its transfers moved, how many there were, and when the first "
        "and the last were; and the share of the supply that each balance is.",
        choices=(*FACTS, SHARE),
        examples=(["firstSeen", "transfers"], ["transferred", "lastTransfer"], ["share"]),
    ),
)

GROUPS = (
    Field(
        "all",
        "group",
        "Every one of these holds.",
        examples=([{"token": {"token": "USDC"}}, {"nft": {"nft": "BAYC"}}],),
    ),
    Field(
        "any",
        "group",
        "At least one of these holds.",
        examples=([{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "AZUKI"}}],),
    ),
    Field(
        "not",
        "group",
        "This does not hold. A list is several keys: each of its members does not hold (beside AND).",
        examples=({"nft": {"nft": "BAYC"}},),
    ),
)
GROUP = {group.name: group for group in GROUPS}
SCOPE_KEY = {field.name: field for field in SCOPE}
