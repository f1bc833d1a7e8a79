"""Bodies in, declared as JSON, at most 1 MiB, in time, strict; and out, as JSON, with ETags where a caller may cache.

FastAPI's own reading does none of these: it reads any length into memory, waits for ever, makes floats of fractions,
and fails with 500 where NaN is in its error.
"""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.responses import Response

from nbext.core.operations import REPLAYED_HEADER, SEGMENT, SegmentAnswer
from nbext.core.strict_json import NotJson, read_request, to_json
from nbext.errors import FieldError
from nbext.service.http.problems import Problem
from nbext.service.limits import Limits
from nbext.service.segments.store import Segment

# Metadata changes only with the data: a caller may reuse it for a minute, and then asks by its ETag.
_METADATA_CACHE = "private, max-age=60, must-revalidate"
_KINDS = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}


async def read_body(request: Request) -> dict[str, Any]:
    """Return the JSON object that the request carries.

    The problem is 415 not declared as JSON, 413 too long, 408 too slow, 400 not JSON, 422 not an object.
    """
    limits: Limits = request.app.state.container.limits
    _check_media_type(request)
    raw = await _read(request, limits)
    try:
        value = read_request(raw)
    except NotJson as error:
        errors: list[FieldError] = [{"pointer": "", "code": "not-json", "detail": str(error)}]
        raise Problem("not-json", f"The body is not JSON: {error}.", errors=errors) from None
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value), "a number")
        detail = f"The body is {kind}. Send a JSON object: {{...}}"
        raise Problem("invalid", detail, errors=[{"pointer": "", "code": "type", "detail": detail}])
    return value


JsonBody = Annotated[dict[str, Any], Depends(read_body)]


def _check_media_type(request: Request) -> None:
    # A page of another origin can send text/plain without asking first, but not application/json.
    kind, _, options = request.headers.get("content-type", "").lower().partition(";")
    charset = options.replace('"', "").replace(" ", "")
    if kind.strip() != "application/json" or charset not in ("", "charset=utf-8"):
        raise Problem("media-type", "Send the body with Content-Type: application/json, in UTF-8.")
    # A compressed megabyte may be a gigabyte of JSON.
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem("media-type", "Send the body uncompressed, without Content-Encoding.")


async def _read(request: Request, limits: Limits) -> bytes:
    # A caller that declares its length is refused before it sends a byte; h11 has checked that it is a number.
    declared = request.headers.get("content-length", "0")
    if int(declared) > limits.body_bytes:
        raise _too_large(limits)
    # Others are refused as soon as they send more: no body takes more memory than the limit.
    raw = bytearray()
    try:
        async with asyncio.timeout(limits.arrive_seconds):
            async for piece in request.stream():
                raw += piece
                if len(raw) > limits.body_bytes:
                    raise _too_large(limits)
    except TimeoutError:
        detail = f"The body did not arrive within {limits.arrive_seconds:g} s."
        raise Problem("slow-request", detail, headers={"Connection": "close"}) from None
    return bytes(raw)


def _too_large(limits: Limits) -> Problem:
    detail = f"The body is longer than {limits.body_bytes:,} bytes."
    return Problem("too-large", detail, headers={"Connection": "close"})


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
    request, facts, own = segment.request, segment.facts, SEGMENT.format(id=segment.id)
    ran = segment.started_at is not None and segment.completed_at is not None
    return {
        "id": segment.id, "status": segment.status, "operator": request["operator"], "filters": request["filters"],
        "fileType": request["fileType"], "limit": request["limit"],
        "chain": facts["chain"], "chainId": facts["chainId"], "asOf": facts["asOf"],
        "counts": {"matched": segment.matched, "returned": segment.returned},
        "truncated": (segment.returned or 0) < (segment.matched or 0), "columns": facts["columns"],
        "preview": segment.preview,
        "links": {"self": own, **{form: f"{own}/{form}" for form in ("json", "csv", "arrow")}},
        "createdAt": iso_ms(segment.created_at) or "", "completedAt": iso_ms(segment.completed_at),
        # A clock that was set back while the segment ran makes a negative time.
        "durationMs": max(0, round((segment.completed_at - segment.started_at) * 1000)) if ran else None,  # type: ignore[operator]
        "cached": cached, "warnings": facts["warnings"], "error": segment.error,
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
