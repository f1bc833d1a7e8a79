"""Answers: JSON bodies, metadata that a caller may cache, a segment as the operations describe it, times as text."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.responses import Response

from nbext.core.operations import (
    REPLAYED_HEADER,
    SEGMENT,
    SEGMENT_ARROW,
    SEGMENT_CSV,
    SEGMENT_JSON,
    SegmentAnswer,
)
from nbext.core.strict_json import to_json
from nbext.service.http.problems import Problem
from nbext.service.segments.store import Segment

# Metadata changes only with the data: a caller may reuse it for a minute, and then asks by its ETag.
_METADATA_CACHE = "private, max-age=60, must-revalidate"


def iso_ms(seconds: float | None) -> str | None:
    """Return a time as ISO-8601 UTC with milliseconds, or None without one.

    >>> iso_ms(0)
    '1970-01-01T00:00:00.000Z'
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with a JSON body."""
    return Response(to_json(value), status_code=status, headers=headers, media_type="application/json")


def cacheable_answer(request: Request, value: Any) -> Response:
    """Answer with a JSON body that the caller may cache; 304 where it has this version."""
    body = to_json(value)
    headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"', "Cache-Control": _METADATA_CACHE}
    if has_version(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


def has_version(request: Request, etag: str) -> bool:
    """Return whether the caller names this version among those that it has."""
    # The quotes are a part of an ETag, so that none is found inside another; W/ in front makes no difference here.
    return etag in request.headers.get("if-none-match", "")


def describe(segment: Segment, *, cached: bool = False) -> SegmentAnswer:
    """Return the object that execute and reading a segment answer with."""
    request, facts = segment.request, segment.facts
    ran = segment.started_at is not None and segment.completed_at is not None
    return {
        "id": segment.id,
        "status": segment.status,
        "operator": request["operator"],
        "filters": request["filters"],
        "fileType": request["fileType"],
        "limit": request["limit"],
        "chain": facts["chain"],
        "chainId": facts["chainId"],
        "asOf": facts["asOf"],
        "counts": {"matched": segment.matched, "returned": segment.returned},
        "truncated": (segment.returned or 0) < (segment.matched or 0),
        "columns": facts["columns"],
        "preview": segment.preview,
        "links": {
            "self": SEGMENT.format(id=segment.id),
            "json": SEGMENT_JSON.format(id=segment.id),
            "csv": SEGMENT_CSV.format(id=segment.id),
            "arrow": SEGMENT_ARROW.format(id=segment.id),
        },
        "createdAt": iso_ms(segment.created_at) or "",
        "completedAt": iso_ms(segment.completed_at),
        # A clock that was set back while the segment ran makes a negative time.
        "durationMs": max(0, round((segment.completed_at - segment.started_at) * 1000)) if ran else None,  # type: ignore[operator]
        "cached": cached,
        "warnings": facts["warnings"],
        "error": segment.error,
    }


def segment_answer(segment: Segment, *, cached: bool = False, replayed: bool = False, strict: bool = False) -> Response:
    """Answer with a segment: 200 finished; 202, with where and when to ask again, while it runs.

    ``strict`` (execute) answers a segment that failed or was cancelled with its problem.
    """
    headers = {REPLAYED_HEADER: "true"} if replayed else {}
    if not segment.finished:
        headers |= {"Location": SEGMENT.format(id=segment.id), "Retry-After": "1"}
        return json_answer(describe(segment), 202, headers)
    if strict and segment.status != "completed":
        error = segment.error or {"code": "internal", "detail": "The segment has no result."}
        raise Problem(error["code"], error["detail"], headers=headers, segment_id=segment.id)
    return json_answer(describe(segment, cached=cached), 200, headers)
