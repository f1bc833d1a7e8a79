"""Reading a request's body: declared as JSON, at most 1 MiB, in time, strict.

FastAPI's own reading knows none of these: it takes any length into memory, waits for ever, makes floats
of fractions and fails with 500 where NaN comes back in its error.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nbext.core.strict_json import NotJson, read_request
from nbext.service.http.problems import Problem
from nbext.service.limits import Limits

# How much of an overlong body is still taken off the wire, and for how long (seconds), after the answer.
_LINGER_BYTES = 256 << 20
_LINGER_SECONDS = 5.0


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
        detail = f"The body is not JSON that this service reads: {error}."
        raise Problem(
            "not-json", detail, errors=[{"pointer": "", "code": "not-json", "detail": str(error)}]
        ) from None
    if not isinstance(value, dict):
        detail = f"the body is {_kind(value)}; it has to be a JSON object"
        raise Problem("invalid", detail, errors=[{"pointer": "", "code": "type", "detail": detail}])
    return value


JsonBody = Annotated[dict[str, Any], Depends(read_body)]


def _check_media_type(request: Request) -> None:
    kind, _, options = request.headers.get("content-type", "").lower().partition(";")
    charset = options.replace('"', "").replace(" ", "")
    if kind.strip() != "application/json" or charset not in ("", "charset=utf-8"):
        raise Problem("media-type", "Send the body as Content-Type: application/json, in UTF-8.")
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem("media-type", "Send the body as it is, without Content-Encoding.")


async def _read(request: Request, limits: Limits) -> bytes:
    declared = request.headers.get("content-length", "0")
    if int(declared) > limits.body_bytes:
        raise _too_large(limits)
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
    names = {list: "an array", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


class Lingering(Response):
    """An answer to a caller that is still sending: what comes is dropped for a while, then the connection ends.

    Closing at once would reset the connection, and the caller would never see the answer.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, then drop what is still coming."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                await _drop(receive)
        except TimeoutError:
            pass  # the caller sends without end: it has had its answer
        await send({"type": "http.response.body", "body": b""})


async def _drop(receive: Receive) -> None:
    left = _LINGER_BYTES
    while left > 0:
        message = await receive()
        left -= len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return
