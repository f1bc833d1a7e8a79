"""The page of the eight operations: what a client sends and what our service answers."""

from __future__ import annotations

from typing import get_args, get_type_hints

from nbext.core import operations as wire
from nbext.core.constants import MAX_LIMIT
from tests.reference import table

# number, method, path, request shape, answer's fields, purpose; the order of the interface.
_OPERATIONS: tuple[tuple[str, str, type | None, object, str], ...] = (
    ("POST", wire.EXECUTE, wire.ExecuteRequest, wire.SegmentAnswer, "Run a segment query"),
    ("POST", wire.SEARCH, wire.SearchRequest, wire.SEARCH_FIELDS, "Search NFT collections, or tokens"),
    ("POST", wire.SIGN_UP, wire.SignUpRequest, wire.SIGN_UP_FIELDS, "Sign up for the newsletter"),
    ("GET", wire.TOKEN, None, wire.TOKEN_FIELDS, "Metadata of an ERC20 token"),
    ("GET", wire.NFT, None, wire.NFT_FIELDS, "Metadata of an NFT collection"),
    ("GET", wire.SEGMENT, None, wire.SegmentAnswer, "A segment by its id"),
    ("GET", wire.SEGMENT_JSON, None, wire.SegmentRows, "A segment's rows as JSON, in pages"),
    ("GET", wire.SEGMENT_CSV, None, None, "A segment's rows as CSV: UTF-8, with a header"),
)

_INTRODUCTION = f"""# The eight operations

Every request carries the key in the header `{wire.KEY_HEADER}`; bodies are JSON. Errors are problem objects (RFC 9457)
with `type title status detail instance code request_id` and, where fields are at fault, `errors` with a JSON pointer
each. `GET /openapi.json` on a running service is the whole contract, with examples.

An unknown value is null, never invented. A uint256 is a text of digits in JSON. A segment answers 200 when it is
finished and 202 with Location and Retry-After while it runs; `Prefer: wait=N` says how long the caller waits. Its
status is one of {", ".join(f"`{status}`" for status in wire.STATUSES)}.
`limit` is at most {MAX_LIMIT:,}; 0 only counts.

"""


def page() -> str:
    """Return the page."""
    return _INTRODUCTION + table(
        ["method", "path", "request", "answer", "purpose"],
        [[method, f"`{path}`", _shape(ask), _shape(answer), why] for method, path, ask, answer, why in _OPERATIONS],
    )


def _shape(shape: object) -> str:
    if shape is None:
        return ""
    if isinstance(shape, dict):
        return ", ".join(f"`{name}`" for name in shape)
    return ", ".join(f"`{name}`{_choices(hint)}" for name, hint in get_type_hints(shape).items())


def _choices(hint: object) -> str:
    words = [word for word in get_args(hint) if isinstance(word, str)]
    return f" ({', '.join(words)})" if words else ""
