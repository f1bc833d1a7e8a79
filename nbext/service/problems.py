"""Errors as the service answers them: ``application/problem+json`` (RFC 9457); their codes are in ``problems.toml``.

Every error leaves the service through `answer_problem`: no traceback, path, SQL or key is in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nbext import errors as ours
from nbext.core.strict_json import to_json
from nbext.core.wire import PROBLEM_TYPE
from nbext.service.segments.files import Unavailable

CODES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
# How much of an overlong body is still read off the wire, and for how long (seconds), after the answer.
_LINGER_BYTES = 256 << 20
_LINGER_SECONDS = 5.0


class Problem(ours.NbextError):
    """An answer that is an error; ``code`` is one of CODES."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[ours.FieldError] = (),
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail
        self.status = CODES[code]["status"]
        self.errors = list(errors)
        later = CODES[code].get("retry")
        self.headers = {**({"Retry-After": str(later)} if later else {}), **(headers or {})}
        self.more = more

    @property
    def summary(self) -> dict[str, Any]:
        """The problem as the description of a segment has it that ended so."""
        return {
            "code": self.code,
            "status": self.status,
            "title": CODES[self.code]["title"],
            "detail": self.detail,
        }

    def body(self, *, instance: str, request_id: str) -> dict[str, Any]:
        """Return the problem object of RFC 9457, with our ``code``, ``request_id`` and ``errors``."""
        return {
            "type": f"urn:nbext:problem:{self.code}",
            **self.summary,
            "instance": instance,
            "request_id": request_id,
            "errors": self.errors,
            **self.more,
        }


def invalid(code: str, detail: str) -> Problem:
    """Return the problem of a body that is wrong as a whole."""
    return Problem("invalid", detail, errors=[{"pointer": "", "code": code, "detail": detail}])


def stopping() -> Problem:
    """Return the problem of what is not begun, or not ended, because the service has to end."""
    return Problem("stopping", "The service is stopping. Try again soon.")


# Of an error without a code here, that of its base.
_CODE_OF = {resolve_name(one["error"]): code for code, one in CODES.items() if "error" in one}


def problem_of(error: Exception) -> Problem:
    """Return the problem for an error; one that is not ours becomes ``internal``, without its text."""
    if isinstance(error, Problem):
        return error
    # The system's own says nothing of what is stored: it may be possible again in a moment.
    if isinstance(error, OSError):
        full = ours.DiskFull.where(error, "")
        error = full if isinstance(full, ours.DiskFull) else Unavailable()
    # An exception without a line in the table is a fault of the service: its text may hold anything.
    code = next((_CODE_OF[kind] for kind in type(error).mro() if kind in _CODE_OF), "internal")
    more: dict[str, Any] = {}
    if isinstance(error, ours.AmbiguousSymbol):
        more["candidates"] = error.candidates
    if isinstance(error, ours.ValidationError):
        more["errors"] = error.errors
        if error.more:
            more["moreErrors"] = error.more
    return Problem(code, CODES[code].get("detail") or str(error), **more)


def answer_problem(request: Request, error: Exception) -> Response:
    """Answer a request with the problem for an error."""
    problem = problem_of(error)
    # A path may be 64 KiB of what a stranger typed.
    body = problem.body(
        instance=request.url.path[:256], request_id=request.scope.get("nbext.request_id", "")
    )
    kind = Lingering if problem.status == 413 else Response
    return kind(
        to_json(body), status_code=problem.status, headers=problem.headers, media_type=PROBLEM_TYPE
    )


class Lingering(Response):
    """An answer to a caller that is still sending: what arrives is dropped for a while, then the connection ends.

    Closing at once resets the connection, and most clients then report the reset instead of the answer.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, then drop what still arrives."""
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        # A caller that sends without end has had its answer.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                left, more = _LINGER_BYTES, True
                while more and left > 0:
                    message = await receive()
                    left -= len(message.get("body", b""))
                    # That it hung up has none.
                    more = message.get("more_body", False)
        await send({"type": "http.response.body", "body": b""})
