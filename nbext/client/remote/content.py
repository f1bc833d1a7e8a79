"""A page: one answer. What kind of body it has, by its content type, and where that says nothing by how it begins.

The rows of CSV and Arrow are checked while they arrive, in one way wherever they go: a second header, an error, a sum
or a remark among them is no row, and says that others may be missing.
"""

from __future__ import annotations

import contextlib
import csv
import io
import mmap
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, open_csv
from requests.structures import CaseInsensitiveDict

from nbext.client.decode import Reading, State, Want, arrow_batches, refuse_other_kinds
from nbext.client.remote.field_names import (
    Place,
    bare,
    fields_of,
    first_in,
    has_address,
    is_address,
    like,
    names,
    number_of,
)
from nbext.client.remote.profile import ForeignProfile
from nbext.client.remote.signs import Signs
from nbext.client.writer import named_file
from nbext.core.addresses import ADDRESS_PATTERN
from nbext.core.strict_json import NotJson, read_answer
from nbext.core.untrusted_text import quoted
from nbext.core.wire import ARROW_TYPE
from nbext.errors import ProtocolError
from nbext.http.body import NO_CAP, Answer, Headers, Incoming, retry_after
from nbext.http.errors import one_line, plain_words

BLOCK = 1 << 20
_CSV_TYPES, _VAGUE_TYPES = names("media_types.csv"), names("media_types.vague")


@dataclass
class ForeignPage(Reading):
    """One answer of a stranger, how the settings read it, and what it says of the rows beyond its own.

    ``empty``: it has no body; ``status`` is HTTP's, or a gateway's that is in it. ``size`` is its body's bytes.
    ``unproven``: nothing on the wire says that the body is whole; ``cut``: and its last line has no end. ``bare``: it
    has no table, only a next page; ``unnamed``: nothing names its columns.
    """

    profile: ForeignProfile = field(init=False, repr=False)
    headers: Headers = field(default_factory=dict, repr=False)
    signs: Signs = field(default_factory=Signs)
    empty: bool = False
    status: int | None = None
    size: int = 0
    unproven: bool = False
    cut: bool = False
    bare: bool = False
    unnamed: bool = False

    def named(self, *tables: str) -> dict[str, Any]:
        """Return the fields of the document whose names are in some tables of words.toml, by path, outermost first."""
        return {
            path: value
            for path, plain, value in fields_of(self.document)
            if like(*tables).fullmatch(plain)
        }

    def first(self, table: str) -> Any:
        """Return the outermost of these values; None without any."""
        return first_in(self.named(table).values())

    def ends(self, most: int) -> list[dict[str, Any]]:
        """Return so many of its first rows, and of its last."""
        rows: Any = self.records or [] if self.table is None else self.table
        parts = rows[:most], rows[max(most, len(rows) - most) :]
        return [row for part in parts for row in (part if self.table is None else part.to_pylist())]

    def find(self, name: str) -> Any:
        """Return what the settings' path of that name leads to; None where it leads to nothing."""
        return self.profile.find(name, self.document, self.headers)


def opened(
    came: Incoming, want: Want, types: Mapping[str, str], folder: Path | None
) -> ForeignPage:
    """Return a page with the document that the body is, or with its table, whose columns are of these types.

    A table that waits in a ``folder`` may be larger than memory. NotJson where it should be JSON; HTML, XML, damaged
    CSV and Arrow are errors.
    """
    kind, of_job = came.content_type, want is Want.SEGMENT
    is_csv = kind in _CSV_TYPES or (kind in _VAGUE_TYPES and _looks_like_csv(came, of_job))
    # A receipt is a word, or a sentence, whatever is in it.
    if want is not Want.RECEIPT and (is_csv or kind == ARROW_TYPE):
        # Accepted: what it has so far is no result.
        waits = of_job and came.status == 202
        page = ForeignPage(state=State.RUNNING) if waits else _of_table(came, is_csv, types, folder)
    else:
        answer = came.whole()
        page = of_document(answer)
        page.size = len(answer.body)
    page.headers = CaseInsensitiveDict({**page.headers, **came.headers})
    page.retry_after = retry_after(came.headers)
    page.status = page.status or came.status
    page.unproven = page.unproven and not came.delimited
    page.cut = page.unproven and came.tail != b"\n"
    return page


def _looks_like_csv(came: Incoming, of_job: bool) -> bool:
    head = came.peek(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    # One word is the id of a job, and else a header without rows.
    head = head.rstrip() if of_job else head
    # Nothing is in any bytes, too.
    return head[:1] not in b'{["<' and (b"\n" in head or b"," in head)


def _of_table(
    came: Incoming, is_csv: bool, types: Mapping[str, str], folder: Path | None
) -> ForeignPage:
    notes = list[str]()
    if folder is not None:
        came.cap = NO_CAP
    if is_csv:
        # pandas keeps text as large_string: read as such it is not copied once more.
        text = "large_string" if folder is None else "string"
        schema, batches, remarks = _csv_batches(came, types, text)
        notes = [f"Above the header the answer says {quoted(each, 200)}." for each in remarks]
    else:
        schema, batches = arrow_batches(came)
        if not schema.names or len(set(schema.names)) < len(schema.names):
            raise ProtocolError("The answer has no columns, or two of the same name.")
    table = (
        pa.Table.from_batches(batches, schema)
        if folder is None
        else _on_disk(batches, schema, folder)
    )
    # Arrow has its own end.
    return ForeignPage(table=table, size=table.nbytes, warnings=notes, unproven=is_csv)


def _on_disk(batches: Iterator[pa.RecordBatch], schema: pa.Schema, folder: Path) -> pa.Table:
    """Return a table whose rows are in a file without a name: it may be larger than memory."""
    with tempfile.TemporaryFile(dir=folder) as file:
        out = pa.ipc.new_stream(file, schema)
        for batch in batches:
            # Here: a connection that breaks is an OSError as well.
            with named_file(folder):
                out.write_batch(batch)
                file.flush()
        out.close()
        file.flush()
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.ipc.open_stream(pa.py_buffer(mapped)).read_all()


def some_rows(page: ForeignPage) -> list[dict[str, Any]]:
    """Return the rows of a table among which one that is none would be: the first, the last, those unlike others."""
    table: pa.Table = page.table
    rows, name, odd = page.ends(20), table.column_names[0], table.slice(0, 0)
    wallets = _address_column(rows[:20])
    if wallets:
        # Texts may come as a dictionary of them.
        column = table.column(wallets).cast("large_string")
        fits = pc.match_substring_regex(column, ADDRESS_PATTERN)
        odd = table.select([wallets]).filter(pc.invert(pc.fill_null(fits, False)))
    elif table.column(name).type in ("string", "large_string"):
        odd = table.filter(pc.equal(pc.utf8_lower(table.column(name)), name.lower()))
    return [*rows[:20], *odd.to_pylist(), *rows[20:]]


def refuse_others(records: Sequence[Place], *, addressed: bool) -> None:
    """Refuse what came among records, or `some_rows` of a table, instead of one: {"remaining": 15} at their end.

    ``addressed``: where most have an address, each has one; without it, an address may look otherwise, and be missing.
    """
    wallets = _address_column(records[:20])
    for row in records:
        other = records[-1] if row is records[0] else records[0]
        alone = row is other or row.keys().isdisjoint(other)
        is_about = alone and row and names("about_rows").issuperset(map(bare, row))
        # Of records each may have its address under its own name.
        if has_address(row) and not is_about:
            continue
        value: Any = row.get(wallets or next(iter(row), ""))
        # One with a dot is an address to those who resolve it.
        is_text = isinstance(value, str) and "." in value.strip(".")
        is_name = is_text and not re.search(_REMARK, value)
        is_wrong = wallets and (addressed or re.fullmatch(_ALONE, str(value)))
        is_cut = any(isinstance(one, str) and re.match(_CUT, one) for one in row.values())
        is_header = row and all(str(one).lower() == name.lower() for name, one in row.items())
        # {"name": "sum", "total": 3} after {"address": ..., "name": ...}
        lacks = any(is_address(other[name]) for name in other.keys() - row) and row.keys() - other
        # What has an id is a hit, though its owner be unknown, and has a note; {"id": "sum", "total": 3} is none.
        is_hit = not (addressed or re.search(_REMARK, str(row.get("id") or "sum")))
        is_other = is_about or (lacks and not is_hit) or (alone and len(records) > 2)
        if is_header or is_other or ((is_wrong or is_cut) and not is_name):
            raise _no_row(row if is_other else value)
    _refuse_footer([*records[:-1][:2], *records[-1:]])


def _address_column(rows: Sequence[Place]) -> str | None:
    """Return the column with the most addresses, where more than half of the first values are some."""
    counts = Counter(name for row in rows for name in row if is_address(row[name]))
    best = counts.most_common(1) if len(rows) > 2 else []
    return first_in(name for name, count in best if 2 * count > len(rows))


def _no_row(value: object) -> ProtocolError:
    return ProtocolError(
        f"Among the rows is {one_line(value, length=60)!r}: it may be a second table, an error, a sum, a remark or a "
        "shortened address, and rows may be missing."
    )


# An address as a page shows it: 0x1234...abcd
_CUT = r"0x[0-9a-fA-F]*(\.\.|…|\*\*)"
# In the place of an address of any chain: several words, or one that names a sum.
_ALONE = r"(?i)\S+\s.*\S|total|sum|count|average"
# What ends rows: a sum, a remark, an exception of the database that sent them.
_REMARK = rf"(?i)\s|total|sum|count|average|exception|^error|^\W+$|\.\.\.$|^{_CUT}"


def _refuse_footer(rows: Sequence[Place]) -> None:
    """Refuse a last row that is a sum or a remark, by the first two and the last."""
    *others, last = [row for row in rows if row] or [{}]
    name = first_in((*others, last)[0], "")
    remark = last.get(name)
    if others and isinstance(remark, str) and re.search(_REMARK, remark.strip()):
        first = [str(row.get(name)) for row in others]
        # All of the others may have texts in front, but only a remark has nothing beside it.
        alone = [
            all(row[one] in (None, "") for one in row if one != name) for row in (*others, last)
        ]
        if (
            is_address(first[0])
            or all(re.fullmatch(r"-?\d+", text) for text in first)
            or alone == [False, False, True]
        ):
            raise _no_row(remark)


def of_document(answer: Answer) -> ForeignPage:
    """Return a page of a body that is no table: NotJson where it should be JSON; HTML and XML are a ProtocolError."""
    body, kind = answer.body.strip(b"\xef\xbb\xbf \t\r\n"), answer.content_type
    if not body:
        return ForeignPage(empty=True)
    # Whatever its type says: a login page of a proxy calls itself anything, and JSON is sent as text/html.
    if body.startswith(b"<") or ("html" in kind and body[:1] not in b'{["'):
        said = one_line(plain_words(answer), length=200)
        raise ProtocolError(f"The service answered with {said} instead of data. Check base_url.")
    if kind in names("media_types.lines"):
        return _lines(body)
    if kind not in _VAGUE_TYPES or body[:1] in b'{["':
        try:
            return unpacked(*read_answer(answer.body))
        except NotJson:
            # Lines of JSON are often declared as JSON.
            if body[:1] == b"{" and b"\n" in body:
                with contextlib.suppress(ProtocolError):
                    return _lines(body)
            raise
    # One word: an id, an address of a file, a number; whoever asked says which of them may come.
    if re.fullmatch(rb"[A-Za-z0-9_-]+|https?://\S+", body):
        return ForeignPage(document=body.decode("ascii"))
    raise ProtocolError(f"The answer is a text: {quoted(body.decode('utf-8', 'replace'), 200)}.")


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


def unpacked(document: Any, warnings: list[str]) -> ForeignPage:
    """Return a document without the layers that gateways put around one."""
    found = ForeignPage(document=document, warnings=warnings)
    # AWS's API Gateway sends JSON as a text inside of JSON, and some wrap that once more.
    for _ in range(3):
        inner = found.document
        if isinstance(inner, dict) and {"body", "statusCode"} <= inner.keys() <= names("gateway"):
            # Its own headers say as much as those that came.
            if isinstance(headers := inner.get("headers"), Mapping):
                found.headers = {name: str(value) for name, value in headers.items()}
            found.status, inner = number_of(inner["statusCode"]), inner["body"]
        if not (isinstance(inner, str) and inner.strip()[:1] in ("{", "[", '"')):
            found.document = inner
            return found
        found.document, more = read_answer(inner.encode("utf-8", "surrogatepass"))
        found.warnings += more
    return found


# ------------------------------------------- CSV: every value text, unless its type is known; never guessed, never NA


def _csv_batches(
    source: Incoming, types: Mapping[str, str], text: pa.DataType
) -> tuple[pa.Schema, Iterator[pa.RecordBatch], list[str]]:
    """Return a CSV's Arrow schema, its batches while they arrive, and the comments above its header.

    Texts are of the type ``text``. What is not CSV is a ProtocolError with the line.
    """
    csv_text = _CsvText(source)
    kinds = {
        "integer": "int64",
        "boolean": "bool",
        "float64": "float64",
        "timestamp": pa.timestamp("s", "UTC"),
    }
    # No row may be longer than a block: of our service none has forty times as many characters as the header.
    block = max(BLOCK, 40 * len(",".join(csv_text.names)))
    with _lines_of_faults(csv_text.above):
        reader = open_csv(
            csv_text,
            # One thread: only then is the row of a fault known, and from a stream it is no slower.
            ReadOptions(block_size=block, use_threads=False),
            ParseOptions(delimiter=csv_text.separator, newlines_in_values=True),
            # Left to itself it guesses: of the balances, 65 % would stay exact.
            ConvertOptions(
                column_types={
                    name: kinds.get(types.get(name, ""), text) for name in csv_text.names
                },
                # An empty number is missing. An empty text is a text, and so is a symbol named NA.
                null_values=[""],
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
            # Arrow's own pool keeps what it has freed, which for a table of this kind is a quarter of the peak.
            memory_pool=pa.system_memory_pool(),
        )

    def batches() -> Iterator[pa.RecordBatch]:
        with _lines_of_faults(csv_text.above):
            yield from reader
        csv_text.check()

    return reader.schema, batches(), csv_text.comments


@contextlib.contextmanager
def _lines_of_faults(above: int) -> Iterator[None]:
    """Turn what pyarrow says of a CSV into our error, with the line."""
    try:
        yield
    except pa.ArrowInvalid as error:
        row = re.search(r"[Rr]ow #(\d+)", str(error))
        where = f" at line {int(row[1]) + above:,}" if row else ""
        raise ProtocolError(
            f"The answer is not valid CSV{where}: {one_line(error, length=200)}"
        ) from None


class _CsvText(io.RawIOBase):
    """A CSV, to be read from its header on; what that and the lines above it say; its quotes are counted on the way."""

    def __init__(self, source: Incoming) -> None:
        super().__init__()
        # The comments, and how many lines are above the header.
        self.comments, self.above = list[str](), 0
        head, separator = source.peek(BLOCK), None
        body = head.removeprefix(b"\xef\xbb\xbf")
        if not body.strip():
            raise ProtocolError("The answer is an empty CSV, without even a header.")
        refuse_other_kinds(body)
        lines, most = body.split(b"\n"), 10_000
        # Excel is told the separator so; others write a comment, which may say that these are not all rows.
        while match := re.fullmatch(rb'(?:"?sep=([^\0])"?|#(.*?))\r?', lines[self.above]):
            following = lines[self.above + 1 : self.above + 7]
            is_last = not following or following[0][:1] in (b"", b"\r")
            below = [] if is_last or match[1] else _split(following, _separator(following))[0]
            if is_last or _has_values(below):
                # It is the header itself: #address,balance
                break
            separator = match[1].decode("latin-1") if match[1] else separator
            self.comments += [] if match[1] else [match[2].decode("utf-8", "replace").strip()]
            self.above += 1
            if self.above > most:
                raise ProtocolError(
                    f"The answer's CSV has more than {most:,} lines of comments above its header."
                )
        first = lines[self.above : self.above + 6]
        self.separator = separator or _separator(first)
        self.names = _split(first, self.separator)[0]
        _check_names(self.names)
        source.read(len(head) - len(b"\n".join(lines[self.above :])))
        # A header alone, without its line's end, is a table without rows.
        self._source, self._end = source, b"" if len(first) > 1 else b"\n"
        self._quotes, self._lines, self._last_quote = 0, 1 + self.above, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = BLOCK) -> bytes:
        piece, self._end = self._source.read(size) + self._end, b""
        if quotes := piece.count(b'"'):
            self._quotes += quotes
            self._last_quote = self._lines + piece.count(b"\n", 0, piece.rfind(b'"'))
        self._lines += piece.count(b"\n")
        return piece

    def check(self) -> None:
        """Refuse a quote that was never closed: pyarrow would take all that follows it for one value."""
        if self._quotes % 2:
            raise ProtocolError(
                f"The answer is not valid CSV: the quote at line {self._last_quote:,} is never closed."
            )


def _separator(lines: Sequence[bytes]) -> str:
    """Return what is between two values: what all first lines have equally often, else what the header has oftenest."""
    rows = {mark: _split(lines, mark) for mark in ";\t|,"}
    several = [mark for mark, split in rows.items() if len(split[0]) > 1]
    return max(
        several,
        key=lambda mark: (len(set(map(len, rows[mark]))) == 1, len(rows[mark][0])),
        default=",",
    )


def _split(lines: Sequence[bytes], separator: str) -> list[list[str]]:
    """Return the first lines as their values, as far as they are CSV."""
    rows = list[list[str]]()
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
