"""CSV as it was sent: every value text, unless its type is known; never guessed, never NA."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbext.client.decode import refuse_other_kinds
from nbext.errors import ProtocolError
from nbext.http.errors import one_line

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20
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


def batches(
    source: Any, types: Mapping[str, str], text: pa.DataType
) -> tuple[pa.Schema, Iterator[pa.RecordBatch], list[str]]:
    """Return a CSV's Arrow schema, its batches while they arrive, and the comments above its header.

    Texts are of the type ``text``. What is not CSV is a ProtocolError with the line.
    """
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, open_csv

    head = _header(source)
    joined = _Joined(head, source)
    kinds = {
        "integer": pa.int64(),
        "boolean": pa.bool_(),
        "float64": pa.float64(),
        "timestamp": pa.timestamp("s", "UTC"),
    }
    # No row may be longer than a block: of our service none has forty times as many characters as the header.
    block = max(BLOCK, 40 * len(head.body.split(b"\n", 1)[0]))
    with _lines_of_faults(head.above):
        reader = open_csv(
            joined,
            # One thread: only then is the row of a fault known, and from a stream it is no slower.
            ReadOptions(block_size=block, use_threads=False),
            ParseOptions(delimiter=head.separator, newlines_in_values=True),
            # Left to itself it guesses: of the balances, 65 % would stay exact.
            ConvertOptions(
                column_types={name: kinds.get(types.get(name, ""), text) for name in head.names},
                # An empty number is missing. An empty text is a text, and so is a symbol named NA.
                null_values=[""],
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
            # Arrow's own pool keeps what it has freed, which for a table of this kind is a quarter of the peak.
            memory_pool=pa.system_memory_pool(),
        )
    return reader.schema, _each(reader, joined), head.comments


def _each(reader: Any, joined: _Joined) -> Iterator[Any]:
    with _lines_of_faults(joined.above):
        yield from reader
    joined.check()


@contextlib.contextmanager
def _lines_of_faults(above: int) -> Iterator[None]:
    """Turn what pyarrow says of a CSV into our error, with the line."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid as error:
        row = re.search(r"[Rr]ow #(\d+)", str(error))
        where = f" at line {int(row[1]) + above:,}" if row else ""
        raise ProtocolError(
            f"The answer is not valid CSV{where}: {one_line(error, length=200)}"
        ) from None


@dataclass(frozen=True)
class _Head:
    """The beginning of a CSV: its bytes from the header on, and what they and the lines above them say."""

    body: bytes
    names: list[str]
    separator: str
    comments: list[str]
    # Lines above the header.
    above: int


def _header(source: Any) -> _Head:
    body, comments, above = b"", list[str](), 0
    while len(body) < BLOCK and body.count(b"\n") < 20 and (piece := source.read(1 << 16)):
        body += piece
    body = body.removeprefix(b"\xef\xbb\xbf")
    if not body.strip():
        raise ProtocolError("The answer is an empty CSV, without even a header.")
    refuse_other_kinds(body)
    separator = None
    # Excel is told the separator so; others write a comment, which may say that these are not all rows.
    while match := re.match(rb'(?:"?sep=(.)"?|#([^\n]*?))\r?\n(?=[^\r\n])', body):
        following = body[match.end() :]
        if match[2] is not None and _has_values(_split(following, _separator(following))[0]):
            # It is the header itself: #address,balance
            break
        separator = match[1].decode("latin-1") if match[1] else separator
        comments += [] if match[1] else [match[2].decode("utf-8", "replace").strip()]
        body, above = following, above + 1
    separator = separator or _separator(body)
    names = _split(body, separator)[0]
    _check_names(names)
    # A header alone, without its line's end, is a table without rows.
    body = body if b"\n" in body else body.rstrip(b"\r") + b"\n"
    return _Head(body, names, separator, comments, above)


def _separator(head: bytes) -> str:
    """Return what is between two values: what all first lines have equally often, else what the header has oftenest."""
    rows = {mark: _split(head, mark) for mark in ";\t|,"}
    several = [mark for mark, split in rows.items() if len(split[0]) > 1]
    return max(
        several,
        key=lambda mark: (len(set(map(len, rows[mark]))) == 1, len(rows[mark][0])),
        default=",",
    )


def _split(head: bytes, separator: str) -> list[list[str]]:
    """Return the first lines as their values, as far as they are CSV."""
    lines, rows = head.split(b"\n")[:6], list[list[str]]()
    # The last one may be cut.
    texts = (line.decode("utf-8") for line in lines[: len(lines) - 1 or 1])
    with contextlib.suppress(UnicodeDecodeError, csv.Error):
        rows += csv.reader(
            (f"{text.rstrip(chr(13))}\n" for text in texts), strict=True, delimiter=separator
        )
    return rows or [[]]


def _check_names(names: list[str]) -> None:
    if not names or any(not name.strip() for name in names):
        raise ProtocolError("The answer has no CSV header: a column has no name (line 1).")
    if len(set(names)) != len(names):
        raise ProtocolError("The answer's CSV header has a column twice (line 1).")
    if _has_values(names):
        raise ProtocolError("The answer has no CSV header: its first line has values (line 1).")


def _has_values(names: list[str]) -> bool:
    return any(re.fullmatch(r"0x[0-9a-fA-F]{4,}|-?\d+(\.\d+)?", name.strip()) for name in names)


class _Joined(io.RawIOBase):
    """The first bytes, and then the rest of the source; its quotes are counted on the way."""

    def __init__(self, head: _Head, source: Any) -> None:
        super().__init__()
        self.above = head.above
        self._head, self._source = head.body, source
        self._quotes, self._lines, self._last_quote = 0, 1 + head.above, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = BLOCK) -> bytes:
        piece, self._head = self._head[:size], self._head[size:]
        if len(piece) < size:
            piece += self._source.read(size - len(piece))
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
