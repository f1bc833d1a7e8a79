"""Examples for the OpenAPI document; a test sends each body, and holds each answer to its shape."""

from __future__ import annotations

from typing import Any

from nbext.service.http.problems import CODES

_ID = "sg_3oLHuCLomFc3fOZYR73fqkua"
_USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
_FILTERS = {"token": {"token": "USDC"}, "not": {"nft": {"nft": "BAYC", "count": {"min": 1}}}}
_COLUMNS = [
    {"name": "address", "type": "string"},
    {
        "name": "USDC_balance", "type": "uint256", "decimals": 6, "symbol": "USDC", "chain": "ethereum",
        "address": _USDC,
    },
]
_ROW = {"address": "0x00000000219ab540356cbb839cbe05303d7705fa", "USDC_balance": "1250000000"}
_EXECUTE = {"operator": "AND", "filters": _FILTERS, "fileType": "json", "limit": 1000}

BODIES: dict[str, dict[str, Any]] = {
    "ExecuteRequest": _EXECUTE,
    "ExplainRequest": {**_EXECUTE, "parts": True},
    "SearchRequest": {"type": "nft", "chain": "ethereum", "searchTerm": "bored ape"},
    "SignUpRequest": {"email": "reader@example.com"},
}
ANSWERS: dict[str | None, dict[str, Any]] = {
    "Segment": {
        "id": _ID,
        "status": "completed",
        **_EXECUTE,
        "chain": "ethereum",
        "chainId": 1,
        "asOf": {"block": 24136000, "timestamp": "2026-01-01T00:00:11Z"},
        "counts": {"matched": 1, "returned": 1},
        "truncated": False,
        "columns": _COLUMNS,
        "preview": [_ROW],
        "links": {
            "self": f"/v1/segment/{_ID}",
            "json": f"/v1/segment/{_ID}/json",
            "csv": f"/v1/segment/{_ID}/csv",
            "arrow": f"/v1/segment/{_ID}/arrow",
        },
        "createdAt": "2026-01-02T09:30:00.000Z",
        "completedAt": "2026-01-02T09:30:00.041Z",
        "durationMs": 41,
        "cached": False,
        "warnings": [],
        "error": None,
    },
    "SegmentRows": {
        "id": _ID,
        "columns": _COLUMNS,
        "data": [_ROW],
        "page": {"limit": 100000, "offset": 0, "total": 1, "next": None},
    },
    "SignUpAnswer": {"email": "reader@example.com", "status": "recorded", "delivered": False},
    "Health": {"status": "ok"},
}


def problem(code: str) -> dict[str, Any]:
    """Return an example of the problem of that code."""
    status, title = CODES[code]
    return {
        "type": f"urn:nbext:problem:{code}",
        "title": title,
        "status": status,
        "detail": f"{title}.",
        "instance": "/v1/segment/execute",
        "code": code,
        "request_id": "5f1c0a9be2d34c77",
        "errors": [],
    }
