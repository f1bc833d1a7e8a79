"""Bodies in, declared as JSON, at most 1 MiB, in time, strict; and out, as JSON, with ETags where a caller may cache.

FastAPI's own reading does none of these: it reads any length into memory, waits for ever, makes floats of fractions,
and fails with 500 where NaN is in its error.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.responses import Response

from nbext.core.rules import check_shape
from nbext.core.strict_json import NotJson, read_request, to_json
from nbext.core.times import iso_ms
from nbext.core.untrusted_text import shown
from nbext.core.wire import EXECUTE_KEYS, REPLAYED_HEADER, SEGMENT
from nbext.service.container import Caller
from nbext.service.problems import Problem, invalid
from nbext.service.segments.store import SegmentRecord

# Longer bodies are read in a thread, and only a few at once.
LARGE_BODY = 16 << 10
# Keys, and objects, of a large body; colons and braces in its texts are counted, too.
MOST_KEYS = 10_000
# What of a segment's facts is for the service alone: how the warnings of an answer without a wallet are made.
_UNSAID = ("counted", "why")
Shape = TypeVar("Shape")


async def read_body(caller: Caller, shape: type[Shape]) -> Shape:
    """Return the body of a request, a JSON object of a shape of the wire.

    The problem is 415 not declared as JSON, 413 too long, 408 too slow, 400 not JSON, 422 not of the shape; 429 or 503
    where too many large ones are under way, of which the caller holds this one.
    """
    container, raw = caller.container, bytearray()

    def take(piece: bytes) -> None:
        raw.extend(piece)
        if caller.is_brief and len(raw) > LARGE_BODY:
            caller.is_brief = False
            caller.held.enter_context(container.large_bodies.taken(caller.key.id))

    await receive(caller, take, "application/json", container.limits.body_bytes)
    if caller.is_brief:
        value: Shape = _value(shape, raw)
        return value
    # Counted before anything is made of them: 200 conditions have about 3,000, and 100,000 take a second to read, to
    # find unknown and to free, of which the decoder alone lets no other thread run for a fifth.
    if max(raw.count(b":"), raw.count(b"{")) > MOST_KEYS:
        raise invalid(
            "size",
            f"The body has more than {MOST_KEYS:,} keys or objects. No request needs so many.",
        )
    # A megabyte takes up to a tenth of a second, mostly in one call that lets no other thread run: in the event loop
    # nobody would be answered meanwhile.
    return await container.planning.run(caller.key.id, lambda _: _value(shape, raw))


def _value(shape: Any, raw: bytearray) -> Any:
    try:
        value = read_request(bytes(raw))
    except NotJson as error:
        raise Problem(
            "not-json",
            f"The body is not JSON: {error}.",
            errors=[{"pointer": "", "code": "not-json", "detail": str(error)}],
        ) from None
    if not isinstance(value, dict):
        raise invalid("type", f"The body is {shown(value)}. Send a JSON object: {{...}}")
    check_shape(shape, value)
    return value


async def receive(
    caller: Caller,
    take: Callable[[bytes], object],
    media_type: str,
    most: int,
    slowest: float = math.inf,
) -> None:
    """Have the request's body taken, piece by piece; whoever sends so many bytes a second may take longer.

    The problem is 415 not declared as that type, 413 longer than ``most`` bytes, 408 too slow.
    """
    request, limits = caller.request, caller.container.limits
    # A page of another origin can send text/plain without asking first, but not application/json.
    kind, _, options = request.headers.get("content-type", "").lower().partition(";")
    charset = options.replace('"', "").replace(" ", "")
    if kind.strip() != media_type or charset not in ("", "charset=utf-8"):
        in_utf8 = ", in UTF-8" * (media_type == "application/json")
        raise Problem("media-type", f"Send the body with Content-Type: {media_type}{in_utf8}.")
    # A compressed megabyte may be a gigabyte of JSON.
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem("media-type", "Send the body uncompressed, without Content-Encoding.")
    # A caller that declares its length is refused before it sends a byte; h11 has checked that it is a number. Others
    # are refused as soon as they send more: no body takes more room than the limit.
    too_large = Problem(
        "too-large", f"The body is longer than {most:,} bytes.", headers={"Connection": "close"}
    )
    if int(request.headers.get("content-length", "0")) > most:
        raise too_large
    received, until = 0, asyncio.get_running_loop().time() + limits.arrive_seconds
    try:
        async with asyncio.timeout_at(until) as patience:
            async for piece in request.stream():
                received += len(piece)
                if received > most:
                    raise too_large
                take(piece)
                # Who sends more may take longer; who sends a byte a second may not.
                patience.reschedule(until + received / slowest)
    except TimeoutError:
        raise Problem(
            "slow-request",
            f"The body did not arrive within {limits.arrive_seconds:g} s.",
            headers={"Connection": "close"},
        ) from None


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with a JSON body; bytes are one that was made before."""
    body = value if isinstance(value, bytes) else to_json(value)
    return Response(body, status_code=status, headers=headers, media_type="application/json")


def cacheable_answer(caller: Caller, value: Any) -> Response:
    """Answer with a JSON body that the caller may cache; 304 where it has this version."""
    body = to_json(value)
    headers, unchanged = version_of(caller, hashlib.sha256(body).hexdigest()[:32])
    return unchanged or json_answer(body, headers=headers)


def version_of(caller: Caller, version: str) -> tuple[dict[str, str], Response | None]:
    """Return the headers of an answer that the caller may cache, and the answer 304 where it has this version."""
    etag, named = f'"{version}"', caller.request.headers.get("if-none-match", "")
    # Results never change; metadata does with the data, at any moment: a caller who has it asks by its ETag.
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    # The quotes are a part of an ETag, so that none is found inside another; W/ in front makes no difference here.
    known = etag in named or named.strip() == "*"
    return headers, Response(status_code=304, headers=headers) if known else None


def segment_answer(
    caller: Caller,
    segment: SegmentRecord,
    *,
    cached: bool = False,
    replayed: bool = False,
    strict: bool = False,
) -> Response:
    """Answer with a segment, a `SegmentAnswer`: 200 finished; 202, with where and when to ask again, while it runs.

    ``strict`` (execute) answers a segment that failed or was cancelled with its problem.
    """
    own = caller.link(SEGMENT.format(id=segment.id))
    headers = {REPLAYED_HEADER: "true"} if replayed else {}
    if not segment.finished:
        headers |= {"Location": own, "Retry-After": "1"}
    elif strict and segment.status != "completed":
        error = segment.error or {"code": "internal", "detail": "The segment has no result."}
        raise Problem(error["code"], error["detail"], headers=headers, segment_id=segment.id)
    began, ended = segment.started_at, segment.completed_at
    answer = {
        "id": segment.id,
        "status": segment.status,
        **{name: segment.request[name] for name in EXECUTE_KEYS},
        **{name: fact for name, fact in segment.facts.items() if name not in _UNSAID},
        "counts": {"matched": segment.matched, "returned": segment.returned},
        "truncated": (segment.returned or 0) < (segment.matched or 0),
        "preview": segment.preview,
        "links": {"self": own, **{form: f"{own}/{form}" for form in ("json", "csv", "arrow")}},
        "createdAt": iso_ms(segment.created_at) or "",
        "completedAt": iso_ms(ended),
        # A clock that was set back while the segment ran makes a negative time.
        "durationMs": max(0, round((ended - began) * 1000)) if began and ended else None,
        "cached": cached,
        "error": segment.error,
        "fingerprint": segment.fingerprint,
    }
    return json_answer(answer, 200 if segment.finished else 202, headers)
