"""Recognise a file by its columns, and open it as a relation of its columns and ``row``, the row's number from 1.

Parquet is read in place by DuckDB. CSV is read by Arrow, as text, into a table of the stage: quoting,
ragged rows and a cut archive are found before any row is used.
"""

from __future__ import annotations

import csv
import glob
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from nbext.core.untrusted_text import visible
from nbext.engine.ingest.sources.files import Source, open_regular
from nbext.engine.ingest.stage import Stage, name, quoted
from nbext.errors import IngestError

Holds = Literal["transfers", "tokens", "contracts", "blocks", "holders"]
Names = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """One format: what its rows are, and the names that each of our columns may have in it.

    ``needs`` are required, ``may`` are optional; of several names the first one found counts. ``standard``
    is the standard of every contract in such a file, where the format alone decides it.
    """

    name: str
    holds: Holds
    needs: Mapping[str, Names]
    may: Mapping[str, Names] = field(default_factory=dict)
    standard: str | None = None

    def columns(self, names: Iterable[str]) -> dict[str, str] | None:
        """Return which of the file's columns holds each of ours, or None if a required one is missing."""
        # Reversed, so that the first of two columns that differ in case only is the one that counts.
        spelled = {name.lower(): name for name in reversed(list(names))}
        found = {ours: next(spelled[name] for name in theirs if name in spelled)
                 for ours, theirs in {**self.needs, **self.may}.items() if not spelled.keys().isdisjoint(theirs)}
        return found if self.needs.keys() <= found.keys() else None


_LOG = {"sender": ("from_address",), "recipient": ("to_address",), "tx": ("transaction_hash",),
        "log_index": ("log_index",), "block": ("block_number",)}
_TIMES = {"timestamp": ("block_timestamp", "timestamp"), "chain_id": ("chain_id",), "type": ("type",)}

# In order: the first format whose required columns are all present wins.
KINDS = (
    Kind("token_transfers (ethereum-etl)", "transfers",
         {"contract": ("token_address",), "value": ("value",), **_LOG}, _TIMES),
    # cryo calls the contract erc20 in both; before erc20_transfers, because only a token id column distinguishes them.
    Kind("erc721_transfers (cryo)", "transfers",
         {"contract": ("erc721", "erc20"), "value": ("token_id_string", "token_id", "token_id_binary"), **_LOG},
         _TIMES, standard="ERC721"),
    Kind("erc20_transfers (cryo)", "transfers",
         {"contract": ("erc20",), "value": ("value_string", "value_binary", "value"), **_LOG},
         _TIMES, standard="ERC20"),
    # Before tokennfttx, which has all of its columns but the count.
    Kind("token1155tx (Etherscan)", "transfers",
         {"contract": ("contractaddress",), "sender": ("from",), "recipient": ("to",), "value": ("tokenid",),
          "count": ("tokenvalue",), "tx": ("hash",), "block": ("blocknumber",)},
         {"timestamp": ("timestamp",), "tx_index": ("transactionindex",), "log_index": ("logindex",),
          "name": ("tokenname",), "symbol": ("tokensymbol",), "chain_id": ("chain_id",)}, standard="ERC1155"),
    Kind("tokennfttx (Etherscan)", "transfers",
         {"contract": ("contractaddress",), "sender": ("from",), "recipient": ("to",), "value": ("tokenid",),
          "tx": ("hash",), "block": ("blocknumber",)},
         {"timestamp": ("timestamp",), "tx_index": ("transactionindex",), "log_index": ("logindex",),
          "name": ("tokenname",), "symbol": ("tokensymbol",)}, standard="ERC721"),
    Kind("tokentx (Etherscan)", "transfers",
         {"contract": ("contractaddress",), "sender": ("from",), "recipient": ("to",), "value": ("value",),
          "tx": ("hash",), "block": ("blocknumber",)},
         {"timestamp": ("timestamp",), "tx_index": ("transactionindex",), "log_index": ("logindex",),
          "name": ("tokenname",), "symbol": ("tokensymbol",), "decimals": ("tokendecimal",)}, standard="ERC20"),
    Kind("contracts (ethereum-etl)", "contracts",
         {"address": ("address",), "is_erc20": ("is_erc20",), "is_erc721": ("is_erc721",)},
         {"deployed_block": ("block_number",), "deployer": ("deployer",)}),
    Kind("tokens (ethereum-etl)", "tokens",
         {"address": ("address", "contract_address"), "symbol": ("symbol",), "name": ("name",),
          "decimals": ("decimals",)},
         {"total_supply": ("total_supply",), "chain_id": ("chain_id",), "standard": ("standard",),
          "logo": ("logo", "logo_uri", "logouri")}),
    Kind("erc20_metadata (cryo)", "tokens",
         {"address": ("erc20",), "symbol": ("symbol",), "name": ("name",), "decimals": ("decimals",)},
         {"chain_id": ("chain_id",)}, standard="ERC20"),
    Kind("erc721_metadata (cryo)", "tokens",
         {"address": ("erc721", "erc20"), "symbol": ("symbol",), "name": ("name",)},
         {"chain_id": ("chain_id",)}, standard="ERC721"),
    Kind("blocks", "blocks",
         {"block": ("number", "block_number"), "timestamp": ("timestamp",)}, {"chain_id": ("chain_id",)}),
    # The loosest come last: many other exports have an address and a balance among their columns.
    Kind("holders by token id", "holders",
         {"address": ("owner", "holder", "address", "wallet"), "token_id": ("token_id", "tokenid")},
         {"contract": ("contract_address", "contract", "token_address"), "chain_id": ("chain_id",),
          "block": ("block_number",), "timestamp": ("snapshot_unix", "timestamp")}, standard="ERC721"),
    Kind("holders", "holders",
         {"address": ("holderaddress", "holder", "address", "owner", "wallet"), "balance": ("balance",)},
         {"contract": ("contract_address", "contract", "token_address"), "symbol": ("ticker", "symbol"),
          "chain_id": ("chain_id",), "block": ("block_number",), "timestamp": ("snapshot_unix", "timestamp")}),
)


def recognise(names: Iterable[str]) -> tuple[Kind, dict[str, str]] | None:
    """Return the format of a file with these columns, and which column holds what; None if no format fits."""
    names = list(names)
    return next(((kind, columns) for kind in KINDS if (columns := kind.columns(names)) is not None), None)


# The first bytes decide, not the name: exports are renamed, and unpacked by browsers.
_PARQUET = b"PAR1"
_GZIP = b"\x1f\x8b"

# At the end of a time, and not of a date.
_OFFSET = r":\d\d.*[+-]\d\d(:?\d\d)?$"


@dataclass
class Opened:
    """A recognised file: the relation of its rows, and which of its columns holds what."""

    number: int
    source: Source
    kind: Kind
    columns: dict[str, str]
    relation: str
    types: dict[str, str]
    rows: int
    ragged: list[tuple[int, str]] = field(default_factory=list)

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
            raise IngestError(
                f"{self.source.shown}: column {self.columns[column]!r} holds floating-point numbers, which lose "
                "digits. Write amounts as text or as integers.", path=self.source.name)
        return f"TRY_CAST({sql} AS BIGINT)::VARCHAR"

    def seconds(self, column: str = "timestamp") -> str:
        """Return the SQL of a time as seconds since 1970, whatever it is written as."""
        if column not in self.columns:
            return "NULL::BIGINT"
        kind, sql = self.types[column], name(self.columns[column])
        if kind.startswith("TIMESTAMP") or kind == "DATE":
            return f"floor(epoch({sql}))::BIGINT"
        if kind != "VARCHAR":
            return f"TRY_CAST({sql} AS BIGINT)"
        # BigQuery writes `2021-06-09 10:00:00 UTC`. Cast to TIMESTAMP, a text would lose its offset from UTC.
        text = f"replace({sql}, ' UTC', '')"
        cast = f"CASE WHEN regexp_matches({text}, '{_OFFSET}') THEN epoch(TRY_CAST({text} AS TIMESTAMPTZ)) " \
               f"ELSE epoch(TRY_CAST({text} AS TIMESTAMP)) END"
        return f"coalesce(TRY_CAST({sql} AS BIGINT), floor({cast})::BIGINT)"


def first_bytes(source: Source) -> bytes:
    """Return the first bytes of a file; an empty file is refused."""
    with open_regular(source.path) as file:
        found = bytes(file.read(4096))
    if not found:
        raise IngestError(f"{source.shown}: the file is empty (0 bytes).", path=source.name)
    # No text has a zero byte; a CSV reader would accept one and report every row as bad.
    if b"\0" in found and not found.startswith((_PARQUET, _GZIP)):
        raise IngestError(f"{source.shown}: this is neither Parquet nor text. "
                          "nbext reads Parquet, CSV, CSV.gz and token lists.", path=source.name)
    return found


def open_table(stage: Stage, number: int, source: Source) -> Opened:
    """Open a Parquet or CSV file and recognise it.

    Raises
    ------
    IngestError
        The file is damaged or empty, or no known format has its columns.
    """
    start = first_bytes(source)
    if start.startswith(_PARQUET):
        opened = _open_parquet(stage, number, source)
    else:
        opened = _open_csv(stage, number, source, gzipped=start.startswith(_GZIP))
    if opened.rows == 0:
        raise IngestError(f"{source.shown}: the file has a header but no rows.", path=source.name)
    return opened


def _open_parquet(stage: Stage, number: int, source: Source) -> Opened:
    # The path is a literal, never a pattern, and the row number comes from the file itself.
    path = quoted(glob.escape(str(source.path)))
    relation = f"(SELECT *, file_row_number + 1 AS row FROM read_parquet({path}, file_row_number = true))"
    try:
        described = stage.rows(f"DESCRIBE SELECT * FROM read_parquet({path})")
        rows = stage.value(f"SELECT count(*) FROM read_parquet({path})")
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise unreadable(source, error) from None
    types = {column: str(kind) for column, kind, *_ in described}
    kind, columns = _recognised(source, list(types))
    own = {ours: types[theirs] for ours, theirs in columns.items()}
    return Opened(number, source, kind, columns, relation, own, rows)


def _open_csv(stage: Stage, number: int, source: Source, *, gzipped: bool) -> Opened:
    ragged: list[tuple[int, str]] = []
    table = f"csv_{number}"
    with open_regular(source.path) as raw:
        file = gzip.GzipFile(fileobj=raw) if gzipped else raw
        try:
            reader = _csv_reader(file, ragged)
            kind, columns = _recognised(source, reader.schema.names)
            taken = list(dict.fromkeys(columns.values()))
            batches = pa.RecordBatchReader.from_batches(
                pa.schema([*((column, pa.string()) for column in taken), ("row", pa.int64())]),
                _numbered(reader, taken, ragged))
            stage.connection.register("arriving", batches)
            stage.run(f"CREATE TABLE {table} AS SELECT * FROM arriving")
        except duckdb.OutOfMemoryException:
            raise  # the memory is too small, not the file damaged
        except (pa.ArrowInvalid, OSError, EOFError, zlib.error, duckdb.Error, UnicodeDecodeError) as error:
            raise unreadable(source, error) from None
        finally:
            stage.connection.unregister("arriving")
    rows = stage.value(f"SELECT count(*) FROM {table}") + len(ragged)
    return Opened(number, source, kind, columns, table, dict.fromkeys(columns, "VARCHAR"), rows, ragged)


def _csv_reader(file: Any, ragged: list[tuple[int, str]]) -> pacsv.CSVStreamingReader:
    def keep(row: Any) -> str:
        ragged.append((row.number - 1, f"{row.actual_columns} fields instead of {row.expected_columns}"))
        return "skip"

    # Token names come with line breaks in them, quoted.
    parsing = pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=keep)
    names = _header(file)
    # One thread: only then does Arrow report a ragged row's number.
    return pacsv.open_csv(
        file,
        parse_options=parsing,
        read_options=pacsv.ReadOptions(use_threads=False, block_size=1 << 24),
        convert_options=pacsv.ConvertOptions(
            # As text, and nothing is null: Arrow would read long amounts as floats, and the symbol NA as missing.
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, null_values=[]),
    )


def _header(file: Any) -> list[str]:
    # Spreadsheets write a byte order mark, which would become a part of the first column's name.
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    try:
        return next(csv.reader(text), [])
    except csv.Error as error:
        raise pa.ArrowInvalid(f"not a CSV file: {error}") from None
    finally:
        text.detach().seek(0)


def _numbered(reader: Any, taken: list[str], ragged: list[tuple[int, str]]) -> Iterator[pa.RecordBatch]:
    """Give each row its number in the file; rows that were skipped as ragged keep theirs."""
    last = 0
    for batch in reader:
        # Among n rows and the ragged ones seen so far, the batch's are the first n that are not ragged.
        span = np.arange(last + 1, last + 1 + batch.num_rows + len(ragged))
        numbers = span[~np.isin(span, [number for number, _ in ragged])][: batch.num_rows]
        last = int(numbers[-1]) if len(numbers) else last
        yield pa.record_batch([*(batch.column(c) for c in taken), pa.array(numbers, pa.int64())], [*taken, "row"])


def _recognised(source: Source, names: list[str]) -> tuple[Kind, dict[str, str]]:
    found = recognise(names)
    if found is None:
        raise IngestError(f"{source.shown}: {_closest(names)}", path=source.name)
    return found


def _closest(names: list[str]) -> str:
    """Return what a file lacks of the format that it resembles most, or all formats if it resembles none."""
    spelled, found = {name.lower() for name in names}, visible(", ".join(names[:20]), 300)
    lacking = {kind.name: [other[0] for other in kind.needs.values() if spelled.isdisjoint(other)] for kind in KINDS}
    kind = min(KINDS, key=lambda kind: len(lacking[kind.name]) / len(kind.needs))
    missing = lacking[kind.name]
    # Any CSV has a column called "address" or "name": most of a format's columns make a resemblance.
    if len(missing) * 2 < len(kind.needs):
        columns = " and ".join(f'"{column}"' for column in missing)
        return f"this looks like {kind.name}, but has no column {columns}. Found: {found}."
    known = "; ".join(f"{kind.name}: {', '.join(other[0] for other in kind.needs.values())}" for kind in KINDS)
    return f"no known format has these columns: {found}. Known formats and their columns: {known}."


def unreadable(source: Source, error: Exception) -> IngestError:
    """Return the error of a damaged file, with the first line of the reader's own message."""
    # Readers repeat the path, which the message begins with.
    first = str(error).replace(str(source.path), "").strip().splitlines()[0][:300]
    return IngestError(f"{source.shown}: the file cannot be read: {first}", path=source.name)


def is_about(source: Source, error: Exception) -> bool:
    """Return whether DuckDB's error is about that file: it names the file, or is about the data read."""
    return str(source.path) in str(error) or not isinstance(error, duckdb.IOException)


def text_of(path: Path) -> str:
    """Return a (possibly gzipped) UTF-8 text file's content."""
    with open_regular(path) as file:
        data = bytes(file.read())
    return (gzip.decompress(data) if data.startswith(_GZIP) else data).decode("utf-8-sig")
