"""The folder of results, which are immutable Arrow files, and their rows as JSON pages, CSV and Arrow.

A file is written once, flushed, named, and never changed. Its SHA-256 is stored in the registry and compared
before the first read of this process: bytes that changed are set aside, never served.

Rows go out piece by piece, so that the first bytes are sent at once. A result has an address column and whole numbers
only, so no value needs escaping; only names do. Each piece is made by pyarrow's kernels, column by column: a million
rows pass through without a Python loop.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbext.core.atomic_files import PART, whole_file
from nbext.core.operations import SEGMENT_JSON, Column, Page
from nbext.core.strict_json import to_json
from nbext.errors import StorageError
from nbext.service.segments.store import ResultFile, Segment

if TYPE_CHECKING:
    import pyarrow as pa

# Rows of one batch on disk: small enough that the first bytes of an export go out at once.
BATCH = 16_384
MAX_PAGE = 1_000_000
DEFAULT_PAGE = 100_000
# Column types whose values are texts in JSON; the rest are numbers.
_TEXTS = ("string", "uint256")


class Results:
    """The folder of result files, and the folder where damaged ones are set aside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "results"
        self.aside = folder / "aside"
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Files whose hash was compared, with the time of their last change: a gigabyte is not hashed for each read.
        self._verified: set[tuple[str, int]] = set()

    def write(self, rows: pa.Table) -> ResultFile:
        """Store the rows in a new file."""
        # pyarrow takes up to 0.3 s to load: a service is ready without it.
        import pyarrow as pa

        name = f"{secrets.token_hex(12)}.arrow"
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        try:
            with whole_file(self.folder / name) as part:
                with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, rows.schema, options=options) as out:
                    out.write_table(rows, max_chunksize=BATCH)
                result = ResultFile(name, part.stat().st_size, sha256_of(part))
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"a result could not be written ({type(error).__name__})") from None
        self._verified.add((name, self._changed_at(result)))
        return result

    def open(self, result: ResultFile) -> Any:
        """Return a pyarrow RecordBatchFileReader over the file; StorageError where it is missing or has changed."""
        import pyarrow as pa

        self.verify(result)
        try:
            return pa.ipc.open_file(pa.memory_map(str(self.folder / result.file)))
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"result {result.file} cannot be read ({type(error).__name__})") from None

    def verify(self, result: ResultFile, *, again: bool = False) -> None:
        """Compare the file's bytes with what was written: once in a process, or ``again``."""
        version = (result.file, self._changed_at(result))
        if again or version not in self._verified:
            if version[1] < 0:
                raise StorageError(f"result {result.file} is missing or has another size")
            if sha256_of(self.folder / result.file) != result.sha256:
                raise StorageError(f"result {result.file} has other bytes than were written")
            self._verified.add(version)

    def _changed_at(self, result: ResultFile) -> int:
        """Return when the file last changed (ns), or -1 where it is missing or of another size."""
        try:
            stat = (self.folder / result.file).stat()
        except OSError:
            return -1
        return stat.st_mtime_ns if stat.st_size == result.size else -1

    def present(self, result: ResultFile) -> bool:
        """Return whether the file is there and has its size; its bytes are not read."""
        return self._changed_at(result) >= 0

    def set_aside(self, result: ResultFile) -> None:
        """Move a damaged file out of the way, for the operator to look at."""
        self.aside.mkdir(exist_ok=True, mode=0o700)
        path = self.folder / result.file
        if path.exists():
            path.replace(self.aside / result.file)

    def remove(self, file: str) -> None:
        """Delete a result's file: expired, or of a run that was cancelled; readers that have it open go on reading."""
        (self.folder / file).unlink(missing_ok=True)

    def strays(self, known: set[str], *, older_than: float) -> Iterator[Path]:
        """Yield files that the registry does not name, last changed before ``older_than`` (seconds since 1970).

        Another service may be about to register a younger one.
        """
        for path in self.folder.iterdir():
            if path.name not in known and (path.suffix in (".arrow", PART)) and path.stat().st_mtime < older_than:
                yield path


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def page_of(segment: Segment, limit: int, offset: int) -> Page:
    """Return a page's place among the rows, with the path of the next page."""
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
