"""Reads a request's body: declared as JSON, at most 1 MiB, in time, strict.

FastAPI's own reading does none of these: it reads any length into memory, waits for ever, makes floats of fractions,
and fails with 500 where NaN is in its error.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Depends, Request

from nbext.core.strict_json import NotJson, read_request
from nbext.service.http.problems import Problem
from nbext.service.limits import Limits


async def read_body(request: Request) -> dict[str, Any]:
    """Return the JSON object that the request carries.

    Raises
    ------
    Problem
        415 not declared as JSON, 413 too long, 408 too slow, 400 not JSON, 422 not an object.
    """
    limits: Limits = request.app.state.container.limits
    _check_media_type(request)
    raw = await _read(request, limits)
    try:
        value = read_request(raw)
    except NotJson as error:
        detail = f"The body is not JSON: {error}."
        raise Problem(
            "not-json", detail, errors=[{"pointer": "", "code": "not-json", "detail": str(error)}]
        ) from None
    if not isinstance(value, dict):
        detail = f"The body is {_kind(value)}. Send a JSON object: {{...}}"
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


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
