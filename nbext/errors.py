"""Every error of nbext, in one tree.

NbextError
├── UsageError               a magic or a command was written in a way it does not take
├── ConfigError              a setting is missing or unusable; no request was sent
│   └── NoService            there is no base_url and the embedded service is not installed
├── ValidationError          an argument is not allowed; ``errors`` names each field
│   ├── InvalidSegment       the filters, operator or limit of a segment are not allowed
│   └── AmbiguousSymbol      several contracts bear that symbol; ``candidates`` lists them
├── ApiError                 the service answered with an error; ``status``, ``problem``
│   ├── BadRequest           400 and the other 4xx that say: not like this
│   ├── AuthError            401, 402, 403: the key is missing, wrong or not enough
│   ├── NotFound             404, 410
│   ├── Conflict             409: not ready yet, or ambiguous
│   ├── RateLimited          429, after the retries
│   └── ServerError          5xx, after the retries
├── TransportError           no answer, or none that can be trusted
│   ├── ConnectionFailed     refused, unreachable, unknown host, reset
│   ├── TLSError             the certificate or the handshake is bad
│   ├── DeadlineExceeded     the call's total time ran out; ``segment_id`` where one is known
│   ├── TruncatedResponse    the body ended early
│   ├── ResponseTooLarge     the decoded body passed the cap
│   ├── ProtocolError        the answer is not what the interface can hold
│   │   └── AmbiguousAnswer  the answer has several equal readings; ``candidates``, ``setting``
│   ├── OutcomeUnknown       the request may have happened; ``idempotency_key``
│   └── ServiceDied          the embedded service ended and could not be started again
├── SegmentFailed            the segment ended without a result; ``reason``
│   ├── SegmentExpired       its result is no longer kept
│   ├── QueryTimeout         it ran past the service's time limit
│   └── ResourceLimit        it ran past the service's memory or disk limit
├── QueryCancelled           it was interrupted
├── IngestError              a file could not be taken in; ``path``, ``row``
└── StorageError             a kept file is damaged or cannot be written
"""

from __future__ import annotations

import difflib
import os
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict


class FieldError(TypedDict):
    """One field that is not allowed: where (a JSON pointer), which rule, and what is allowed."""

    pointer: str
    code: str
    detail: str


def did_you_mean(got: str, allowed: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the nearest allowed word, or nothing."""
    by_lower = {word.lower(): word for word in allowed}
    near = difflib.get_close_matches(got.lower(), by_lower, n=1)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


class NbextError(Exception):
    """Shown in a notebook as its message alone; NBEXT_TRACEBACK=1 shows the stack."""

    def _render_traceback_(self) -> list[str]:
        if os.environ.get("NBEXT_TRACEBACK"):
            return traceback.format_exception(self)
        return [f"{type(self).__name__}: {self}"]


class UsageError(NbextError):
    """A magic or a command was written in a way it does not take."""


class ConfigError(NbextError):
    """A setting is missing or unusable; no request was sent."""


class NoService(ConfigError):
    """There is no base_url, and the embedded service is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "no service to ask. Either name one (`%nbext connect https://...`, or NBEXT_BASE_URL), "
            'or install the embedded one, which needs no account: pip install "nbext[local]"'
        )


class ValidationError(NbextError):
    """An argument is not allowed.

    Attributes
    ----------
    errors
        One entry per field: ``pointer``, ``code``, ``detail``.
    """

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors: list[FieldError] = list(errors)
        super().__init__("\n".join(f"{e['pointer'] or '/'}: {e['detail']}" for e in self.errors))

    @classmethod
    def of(cls, pointer: str, code: str, detail: str) -> ValidationError:
        """Build the error of a single field."""
        return cls([{"pointer": pointer, "code": code, "detail": detail}])


class InvalidSegment(ValidationError):
    """The filters, operator or limit of a segment are not allowed."""


class AmbiguousSymbol(ValidationError):
    """Several contracts bear that symbol.

    Attributes
    ----------
    candidates
        The contracts, each as ``chain``, ``address``, ``symbol`` and ``name``.
    """

    def __init__(self, errors: Sequence[FieldError], candidates: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(errors)
        self.candidates = [dict(c) for c in candidates]


class ApiError(NbextError):
    """The service answered with an error.

    Attributes
    ----------
    status
        The HTTP status.
    problem
        The answer's problem object, or an empty dict where the service sent none.
    """

    def __init__(self, message: str, *, status: int, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem = dict(problem or {})


class BadRequest(ApiError):
    """The service does not take the request as it is."""


class AuthError(ApiError):
    """The key is missing, wrong, or not allowed to do this."""


class NotFound(ApiError):
    """The service has nothing under that name."""


class Conflict(ApiError):
    """The thing is not ready yet, or the name is ambiguous."""


class RateLimited(ApiError):
    """Too many requests, also after the retries."""


class ServerError(ApiError):
    """The service failed, also after the retries; ``attempts`` says how often it was asked."""

    def __init__(
        self, message: str, *, status: int, problem: Mapping[str, Any] | None = None, attempts: int = 1
    ) -> None:
        super().__init__(message, status=status, problem=problem)
        self.attempts = attempts


class TransportError(NbextError):
    """There was no answer, or none that can be trusted."""


class ConnectionFailed(TransportError):
    """The service could not be reached."""


class TLSError(TransportError):
    """The certificate or the handshake is bad."""


class DeadlineExceeded(TransportError):
    """The call's total time ran out; ``segment_id`` lets a started segment be resumed."""

    def __init__(self, message: str, *, segment_id: str | None = None) -> None:
        super().__init__(message)
        self.segment_id = segment_id


class TruncatedResponse(TransportError):
    """The body ended before the answer was whole."""


class ResponseTooLarge(TransportError):
    """The decoded body passed the cap."""


class ProtocolError(TransportError):
    """The answer is not one that this interface can hold."""


class AmbiguousAnswer(ProtocolError):
    """The answer has several equal readings.

    Attributes
    ----------
    candidates
        The readings, each as a path into the answer.
    setting
        A line of settings that would choose the first of them.
    """

    def __init__(self, message: str, *, candidates: Sequence[str], setting: str) -> None:
        super().__init__(message)
        self.candidates = list(candidates)
        self.setting = setting


class OutcomeUnknown(TransportError):
    """The request may have happened, and repeating it could do it twice."""

    def __init__(self, message: str, *, idempotency_key: str | None = None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key


class ServiceDied(TransportError):
    """The embedded service ended and could not be started again."""


class SegmentFailed(NbextError):
    """The segment ended without a result; ``reason`` is the service's own text."""

    def __init__(self, reason: str, *, segment_id: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.segment_id = segment_id


class SegmentExpired(SegmentFailed):
    """The segment's result is no longer kept."""


class QueryTimeout(SegmentFailed):
    """The segment ran past the service's time limit."""


class ResourceLimit(SegmentFailed):
    """The segment ran past the service's memory or disk limit."""


class QueryCancelled(NbextError):
    """The query was interrupted."""


class IngestError(NbextError):
    """A file could not be taken in; ``path`` and, where one row is at fault, ``row``."""

    def __init__(self, message: str, *, path: str = "", row: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.row = row


class StorageError(NbextError):
    """A kept file is damaged, or cannot be written."""
