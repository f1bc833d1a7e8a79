"""The shapes of bodies and answers as JSON Schemas, made from the wire's tables of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbext.core.chains import CHAINS, DEFAULT_CHAIN, chain_names
from nbext.core.operations import (
    FILE_TYPES,
    MAX_EMAIL,
    MAX_LIMIT,
    MAX_SEARCH_TERM,
    NFT_FIELDS,
    OPERATORS,
    SEARCH_FIELDS,
    SEARCH_TYPES,
    SIGN_UP_FIELDS,
    STATUSES,
    TOKEN_FIELDS,
)
from nbext.service.http.problems import CODES
from nbext.service.routes.searching import DEFAULT_HITS, MAX_HITS, MAX_OFFSET
from nbext.service.segments.exports import MAX_PAGE

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
UINT256: Schema = {"type": "string", "pattern": "^[0-9]{1,78}$", "description": "A whole number of up to 256 bits."}
MOMENT: Schema = {"type": "string", "format": "date-time"}
ADDRESS: Schema = {"type": "string", "pattern": "^0x[0-9a-f]{40}$"}
AS_OF: Schema = {"type": "object", "properties": {"block": COUNT, "timestamp": {**MOMENT, "type": ["string", "null"]}}}
_OF_KIND: dict[str, Schema] = {
    "string": TEXT,
    "integer": {"type": "integer"},
    "uint256": UINT256,
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
}
# Fields that are never null, in whichever table they stand.
_KNOWN = {"chain", "chainId", "address", "checksumAddress", "score", "email", "status", "delivered"}


def ref(name: str) -> Schema:
    """Return a reference to a named shape."""
    return {"$ref": f"#/components/schemas/{name}"}


def closed(properties: Mapping[str, Schema], *, optional: tuple[str, ...] = ()) -> Schema:
    """Return the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _nullable(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _table(fields: Mapping[str, str]) -> Schema:
    kinds = {name: _OF_KIND[kind] for name, kind in fields.items()}
    return closed({name: kind if name in _KNOWN else _nullable(kind) for name, kind in kinds.items()})


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


COLUMN = closed(
    {
        "name": TEXT,
        "type": {"type": "string", "enum": ["string", "integer", "uint256"]},
        "decimals": _nullable(COUNT),
        "symbol": _nullable(TEXT),
        "chain": TEXT,
        "address": ADDRESS,
    },
    optional=("decimals", "symbol", "chain", "address"),
)
SEGMENT = closed(
    {
        "id": TEXT,
        "status": {"type": "string", "enum": list(STATUSES)},
        "operator": {"type": "string", "enum": list(OPERATORS)},
        "filters": {"type": "object", "description": "As they were sent."},
        "fileType": {"type": "string", "enum": list(FILE_TYPES)},
        "limit": {**COUNT, "maximum": MAX_LIMIT},
        "chain": TEXT,
        "chainId": {"type": "integer"},
        "asOf": _nullable(AS_OF),
        "counts": closed({"matched": _nullable(COUNT), "returned": _nullable(COUNT)}),
        "truncated": {"type": "boolean", "description": "More wallets match than the limit kept."},
        "columns": _array(ref("Column")),
        "preview": _array({"type": "object"}),
        "links": closed(dict.fromkeys(("self", "json", "csv", "arrow"), TEXT)),
        "createdAt": MOMENT,
        "completedAt": _nullable(MOMENT),
        "durationMs": _nullable(COUNT),
        "cached": {"type": "boolean"},
        "warnings": _array(TEXT),
        "error": {"type": ["object", "null"]},
    }
)
PROBLEM: Schema = {
    "type": "object",
    "description": "RFC 9457. ``code`` is stable; ``detail`` is for people.",
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": TEXT,
        "status": {"type": "integer"},
        "detail": TEXT,
        "instance": TEXT,
        "code": {"type": "string", "enum": list(CODES)},
        "request_id": TEXT,
        "errors": _array(closed({"pointer": TEXT, "code": TEXT, "detail": TEXT})),
    },
    "required": ["type", "title", "status", "detail", "instance", "code", "request_id", "errors"],
}
EXTENT = closed(
    {
        "chain": TEXT,
        "chainId": COUNT,
        "firstBlock": COUNT,
        "lastBlock": COUNT,
        "lastTimestamp": _nullable(MOMENT),
    }
)
DATA = closed(
    {"name": TEXT, "synthetic": {"type": "boolean"}, "fingerprint": TEXT, "chains": _array(EXTENT)}
)
EXPLAINED = closed(
    {
        "id": TEXT,
        "canonical": {"type": "object"},
        "words": TEXT,
        "sql": _nullable(TEXT),
        "plan": _nullable(TEXT),
        "parts": _array(closed({"words": TEXT, "matched": COUNT})),
    },
    optional=("parts",),
)
SEARCH_REQUEST = closed(
    {
        "type": {"type": "string", "enum": list(SEARCH_TYPES), "default": "nft"},
        "chain": {
            "enum": [*chain_names(), *(chain.id for chain in CHAINS)], "default": DEFAULT_CHAIN.name,
            "description": "A name or EIP-155 id; the usual aliases and CAIP-2 identifiers are taken too.",
        },
        "searchTerm": {
            "type": "string", "minLength": 1, "maxLength": MAX_SEARCH_TERM,
            "pattern": r"^[^\u0000]*[^\s\u0000][^\u0000]*$",
            "description": "A name, symbol or address; taken literally.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_HITS, "default": DEFAULT_HITS},
        "offset": {"type": "integer", "minimum": 0, "maximum": MAX_OFFSET, "default": 0},
    },
    optional=("type", "chain", "limit", "offset"),
)
SIGN_UP_REQUEST = closed(
    {
        "email": {
            "type": "string", "maxLength": MAX_EMAIL,
            # The usual addresses; what else is one, email-validator says, and names such as .test are none.
            "pattern": r"^[A-Za-z0-9][A-Za-z0-9_+]{0,60}@([a-z][a-z0-9]{0,30}\.){1,3}[a-z]{2,12}$",
            "not": {"pattern": r"\.(arpa|invalid|local|localhost|onion|test)$"},
            "description": "An e-mail address. Internationalised ones are taken, too.",
        }
    }
)
PAGE = closed(
    {
        "limit": {**COUNT, "minimum": 1, "maximum": MAX_PAGE},
        "offset": COUNT,
        "total": COUNT,
        "next": {**_nullable(TEXT), "description": "The path of the next page."},
    }
)
SHAPES: dict[str, Schema] = {
    "Column": COLUMN,
    "Segment": SEGMENT,
    "SegmentRows": closed(
        {"id": TEXT, "columns": _array(ref("Column")), "data": _array({"type": "object"}), "page": ref("Page")}
    ),
    "Page": PAGE,
    "Problem": PROBLEM,
    "Token": _table(TOKEN_FIELDS),
    "Collection": _table(NFT_FIELDS),
    "SearchRequest": SEARCH_REQUEST,
    "SearchAnswer": closed(
        {
            "type": {"type": "string", "enum": list(SEARCH_TYPES)},
            "chain": TEXT,
            "searchTerm": TEXT,
            "total": COUNT,
            "limit": COUNT,
            "offset": COUNT,
            "items": _array(_table(SEARCH_FIELDS)),
        }
    ),
    "SignUpRequest": SIGN_UP_REQUEST,
    "SignUpAnswer": _table(SIGN_UP_FIELDS),
    "Explained": EXPLAINED,
    "About": closed(
        {
            "service": TEXT,
            "version": TEXT,
            "grammar": {"type": "integer"},
            "engine": TEXT,
            "data": DATA,
            "links": closed({"schema": TEXT, "openapi": TEXT}),
        }
    ),
    "Health": closed({"status": {"type": "string", "const": "ok"}}),
}
