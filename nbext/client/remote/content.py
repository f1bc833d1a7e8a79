"""A page: one answer. What kind of body it has, by its content type, and where that says nothing by how it begins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nbext.client.decode import Reading
from nbext.client.files import csv_text
from nbext.client.http.body import Answer
from nbext.client.remote.field_names import name_set
from nbext.core.strict_json import NotJson, read_answer
from nbext.core.untrusted_text import quoted
from nbext.errors import AmbiguousAnswer, ProtocolError

_LINES_TYPES = name_set(
    "application/x-ndjson application/ndjson application/jsonl application/x-jsonlines application/jsonlines "
    "application/json-seq"
)


# One way to ask for the next page: an address, or what to change in the query of this page's.
Way = str | Mapping[str, str]


@dataclass
class Signs:
    """What one answer says of all rows, beside its own.

    ``ways`` to the next page, ``go_on`` whether it says that there is one, ``hints`` the fields that say so;
    ``totals`` of all rows, by field; ``counts`` that may be this page's or all; numbers of ``page``, ``pages``,
    ``offset`` and ``size``, each with its own name; ``least`` is a total that may be higher. ``unknown`` are the values
    of all fields that no rule understands, and that may say anything.
    """

    ways: list[Way] = field(default_factory=list)
    go_on: bool | None = None
    hints: list[str] = field(default_factory=list)
    totals: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    returned: dict[str, int] = field(default_factory=dict)
    page: tuple[str, int] | None = None
    pages: int | None = None
    offset: tuple[str, int] | None = None
    size: int | None = None
    least: int | None = None
    unknown: dict[str, Any] = field(default_factory=dict)


@dataclass
class ForeignPage(Reading):
    """One answer of a stranger, and what it says of the rows beyond its own.

    ``empty``: it has no body; ``wrapped`` is the status that a gateway put into it. ``size`` is its body's bytes.
    ``unproven``: nothing on the wire says that the body is whole; ``cut``: and its last line has no end. ``parts`` are
    the addresses of files that hold its rows; ``bare``: it has no table, only a next page; ``unnamed``: nothing names
    its columns. ``doubt`` is the error to raise once it is clear that its status word must be asked about, ``instead``
    the one that names what may be its rows, for when there are none anywhere else.
    """

    signs: Signs = field(default_factory=Signs)
    empty: bool = False
    wrapped: int | None = None
    size: int = 0
    unproven: bool = False
    cut: bool = False
    parts: list[str] = field(default_factory=list)
    bare: bool = False
    unnamed: bool = False
    doubt: AmbiguousAnswer | None = None
    instead: AmbiguousAnswer | None = None


def opened(answer: Answer) -> ForeignPage:
    """Return a page of the body: NotJson where it should be JSON; HTML, XML and damaged CSV are a ProtocolError."""
    body = answer.body.strip(b"\xef\xbb\xbf \t\r\n")
    kind = answer.content_type
    if not body:
        if kind in csv_text.MEDIA_TYPES:
            raise ProtocolError("The answer is an empty CSV, without even a header.")
        return ForeignPage(empty=True)
    if kind in csv_text.MEDIA_TYPES:
        return ForeignPage(table=csv_text.whole_table(answer.body))
    # Whatever its type says: a login page of a proxy calls itself anything, and JSON is sent as text/html.
    if body.startswith(b"<") or ("html" in kind and body[:1] not in b'{["'):
        raise ProtocolError(
            f"The service answered with {_markup(body)} instead of data. Check base_url."
        )
    if kind in _LINES_TYPES:
        return _lines(body)
    if kind in csv_text.VAGUE_TYPES:
        return _sniffed(answer, body)
    return _of_json(answer, body)


def _markup(body: bytes) -> str:
    title = re.search(rb"<title[^>]*>([^<]{1,80})", body[:20_000], re.IGNORECASE)
    is_html = re.match(rb"<(!doctype|html|head|body)", body, re.IGNORECASE)
    named = f" ({quoted(title[1].decode('utf-8', 'replace').strip())})" if title else ""
    return f"an HTML page{named}" if is_html else f"markup{named}"


def _sniffed(answer: Answer, body: bytes) -> ForeignPage:
    """Read a body whose content type says nothing."""
    if body[:1] in b'{["':
        return _of_json(answer, body)
    if b"\n" in body or b"," in body:
        return ForeignPage(table=csv_text.whole_table(answer.body))
    # One word: an id, an address of a file, a number; whoever asked says which of them may come.
    if re.fullmatch(rb"[A-Za-z0-9_-]+|https?://\S+", body):
        return ForeignPage(document=body.decode("ascii"))
    raise ProtocolError(
        f"The answer is neither JSON nor CSV, but {len(body):,} bytes of plain text."
    )


def _of_json(answer: Answer, body: bytes) -> ForeignPage:
    try:
        return _unpacked(*read_answer(answer.body))
    except NotJson:
        # Lines of JSON are often declared as JSON. A line that has rows itself is no row, but a page.
        try:
            found = _lines(body) if b"\n" in body and body[:1] == b"{" else None
        except ProtocolError:
            found = None
        if found is None or any(
            isinstance(value, list) and value[:1] and isinstance(value[0], dict)
            for line in found.document[:20]
            if isinstance(line, dict)
            for value in line.values()
        ):
            raise
        return found


def _lines(body: bytes) -> ForeignPage:
    """Read one JSON object a line."""
    records, warnings = [], []
    # json-seq begins each record with a record separator.
    for number, line in enumerate(body.replace(b"\x1e", b"").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record, warned = read_answer(line)
        except NotJson as error:
            raise ProtocolError(f"Line {number:,} of the answer is not JSON: {error}.") from None
        records.append(record)
        warnings += warned
    # One warning speaks for all lines.
    return ForeignPage(document=records, warnings=warnings[:1], unproven=True)


def _unpacked(document: Any, warnings: list[str]) -> ForeignPage:
    """Return a document without the layers that gateways put around one."""
    found = ForeignPage(document=document, warnings=list(warnings))
    # AWS's API Gateway sends JSON as a text inside of JSON, and some wrap that once more.
    for _ in range(3):
        inner = found.document
        if isinstance(inner, dict) and "body" in inner and inner.keys() <= _GATEWAY:
            status = inner.get("statusCode", inner.get("status_code"))
            if type(status) is int:
                found.wrapped, inner = status, inner["body"]
        if not (isinstance(inner, str) and inner.strip()[:1] in ("{", "[", '"')):
            found.document = inner
            return found
        found.document, more = read_answer(inner.encode("utf-8", "surrogatepass"))
        found.warnings += more
    return found


_GATEWAY = name_set(
    "statusCode status_code body headers multiValueHeaders isBase64Encoded statusDescription"
)
