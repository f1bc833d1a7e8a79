"""CSV as it was sent: every value text, unless its type is known; never guessed, never NA."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nbext.client.http.errors import shown
from nbext.errors import ProtocolError

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 20
MEDIA_TYPES = ("text/csv", "application/csv", "text/comma-separated-values")
# Media types under which anything may come.
VAGUE_TYPES = ("", "text/plain", "application/octet-stream", "binary/octet-stream", "application/download")


def read(body: bytes, types: Mapping[str, str] | None = None) -> pa.Table:
    """Return a whole CSV as a table."""
    return read_stream(io.BytesIO(body), types)


def read_stream(source: Any, types: Mapping[str, str] | None = None) -> pa.Table:
    """Return a CSV as a table, while it arrives.

    Raises
    ------
    ProtocolError
        Not CSV, or damaged: with the line.
    """
    import pyarrow as pa
    from pyarrow import csv

    head, names = _header(source)
    joined = _Joined(head, source)
    try:
        # pandas keeps text as large_string: read as such it is not copied once more. Arrow's own pool keeps what
        # it has freed, which for a table of this kind is a quarter of the peak.
        given = options(names, types or {}, text=pa.large_string())
        table = csv.read_csv(joined, *given, memory_pool=pa.system_memory_pool())
    except pa.ArrowInvalid as error:
        failure = str(error)
    else:
        joined.check()
        return table
    raise damaged(failure)


def batches(source: Any, types: Mapping[str, str] | None = None) -> tuple[Any, Iterator[Any]]:
    """Return a CSV's Arrow schema and its batches, one after the other."""
    import pyarrow as pa
    from pyarrow import csv

    head, names = _header(source)
    joined = _Joined(head, source)
    try:
        reader = csv.open_csv(joined, *options(names, types or {}))
    except pa.ArrowInvalid as error:
        failure = str(error)
    else:
        return reader.schema, _each(reader, joined)
    raise damaged(failure)


def _each(reader: Any, joined: _Joined) -> Iterator[Any]:
    import pyarrow as pa

    failure = ""
    try:
        yield from reader
    except pa.ArrowInvalid as error:
        failure = str(error)
    if failure:
        raise damaged(failure)
    joined.check()


def options(names: list[str], types: Mapping[str, str], text: Any = None) -> tuple[Any, Any, Any]:
    """Return pyarrow's options: nothing is null but a missing number, nothing is guessed."""
    import pyarrow as pa
    from pyarrow import csv

    kinds = {"integer": pa.int64(), "boolean": pa.bool_()}
    return (
        # One thread: only then is the row of a fault known, and from a stream it is no slower.
        csv.ReadOptions(block_size=BLOCK, use_threads=False),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            column_types={name: kinds.get(types.get(name, ""), text or pa.string()) for name in names},
            null_values=[""],
            strings_can_be_null=False,
            quoted_strings_can_be_null=False,
        ),
    )


def damaged(failure: str) -> ProtocolError:
    """Return the error for what pyarrow says of a CSV."""
    row = re.search(r"[Rr]ow #(\d+)", failure)
    where = f" at line {int(row[1]):,}" if row else ""
    return ProtocolError(f"the answer is no CSV that can be read{where}: {shown(failure, length=200)}")


def _header(source: Any) -> tuple[bytes, list[str]]:
    """Return the first bytes, without a BOM, and the names of the columns in them."""
    import csv as plain

    head = b""
    while b"\n" not in head and len(head) < BLOCK:
        piece = source.read(1 << 16)
        if not piece:
            break
        head += piece
    head = head.removeprefix(b"\xef\xbb\xbf")
    if not head.strip():
        raise ProtocolError("the answer is an empty CSV: not even a header came.")
    refuse_other_kinds(head)
    line = head.split(b"\n", 1)[0].rstrip(b"\r")
    try:
        names = next(plain.reader([line.decode("utf-8")], strict=True))
    except (UnicodeDecodeError, plain.Error, StopIteration):
        names = []
    _check_names(names)
    # A header alone, without its line's end, is a table without rows.
    return (head if b"\n" in head else head.rstrip(b"\r") + b"\n"), names


def refuse_other_kinds(head: bytes) -> None:
    """Refuse what is plainly no CSV, whatever it says it is."""
    start = head.lstrip()[:1]
    if start == b"<":
        raise ProtocolError("the answer says that it is CSV; it is an HTML page or other markup (line 1).")
    if start in (b"{", b"["):
        raise ProtocolError("the answer says that it is CSV; it is JSON (line 1).")
    if b"\r" in head.rstrip(b"\r") and b"\n" not in head:
        raise ProtocolError("the answer's lines end with CR alone (line 1); CSV ends them with LF or CR LF.")


def _check_names(names: list[str]) -> None:
    if not names or any(not name.strip() for name in names):
        raise ProtocolError("the answer's first line is no header: a column has no name (line 1).")
    if len(set(names)) != len(names):
        raise ProtocolError("the answer's header names a column twice (line 1).")
    if len(names) == 1 and ";" in names[0]:
        raise ProtocolError("the answer's header is separated by ';' (line 1); CSV is separated by ','.")
    if any(re.fullmatch(r"0x[0-9a-fA-F]{4,}|-?\d+(\.\d+)?", name.strip()) for name in names):
        raise ProtocolError("the answer has no header: its first line holds values (line 1).")


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
            raise ProtocolError(f"the answer is no CSV that can be read: a quote at line {self._last_quote:,} is open.")
