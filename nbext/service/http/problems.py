"""Errors as the service tells them: ``application/problem+json`` (RFC 9457), one table of codes.

Whatever goes wrong leaves the service through `answer_problem`: no traceback, path, SQL or key is in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from nbext.core.operations import PROBLEM_TYPE
from nbext.core.strict_json import to_json
from nbext.errors import (
    AmbiguousSymbol,
    FieldError,
    InvalidSegment,
    NbextError,
    QueryCancelled,
    QueryTimeout,
    ResourceLimit,
    SegmentExpired,
    StorageError,
    ValidationError,
)

# code -> (HTTP status, title). The code is stable; the detail is for people.
CODES: dict[str, tuple[int, str]] = {
    "not-http": (400, "The request is not HTTP that this service reads"),
    "not-json": (400, "The body is not JSON"),
    "bad-header": (400, "A header has a value that is not allowed"),
    "key-missing": (401, "A key is needed"),
    "key-unknown": (401, "The key is not known"),
    "scope": (403, "The key does not allow this"),
    "foreign-host": (403, "The Host header names another host"),
    "foreign-origin": (403, "A page of another origin sent this"),
    "not-found": (404, "There is nothing under that name"),
    "method": (405, "The path does not take that method"),
    "slow-request": (408, "The request took too long to arrive"),
    "not-ready": (409, "The segment has not finished"),
    "not-completed": (409, "The segment ended without a result"),
    "finished": (409, "The segment has finished already"),
    "cancelled": (409, "The segment was cancelled"),
    "ambiguous-symbol": (409, "Several contracts bear that symbol"),
    "expired": (410, "The result is no longer kept"),
    "too-large": (413, "The body is too large"),
    "media-type": (415, "The body is not declared as JSON"),
    "invalid": (422, "A field is not allowed"),
    "invalid-segment": (422, "The segment is not allowed"),
    "idempotency-key-reused": (422, "The Idempotency-Key was used for another body"),
    "rate-limit": (429, "Too many requests with this key"),
    "too-many-segments": (429, "This key has too many segments under way"),
    "internal": (500, "The service failed"),
    "storage": (500, "The service could not keep or read a file"),
    "busy": (503, "Too many segments are waiting"),
    "stopping": (503, "The service is stopping"),
    "query-timeout": (504, "The segment ran past the time limit"),
    "resource-limit": (507, "The segment ran past the memory or disk limit"),
}


class Problem(NbextError):
    """An answer that is an error; ``code`` is one of CODES."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail
        self.status, self.title = CODES[code]
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.more = more

    def body(self, *, instance: str, request_id: str) -> dict[str, Any]:
        """Return the problem object of RFC 9457, with our ``code``, ``request_id`` and ``errors``."""
        return {
            "type": f"urn:nbext:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "code": self.code,
            "request_id": request_id,
            "errors": self.errors,
            **self.more,
        }


# The first that fits: a subclass stands before its base.
_CODE_OF: tuple[tuple[type[NbextError], str], ...] = (
    (AmbiguousSymbol, "ambiguous-symbol"),
    (InvalidSegment, "invalid-segment"),
    (ValidationError, "invalid"),
    (QueryTimeout, "query-timeout"),
    (ResourceLimit, "resource-limit"),
    (SegmentExpired, "expired"),
    (QueryCancelled, "cancelled"),
    (StorageError, "storage"),
)
# What these say may name files or statements of the engine: only our own words go out.
_OWN_WORDS = {
    "query-timeout": "The segment was stopped at the service's time limit. Narrow it, or ask for fewer conditions.",
    "resource-limit": "The segment needed more memory or disk than the service allows. Narrow it.",
    "storage": "A kept file is damaged or could not be written. The operator's log has this request's id.",
    "internal": "This is a fault of the service. The operator's log has this request's id.",
    "cancelled": "The segment was cancelled before it finished. Execute it again to run it.",
}


def problem_of(error: Exception) -> Problem:
    """Return the problem that tells an error; one that is not ours becomes ``internal``, without its text."""
    if isinstance(error, Problem):
        return error
    code = next((code for kind, code in _CODE_OF if isinstance(error, kind)), "internal")
    more: dict[str, Any] = {"candidates": error.candidates} if isinstance(error, AmbiguousSymbol) else {}
    errors = error.errors if isinstance(error, ValidationError) else []
    return Problem(code, _OWN_WORDS.get(code) or str(error), errors=errors, **more)


def answer_problem(request: Request, error: Exception) -> Response:
    """Answer a request with the problem that tells the error."""
    problem = problem_of(error)
    body = problem.body(instance=request.url.path[:256], request_id=request.scope.get("nbext.request_id", ""))
    return Response(
        to_json(body), status_code=problem.status, headers=problem.headers, media_type=PROBLEM_TYPE
    )
