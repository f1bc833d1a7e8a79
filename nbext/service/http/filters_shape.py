"""Filters as the OpenAPI document says them: that part of the language which a schema can say in full.

What else holds, only the data and the parser know: which contracts there are, how many decimals a token
has, that a lower bound lies below the upper. A generated client that keeps to this part is never refused.
The whole language stands beside it in the document, and is served at /schema.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from nbext.core.chains import DEFAULT_CHAIN
from nbext.core.operations import SCHEMA
from nbext.engine.dataset import Catalog
from nbext.service.http.shapes import Schema, closed

# Symbols of each kind that stand in the document; the data may know thousands.
_SYMBOLS = 25


def filters_shape(catalog: Catalog) -> Schema:
    """Return the schema of ``filters``, with symbols that the data knows."""
    leaves = _leaves(catalog)
    group = {"type": "array", "items": _map(leaves), "minItems": 1}
    return {
        **_map({**leaves, "not": _map(leaves), "any": group}),
        "description": f"A part of the segment language; the whole is SegmentRequest below, and at {SCHEMA}.",
    }


def _leaves(catalog: Catalog) -> dict[str, Schema]:
    at_least = closed({"min": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}})
    leaves: dict[str, Schema] = {
        "wallet": closed({"contract": {"type": "boolean"}}),
        "activity": closed({"transfers": at_least}),
    }
    tokens, nfts = _symbols(catalog, nft=False), _symbols(catalog, nft=True)
    if tokens:
        leaves["token"] = closed({"token": {"enum": tokens}})
    if nfts:
        leaves["nft"] = closed({"nft": {"enum": nfts}, "count": at_least}, optional=("count",))
    return leaves


def _symbols(catalog: Catalog, *, nft: bool) -> list[str]:
    # An address-like symbol would be read as an address, and one that several bear is 409.
    known: Any = catalog.symbols(DEFAULT_CHAIN.id, nft=nft)
    plain = (symbol for symbol in known if symbol.isalnum() and symbol.isascii() and not symbol.startswith("0"))
    single = (symbol for symbol in plain if len(catalog.by_symbol(DEFAULT_CHAIN.id, symbol, nft=nft)) == 1)
    return sorted(set(islice(single, _SYMBOLS)))


def _map(properties: dict[str, Schema]) -> Schema:
    shape = closed(properties, optional=tuple(properties))
    return {**shape, "minProperties": 1}
