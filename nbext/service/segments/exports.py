"""A result's rows as JSON pages, CSV and Arrow: made piece by piece, so that the first bytes go out at once.

A result holds an address column and whole numbers only, so no value needs escaping; only names do.
Each piece is made by pyarrow's kernels, column by column: a million rows pass through without a Python loop.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from nbext.core.operations import SEGMENT_JSON, Column, Page
from nbext.core.strict_json import to_json
from nbext.service.segments.results import BATCH
from nbext.service.segments.store import Segment

MAX_PAGE = 1_000_000
DEFAULT_PAGE = 100_000
# Column types whose values are texts in JSON; the rest are numbers.
_TEXTS = ("string", "uint256")


def page_of(segment: Segment, limit: int, offset: int) -> Page:
    """Return where a page stands, with the path of the one that follows it."""
    total = segment.returned or 0
    after = offset + limit
    path = SEGMENT_JSON.format(id=segment.id)
    following = f"{path}?limit={limit}&offset={after}" if after < total else None
    return {"limit": limit, "offset": offset, "total": total, "next": following}


def json_page(segment: Segment, reader: Any, page: Page) -> Iterator[bytes]:
    """Yield one page as ``{id, columns, data, page}``."""
    columns: list[Column] = segment.facts["columns"]
    head = to_json({"id": segment.id, "columns": columns})
    # Before the first row is read: the caller's timeout for the first byte does not depend on the result's size.
    yield head[:-1] + b',"data":['
    between = b""
    for batch in _batches(reader, page["offset"], page["limit"]):
        yield between + ",".join(_json_rows(batch, columns)).encode("ascii")
        between = b","
    yield b'],"page":' + to_json(page) + b"}"


def csv(segment: Segment, reader: Any) -> Iterator[bytes]:
    """Yield all rows as CSV: a header always, digits as they are, nothing where there is no value."""
    from pyarrow import csv as arrow_csv

    columns: list[Column] = segment.facts["columns"]
    yield (",".join(column["name"] for column in columns) + "\r\n").encode("utf-8")
    # pyarrow would quote every text; digits and addresses need no quotes.
    options = arrow_csv.WriteOptions(include_header=False, quoting_style="none")
    for batch in _batches(reader, 0, segment.returned or 0):
        sink = io.BytesIO()
        arrow_csv.write_csv(batch, sink, options)
        yield sink.getvalue()


def arrow(segment: Segment, reader: Any) -> Iterator[bytes]:
    """Yield all rows as an Arrow IPC stream."""
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, reader.schema) as out:
        for batch in _batches(reader, 0, segment.returned or 0):
            out.write_batch(batch)
            yield _taken(sink)
    yield _taken(sink)


def _taken(sink: io.BytesIO) -> bytes:
    # The stream goes on in the same sink: emptied after each batch, it holds one batch and not the whole result.
    made = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return made


def _batches(reader: Any, offset: int, limit: int) -> Iterator[Any]:
    """Yield the rows from offset on, at most ``limit``; batches before them are not read."""
    for number in range(offset // BATCH, reader.num_record_batches):
        first = number * BATCH
        if first >= offset + limit:
            return
        batch = reader.get_batch(number)
        # The first and the last batch may be cut by the page.
        start = max(0, offset - first)
        batch = batch.slice(start, min(batch.num_rows, offset + limit - first) - start)
        if batch.num_rows:
            yield batch


def _json_rows(batch: Any, columns: Sequence[Column]) -> list[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    pieces: list[Any] = []
    for column, values in zip(columns, batch.columns, strict=True):
        pieces.append(("," if pieces else "{") + json.dumps(column["name"]) + ":")
        # Integers of 64 bits and texts of up to 78 digits alike: nothing passes through a float.
        text = values.cast(pa.string())
        if column["type"] in _TEXTS:
            text = pc.binary_join_element_wise('"', text, '"', "")
        # After the quotes: null is a word of JSON and not a string.
        pieces.append(pc.fill_null(text, "null"))
    rows: list[str] = pc.binary_join_element_wise(*pieces, "}", "").to_pylist()
    return rows
