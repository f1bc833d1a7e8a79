"""The page of the eight operations: what a client sends and what our service answers."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, get_args, get_type_hints

from nbext.core import wire
from nbext.core.rules import MAX_LIMIT
from tests.reference import table
from tests.reference.shown import cut, transcript
from tests.service.process import serve

# number, method, path, request shape, answer's fields, purpose; the order of the interface.
OPERATIONS: tuple[tuple[str, str, type | None, object, str], ...] = (
    ("POST", wire.EXECUTE, wire.ExecuteRequest, wire.SegmentAnswer, "Run a segment query"),
    (
        "POST",
        wire.SEARCH,
        wire.SearchRequest,
        wire.SEARCH_FIELDS,
        "Search NFT collections, or tokens",
    ),
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


# A request for each, with every field that a request has; ID is the segment of the first.
REQUESTS: tuple[tuple[str, dict[str, Any] | None], ...] = (
    (
        wire.EXECUTE,
        {"operator": "AND", "filters": {"token": {"token": "UNI"}}, "fileType": "json", "limit": 2},
    ),
    (
        wire.SEARCH,
        {"type": "nft", "chain": "ethereum", "searchTerm": "bored ape", "limit": 1, "offset": 0},
    ),
    (wire.SIGN_UP, {"email": "reader@example.com"}),
    (wire.TOKEN.format(chain="ethereum", address="UNI"), None),
    (wire.NFT.format(chain="ethereum", address="BAYC"), None),
    (wire.SEGMENT.format(id="ID"), None),
    (wire.SEGMENT_JSON.format(id="ID"), None),
    (wire.SEGMENT_CSV.format(id="ID"), None),
)
# What is another one in each run: ids, and the time of the request and what it took.
_CHANCE = (
    (r"sg_[\w-]{22,}", "ID"),
    (r'("(createdAt|completedAt)": )"[^"]+"', r'\1"TIME"'),
    (r'("durationMs": )\d+', r"\g<1>12"),
)
_LONGEST = 110


def page() -> str:
    """Return the page: a table of the operations, then a request of each with its answer."""
    return (
        _INTRODUCTION
        + table(
            ["method", "path", "request", "answer", "purpose"],
            [
                [method, f"`{path}`", _shape(ask), _shape(answer), why]
                for method, path, ask, answer, why in OPERATIONS
            ],
        )
        + "\n## One of each\n\n"
        "Over the sample; a line for each field of an answer, and `...` where a value is longer.\n\n"
        + transcript(_answered())
    )


def _answered() -> list[tuple[str, str]]:
    with (
        tempfile.TemporaryDirectory(prefix="nbext-pages-") as folder,
        serve(Path(folder)) as running,
    ):
        known, pairs = "", []
        for path, body in REQUESTS:
            method = "GET" if body is None else "POST"
            answer = running.session.request(
                method, running.url + path.replace("ID", known), json=body, timeout=60
            )
            if path == wire.EXECUTE:
                known = answer.json()["id"]
            asked = f"{method} {path}" + (f"\n{json.dumps(body)}" if body else "")
            shown = f"{answer.status_code} {answer.reason}\n{_lines(answer)}"
            # A segment's description is that of the first answer.
            pairs.append((asked, cut(shown, 5) if path == wire.SEGMENT.format(id="ID") else shown))
    return pairs


def _lines(answer: Any) -> str:
    """Return a line for each field of an answer, or the lines of one that is no JSON."""
    if not answer.headers["content-type"].startswith("application/json"):
        return str(answer.text)
    found = answer.json()
    fields = [
        *found.items(),
        *((f"items[0].{name}", value) for name, value in found.pop("items", [{}])[0].items()),
    ]
    lines = [f'"{name}": {json.dumps(value)}' for name, value in fields if name != "items"]
    for pattern, instead in _CHANCE:
        lines = [re.sub(pattern, instead, line) for line in lines]
    return "\n".join(line if len(line) <= _LONGEST else line[:_LONGEST] + "..." for line in lines)


def _shape(shape: object) -> str:
    if shape is None:
        return ""
    if shape is wire.SEARCH_FIELDS:
        return (
            "`type`, `chain`, `searchTerm`, `total`, `limit`, `offset`, `items`, each with "
            + _shape(dict(shape))
        )
    if isinstance(shape, dict):
        return ", ".join(f"`{name}`" for name in shape)
    return ", ".join(f"`{name}`{_choices(hint)}" for name, hint in get_type_hints(shape).items())


def _choices(hint: object) -> str:
    words = [word for word in get_args(hint) if isinstance(word, str)]
    return f" ({', '.join(words)})" if words else ""
