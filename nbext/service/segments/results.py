"""The folder of results, which are immutable Arrow files, and their rows as JSON pages, CSV and Arrow.

A file is written once, flushed, entered in the registry, and never changed. Its SHA-256 is stored there and compared
before the first read of this process (`nbext.service.segments.files`): bytes that changed are set aside, never served.

Rows go out piece by piece, so that the first bytes are sent at once. A result has an address column and numbers only,
so no value needs escaping; only names do. Each piece is made by pyarrow's kernels, column by column: a million
rows pass through without a Python loop.
"""

from __future__ import annotations

import ctypes
import io
import json
import secrets
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from nbext.core.atomic_files import PRIVATE, sha256_of, sync
from nbext.core.strict_json import to_json
from nbext.core.times import in_iso
from nbext.core.uint256 import as_texts
from nbext.core.wire import Column, Page
from nbext.service.segments.files import Condition, StoredFiles, Unavailable
from nbext.service.segments.store import ResultFile, SegmentRecord

# Bytes of one piece of an export, about: what a caller who stalls holds up in the connection.
_PIECE_BYTES = 256 << 10
# Rows times columns of a result that goes out at once.
SMALL = 8_192
MAX_PAGE = 1_000_000
# Rows that the segment's description has beside its links.
PREVIEW_ROWS = 10
DEFAULT_PAGE = 100_000
# Column types whose values are texts in JSON; the rest are numbers.
_TEXTS = ("string", "uint256", "timestamp")


class ResultFolder(StoredFiles):
    """The folder of result files."""

    name = "results"

    def write(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> ResultFile:
        """Store rows in a new file, batch by batch; all but the last have the rows of the first."""
        name = f"{secrets.token_hex(12)}.arrow"
        path = self.folder / name
        # By its name at once, which nobody knows yet: what is renamed after it was flushed is flushed twice.
        path.touch(PRIVATE, exist_ok=False)
        try:
            # Not compressed: addresses are random digits, and of 86,000 rows it was a seventh of a segment's work.
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
                for batch in batches:
                    out.write_batch(batch)
            # Beside the way to the disk: of 700,000 wallets each takes 25 ms.
            with ThreadPoolExecutor(1) as pool:
                digest = pool.submit(sha256_of, path)
                sync(path)
            sync(self.folder)
            self.trust(name)
            return ResultFile(name, path.stat().st_size, digest.result())
        except BaseException:
            self.remove(name)
            raise

    def check(self, result: ResultFile, *, read: bool = True) -> Condition:
        """Return what became of a result's file; its bytes are compared, unless ``read`` is false."""
        intact = (lambda path: sha256_of(path) == result.sha256) if read else None
        return self.condition(result.file, size=result.size, intact=intact)

    def open(self, result: ResultFile) -> Any:
        """Return a pyarrow RecordBatchFileReader over a file that is here; Unavailable where it cannot be read now."""
        try:
            # Not mapped: its pages would count as this process's memory.
            return pa.ipc.open_file(pa.OSFile(str(self.folder / result.file)))
        except (OSError, pa.ArrowException) as error:
            raise Unavailable(
                f"result {result.file} cannot be read now ({type(error).__name__})"
            ) from None


def json_page(
    segment: SegmentRecord, reader: Any, path: str, limit: int, offset: int
) -> Iterator[bytes]:
    """Yield one page as ``{id, columns, data, page}``; ``path`` is the export's own, below which the next page is."""
    total, after = segment.returned or 0, offset + limit
    following = f"{path}?limit={limit}&offset={after}" if after < total else None
    page: Page = {"limit": limit, "offset": offset, "total": total, "next": following}
    columns: list[Column] = segment.facts["columns"]
    head = to_json({"id": segment.id, "columns": columns})
    # Before the first row is read: the caller's timeout for the first byte does not depend on the result's size.
    yield head[:-1] + b',"data":['
    between = b""
    for batch in _batches(reader, offset, limit):
        yield between + ",".join(_json_rows(batch, columns)).encode("ascii")
        between = b","
    yield b'],"page":' + to_json(page) + b"}"


def preview(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Return the first rows as JSON has them: exact numbers as texts, counts and floats as numbers."""
    first = next(batches, None)
    if first is None:
        return []
    rows: list[dict[str, Any]] = as_texts(in_iso(first.slice(0, PREVIEW_ROWS))).to_pylist()
    return rows


def csv(segment: SegmentRecord, reader: Any) -> Iterator[bytes]:
    """Yield all rows as CSV: a header always, digits as they are, nothing where there is no value."""
    columns: list[Column] = segment.facts["columns"]
    yield (",".join(column["name"] for column in columns) + "\r\n").encode("utf-8")
    # pyarrow would quote every text; digits and addresses need no quotes.
    options = arrow_csv.WriteOptions(include_header=False, quoting_style="none")
    for batch in _batches(reader, 0, segment.returned or 0):
        sink = io.BytesIO()
        arrow_csv.write_csv(in_iso(batch), sink, options)
        yield sink.getvalue()


def arrow(segment: SegmentRecord, reader: Any) -> Iterator[bytes]:
    """Yield all rows as an Arrow IPC stream."""
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
    """Yield the rows from offset on, at most ``limit``, in pieces; batches before them are not read."""
    batches, end = reader.num_record_batches, offset + limit
    # All batches but the last have the rows of the first.
    rows = max(1, reader.get_batch(0).num_rows) if batches else 1
    while offset < end and (number := offset // rows) < batches:
        # The first and the last batch may be cut by the page.
        batch = reader.get_batch(number).slice(offset % rows, end - offset)
        # As text each column has its name beside it in JSON, and numbers become up to three times as long.
        names = sum(len(name) + 8 for name in batch.schema.names)
        fitting = max(1, _PIECE_BYTES // (names + batch.nbytes // max(1, batch.num_rows)))
        for place in range(0, batch.num_rows, fitting):
            yield batch.slice(place, fitting)
        offset = (number + 1) * rows


def _json_rows(batch: Any, columns: Sequence[Column]) -> list[str]:
    pieces: list[Any] = []
    for column, values in zip(columns, in_iso(batch).columns, strict=True):
        pieces.append(("," if pieces else "{") + json.dumps(column["name"]) + ":")
        # Exact numbers of any width as their digits, floats as the shortest text that reads back as the same.
        text = values.cast(pa.string())
        if column["type"] in _TEXTS:
            text = pc.binary_join_element_wise('"', text, '"', "")
        # After the quotes: null is a word of JSON and not a string.
        pieces.append(pc.fill_null(text, "null"))
    rows: list[str] = pc.binary_join_element_wise(*pieces, "}", "").to_pylist()
    return rows


def give_back_memory() -> None:
    """Give the system back what Arrow and C have freed: else the service stays as large as its largest answer was."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
