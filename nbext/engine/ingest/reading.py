"""Recognise a file by its columns, and open it as a relation of its columns and ``row``, the row's number from 1.

Parquet is read in place by DuckDB. CSV is read by Arrow, as text, into a table of the stage: quoting,
ragged rows and a cut archive are found before any row is used. So is JSON, by Python: DuckDB's reader ends the
process on arrays in arrays in arrays, a hundred thousand deep.
"""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import re
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from nbext.core import strict_json
from nbext.core.addresses import looks_like_address
from nbext.core.chains import Chain, chain_of
from nbext.core.untrusted_text import quoted, visible
from nbext.engine.ingest.files import Source, open_regular
from nbext.engine.ingest.stage import Stage, name
from nbext.engine.schema import sql_literal
from nbext.errors import IngestError

Holds = Literal["transfers", "tokens", "contracts", "blocks", "holders", "list"]
_WHOLE_TYPES = frozenset(
    f"{sign}{size}"
    for sign in ("", "U")
    for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
)


@dataclass(frozen=True)
class Format:
    """One format of `formats.toml`, which says what these are."""

    name: str
    holds: Holds
    needs: Mapping[str, Sequence[str]]
    may: Mapping[str, Sequence[str]] = field(default_factory=dict)
    standard: str | None = None
    unit: str | None = None

    @property
    def all(self) -> Mapping[str, Sequence[str]]:
        """The names of each column, required or not."""
        return {**self.needs, **self.may}

    @property
    def needs_options(self) -> bool:
        """Return whether its rows are read by what the options say of tokens."""
        return self.holds == "holders" or (
            self.holds == "transfers" and ("amount" in self.needs or "contract" not in self.needs)
        )

    def columns(self, names: Iterable[str], renamed: Mapping[str, str]) -> dict[str, str] | None:
        """Return which of the file's columns holds each of ours, or None if a required one is missing."""
        # Reversed, so that the first of two columns that differ in case only is the one that counts.
        own = {name.lower(): name for name in reversed(list(names))}
        if not self.may_have(own):
            return None
        # What the user says counts, also where the file has a column of that name, or of another that would do.
        mapped = {renamed[name]: own[name] for name in own if name in renamed}
        spelled = {name: own[name] for name in own if name not in renamed} | mapped
        found = {
            ours: next(
                spelled[name] for name in (*filter(mapped.get, theirs), *theirs) if name in spelled
            )
            for ours, theirs in self.all.items()
            if not spelled.keys().isdisjoint(theirs)
        }
        return found if self.needs.keys() <= found.keys() else None

    def may_have(self, spelled: Iterable[str]) -> bool:
        """Return whether a file with these columns (lower case) may be of this format: holders have no two sides."""
        return self.holds != "holders" or not any(sides <= set(spelled) for sides in _SIDES)


# Of transfers, whatever else a row of them has.
_SIDES = ({"from", "to"}, {"from_address", "to_address"})


# JSON of another kind than the formats, which are tables.
TOKEN_LIST = Format("token list", "list", {})


@cache
def formats() -> tuple[Format, ...]:
    """Return the formats that are recognised, in the order in which they are tried."""
    listed = tomllib.loads(Path(__file__).with_name("formats.toml").read_text("utf-8"))
    return tuple(Format(**one) for one in listed["format"])


def column_names() -> list[str]:
    """Return what a column may be renamed to."""
    return sorted({name for one in formats() for names in one.all.values() for name in names})


def recognise(
    names: Iterable[str], renamed: Mapping[str, str] = {}
) -> tuple[Format, dict[str, str]] | None:
    """Return the format of a file with these columns, and which column holds what; None if no format fits.

    ``renamed`` has the name that a known format has for a column (lower case) of this file.
    """
    names = list(names)
    return next(
        (
            (kind, columns)
            for kind in formats()
            if (columns := kind.columns(names, renamed)) is not None
        ),
        None,
    )


# The first bytes decide, not the name: exports are renamed, and unpacked by browsers.
_PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"

# What stands in a row and not in a header: a number, a hex text, a time.
_VALUE = re.compile(r"0[xX][0-9a-fA-F]*|[+-]?\d[\d.,eE+-]*|\d{4}-\d\d-\d\d.*")

# An address, or the hash of a transaction or block.
_HASH = re.compile(r"0[xX]([0-9a-fA-F]{40}|[0-9a-fA-F]{64})")
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}

# What a JSON document has beside, or in place of, records.
_WRAPPED = ("data", "result", "rows", "items", "holders")
_NOT_RECORDS = {"tokens", *_WRAPPED}
# Records that are looked through for the names of their columns, and that are taken at once.
_LOOKED_AT = 10_000

# At the end of a time, and not of a date.
_OFFSET = r":\d\d.*[+-]\d\d(:?\d\d)?$"


@dataclass
class FileTable:
    """A recognised file: the relation of its rows, and which of its columns holds what.

    ``chain`` is the id of its rows' chain; None of tokens that name theirs row by row.
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

    def find_chain(self, stage: Stage, given: Chain | None) -> None:
        """Set the chain: the one that the rows name, which --chain must not contradict, or --chain's."""
        if not self.has("chain_id"):
            if given is None:
                raise self.source.fault(
                    "its rows name no chain. Give it: --chain ethereum.",
                )
            self.chain = given.id
        elif self.kind.holds != "tokens":
            named = [
                name
                for (name,) in stage.rows(
                    f"SELECT DISTINCT {self.text('chain_id')} FROM {self.relation} LIMIT 3"
                )
            ]
            own = chain_of(named[0], self.source.name) if len(named) == 1 and named[0] else None
            if own is None or (given or own) != own:
                why = (
                    f"its rows are on several chains ({', '.join(map(str, named))}). Split it by chain"
                    if len(named) > 1
                    else f"its rows are on chain {named[0]}, but --chain {given.name if given else None} was given"
                )
                raise self.source.fault(f"{why}.")
            self.chain = own.id

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
            return self._from_float(column, sql)
        return sql if kind == "VARCHAR" else f"{sql}::VARCHAR"

    def _from_float(self, column: str, sql: str) -> str:
        # A float of more than 53 bits has lost digits already; a small one is a count that pandas widened.
        if column in ("value", "balance", "token_id", "total_supply"):
            raise self.source.fault(
                f"column {self.columns[column]!r} holds floating-point numbers, which lose "
                "digits. Write amounts as text or as integers.",
            )
        return f"CASE WHEN {sql} = floor({sql}) THEN TRY_CAST({sql} AS BIGINT)::VARCHAR ELSE {sql}::VARCHAR END"

    def whole(self, column: str) -> str:
        """Return the SQL of a column as a whole number, also of ``5.0`` and ``1e6``; NULL where it is none."""
        if self.has(column) and self.types[column] in _WHOLE_TYPES:
            return f"TRY_CAST({name(self.columns[column])} AS BIGINT)"
        text = self.text(column)
        cast = f"TRY_CAST({text} AS BIGINT)"
        # A cast to an integer rounds. Nearly no text has a point or an exponent, and only those are cast twice.
        # Hexadecimal digits, which may have an e, are no DOUBLE.
        return (
            f"CASE WHEN NOT (contains({text}, '.') OR contains({text}, 'e') OR contains({text}, 'E')) "
            f"OR coalesce(TRY_CAST({text} AS DOUBLE) = {cast}, true) THEN {cast} END"
        )

    def seconds(self, column: str = "timestamp") -> str:
        """Return the SQL of a time as seconds since 1970, whatever it is written as."""
        if column not in self.columns:
            return "NULL::BIGINT"
        kind, sql = self.types[column], name(self.columns[column])
        if kind.startswith("TIMESTAMP") or kind == "DATE":
            return f"floor(epoch({sql}))::BIGINT"
        if kind in _WHOLE_TYPES or kind.startswith(("FLOAT", "DOUBLE", "DECIMAL")):
            return f"TRY_CAST(floor({sql}) AS BIGINT)"
        if kind != "VARCHAR":
            raise self.source.fault(
                f"column {self.columns[column]!r} holds {kind}, which is no time. "
                "Write seconds since 1970, or times as text.",
            )
        # BigQuery writes `2021-06-09 10:00:00 UTC`. Cast to TIMESTAMP, a text would lose its offset from UTC.
        text = f"replace({sql}, ' UTC', '')"
        cast = (
            f"CASE WHEN regexp_matches({text}, '{_OFFSET}') THEN epoch(TRY_CAST({text} AS TIMESTAMPTZ)) "
            f"ELSE epoch(TRY_CAST({text} AS TIMESTAMP)) END"
        )
        part = f"TRY_CAST(floor(TRY_CAST({sql} AS DOUBLE)) AS BIGINT)"
        return f"coalesce({self.whole(column)}, {part}, floor({cast})::BIGINT)"


def first_bytes(source: Source) -> bytes:
    """Return the first bytes of a file; an empty file is refused."""
    with open_regular(source.path) as file:
        found = bytes(file.read(4096))
    if not found:
        raise source.fault("the file is empty (0 bytes).")
    # No text has a zero byte; a CSV reader would accept one and report every row as bad.
    if b"\0" in found and not found.startswith((_PARQUET, _GZIP)):
        raise source.fault(
            "this is neither Parquet nor text. "
            "nbext reads Parquet, CSV, CSV.gz, JSON, NDJSON and token lists.",
        )
    return found


def open_table(
    stage: Stage, number: int, source: Source, renamed: Mapping[str, str]
) -> FileTable | None:
    """Open a Parquet, CSV or JSON file and recognise it; None of JSON that is no table, which may be a token list.

    ``renamed`` as of `recognise`.

    Raises
    ------
    IngestError
        The file is damaged or empty, or no known format has its columns.
    """
    start = first_bytes(source)
    if start.startswith(_PARQUET):
        opened = _open_parquet(stage, number, source, renamed)
    else:
        with open_regular(source.path) as raw, _reading(source):
            file = gzip.GzipFile(fileobj=raw) if start.startswith(_GZIP) else raw
            records = _json(file)
            rows = _csv_rows(file) if records is None else _json_rows(source, *records, renamed)
            if rows is None:
                return None
            opened = _open_text(stage, number, source, renamed, rows)
    if opened.rows == 0:
        raise source.fault("the file has a header but no rows.")
    return opened


def _open_parquet(
    stage: Stage, number: int, source: Source, renamed: Mapping[str, str]
) -> FileTable:
    # The path is a literal, never a pattern, and the row number comes from the file itself.
    path = sql_literal(glob.escape(str(source.path)))
    try:
        described = stage.rows(f"DESCRIBE SELECT * FROM read_parquet({path})")
        rows = stage.value(f"SELECT count(*) FROM read_parquet({path})")
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise unreadable(source, error) from None
    types = {column: str(kind) for column, kind, *_ in described}
    if any(column.lower() == "file_row_number" for column in types):
        raise source.fault(
            "a column is called file_row_number, by which DuckDB numbers the rows. "
            "Rename the column.",
        )
    kind, columns = recognised(source, list(types), renamed)
    own = {ours: types[theirs] for ours, theirs in columns.items()}
    # What is not needed stays away: a column of the file's own that is called row would be taken for the number.
    taken = ", ".join(map(name, dict.fromkeys(columns.values())))
    relation = f"(SELECT {taken}, file_row_number + 1 AS row FROM read_parquet({path}, file_row_number = true))"
    return FileTable(number, source, kind, columns, relation, own, rows)


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
    stage: Stage,
    number: int,
    source: Source,
    renamed: Mapping[str, str],
    rows: _Rows,
) -> FileTable:
    """Make a table of the stage of the columns of a text file."""
    names, ragged, batches = rows
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
    count = stage.value(f"SELECT count(*) FROM {table}") + len(ragged)
    types = dict.fromkeys(columns, "VARCHAR")
    return FileTable(number, source, kind, columns, table, types, count, ragged)


def _json(file: Any) -> tuple[Iterator[Any], bool] | None:
    """Return the records of a JSON file, and whether each is a line of it; None where it is no JSON."""
    start = file.read(1 << 16).removeprefix(codecs.BOM_UTF8).lstrip()
    file.seek(0)
    if start[:1] not in (b"{", b"["):
        return None
    first, _, more = start.partition(b"\n")
    one = _record(first)
    # A document of one line is told from a first line by what it has, or by what follows.
    whole = isinstance(one, dict) and (_by_address(one) or not one.keys().isdisjoint(_NOT_RECORDS))
    if isinstance(one, dict) and (more.lstrip()[:1] == b"{" or not whole):
        return (_flat(_record(line.removeprefix(codecs.BOM_UTF8))) for line in file), True
    document = strict_json.parse(file.read().decode("utf-8-sig"))
    # Etherscan's API writes {"status", "message", "result": [...]}, Dune's {"result": {"rows": [...]}}, Blockscout's
    # {"items": [...], "next_page_params"}, Covalent's {"data": {"items": [...]}}.
    for key in _WRAPPED:
        inner = document.get(key) if isinstance(document, dict) else None
        document = inner if isinstance(inner, list | dict) else document
    if _by_address(document):
        document = [
            {"address": address, "balance": balance} for address, balance in document.items()
        ]
    return map(_flat, document if isinstance(document, list) else [document]), False


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


def _json_rows(
    source: Source,
    records: Iterator[Any],
    by_line: bool,
    renamed: Mapping[str, str],
) -> _Rows | None:
    ragged: _Ragged = []
    first = list(islice(records, _LOOKED_AT))
    names = list(
        dict.fromkeys(key for record in first if isinstance(record, dict) for key in record)
    )
    if not by_line and "tokens" in names and recognise(names, renamed) is None:
        return None
    if not names:
        says = "its rows are no JSON objects" if any(first) else "the file has no rows"
        raise source.fault(f"{says}.")
    numbered = enumerate(chain(first, records), 1)

    def batches(kind: Format, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        late = {name for theirs in kind.all.values() for name in theirs} - set(names)
        return _of_records(numbered, schema, late, ragged)

    return names, ragged, batches


def _of_records(
    numbered: Iterator[tuple[int, Any]],
    schema: pa.Schema,
    late: set[str],
    ragged: _Ragged,
) -> Iterator[pa.RecordBatch]:
    while part := list(islice(numbered, _LOOKED_AT)):
        whole = [(row, record) for row, record in part if isinstance(record, dict)]
        ragged += [
            (row, "not a JSON object") for row, record in part if not isinstance(record, dict)
        ]
        if part[0][0] > _LOOKED_AT:
            # The columns are settled: what another would say is not left out without a word.
            for row, record in whole:
                if not late.isdisjoint(record):
                    raise ValueError(
                        f"row {row:,} has {min(late & record.keys())!r}, which none of the first "
                        f"{_LOOKED_AT:,} has. Put a record with it among them"
                    )
        columns = [
            [_as_text(record.get(column)) for _, record in whole] for column in schema.names[:-1]
        ]
        yield pa.record_batch([*columns, [row for row, _ in whole]], schema=schema)


def _as_text(value: Any) -> str | None:
    # Python's texts of the others are no JSON: a column of ours holds neither lists nor objects.
    return value if value is None or isinstance(value, str) else str(value).lower()


def _csv_rows(file: Any) -> _Rows:
    ragged: _Ragged = []

    def keep(row: Any) -> str:
        ragged.append(
            (row.number - 1, f"{row.actual_columns} fields instead of {row.expected_columns}")
        )
        return "skip"

    # One thread: only then does Arrow report a ragged row's number.
    reader = pacsv.open_csv(
        file,
        # Token names come with line breaks in them, quoted.
        parse_options=pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=keep),
        read_options=pacsv.ReadOptions(use_threads=False, block_size=1 << 24),
        convert_options=pacsv.ConvertOptions(
            # As text, and nothing is null: Arrow would read long amounts as floats, and the symbol NA as missing.
            column_types=dict.fromkeys(_header(file), pa.string()),
            strings_can_be_null=False,
            null_values=[],
        ),
    )
    return reader.schema.names, ragged, lambda kind, schema: _numbered(reader, schema, ragged)


def _header(file: Any) -> list[str]:
    # Spreadsheets write a byte order mark, which would become a part of the first column's name.
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    try:
        return next(csv.reader(text), [])
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


# The coin's own transactions look like transfers of tokens: they have a sender, a recipient and a contract's address.
_OF_COINS = re.compile(r"parenttx.*|(value_(in|out)|txnfee)\(.*")


def recognised(
    source: Source, names: list[str], renamed: Mapping[str, str]
) -> tuple[Format, dict[str, str]]:
    if any(_OF_COINS.fullmatch(name.strip().lower()) for name in names):
        raise source.fault(
            "these are transactions of the chain's own coin, not transfers of tokens. "
            'On the address\'s page, download those of the tab "Token Transfers".',
        )
    if missing := renamed.keys() - {name.lower() for name in names}:
        raise source.fault(
            f"it has no column {quoted(min(missing))}, which --map names. Found: {_shown(names)}.",
        )
    found = recognise(names, renamed)
    if found is None:
        # Columns that --map names anew hide others of that name.
        now = [renamed.get(name.lower(), name) for name in names]
        raise source.fault(f"{_closest(now)}")
    if twice := [name for name in found[1].values() if names.count(name) > 1]:
        raise source.fault(
            f"two columns are called {quoted(twice[0])}. Rename one of them.",
        )
    if taken := [name for name in found[1].values() if name.lower() == "row"]:
        raise source.fault(
            f"--map names {quoted(taken[0])}, by which nbext numbers the rows. Rename the column.",
        )
    return found


def _shown(names: list[str]) -> str:
    return visible(", ".join(names[:20]), 300)


def _closest(names: list[str]) -> str:
    """Return what a file lacks of the format that it resembles most."""
    spelled, found = {name.lower() for name in names}, _shown(names)
    # A header of addresses, hashes and numbers is the first row: no format has such a column.
    if names and (
        all(_VALUE.fullmatch(name.strip()) for name in names)
        or any(_HASH.fullmatch(name.strip()) for name in names)
    ):
        return (
            f"the file has no header: its first line is {found}. Write the columns' names above it."
        )
    if len(names) == 1 and (between := next((one for one in _SEPARATORS if one in names[0]), None)):
        return f"its columns are separated by {_SEPARATORS[between]}. nbext reads CSV with commas."
    if any(name != name.strip() for name in names) and recognise([name.strip() for name in names]):
        return f"there are spaces around the names of its columns, {found}. Write them, and the rows, without."
    lacking = [
        (kind, [other[0] for other in kind.needs.values() if spelled.isdisjoint(other)])
        for kind in formats()
        if kind.may_have(spelled)
    ]
    kind, missing = min(lacking, key=lambda each: len(each[1]) / len(each[0].needs))
    columns = " and ".join(f'"{column}"' for column in missing)
    # Any CSV has a column called "address" or "name": most of a format's columns make a resemblance.
    if len(missing) * 2 < len(kind.needs):
        return (
            f"this looks like {kind.name}, but has no column {columns}. Found: {found}. "
            f"If one of them holds it, map it: --map theirs={missing[0]}."
        )
    nearest = f"no known format has these columns: {found}. The nearest is {kind.name}, which also needs {columns}"
    if len(missing) == len(kind.needs):
        plain = next(one for one in formats() if one.name == "token_transfers (ethereum-etl)")
        needed = " and ".join(f'"{other[0]}"' for other in plain.needs.values())
        nearest = (
            f"no known format has any of these columns: {found}. Transfers, for one, need {needed}"
        )
    return (
        f"{nearest}. If they are there by other names, map them: --map theirs=ours. `nbext ingest --help` lists "
        "all formats."
    )


def unreadable(source: Source, error: Exception) -> IngestError:
    """Return the error of a damaged file, with the first line of the reader's own message."""
    # Readers repeat the path, which the message begins with.
    why = getattr(error, "strerror", None) or str(error)
    first = why.replace(str(source.path), "").strip().splitlines()[0][:300]
    return source.fault(f"the file cannot be read: {first}")


def is_error_of(source: Source, error: Exception) -> bool:
    """Return whether DuckDB's error is about that file: it names the file, or is about the data read."""
    return str(source.path) in str(error) or not isinstance(error, duckdb.IOException)


def read_text(path: Path) -> str:
    """Return a (possibly gzipped) UTF-8 text file's content."""
    with open_regular(path) as file:
        data = bytes(file.read())
    return (gzip.decompress(data) if data.startswith(_GZIP) else data).decode("utf-8-sig")
