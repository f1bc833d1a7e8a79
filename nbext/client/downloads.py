"""An answer that may be large: CSV and Arrow become tables while they arrive, anything else is read whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nbext.client.files import csv_text
from nbext.client.http.problems import Answer
from nbext.client.http.transport import NO_CAP, Call, Incoming, Transport
from nbext.client.remote.content import CSV_TYPES, VAGUE_TYPES
from nbext.client.remote.profile import Overrides
from nbext.client.remote.reading import Reading, Want, read
from nbext.client.remote.row_counts import stated
from nbext.core.operations import ARROW_TYPE
from nbext.errors import ProtocolError

MAX_HOPS, MAX_PAGES = 3, 10_000


@dataclass
class Downloads:
    """Reads whatever a service answers to a request for rows."""

    transport: Transport
    overrides: Overrides
    types: Mapping[str, str] = field(default_factory=dict)

    def get(self, call: Call, want: Want = Want.TABLE) -> Reading:
        """Return what came; where the answer only says where the file is, what is there."""
        for _ in range(MAX_HOPS):
            reading = self.transport.run(replace(call, cap=NO_CAP), partial(self.open, want=want))
            if reading.url is None or reading.rows is not None or reading.id is not None:
                return reading
            target = self.transport.origin.follow(reading.url, self.transport.origin.url + "/")
            call, want = replace(call, method="GET", target=target, body=None), Want.TABLE
        raise ProtocolError("the service sent us from one address to the next, and to no rows.")

    def all_pages(self, reading: Reading, call: Call) -> list[dict[str, Any]]:
        """Return the rows of every page, the first one being read already."""
        return [row for page in self.pages(reading, call) for row in page]

    def pages(self, reading: Reading, call: Call) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows page by page, the first one being read already; the next is asked for when it is wanted."""
        came = reading.rows or 0
        yield reading.records or []
        url = call.target if call.method == "GET" else None
        seen: set[str] = set()
        while reading.next is not None:
            if url is None and reading.next.url is None:
                raise ProtocolError(f"only the first {came:,} rows came, and not how to ask for the others.")
            base = self.transport.absolute(url or call.target)
            url = self.transport.origin.follow(reading.next.of(base), base)
            if url in seen or len(seen) >= MAX_PAGES:
                raise ProtocolError(f"the pages of the answer go round in a circle after {came:,} rows.")
            seen.add(url)
            reading = self.get(replace(call, method="GET", target=url, body=None))
            if not reading.rows:
                break
            came += reading.rows
            yield reading.records or []

    def open(self, came: Incoming, want: Want) -> Reading:
        kind = came.headers.get("Content-Type", "").split(";")[0].strip().lower()
        if kind == ARROW_TYPE:
            return Reading(table=read_arrow(came.stream), stated=stated(None, came.headers))
        if kind in CSV_TYPES or (kind in VAGUE_TYPES and self._looks_like_csv(came)):
            types = {**self.overrides.types, **self.types}
            return Reading(table=csv_text.read_stream(came.stream, types), stated=stated(None, came.headers))
        whole = came.stream.bounded(self.transport.settings["max_body_mb"] * 1_000_000).read()
        return read(Answer(came.status, came.headers, whole, came.url), want, self.overrides, self.transport.key)

    def _looks_like_csv(self, came: Incoming) -> bool:
        head = came.stream.peek(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
        return head[:1] not in (b"", b"{", b"[", b'"', b"<") and (b"\n" in head or b"," in head)


def read_arrow(source: Any) -> Any:
    """Return an Arrow IPC stream as a table, batch by batch as it arrives."""
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(source) as batches:
            return batches.read_all()
    except pa.ArrowInvalid as error:
        failure = str(error)
    raise ProtocolError(f"the answer is no Arrow stream that can be read: {failure[:200]}")
