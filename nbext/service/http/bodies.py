"""Bodies in, declared as JSON, at most 1 MiB, in time, strict; and out, as JSON, with ETags where a caller may cache.

FastAPI's own reading does none of these: it reads any length into memory, waits for ever, makes floats of fractions,
and fails with 500 where NaN is in its error.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO

from fastapi import Depends, Request
from starlette.responses import Response

from nbext.core.constants import MAX_LIMIT
from nbext.core.strict_json import NotJson, read_request, to_json
from nbext.core.times import iso_ms
from nbext.core.wire import (
    MAX_COMPARED,
    MAX_COUNTS,
    MAX_WALLETS,
    REPLAYED_HEADER,
    SEGMENT,
    SegmentAnswer,
)
from nbext.errors import FieldError, ValidationError
from nbext.service.http.problems import Problem
from nbext.service.limits import Limits
from nbext.service.segments.profile import LEAST
from nbext.service.segments.store import Segment

# Longer bodies are read in a thread, and only a few at once.
LARGE_BODY = 16 << 10
# Keys, and objects, of a large body; colons and braces in its texts are counted, too.
MOST_KEYS = 10_000
# Metadata changes only with the data, which may do so at any moment: a caller who has it asks by its ETag.
_METADATA_CACHE = "private, no-cache"
_KINDS = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}


async def read_body(request: Request) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON object that the request carries.

    The problem is 415 not declared as JSON, 413 too long, 408 too slow, 400 not JSON, 422 not an object; 429 or 503
    where too many large ones are under way. Such a body counts until the request ends or its route calls `has_read`.
    """
    _check_media_type(request, "application/json")
    with contextlib.ExitStack() as held:
        request.state.large_body = held
        yield await _object(request, held)


def has_read(request: Request) -> None:
    """Note that a request only waits from now on: the memory that its body took to be read is free again."""
    request.state.large_body.close()


async def _object(request: Request, held: contextlib.ExitStack) -> dict[str, Any]:
    raw = await _read(request, held)
    try:
        value = await _parsed(request, raw)
    except NotJson as error:
        errors: list[FieldError] = [{"pointer": "", "code": "not-json", "detail": str(error)}]
        raise Problem("not-json", f"The body is not JSON: {error}.", errors=errors) from None
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value), "a number")
        detail = f"The body is {kind}. Send a JSON object: {{...}}"
        raise Problem("invalid", detail, errors=[{"pointer": "", "code": "type", "detail": detail}])
    return value


async def _parsed(request: Request, raw: bytes) -> Any:
    if len(raw) <= LARGE_BODY:
        return read_request(raw)
    # Counted before anything is made of them: 200 conditions have about 3,000, and 100,000 take a second to read, to
    # find unknown and to free, of which the decoder alone lets no other thread run for a fifth.
    if max(raw.count(b":"), raw.count(b"{")) > MOST_KEYS:
        detail = f"The body has more than {MOST_KEYS:,} keys or objects. No request needs so many."
        raise Problem("invalid", detail, errors=[{"pointer": "", "code": "size", "detail": detail}])
    # A megabyte takes up to a tenth of a second, mostly in one call that lets no other thread run: in the event loop
    # nobody would be answered meanwhile.
    container = request.app.state.container
    return await container.plan(request.scope["nbext.key"], lambda _: read_request(raw))


@dataclass(frozen=True)
class Compared:
    """A request for counts: segments, for each count the places of those it is of, and whether what they hold too.

    What they hold is of a contract, by symbol or address, or of the first one of each segment's rows.
    """

    segments: list[dict[str, Any]]
    together: list[list[int]]
    amounts: bool | str


def compared(body: Mapping[str, Any]) -> Compared:
    """Return a request for counts."""
    for name in body.keys() - {"segments", "counts", "amounts"}:
        raise ValidationError.of(
            f"/{name[:80]}", "unknown-key", "The fields are segments, counts and amounts."
        )
    amounts = body.get("amounts", False)
    if not isinstance(amounts, bool | str):
        raise ValidationError.of(
            "/amounts", "type", "amounts is true, false, or the symbol or address of a contract."
        )
    segments, together = body.get("segments"), body.get("counts")
    if not isinstance(segments, list) or not 1 <= len(segments) <= MAX_COMPARED:
        raise ValidationError.of(
            "/segments", "size", f"segments is a list of 1 to {MAX_COMPARED} requests."
        )
    for place, one in enumerate(segments):
        if not isinstance(one, dict) or not one.keys() <= {"operator", "filters"}:
            detail = (
                'A segment here is an object with "filters", and "operator" where it is not AND.'
            )
            raise ValidationError.of(f"/segments/{place}", "type", detail)
    if not isinstance(together, list) or not 1 <= len(together) <= MAX_COUNTS:
        raise ValidationError.of(
            "/counts", "size", f"counts is a list of 1 to {MAX_COUNTS:,} lists of places."
        )
    for place, one in enumerate(together):
        known = isinstance(one, list) and all(
            type(each) is int and 0 <= each < len(segments) for each in one
        )
        if not known or not 1 <= len(one) <= len(segments) or len(set(one)) < len(one):
            detail = (
                f"A count is a list of places of segments, each once: 0 to {len(segments) - 1}."
            )
            raise ValidationError.of(f"/counts/{place}", "range", detail)
    return Compared(segments, together, amounts)


def holders(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request for holdings, which names its wallets; what they and the rest mean is read with the data."""
    for name in body.keys() - {"wallets", "chain", "asOf"}:
        raise ValidationError.of(
            f"/{name[:80]}", "unknown-key", "The fields are wallets, chain and asOf."
        )
    wallets = body.get("wallets")
    if not isinstance(wallets, list) or not 1 <= len(wallets) <= MAX_WALLETS:
        raise ValidationError.of(
            "/wallets", "size", f"wallets is a list of 1 to {MAX_WALLETS} addresses."
        )
    for place, one in enumerate(wallets):
        # A segment's list may also name saved segments.
        if not isinstance(one, str) or not one.startswith("0x"):
            raise ValidationError.of(
                f"/wallets/{place}", "type", "A wallet is an address: 0x and 40 hex digits."
            )
    return body


def profiled(body: dict[str, Any]) -> dict[str, Any]:
    """Return the request of a segment that only counts and has a profile, from a request for a profile."""
    for name in body.keys() - {"operator", "filters", "base", "least"}:
        raise ValidationError.of(
            f"/{name[:80]}", "unknown-key", "The fields are operator, filters, base and least."
        )
    base, least = body.get("base"), body.get("least", LEAST)
    if "base" in body and (
        not isinstance(base, dict) or not base.keys() <= {"operator", "filters"}
    ):
        detail = 'A base is an object with "filters", and "operator" where it is not AND.'
        raise ValidationError.of("/base", "type", detail)
    if type(least) is not int or not 1 <= least <= MAX_LIMIT:
        raise ValidationError.of(
            "/least", "range", f"least is a whole number from 1 to {MAX_LIMIT:,}."
        )
    segment: dict[str, Any] = {name: body[name] for name in ("operator", "filters") if name in body}
    return {
        **segment,
        "limit": 0,
        "profile": {"base": base and {**base, "limit": 0}, "least": least},
    }


def changed(body: dict[str, Any]) -> dict[str, Any]:
    """Return the request of a segment whose rows are its changes, from a request for changes."""
    for name in body.keys() - {"operator", "filters", "since"}:
        raise ValidationError.of(
            f"/{name[:80]}", "unknown-key", "The fields are operator, filters and since."
        )
    if "since" not in body:
        raise ValidationError.of(
            "/since", "missing", "since is missing: a time, a span back such as 30d, or a block."
        )
    for name in ("asOf", "columns", "orderBy"):
        if isinstance(body.get("filters"), dict) and name in body["filters"]:
            raise ValidationError.of(
                f"/filters/{name}", "exclusive", f"Changes set {name} themselves. Leave it out."
            )
    return {**body, "limit": MAX_LIMIT}


async def receive(request: Request, file: BinaryIO, media_type: str, most: int) -> None:
    """Write the request's body into a file, piece by piece.

    The problem is 415 not declared as that type, 413 longer than ``most`` bytes, 408 too slow.
    """
    limits: Limits = request.app.state.container.limits
    _check_media_type(request, media_type)
    if int(request.headers.get("content-length", "0")) > most:
        raise _too_large(most)
    loop, received = asyncio.get_running_loop(), 0
    until = loop.time() + limits.arrive_seconds
    try:
        async with asyncio.timeout_at(until) as patience:
            async for piece in request.stream():
                received += len(piece)
                if received > most:
                    raise _too_large(most)
                # Into the system's cache: a write waits for the disk less long than a turn of another thread takes.
                file.write(piece)
                # Who sends more may take longer; who sends a byte a second may not.
                patience.reschedule(until + received / limits.slowest)
    except TimeoutError:
        raise _too_slow(limits) from None


JsonBody = Annotated[dict[str, Any], Depends(read_body)]


def _check_media_type(request: Request, wanted: str) -> None:
    # A page of another origin can send text/plain without asking first, but not application/json.
    kind, _, options = request.headers.get("content-type", "").lower().partition(";")
    charset = options.replace('"', "").replace(" ", "")
    if kind.strip() != wanted or charset not in ("", "charset=utf-8"):
        in_utf8 = ", in UTF-8" * (wanted == "application/json")
        raise Problem("media-type", f"Send the body with Content-Type: {wanted}{in_utf8}.")
    # A compressed megabyte may be a gigabyte of JSON.
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem("media-type", "Send the body uncompressed, without Content-Encoding.")


async def _read(request: Request, held: contextlib.ExitStack) -> bytes:
    container, key = request.app.state.container, request.scope["nbext.key"]
    limits: Limits = container.limits
    # A caller that declares its length is refused before it sends a byte; h11 has checked that it is a number.
    declared = request.headers.get("content-length", "0")
    if int(declared) > limits.body_bytes:
        raise _too_large(limits.body_bytes)
    # Others are refused as soon as they send more: no body takes more memory than the limit.
    raw, is_large = bytearray(), False
    try:
        async with asyncio.timeout(limits.arrive_seconds):
            async for piece in request.stream():
                raw += piece
                if len(raw) > LARGE_BODY and not is_large:
                    is_large = True
                    held.enter_context(container.large_bodies.taken(key.id))
                if len(raw) > limits.body_bytes:
                    raise _too_large(limits.body_bytes)
    except TimeoutError:
        raise _too_slow(limits) from None
    return bytes(raw)


def _too_large(most: int) -> Problem:
    return Problem(
        "too-large", f"The body is longer than {most:,} bytes.", headers={"Connection": "close"}
    )


def _too_slow(limits: Limits) -> Problem:
    detail = f"The body did not arrive within {limits.arrive_seconds:g} s."
    return Problem("slow-request", detail, headers={"Connection": "close"})


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with a JSON body."""
    return Response(
        to_json(value), status_code=status, headers=headers, media_type="application/json"
    )


def cacheable_answer(request: Request, value: Any) -> Response:
    """Answer with a JSON body that the caller may cache; 304 where it has this version."""
    body = to_json(value)
    headers = {
        "ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"',
        "Cache-Control": _METADATA_CACHE,
    }
    if has_version(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


def has_version(request: Request, etag: str) -> bool:
    """Return whether the caller names this version among those that it has."""
    # The quotes are a part of an ETag, so that none is found inside another; W/ in front makes no difference here.
    return etag in request.headers.get("if-none-match", "")


def link(request: Request, path: str) -> str:
    """Return a path of ours as the caller sees it: below the root path that a proxy serves us at."""
    return f"{request.scope.get('root_path', '')}{path}"


def describe(caller: Request, segment: Segment, *, cached: bool = False) -> SegmentAnswer:
    """Return the object that execute and reading a segment answer with."""
    request, facts, own = (
        segment.request,
        segment.facts,
        link(caller, SEGMENT.format(id=segment.id)),
    )
    ran = segment.started_at is not None and segment.completed_at is not None
    answer: SegmentAnswer = {
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
        "links": {"self": own, **{form: f"{own}/{form}" for form in ("json", "csv", "arrow")}},
        "createdAt": iso_ms(segment.created_at) or "",
        "completedAt": iso_ms(segment.completed_at),
        # A clock that was set back while the segment ran makes a negative time.
        "durationMs": max(0, round((segment.completed_at - segment.started_at) * 1000))  # type: ignore[operator]
        if ran
        else None,
        "cached": cached,
        "warnings": facts["warnings"],
        "error": segment.error,
    }
    if "profile" in facts:
        answer["profile"] = facts["profile"]
    if "since" in facts:
        answer["since"] = facts["since"]
    return answer


def segment_answer(
    request: Request,
    segment: Segment,
    *,
    cached: bool = False,
    replayed: bool = False,
    strict: bool = False,
) -> Response:
    """Answer with a segment: 200 finished; 202, with where and when to ask again, while it runs.

    ``strict`` (execute) answers a segment that failed or was cancelled with its problem.
    """
    headers = {REPLAYED_HEADER: "true"} if replayed else {}
    if not segment.finished:
        headers |= {"Location": link(request, SEGMENT.format(id=segment.id)), "Retry-After": "1"}
        return json_answer(describe(request, segment), 202, headers)
    if strict and segment.status != "completed":
        error = segment.error or {"code": "internal", "detail": "The segment has no result."}
        raise Problem(error["code"], error["detail"], headers=headers, segment_id=segment.id)
    return json_answer(describe(request, segment, cached=cached), 200, headers)
