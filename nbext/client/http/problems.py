"""An error that the service tells, as one of our errors: its words, shortened, and never the key."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbext.client.http.redact import redacted, shown
from nbext.core.strict_json import NotJson, read_answer
from nbext.errors import (
    AmbiguousSymbol,
    ApiError,
    AuthError,
    BadRequest,
    Conflict,
    FieldError,
    InvalidSegment,
    NbextError,
    NotFound,
    QueryTimeout,
    RateLimited,
    ResourceLimit,
    SegmentExpired,
    ServerError,
    ValidationError,
)
from nbext.settings import Secret


@dataclass(frozen=True)
class Answer:
    """A whole answer: status, headers (names in any case), decoded body, and where it came from."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    url: str = ""

    @property
    def content_type(self) -> str:
        """The media type, without parameters, in lower case."""
        return self.headers.get("Content-Type", "").split(";")[0].strip().lower()


def error_of(answer: Answer, key: Secret | None = None, attempts: int = 1) -> NbextError:
    """Return the error that an answer of status 400 or more tells."""
    problem = redacted(_problem(answer), key)
    return told_error(answer.status, problem, words(problem) or _text_of(answer), key, attempts)


def told_error(
    status: int, problem: Mapping[str, Any], said: str, key: Secret | None = None, attempts: int = 1
) -> NbextError:
    """Return the error of a status, a problem object and the words of the service."""
    ours = _of_code(problem, said, key)
    if ours is not None:
        return ours
    said = shown(said, key, 400)
    message = f"the service answered {status}{f': {said}' if said else ' without a word'}"
    if status >= 500:
        again = f" (asked {attempts} times)" if attempts > 1 else ""
        return ServerError(message + again, status=status, problem=problem, attempts=attempts)
    kind: type[ApiError] = {
        401: AuthError, 402: AuthError, 403: AuthError, 404: NotFound, 410: NotFound, 409: Conflict, 429: RateLimited,
    }.get(status, BadRequest)
    return kind(message, status=status, problem=problem)


def _of_code(problem: Mapping[str, Any], said: str, key: Secret | None) -> NbextError | None:
    """Return the error of a problem of our own service; its codes say more than its statuses."""
    code = problem.get("code")
    errors = _field_errors(problem.get("errors"), key)
    if code == "ambiguous-symbol" and isinstance(problem.get("candidates"), list):
        candidates = [c for c in problem["candidates"] if isinstance(c, dict)]
        return AmbiguousSymbol(errors or [{"pointer": "", "code": code, "detail": shown(said, key)}], candidates)
    if code == "invalid-segment" and errors:
        return InvalidSegment(errors)
    if code == "invalid" and errors:
        return ValidationError(errors)
    failed = {"query-timeout": QueryTimeout, "resource-limit": ResourceLimit, "expired": SegmentExpired}
    if isinstance(code, str) and code in failed:
        return failed[code](shown(said, key))
    return None


def _field_errors(errors: Any, key: Secret | None) -> list[FieldError]:
    if not isinstance(errors, list):
        return []
    told = [e for e in errors[:50] if isinstance(e, dict) and isinstance(e.get("detail"), str)]
    return [
        {name: shown(e.get(name, ""), key) for name in ("pointer", "code", "detail")}  # type: ignore[misc]
        for e in told
    ]


def _problem(answer: Answer) -> dict[str, Any]:
    try:
        document, _ = read_answer(answer.body)
    except NotJson:
        return {}
    return document if isinstance(document, dict) else {"detail": document} if isinstance(document, str) else {}


def words(document: Any) -> str:
    """Return what an error object says, in whichever field it says it."""
    if isinstance(document, str):
        return document
    if isinstance(document, list):
        return "; ".join(filter(None, (words(item) for item in document[:5])))
    if not isinstance(document, dict):
        return ""
    place = ".".join(str(part) for part in document["loc"]) if isinstance(document.get("loc"), list) else ""
    # A problem's detail says what its title says, of this case (RFC 9457).
    title = "" if "type" in document and words(document.get("detail")) else words(document.get("title"))
    said = [title, *(words(document.get(name)) for name in ("error", "message", "msg", "detail", "reason", "errors"))]
    said += [words(document.get(name)) for name in ("error_description", "errorMessage", "description")]
    # Objects often say the same in several fields.
    once = list(dict.fromkeys(filter(None, [place, *said])))
    return ": ".join(once[:3])


def _text_of(answer: Answer) -> str:
    text = answer.body[:20_000].decode("utf-8", "replace")
    if "html" in answer.content_type or re.match(r"\s*<(!doctype|html)", text, re.IGNORECASE):
        title = re.search(r"<title[^>]*>([^<]{1,200})", text, re.IGNORECASE)
        return f"an HTML page{f', {html.unescape(title[1]).strip()!r}' if title else ''}"
    return " ".join(text.split())
