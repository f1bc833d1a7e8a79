"""CSV as it was sent: every value text, unless its type is known; never guessed, never NA."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from nbext.client import frames
from nbext.client.http.errors import one_line
from nbext.errors import ProtocolError

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20
# Of a table that is kept: what parsing takes and gives back leaves holes between what stays. A million rows of 74 MB
# peaked at 181 MB with blocks of 1 MB, and at 126 MB where small ones are joined.
_SMALL_BLOCK, _ROWS_JOINED = 1 << 17, 1 << 15
MEDIA_TYPES = (
    "text/csv",
    "application/csv",
    "text/comma-separated-values",
    "text/tab-separated-values",
)
# Media types under which anything may come.
VAGUE_TYPES = (
    "",
    "text/plain",
    "application/octet-stream",
    "binary/octet-stream",
    "application/download",
    "application/gzip",
    "application/x-gzip",
)


def whole_table(body: bytes) -> pa.Table:
    """Return a whole CSV as a table, all of it text."""
    return read_stream(io.BytesIO(body), {})


def read_stream(source: Any, types: Mapping[str, str], *, canonical: bool = False) -> pa.Table:
    """Return a CSV as a table, while it arrives; what is not CSV is a ProtocolError with the line.

    ``canonical`` says that exact amounts are written as our service writes them, in one way only: their digits become
    numbers as soon as they arrive, so that the table is never in memory beside its text.
    """
    import pyarrow as pa

    # pandas keeps text as large_string: read as such it is not copied once more.
    schema, arriving = batches(
        source, types, pa.large_string(), _SMALL_BLOCK if canonical else BLOCK
    )
    exact = {name for name in schema.names if canonical and types.get(name) == "uint256"}
    columns: dict[str, list[Any]] = {name: [] for name in schema.names}
    for some in _joined(arriving):
        for name, values in zip(schema.names, some, strict=True):
            columns[name].append(frames.exact_part(values) if name in exact else values)
    return pa.table(
        {
            field.name: (frames.exact_whole if field.name in exact else pa.chunked_array)(
                columns[field.name], field.type
            )
            for field in schema
        }
    )


def _joined(batches: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the columns of some batches at a time, in memory of their own, apart from that of parsing."""
    import pyarrow as pa

    waiting: list[Any] = []
    for batch in chain(batches, [None]):
        if waiting and (batch is None or sum(each.num_rows for each in waiting) >= _ROWS_JOINED):
            yield [
                pa.concat_arrays(parts)
                for parts in zip(*(each.columns for each in waiting), strict=True)
            ]
            waiting = []
        waiting.append(batch)


def batches(
    source: Any, types: Mapping[str, str], text: Any = None, block: int = BLOCK
) -> tuple[Any, Iterator[Any]]:
    """Return a CSV's Arrow schema and its batches, one after the other; texts are of the type ``text``, or string."""
    import pyarrow as pa
    from pyarrow import csv

    head, names, separator = _header(source)
    joined = _Joined(head, source)
    kinds = {
        "integer": pa.int64(),
        "boolean": pa.bool_(),
        "float64": pa.float64(),
        "timestamp": pa.timestamp("s", "UTC"),
    }
    # No row may be longer than a block: of our service none has forty times as many characters as the header.
    block = max(block, 40 * len(head.split(b"\n", 1)[0]))
    text = text or pa.string()
    with _lines_of_faults():
        reader = csv.open_csv(
            joined,
            # One thread: only then is the row of a fault known, and from a stream it is no slower.
            csv.ReadOptions(block_size=block, use_threads=False),
            csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            # Left to itself it guesses: of the balances, 65 % would stay exact.
            csv.ConvertOptions(
                column_types={name: kinds.get(types.get(name, ""), text) for name in names},
                # An empty number is missing. An empty text is a text, and so is a symbol named NA.
                null_values=[""],
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
            # Arrow's own pool keeps what it has freed, which for a table of this kind is a quarter of the peak.
            memory_pool=pa.system_memory_pool(),
        )
    return reader.schema, _each(reader, joined)


def _each(reader: Any, joined: _Joined) -> Iterator[Any]:
    with _lines_of_faults():
        yield from reader
    joined.check()


@contextlib.contextmanager
def _lines_of_faults() -> Iterator[None]:
    """Turn what pyarrow says of a CSV into our error, with the line."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid as error:
        row = re.search(r"[Rr]ow #(\d+)", str(error))
        where = f" at line {int(row[1]):,}" if row else ""
        raise ProtocolError(
            f"The answer is not valid CSV{where}: {one_line(error, length=200)}"
        ) from None


def _header(source: Any) -> tuple[bytes, list[str], str]:
    """Return the first bytes, without a BOM, the names of the columns in them, and what is between two."""
    import csv as plain

    head = b""
    while b"\n" not in head and len(head) < BLOCK:
        piece = source.read(1 << 16)
        if not piece:
            break
        head += piece
    head = head.removeprefix(b"\xef\xbb\xbf")
    if not head.strip():
        raise ProtocolError("The answer is an empty CSV, without even a header.")
    refuse_other_kinds(head)
    line = head.split(b"\n", 1)[0].rstrip(b"\r")
    # Where commas are decimal points, semicolons are between the values.
    separator = next((mark for mark in (",", "\t", ";", "|") if mark.encode() in line), ",")
    try:
        names = next(plain.reader([line.decode("utf-8")], strict=True, delimiter=separator))
    except (UnicodeDecodeError, plain.Error, StopIteration):
        names = []
    _check_names(names)
    # A header alone, without its line's end, is a table without rows.
    return (head if b"\n" in head else head.rstrip(b"\r") + b"\n"), names, separator


def refuse_other_kinds(head: bytes) -> None:
    """Refuse a body that is declared as CSV and plainly is something else."""
    start = head.lstrip()[:1]
    if start == b"<":
        raise ProtocolError("The answer is declared as CSV, but is HTML or other markup (line 1).")
    if start in (b"{", b"["):
        raise ProtocolError("The answer is declared as CSV, but is JSON (line 1).")
    if b"\r" in head.rstrip(b"\r") and b"\n" not in head:
        raise ProtocolError(
            "The answer's lines end in CR (line 1); CSV ends them with LF or CR LF."
        )


def _check_names(names: list[str]) -> None:
    if not names or any(not name.strip() for name in names):
        raise ProtocolError("The answer has no CSV header: a column has no name (line 1).")
    if len(set(names)) != len(names):
        raise ProtocolError("The answer's CSV header has a column twice (line 1).")
    if any(re.fullmatch(r"0x[0-9a-fA-F]{4,}|-?\d+(\.\d+)?", name.strip()) for name in names):
        raise ProtocolError("The answer has no CSV header: its first line has values (line 1).")


class _Joined(io.RawIOBase):
    """The first bytes, and then the rest of the source; its quotes are counted on the way."""

    def __init__(self, head: bytes, source: Any) -> None:
        super().__init__()
        self._head, self._source = head, source
        self._quotes, self._lines, self._last_quote = 0, 1, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        limit = BLOCK if size is None or size < 0 else size
        piece, self._head = self._head[:limit], self._head[limit:]
        if len(piece) < limit:
            piece += self._source.read(limit - len(piece))
        self._count(piece)
        return piece

    def _count(self, piece: bytes) -> None:
        quotes = piece.count(b'"')
        if quotes:
            self._quotes += quotes
            self._last_quote = self._lines + piece.count(b"\n", 0, piece.rfind(b'"'))
        self._lines += piece.count(b"\n")

    def check(self) -> None:
        """Refuse a quote that was never closed: pyarrow would take all that follows it for one value."""
        if self._quotes % 2:
            raise ProtocolError(
                f"The answer is not valid CSV: the quote at line {self._last_quote:,} is never closed."
            )
