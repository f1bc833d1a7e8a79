"""Answers: a segment as the operations tell it, JSON bodies, and metadata that a caller may keep."""

from __future__ import annotations

import hashlib
from typing import Any

from fastapi import Request
from starlette.responses import Response

from nbext.core.operations import SEGMENT, SEGMENT_ARROW, SEGMENT_CSV, SEGMENT_JSON, SegmentAnswer
from nbext.core.strict_json import to_json
from nbext.service.http.problems import Problem
from nbext.service.http.times import iso
from nbext.service.segments.store import Segment

# Metadata holds for as long as the data does: a caller may reuse it for a minute, and then asks by ETag.
_METADATA_CACHE = "private, max-age=60, must-revalidate"


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with a JSON body."""
    return Response(to_json(value), status_code=status, headers=headers, media_type="application/json")


def kept_answer(request: Request, value: Any) -> Response:
    """Answer with a JSON body that the caller may keep; 304 where it has this very one."""
    body = to_json(value)
    headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"', "Cache-Control": _METADATA_CACHE}
    if not_changed(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


def not_changed(request: Request, etag: str) -> bool:
    """Say whether the caller has this version already."""
    given = request.headers.get("if-none-match", "")
    return etag in (each.strip().removeprefix("W/") for each in given.split(","))


def describe(segment: Segment, *, cached: bool = False) -> SegmentAnswer:
    """Return the object that execute and reading a segment answer with."""
    request, facts = segment.request, segment.facts
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
        "links": _links(segment.id),
        "createdAt": iso(segment.created_at) or "",
        "completedAt": iso(segment.completed_at),
        "durationMs": _duration(segment),
        "cached": cached,
        "warnings": facts["warnings"],
        "error": segment.error,
    }


def _links(segment_id: str) -> dict[str, str]:
    paths = {"self": SEGMENT, "json": SEGMENT_JSON, "csv": SEGMENT_CSV, "arrow": SEGMENT_ARROW}
    return {name: path.format(id=segment_id) for name, path in paths.items()}


def _duration(segment: Segment) -> int | None:
    if segment.started_at is None or segment.completed_at is None:
        return None
    return max(0, round((segment.completed_at - segment.started_at) * 1000))


def segment_answer(segment: Segment, *, cached: bool = False, replayed: bool = False, strict: bool = False) -> Response:
    """Answer with a segment: 200 finished, 202 with where and when to ask again while it runs.

    ``strict`` (execute) answers one that failed or was cancelled with its problem.
    """
    headers = {"Idempotency-Replayed": "true"} if replayed else {}
    if not segment.finished:
        headers |= {"Location": SEGMENT.format(id=segment.id), "Retry-After": "1"}
        return json_answer(describe(segment), 202, headers)
    if strict and segment.status != "completed":
        error = segment.error or {"code": "internal", "detail": "The segment has no result."}
        raise Problem(error["code"], error["detail"], headers=headers, segment_id=segment.id)
    return json_answer(describe(segment, cached=cached), 200, headers)
