"""Open a file of a known format as a relation of its columns and ``row``, the row's number from 1.

Parquet is read in place by DuckDB; decimals of more than 38 digits, which it would make floats, by Arrow. CSV is read
by Arrow, as text, into a table of the stage: quoting, ragged rows and a cut archive are found before any row is used.
So is JSON, by Python: DuckDB's reader ends the process on arrays in arrays in arrays, a hundred thousand deep.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from nbext.core import strict_json
from nbext.core.addresses import looks_like_address
from nbext.core.chains import Chain, chain_of
from nbext.core.untrusted_text import quoted
from nbext.engine.ingest.files import Source, open_regular
from nbext.engine.ingest.formats import EMPTY, Format, recognised
from nbext.engine.ingest.stage import Stage, name
from nbext.engine.schema import sql_literal
from nbext.errors import IngestError, ValidationError

_WHOLE_TYPES = re.compile("U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER")
# The first bytes decide, not the name: exports are renamed, and unpacked by browsers.
_PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"
# As spreadsheets on Windows write "Unicode text".
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# What a JSON document has beside, or in place of, records.
_WRAPPED = ("data", "result", "rows", "items", "holders", "claims")
_NOT_RECORDS = {"tokens", *_WRAPPED}
# What says beside a page's rows that others follow, or are missing: for Moralis, Covalent, Alchemy, Blockscout, Dune,
# GraphQL and at large; what numbers the pages, and what counts the rows of all. In lower case, without _.
_FOLLOWING = re.compile(
    "cursor|pagekey|next(cursor|offset|uri|page(params|token)?)?|has(more|next(page)?)|errors|partial|truncated"
)
_PAGES = re.compile("page|(current|total)pages?")
_TOTALS = re.compile("count|total((row)?count|items|results)?")
# Records that are looked through for the names of their columns, and that are taken at once.
_LOOKED_AT = 10_000

# Of these a file may write whole numbers as 5.000, as BigQuery does. 5e3 is a spreadsheet's, which has lost digits.
_WHOLE = ("value", "token_id", "count", "chain_id")


@dataclass
class FileTable:
    """A recognised file: the relation of its rows, and which of its columns holds what.

    ``chain`` is the id of its rows' chain; None of tokens that name theirs row by row: ``default_chain`` is then
    that of rows which name none. ``date_format`` says how texts are times, as strptime takes it; None where they are
    written as usual. ``part`` is the name of what says that there are more rows than its own.
    """

    number: int
    source: Source
    kind: Format
    columns: dict[str, str]
    relation: str
    types: dict[str, str]
    rows: int
    ragged: list[tuple[int, str]] = field(default_factory=list)
    chain: int | None = None
    default_chain: int | None = None
    date_format: str | None = None
    part: str | None = None

    def find_chain(self, stage: Stage, given: Chain | None) -> None:
        """Set the chain: the one that the rows name, which --chain must not contradict, or --chain's."""
        named: list[str | None] = []
        if self.has("chain_id"):
            # A chain has several names, and far fewer than a hundred.
            found = stage.rows(f"SELECT DISTINCT {self.its_chain} FROM {self.relation} LIMIT 100")
            named = [name for (name,) in found]
            if self.kind.holds == "tokens" and (any(named) or not named):
                self.default_chain = given.id if given else None
                return
        try:
            own = {chain_of(name) if name else given for name in named} or {given}
        except ValidationError as error:
            column = quoted(self.columns["chain_id"])
            detail = error.errors[0]["detail"]
            raise self.source.fault(f"column {column}: {detail}") from None
        if len(own) > 1:
            several = ", ".join(name or "that of --chain where they name none" for name in named)
            raise self.source.fault(
                f"its rows are on several chains ({several}). Split it by chain."
            )
        [chain] = own
        if chain is None:
            raise self.source.fault("its rows name no chain. Give it: --chain ethereum.")
        if given not in (None, chain):
            raise self.source.fault(
                f"its rows are on chain {named[0]}, but --chain {given.name} was given."
            )
        self.chain = chain.id

    @property
    def chain_name(self) -> str | None:
        """The name of the rows' chain, where it is one."""
        return None if self.chain is None else chain_of(self.chain).name

    def has(self, column: str) -> bool:
        """Return whether the file has that column of ours."""
        return column in self.columns

    def text(self, column: str) -> str:
        """Return the SQL of a column as text: bytes as 0x and hex, NULL where the file has no such column."""
        if column not in self.columns:
            return "NULL::VARCHAR"
        kind, sql = self.types[column], name(self.columns[column])
        if kind == "BLOB":
            return f"('0x' || lower(hex({sql})))"
        if kind in ("FLOAT", "DOUBLE"):
            # A float of more than 53 bits has lost digits already; a small one is a count that pandas widened.
            if column in ("value", "amount", "balance", "token_id", "total_supply"):
                raise self.source.fault(
                    f"column {self.columns[column]!r} holds floating-point numbers, which lose "
                    "digits. Write amounts as text or as integers."
                )
            return f"CASE WHEN {sql} = floor({sql}) THEN TRY_CAST({sql} AS BIGINT)::VARCHAR ELSE {sql}::VARCHAR END"
        text = sql if kind == "VARCHAR" else f"{sql}::VARCHAR"
        if column in ("symbol", "name"):
            # Old contracts return a bytes32, whose unused bytes are zero.
            return f"rtrim({text}, chr(0))"
        if column not in _WHOLE or _WHOLE_TYPES.fullmatch(kind):
            return text
        return f"CASE WHEN contains({text}, '.') THEN regexp_replace({text}, '[.]0*\\z', '') ELSE {text} END"

    def whole(self, column: str) -> str:
        """Return the SQL of a column as a whole number, also of ``5.0``; NULL where it is none, as ``1e6`` is."""
        if self.has(column) and _WHOLE_TYPES.fullmatch(self.types[column]):
            return f"TRY_CAST({name(self.columns[column])} AS BIGINT)"
        text = self.text(column)
        # A cast to an integer rounds. Nearly no text has a point or an e, and only those are looked at.
        odd = " OR ".join(f"contains({text}, '{one}')" for one in ".eE")
        whole = f"regexp_full_match({text}, '0[xX][0-9a-fA-F]+|[0-9]+[.]0*')"
        return f"CASE WHEN NOT ({odd}) OR {whole} THEN TRY_CAST(split_part({text}, '.', 1) AS BIGINT) END"

    @property
    def block(self) -> str:
        """The SQL of a row's block: of a table that has none, the second of its time, which is in order, too."""
        return self.whole("block") if self.has("block") else self.seconds()

    @property
    def its_chain(self) -> str:
        """The SQL of a row's chain: an empty text where it names none, NULL of a "mainnet", which each chain has."""
        return f"nullif(lower(trim(coalesce({self.text('chain_id')}, ''))), 'mainnet')"

    @property
    def removed(self) -> str:
        """The SQL of whether a node took a row's log back, as its block is not of the chain any more."""
        return f"coalesce(lower({self.text('removed')}) NOT IN ('false', '0', ''), false)"

    @property
    def block_hash(self) -> str:
        """The SQL of the hash of a row's block in lower case; NULL where the file has no text that is one."""
        text = f"lower({self.text('block_hash')})"
        return f"CASE WHEN regexp_full_match({text}, '0x[0-9a-f]{{64}}') THEN {text} END"

    def seconds(self) -> str:
        """Return the SQL of a row's time as seconds since 1970, whatever it is written as."""
        column = "timestamp"
        if column not in self.columns:
            return "NULL::BIGINT"
        kind, sql = self.types[column], name(self.columns[column])
        if kind.startswith(("TIMESTAMP", "DATE")):
            return f"floor(epoch({sql}))::BIGINT"
        if _WHOLE_TYPES.fullmatch(kind) or kind.startswith(("FLOAT", "DOUBLE", "DECIMAL")):
            return f"TRY_CAST(floor({sql}) AS BIGINT)"
        if kind != "VARCHAR":
            raise self.source.fault(
                f"column {self.columns[column]!r} holds {kind}, which is no time. "
                "Write seconds since 1970, or times as text."
            )
        if self.date_format:
            return f"floor(epoch(try_strptime({sql}, {sql_literal(self.date_format)})))::BIGINT"
        part = f"TRY_CAST(regexp_extract({sql}, '^([0-9]+)[.][0-9]+\\z', 1) AS BIGINT)"
        # A cast to TIMESTAMP would drop an offset, and EST or PM, without a word.
        # Of short names few mean one zone: BST would be taken for Bangladesh's, and PST in summer for PDT.
        zone = f"upper(regexp_extract({sql}, '[0-9 ]([A-Za-z]+)\\z', 1))"
        one = f"CASE WHEN {zone} IN ('', 'Z', 'UTC', 'GMT', 'EST') THEN {sql} END"
        moment = f"floor(epoch(TRY_CAST({one} AS TIMESTAMPTZ)))::BIGINT"
        return f"coalesce({self.whole(column)}, {part}, {moment})"


@contextmanager
def _unpacked(source: Source) -> Iterator[Any]:
    """Open a text file as bytes of UTF-8, whatever it is packed in; what its reader says of it becomes its refusal."""
    with open_regular(source.path) as raw, _reading(source):
        file = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(_GZIP) else raw
        wide = file.peek(2).startswith(_WIDE)
        yield io.BytesIO(file.read().decode("utf-16").encode()) if wide else file


def open_table(stage: Stage, number: int, source: Source, renamed: Mapping[str, str]) -> FileTable:
    """Open a Parquet, CSV or JSON file and recognise it.

    ``renamed`` as of `recognise`. An empty file is a table without rows.

    Raises
    ------
    IngestError
        The file is damaged, or no known format has its columns.
    """
    with open_regular(source.path) as file:
        start = bytes(file.read(4096))
    if start.startswith(_PARQUET):
        return _open_parquet(stage, number, source, renamed)
    # The first line of a text has no zero byte; a CSV reader would accept one and report every row as bad.
    if b"\0" in start.partition(b"\n")[0] and not start.startswith((_GZIP, *_WIDE)):
        raise source.fault(
            "this is neither Parquet nor text. "
            "nbext reads Parquet, CSV, CSV.gz, JSON, NDJSON and token lists."
        )
    with _unpacked(source) as file:
        found = _json(file)
        rows = _csv_rows(file) if found is None else _json_rows(source, found[0])
        table = _open_text(stage, number, source, renamed, rows)
        table.part = found and found[1]
        return table


def _open_parquet(
    stage: Stage, number: int, source: Source, renamed: Mapping[str, str]
) -> FileTable:
    # The path is a literal, never a pattern, and the row number comes from the file itself.
    path = sql_literal(glob.escape(str(source.path)))
    with open_regular(source.path) as opened, _reading(source):
        parquet = pq.ParquetFile(opened)
        # Not by DuckDB, which renames the second of two columns of one name, in whatever case.
        names = parquet.schema_arrow.names
        # DuckDB would make floats of decimals of more than 38 digits.
        if any(map(pa.types.is_decimal256, parquet.schema_arrow.types)):
            return _open_text(
                stage, number, source, renamed, (names, [], partial(_parquet_rows, parquet))
            )
        described = stage.rows(f"DESCRIBE SELECT * FROM read_parquet({path})")
    if "file_row_number" in map(str.lower, names):
        raise source.fault(
            "a column is called file_row_number, by which DuckDB numbers the rows. "
            "Rename the column."
        )
    kind, columns = recognised(source, names, renamed)
    types = {column: str(kind) for column, kind, *_ in described}
    own = {ours: types[theirs] for ours, theirs in columns.items()}
    # What is not needed stays away: a column of the file's own that is called row would be taken for the number.
    taken = ", ".join(map(name, dict.fromkeys(columns.values())))
    relation = f"(SELECT {taken}, file_row_number + 1 AS row FROM read_parquet({path}, file_row_number = true))"
    return FileTable(number, source, kind, columns, relation, own, parquet.metadata.num_rows)


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """Turn what a reader says of a file into its refusal."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise  # the memory is too small, not the file damaged
    except (ValueError, OSError, EOFError, zlib.error, duckdb.Error) as error:
        raise unreadable(source, error) from None


# The names of a text file's columns; the rows that no table can have, with their numbers, once all are read; and the
# others as texts, with theirs, once it is known what they are of.
_Ragged = list[tuple[int, str]]
_Rows = tuple[list[str], _Ragged, Callable[[Format, pa.Schema], Iterator[pa.RecordBatch]]]


def _open_text(
    stage: Stage, number: int, source: Source, renamed: Mapping[str, str], rows: _Rows
) -> FileTable:
    """Make a table of the stage of the columns of a text file, or of another by its texts."""
    names, ragged, batches = rows
    if not names:
        return FileTable(number, source, EMPTY, {}, "", {}, 0)
    kind, columns = recognised(source, names, renamed)
    table, taken = f"text_{number}", dict.fromkeys(columns.values())
    schema = pa.schema([*((column, pa.string()) for column in taken), ("row", pa.int64())])
    stage.connection.register(
        "arriving", pa.RecordBatchReader.from_batches(schema, batches(kind, schema))
    )
    try:
        stage.run(f"CREATE TABLE {table} AS SELECT * FROM arriving")
    finally:
        stage.connection.unregister("arriving")
    # A comment is no row: only its place was needed, to number the rows after it.
    ragged = [one for one in ragged if one[1]]
    count = stage.value(f"SELECT count(*) FROM {table}") + len(ragged)
    types = dict.fromkeys(columns, "VARCHAR")
    return FileTable(number, source, kind, columns, table, types, count, ragged)


def _parquet_rows(
    file: pq.ParquetFile, kind: Format, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    names = schema.names[:-1]
    texts = (
        pa.record_batch(list(map(_texts, batch.select(names).columns)), names)
        for batch in file.iter_batches(columns=names)
    )
    return _numbered(texts, schema, [])


def _texts(column: Any) -> Any:
    if not pa.types.is_decimal(column.type) and not pa.types.is_binary(column.type):
        return column.cast(pa.string())
    # Arrow's own texts of decimals have exponents.
    written = (
        one if one is None else f"0x{one.hex()}" if isinstance(one, bytes) else f"{one:f}"
        for one in column.to_pylist()
    )
    return pa.array(written, pa.string())


def _json(file: Any) -> tuple[Iterator[Any], str | None] | None:
    """Return the records of a JSON file, and what says that there are more; None where it is no JSON."""
    start = file.read(1 << 16).removeprefix(codecs.BOM_UTF8).lstrip()
    file.seek(0)
    if start[:1] not in (b"{", b"["):
        return None
    first, _, more = start.partition(b"\n")
    one = _record(first)
    # A document of one line is told from a first line by what it has, or by what follows.
    whole = isinstance(one, dict) and (_by_address(one) or not one.keys().isdisjoint(_NOT_RECORDS))
    if isinstance(one, dict) and (more.lstrip()[:1] == b"{" or not whole):
        return (_flat(_record(line.removeprefix(codecs.BOM_UTF8))) for line in file), None
    # As of a line: an integer made of 1.2e24 would have digits that were lost when it was written.
    document = strict_json.parse(file.read().decode("utf-8-sig"), Decimal)
    # Etherscan's API writes {"status", "message", "result": [...]}, Dune's {"result": {"rows": [...]}}, Blockscout's
    # {"items": [...], "next_page_params"}, Covalent's {"data": {"items": [...]}}.
    outer = document
    for key in _WRAPPED:
        inner = document.get(key) if isinstance(document, dict) else None
        if isinstance(inner, list | dict):
            document = inner
    rows = len(document) if isinstance(document, list) else None
    part = None if document is outer else _part(outer, rows)
    if _by_address(document):
        # {address: {"index", "amount", "proof"}} are the claims of a Merkle distribution.
        document = [
            {"address": address, "claim" if isinstance(said, dict) else "balance": said}
            for address, said in document.items()
        ]
    elif isinstance(document, dict) and isinstance(document.get("tokens"), list):
        document = [{"list": token} for token in document["tokens"]]
    return map(_flat, document if isinstance(document, list) else [document]), part


def _part(outer: Any, rows: int | None) -> str | None:
    """Return the name of what says, in the objects around so many rows or beside them, that there are more."""
    objects = [outer]
    for said in objects:
        for key, value in said.items():
            bare = key.lower().replace("_", "")
            # Of {address: balance} a total may be of the balances.
            most = 1 if _PAGES.fullmatch(bare) else rows if _TOTALS.fullmatch(bare) else None
            if (
                (value and _FOLLOWING.fullmatch(bare))
                or (bare == "state" and "PARTIAL" in str(value))
                or (most is not None and str(value).isdecimal() and int(value) > most)
            ):
                return str(key)
            if isinstance(value, dict):
                objects.append(value)
    return None


def _by_address(document: Any) -> bool:
    """Return whether JSON is {address: balance}, as lists for airdrops are."""
    return isinstance(document, dict) and bool(document) and all(map(looks_like_address, document))


def _flat(record: Any) -> Any:
    """Return a record whose objects are columns of their own, as ``from.hash``, one level deep."""
    if not isinstance(record, dict) or not any(
        isinstance(value, dict) for value in record.values()
    ):
        return record
    return {
        name: one
        for key, value in record.items()
        for name, one in (
            ((f"{key}.{inner}", one) for inner, one in value.items())
            if isinstance(value, dict)
            else [(key, value)]
        )
    }


def _record(line: bytes) -> Any:
    """Return what a line holds; None where it is no JSON."""
    try:
        return strict_json.read_answer(line)[0]
    except strict_json.NotJson:
        return None


def _json_rows(source: Source, records: Iterator[Any]) -> _Rows:
    ragged: _Ragged = []
    first = list(islice(records, _LOOKED_AT))
    names = list(
        dict.fromkeys(key for record in first if isinstance(record, dict) for key in record)
    )
    if not names and any(first):
        raise source.fault("its rows are no JSON objects.")
    numbered = enumerate(chain(first, records), 1)

    def batches(kind: Format, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        known = {name for theirs in kind.all.values() for name in theirs}
        settled = set(names)
        while part := list(islice(numbered, _LOOKED_AT)):
            whole = [(row, record) for row, record in part if isinstance(record, dict)]
            ragged.extend(
                (row, "not a JSON object") for row, record in part if not isinstance(record, dict)
            )
            # The columns are settled: what another would say is not left out without a word.
            for row, record in whole:
                if late := [key for key in record.keys() - settled if key.lower() in known]:
                    raise ValueError(
                        f"row {row:,} has {min(late)!r}, which none of the first {_LOOKED_AT:,} has. "
                        "Put a record with it among them"
                    )
            columns = [
                [_as_text(record.get(column)) for _, record in whole]
                for column in schema.names[:-1]
            ]
            yield pa.record_batch([*columns, [row for row, _ in whole]], schema=schema)

    return names, ragged, batches


def _as_text(value: Any) -> str | None:
    if isinstance(value, str):
        # JSON can write one half of a surrogate pair, which no UTF-8 file, DuckDB's included, can store.
        return strict_json.LONE_SURROGATE.sub("\ufffd", value)
    # Python's texts of the others are no JSON: a column of ours holds neither lists nor objects.
    return None if value is None else str(value).lower()


def _csv_rows(file: Any) -> _Rows:
    ragged: _Ragged = []

    def keep(row: Any) -> str:
        why = f"{row.actual_columns} fields instead of {row.expected_columns}"
        ragged.append((row.number - 1 - comments, "" if row.text.startswith("#") else why))
        return "skip"

    names, comments = _header(file)
    if not names:
        return names, ragged, lambda kind, schema: iter(())

    # One thread: only then does Arrow report a ragged row's number.
    reader = pacsv.open_csv(
        file,
        # Token names come with line breaks in them, quoted.
        parse_options=pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=keep),
        read_options=pacsv.ReadOptions(use_threads=False, block_size=1 << 24, skip_rows=comments),
        convert_options=pacsv.ConvertOptions(
            # As text, and nothing is null: Arrow would read long amounts as floats, and the symbol NA as missing.
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=False,
            null_values=[],
        ),
    )
    return reader.schema.names, ragged, lambda kind, schema: _numbered(reader, schema, ragged)


def _header(file: Any) -> tuple[list[str], int]:
    """Return the names of the columns, and how many lines of comments are above them."""
    # Spreadsheets write a byte order mark, which would become a part of the first column's name.
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    try:
        comments, first = 0, text.readline()
        while first.startswith("#"):
            comments, first = comments + 1, text.readline()
        return next(csv.reader(chain([first], text)), []), comments
    except csv.Error as error:
        raise pa.ArrowInvalid(f"not a CSV file: {error}") from None
    finally:
        text.detach().seek(0)


def _numbered(reader: Any, schema: pa.Schema, ragged: _Ragged) -> Iterator[pa.RecordBatch]:
    """Give each row its number in the file; rows that were skipped as ragged keep theirs."""
    last = 0
    for batch in reader:
        # Among n rows and the ragged ones seen so far, the batch's are the first n that are not ragged.
        span = np.arange(last + 1, last + 1 + batch.num_rows + len(ragged))
        numbers = span[~np.isin(span, [number for number, _ in ragged])][: batch.num_rows]
        last = int(numbers[-1]) if len(numbers) else last
        columns = [batch.column(name) for name in schema.names[:-1]]
        yield pa.record_batch([*columns, pa.array(numbers, pa.int64())], schema=schema)


def unreadable(source: Source, error: Exception) -> IngestError:
    """Return the error of a damaged file, with the first line of the reader's own message."""
    # Readers repeat the path, which the message begins with.
    why = getattr(error, "strerror", None) or str(error)
    first = why.replace(str(source.path), "").strip().splitlines()[0][:300]
    return source.fault(f"the file cannot be read: {first}")
