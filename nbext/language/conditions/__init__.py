"""The conditions of the segment language, each in a file of its own.

    condition    what every condition defines; its docstring says how to add one
    token        by the balance of a token; what heldSince means
    nft          by the NFTs of a collection, or of some token ids
    collections  by how many collections
    transfer     by transfers in a window
    activity     by first and last transfer, their number, their days
    wallet       by what the wallet is
    saved        by a saved segment

Parsing, the JSON Schema, completion, forms and pages are made from `CONDITIONS`.
"""

from __future__ import annotations

from nbext.language.conditions.activity import ActivityCondition
from nbext.language.conditions.collections import CollectionsCondition
from nbext.language.conditions.condition import Condition
from nbext.language.conditions.nft import NftCondition
from nbext.language.conditions.saved import SavedSegmentCondition
from nbext.language.conditions.token import TokenCondition
from nbext.language.conditions.transfer import TransferCondition
from nbext.language.conditions.wallet import WalletCondition

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
