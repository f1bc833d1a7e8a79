"""Every error of nbext, in one tree.

NbextError
├── UsageError               a magic or a command was not written as it must be
├── ConfigError              a setting is missing or cannot be used; no request was sent
│   └── NoService            base_url is not set and the embedded service is not installed
├── ValidationError          an argument is not allowed; ``errors`` names each field
│   ├── InvalidSegment       the filters, operator or limit of a segment are not allowed
│   └── AmbiguousSymbol      several contracts have that symbol; ``candidates`` lists them
├── ApiError                 the service returned an error; ``status``, ``problem``
│   ├── BadRequest           400, and every other 4xx that is not below
│   ├── AuthError            401, 402, 403: the key is missing, wrong or lacks a scope
│   ├── NotFound             404, 410
│   ├── Conflict             409: not ready yet, or ambiguous
│   ├── RateLimited          429, after the retries
│   └── ServerError          5xx, after the retries
├── TransportError           no answer arrived, or none that can be trusted
│   ├── ConnectionFailed     refused, unreachable, unknown host, reset
│   ├── TLSError             the certificate or the handshake is bad
│   ├── DeadlineExceeded     the call's total time ran out; ``segment_id`` if one is known
│   ├── TruncatedResponse    the body ended before it was complete
│   ├── ResponseTooLarge     the decoded body is larger than allowed
│   ├── ProtocolError        the answer is not one that this interface allows
│   │   └── AmbiguousAnswer  the answer can be read in several ways; ``candidates``, ``setting``
│   ├── NodeError            no node answered, or what it says of its chain cannot be trusted; ``meaning``
│   ├── OutcomeUnknown       the request may have been carried out; ``idempotency_key``
│   └── ServiceDied          the embedded service ended and could not be started again
├── SegmentFailed            the segment ended without a result; ``reason``
│   ├── SegmentExpired       its result has been deleted
│   ├── QueryTimeout         it exceeded the service's time limit
│   └── ResourceLimit        it exceeded the service's memory or disk limit
├── QueryCancelled           the query was interrupted
├── IngestError              a file could not be ingested; ``path``, ``row``
└── StorageError             a stored file is damaged or cannot be written
    ├── DiskFull             the disk has no room for it
    └── OutOfMemory          ingest needs more memory than it may use
"""

from __future__ import annotations

import difflib
import errno
import os
import traceback
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

from typing_extensions import TypedDict

# As many as anybody reads; a hostile body has a hundred thousand, which must not make an answer of megabytes.
MOST_ERRORS = 20


class FieldError(TypedDict):
    """One field that is not allowed: where (a JSON pointer), which rule (``code``), and what to write instead."""

    pointer: str
    code: str
    detail: str


# What other tools and languages call our words, and these.
_SAME = {
    "erc20 coin currency": "token",
    "erc721 erc1155 collection": "nft",
    "symbol address contract name": "token nft id in",
    "wallets holder holders owner owners": "wallet",
    "count amount quantity value holds min max": "balance count amount",
    "balance": "count",
    "id ids": "tokenIds",
    "gt gte > >= above minimum atleast": "min after",
    "lt lte < <= below maximum atmost": "max before",
    "since start": "heldSince after first",
    "until end": "before last",
    "from to sender recipient receiver with": "counterparty",
    "sent send outgoing": "out",
    "received receive incoming": "in",
    "notin none without except": "not exclude",
    "sort order order_by sortby": "orderBy",
    "date at block": "asOf",
    "network": "chain",
    "wei": "raw",
}
_MEANT = {word: meant.split() for words, meant in _SAME.items() for word in words.split()}


def did_you_mean(got: str, allowed: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the allowed word that means the same or is spelt nearly so, or nothing."""
    # Without regard to case: "TOKEN" shares no letter with "token", and so would be near to nothing. Cut: to compare a
    # stranger's text of 900,000 characters with the names of chains takes 19 s.
    got, by_lower = got[:80].lower(), {word.lower(): word for word in allowed}
    # Two letters that changed places are the commonest slip, and to difflib as far off as another letter.
    near = [word for word in by_lower if sorted(word) == sorted(got)]
    # Of a user's own names `holders` is nearer to `holder` than `wallet`; but `unit` is not meant by `count`.
    alike = difflib.get_close_matches(got, by_lower, n=1)
    means = [word for word in map(str.lower, _MEANT.get(got, ())) if word in by_lower]
    if alike and difflib.SequenceMatcher(None, alike[0], got).ratio() >= 0.8:
        near += alike
    near += means + alike
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


class NbextError(Exception):
    """Shown in a notebook as its message alone; NBEXT_TRACEBACK=1 shows the stack.

    What else is known is an attribute of the error, which its class names.
    """

    def __init__(self, message: str = "", **known: Any) -> None:
        super().__init__(message)
        vars(self).update({name: one for name, one in known.items() if one is not None})

    # IPython calls it. Not IPython's UsageError as a base: that one passes `pytest --nbval-lax`, and a subclass of it
    # prints nine lines of traceback.
    def _render_traceback_(self) -> list[str]:
        # Read when it is shown, so that `%env NBEXT_TRACEBACK=1` takes effect in the next cell.
        if os.environ.get("NBEXT_TRACEBACK"):
            return traceback.format_exception(self)
        return [f"{type(self).__name__}: {self}"]


class UsageError(NbextError):
    """A magic or a command was not written as it must be."""


class ConfigError(NbextError):
    """A setting is missing or cannot be used; no request was sent."""


class NoService(ConfigError):
    """``base_url`` is not set, and the embedded service is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "No service is set. Set one (`%nbext connect https://...`, or NBEXT_BASE_URL), "
            'or install the embedded one, which needs no account: pip install "nbext[local]"'
        )


class ValidationError(NbextError):
    """An argument is not allowed.

    ``errors`` has ``pointer``, ``code`` and ``detail`` of each field; ``more`` is how many others were only counted.
    """

    def __init__(
        self,
        errors: Sequence[FieldError],
        more: int = 0,
        candidates: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.errors: list[FieldError] = list(errors)
        self.more = more
        self.candidates = [dict(c) for c in candidates]
        # A mistake in the document as a whole has the pointer "": its line would begin with a colon.
        super().__init__(
            "\n".join(
                [*(f"{e['pointer'] or '/'}: {e['detail']}" for e in self.errors), *self.counted()]
            )
        )

    def counted(self) -> list[str]:
        """Return the line that says how many more errors there are, where there are any."""
        return (
            [f"and {self.more:,} more {'error' if self.more == 1 else 'errors'}"]
            if self.more
            else []
        )

    def below(self, pointer: str, of: str = "") -> Self:
        """Return the error of a document in which that of this error, or its part ``of``, is at a pointer."""
        errors: list[FieldError] = [
            {**one, "pointer": pointer + one["pointer"].removeprefix(of)}
            if one["pointer"].startswith(of)
            else one
            for one in self.errors
        ]
        return type(self)(errors, self.more, self.candidates)

    @classmethod
    def of(cls, pointer: str, code: str, detail: str) -> Self:
        """Build the error of a single field."""
        return cls([{"pointer": pointer, "code": code, "detail": detail}])


class InvalidSegment(ValidationError):
    """The filters, operator or limit of a segment are not allowed."""


class AmbiguousSymbol(ValidationError):
    """Several contracts have that symbol.

    ``candidates`` has ``chain``, ``address``, ``symbol`` and ``name`` of each.
    """


class ApiError(NbextError):
    """The service returned an error.

    ``status`` is the HTTP status; ``problem`` the answer's problem object (RFC 9457), empty if the service sent none.
    """

    status: int
    problem: Mapping[str, Any] = MappingProxyType({})


class BadRequest(ApiError):
    """The service refused the request as it was sent."""


class AuthError(ApiError):
    """The key is missing, wrong, or not allowed to do this."""


class NotFound(ApiError):
    """The service has nothing under that id, name or address."""


class Conflict(ApiError):
    """The segment is not ready yet, or the symbol is ambiguous."""


class RateLimited(ApiError):
    """The service refused the call as one too many, also after the retries."""


class ServerError(ApiError):
    """The service failed, also after the retries; ``attempts`` says how often it was asked."""

    attempts: int = 1


class TransportError(NbextError):
    """No answer arrived, or none that can be trusted."""


class ConnectionFailed(TransportError):
    """The service could not be reached."""


class TLSError(TransportError):
    """The certificate or the handshake is bad."""


class DeadlineExceeded(TransportError):
    """The call's total time ran out; ``segment_id`` lets a started segment be resumed."""

    segment_id: str | None = None


class TruncatedResponse(TransportError):
    """The body ended before it was complete."""


class ResponseTooLarge(TransportError):
    """The decoded body is larger than ``max_body_mb`` allows."""


class ProtocolError(TransportError):
    """The answer is not one that this interface allows."""


class AmbiguousAnswer(ProtocolError):
    """The answer can be read in several ways, and nothing says which one is right.

    ``candidates`` are the readings, each as a path into the answer; ``setting`` is the line of settings that chooses
    the first of them.
    """

    candidates: list[str]
    setting: str


class NodeError(TransportError):
    """No node answered, or what it says of its chain cannot be trusted.

    ``meaning`` is the kind of refusal, such as ``PRUNED``; empty where the node did not refuse. No part of the node's
    URL is in the message.
    """

    meaning: str = ""


class OutcomeUnknown(TransportError):
    """The service may have carried the request out, and repeating it could do it twice."""

    idempotency_key: str | None = None


class ServiceDied(TransportError):
    """The embedded service ended and could not be started again."""


class SegmentFailed(NbextError):
    """The segment ended without a result; ``reason`` is the service's own text."""

    segment_id: str | None = None

    @property
    def reason(self) -> str:
        """The message."""
        return str(self)


class SegmentExpired(SegmentFailed):
    """The segment's result has been deleted."""


class QueryTimeout(SegmentFailed):
    """The segment exceeded the service's time limit."""


class ResourceLimit(SegmentFailed):
    """The segment exceeded the service's memory or disk limit."""


class QueryCancelled(NbextError):
    """The query was interrupted."""


class IngestError(NbextError):
    """A file could not be ingested; ``path`` names it, and ``row`` the row at fault, if it is one."""

    path: str = ""
    row: int | None = None


class StorageError(NbextError):
    """A stored file is damaged, or cannot be written."""


class OutOfMemory(StorageError):
    """Ingest needs more memory than it may use."""


class DiskFull(StorageError):
    """The disk has no room for what was to be stored."""

    @staticmethod
    def where(error: BaseException, message: str) -> StorageError:
        """Return the error of a failed write: this one where the disk or a quota is full, else StorageError."""
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        return DiskFull(message) if full else StorageError(message)
