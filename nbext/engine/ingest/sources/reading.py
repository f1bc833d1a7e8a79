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
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from nbext.core import strict_json
from nbext.core.addresses import looks_like_address
from nbext.core.untrusted_text import quoted as quoted_text
from nbext.core.untrusted_text import visible
from nbext.engine.ingest.sources.files import Source, open_regular
from nbext.engine.ingest.stage import Stage, name
from nbext.engine.schema import sql_literal
from nbext.errors import IngestError

Holds = Literal["transfers", "tokens", "contracts", "blocks", "holders"]
Names = tuple[str, ...]
_WHOLE_TYPES = frozenset(
    f"{sign}{size}"
    for sign in ("", "U")
    for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
)


@dataclass(frozen=True)
class Kind:
    """One format: what its rows are, and the names that each of our columns may have in it.

    ``needs`` are required, ``may`` are optional; of several names the first one found counts. ``standard``
    is the standard of every contract in such a file, where the format alone decides it; ``unit`` is that of its
    balances, likewise.
    """

    name: str
    holds: Holds
    needs: Mapping[str, Names]
    may: Mapping[str, Names] = field(default_factory=dict)
    standard: str | None = None
    unit: str | None = None

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
            for ours, theirs in {**self.needs, **self.may}.items()
            if not spelled.keys().isdisjoint(theirs)
        }
        return found if self.needs.keys() <= found.keys() else None

    def may_have(self, spelled: Iterable[str]) -> bool:
        """Return whether a file with these columns (lower case) may be of this format: holders have no two sides."""
        return self.holds != "holders" or not any(sides <= set(spelled) for sides in _SIDES)


# Of transfers, whatever else a row of them has.
_SIDES = ({"from", "to"}, {"from_address", "to_address"})

_LOG = {
    "sender": ("from_address",),
    "recipient": ("to_address",),
    "tx": ("transaction_hash",),
    "log_index": ("log_index",),
    "block": ("block_number",),
}
_TIMES = {
    "timestamp": ("block_timestamp", "timestamp"),
    "chain_id": ("chain_id",),
    "type": ("type",),
}

# Dune's decoded events: the columns of the event itself, and of the log that it was in.
_EVENT = {
    "contract": ("contract_address",),
    "sender": ("from",),
    "recipient": ("to",),
    "tx": ("evt_tx_hash",),
    "log_index": ("evt_index",),
    "block": ("evt_block_number",),
}
_EVENT_TIMES = {"timestamp": ("evt_block_time",), "chain_id": ("chain_id", "blockchain", "chain")}

# Dune's curated tables: all standards, and in one of them the chain's own coin.
_CURATED = {
    **_EVENT,
    "tx": ("tx_hash",),
    "block": ("block_number",),
    "standard": ("token_standard",),
}
_CURATED_TIMES = {"timestamp": ("block_time",), "chain_id": ("chain_id", "blockchain", "chain")}

# What Etherscan's pages download, and those of its sisters.
_WEB = {
    "sender": ("from",),
    "recipient": ("to",),
    "tx": ("transaction hash", "txhash"),
    "block": ("blockno",),
    "timestamp": ("unixtimestamp",),
}
_NAMED = {"name": ("tokenname",), "symbol": ("tokensymbol",)}

# When a snapshot was made.
_MADE = {
    "block": ("snapshot_block", "block_number"),
    "timestamp": (
        "snapshot_unix",
        "snapshot_time",
        "snapshot_date",
        "timestamp",
        "block_timestamp",
    ),
}

_CHAIN = ("chain_id", "chainid", "blockchain")
_HOLDER = (
    "holderaddress",
    "holder",
    "holder_address",
    "address",
    "owner",
    "owner_address",
    "owner_of",
    "wallet",
    "wallet_address",
)
_HELD = ("contract_address", "contract", "token_address")

# In order: the first format whose required columns are all present wins.
KINDS = (
    # Of forks, which put an NFT's id in a column of its own.
    Kind(
        "token_transfers with token ids (ethereum-etl)",
        "transfers",
        {
            "contract": ("token_address", "contract_address"),
            "value": ("value", "amount"),
            "token_id": ("token_id",),
            "standard": ("erc_standard", "token_standard"),
            **_LOG,
        },
        _TIMES,
    ),
    Kind(
        "token_transfers (BigQuery's blockchain analytics)",
        "transfers",
        {
            **_LOG,
            "contract": ("address",),
            "value": ("quantity",),
            "token_id": ("token_id",),
            "standard": ("event_type",),
            "log_index": ("event_index",),
        },
        _TIMES,
    ),
    Kind(
        "token_transfers (ethereum-etl)",
        "transfers",
        {
            "contract": ("token_address", "contract_address"),
            "value": ("value", "amount_lossless"),
            **_LOG,
        },
        _TIMES,
    ),
    Kind(
        "token transfers (Blockscout's API)",
        "transfers",
        {
            "contract": ("token.address_hash", "token.address"),
            "sender": ("from.hash",),
            "recipient": ("to.hash",),
            "tx": ("transaction_hash", "tx_hash"),
            "log_index": ("log_index",),
            "block": ("block_number",),
            "standard": ("token.type",),
        },
        {
            "value": ("total.value",),
            "token_id": ("total.token_id",),
            "timestamp": ("timestamp",),
            "name": ("token.name",),
            "symbol": ("token.symbol",),
            "decimals": ("total.decimals", "token.decimals"),
        },
    ),
    Kind(
        "ERC721 Transfer events (Dune)",
        "transfers",
        {"value": ("tokenid",), **_EVENT},
        _EVENT_TIMES,
        standard="ERC721",
    ),
    # Before the ERC20 events, which have all of its columns but the ids.
    Kind(
        "ERC1155 TransferBatch events (Dune)",
        "transfers",
        {"ids": ("ids",), "counts": ("values",), **_EVENT},
        _EVENT_TIMES,
        standard="ERC1155",
    ),
    Kind(
        "ERC1155 TransferSingle events (Dune)",
        "transfers",
        {"value": ("id",), "count": ("value",), **_EVENT},
        _EVENT_TIMES,
        standard="ERC1155",
    ),
    Kind(
        "ERC20 Transfer events (Dune)",
        "transfers",
        {"value": ("value",), **_EVENT},
        _EVENT_TIMES,
        standard="ERC20",
    ),
    Kind(
        "nft.transfers (Dune)",
        "transfers",
        {"value": ("token_id",), "count": ("amount",), **_CURATED},
        _CURATED_TIMES,
    ),
    Kind(
        "tokens.transfers (Dune)",
        "transfers",
        {"value": ("amount_raw",), **_CURATED},
        _CURATED_TIMES,
    ),
    # cryo calls the contract erc20 in both; before erc20_transfers, because only a token id column distinguishes them.
    Kind(
        "erc721_transfers (cryo)",
        "transfers",
        {
            "contract": ("erc721", "erc20"),
            "value": ("token_id_string", "token_id", "token_id_binary"),
            **_LOG,
        },
        _TIMES,
        standard="ERC721",
    ),
    Kind(
        "erc20_transfers (cryo)",
        "transfers",
        {"contract": ("erc20",), "value": ("value_string", "value_binary", "value"), **_LOG},
        _TIMES,
        standard="ERC20",
    ),
    # Before tokennfttx, which has all of its columns but the count.
    Kind(
        "token1155tx (Etherscan)",
        "transfers",
        {
            "contract": ("contractaddress",),
            "sender": ("from",),
            "recipient": ("to",),
            "value": ("tokenid",),
            "count": ("tokenvalue",),
            "tx": ("hash",),
            "block": ("blocknumber",),
        },
        {
            "timestamp": ("timestamp",),
            "tx_index": ("transactionindex",),
            "log_index": ("logindex",),
            "name": ("tokenname",),
            "symbol": ("tokensymbol",),
            "chain_id": ("chain_id",),
        },
        standard="ERC1155",
    ),
    Kind(
        "tokennfttx (Etherscan)",
        "transfers",
        {
            "contract": ("contractaddress",),
            "sender": ("from",),
            "recipient": ("to",),
            "value": ("tokenid",),
            "tx": ("hash",),
            "block": ("blocknumber",),
        },
        {
            "timestamp": ("timestamp",),
            "tx_index": ("transactionindex",),
            "log_index": ("logindex",),
            "name": ("tokenname",),
            "symbol": ("tokensymbol",),
        },
        standard="ERC721",
    ),
    Kind(
        "tokentx (Etherscan)",
        "transfers",
        {
            "contract": ("contractaddress",),
            "sender": ("from",),
            "recipient": ("to",),
            "value": ("value",),
            "tx": ("hash",),
            "block": ("blocknumber",),
        },
        {
            "timestamp": ("timestamp",),
            "tx_index": ("transactionindex",),
            "log_index": ("logindex",),
            "name": ("tokenname",),
            "symbol": ("tokensymbol",),
            "decimals": ("tokendecimal",),
        },
        standard="ERC20",
    ),
    Kind(
        "NFT transfers (Etherscan's CSV export)",
        "transfers",
        {"value": ("token id", "tokenid"), **_WEB},
        {"contract": ("contractaddress",), "count": ("quantity",), "standard": ("type",), **_NAMED},
        standard="ERC721",
    ),
    Kind(
        "ERC20 transfers (Etherscan's CSV export)",
        "transfers",
        {"contract": ("contractaddress",), "amount": ("tokenvalue", "value"), **_WEB},
        _NAMED,
        standard="ERC20",
    ),
    Kind(
        "transfers of one token (Etherscan's CSV export)",
        "transfers",
        {"amount": ("quantity",), **_WEB},
        standard="ERC20",
    ),
    Kind(
        "contracts (ethereum-etl)",
        "contracts",
        {"address": ("address",), "is_erc20": ("is_erc20",), "is_erc721": ("is_erc721",)},
        {"deployed_block": ("block_number",), "deployer": ("deployer",)},
    ),
    Kind(
        "tokens (ethereum-etl)",
        "tokens",
        {
            "address": ("address", "contract_address"),
            "symbol": ("symbol",),
            "name": ("name",),
            "decimals": ("decimals",),
        },
        {
            "total_supply": ("total_supply",),
            "chain_id": _CHAIN,
            "standard": ("standard",),
            "logo": ("logo", "logo_uri", "logouri"),
        },
    ),
    Kind(
        "tokens.erc20 (Dune)",
        "tokens",
        {
            "address": ("contract_address",),
            "symbol": ("symbol",),
            "decimals": ("decimals",),
            "chain_id": ("blockchain",),
        },
        standard="ERC20",
    ),
    Kind(
        "tokens.nft (Dune)",
        "tokens",
        {
            "address": ("contract_address",),
            "symbol": ("symbol",),
            "name": ("name",),
            "standard": ("standard",),
            "chain_id": ("blockchain",),
        },
    ),
    Kind(
        "erc20_metadata (cryo)",
        "tokens",
        {
            "address": ("erc20",),
            "symbol": ("symbol",),
            "name": ("name",),
            "decimals": ("decimals",),
        },
        {"chain_id": ("chain_id",)},
        standard="ERC20",
    ),
    Kind(
        "erc721_metadata (cryo)",
        "tokens",
        {"address": ("erc721", "erc20"), "symbol": ("symbol",), "name": ("name",)},
        {"chain_id": ("chain_id",)},
        standard="ERC721",
    ),
    Kind(
        "blocks",
        "blocks",
        {"block": ("number", "block_number"), "timestamp": ("timestamp",)},
        {"chain_id": ("chain_id",)},
    ),
    # The loosest come last: many other exports have an address and a balance among their columns.
    Kind(
        "holders by token id",
        "holders",
        {"address": _HOLDER, "token_id": ("token_id", "tokenid")},
        {
            "contract": _HELD,
            "count": ("balance", "quantity", "amount"),
            "chain_id": ("chain_id",),
            **_MADE,
        },
        standard="ERC721",
    ),
    Kind(
        "tokenholderlist (Etherscan)",
        "holders",
        {"address": ("tokenholderaddress",), "balance": ("tokenholderquantity",)},
        unit="raw",
    ),
    Kind(
        "holders",
        "holders",
        {"address": _HOLDER, "balance": ("balance",)},
        {"contract": _HELD, "symbol": ("ticker", "symbol"), "chain_id": ("chain_id",), **_MADE},
    ),
)


# What a file needs that has nothing of any format.
_PLAIN = "Transfers, for one, need " + " and ".join(
    f'"{names[0]}"'
    for kind in KINDS
    for names in kind.needs.values()
    if kind.name == "token_transfers (ethereum-etl)"
)
# What a column may be renamed to.
COLUMNS = sorted(
    {
        name
        for kind in KINDS
        for names in (*kind.needs.values(), *kind.may.values())
        for name in names
    }
)


def recognise(
    names: Iterable[str], renamed: Mapping[str, str] = {}
) -> tuple[Kind, dict[str, str]] | None:
    """Return the format of a file with these columns, and which column holds what; None if no format fits.

    ``renamed`` has the name that a known format has for a column (lower case) of this file.
    """
    names = list(names)
    return next(
        (
            (kind, columns)
            for kind in KINDS
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
                "digits. Write amounts as text or as integers.",
                path=self.source.name,
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
            raise IngestError(
                f"{self.source.shown}: column {self.columns[column]!r} holds {kind}, which is no time. "
                "Write seconds since 1970, or times as text.",
                path=self.source.name,
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
        raise IngestError(f"{source.shown}: the file is empty (0 bytes).", path=source.name)
    # No text has a zero byte; a CSV reader would accept one and report every row as bad.
    if b"\0" in found and not found.startswith((_PARQUET, _GZIP)):
        raise IngestError(
            f"{source.shown}: this is neither Parquet nor text. "
            "nbext reads Parquet, CSV, CSV.gz, JSON, NDJSON and token lists.",
            path=source.name,
        )
    return found


def open_table(
    stage: Stage, number: int, source: Source, renamed: Mapping[str, str]
) -> Opened | None:
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
        gzipped = start.startswith(_GZIP)
        found = _json(source, gzipped=gzipped)
        if found is None:
            opened = _open_csv(stage, number, source, renamed, gzipped=gzipped)
        elif (json := _open_json(stage, number, source, renamed, found)) is None:
            return None
        else:
            opened = json
    if opened.rows == 0:
        raise IngestError(f"{source.shown}: the file has a header but no rows.", path=source.name)
    return opened


def _open_parquet(stage: Stage, number: int, source: Source, renamed: Mapping[str, str]) -> Opened:
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
        raise IngestError(
            f"{source.shown}: a column is called file_row_number, by which DuckDB numbers the rows. "
            "Rename the column.",
            path=source.name,
        )
    kind, columns = recognised(source, list(types), renamed)
    own = {ours: types[theirs] for ours, theirs in columns.items()}
    # What is not needed stays away: a column of the file's own that is called row would be taken for the number.
    taken = ", ".join(map(name, dict.fromkeys(columns.values())))
    relation = f"(SELECT {taken}, file_row_number + 1 AS row FROM read_parquet({path}, file_row_number = true))"
    return Opened(number, source, kind, columns, relation, own, rows)


def _open_csv(
    stage: Stage, number: int, source: Source, renamed: Mapping[str, str], *, gzipped: bool
) -> Opened:
    ragged: list[tuple[int, str]] = []
    with open_regular(source.path) as raw, _reading(source):
        reader = _csv_reader(gzip.GzipFile(fileobj=raw) if gzipped else raw, ragged)
        kind, columns = recognised(source, reader.schema.names, renamed)
        return _taken_in(
            stage,
            number,
            source,
            kind,
            columns,
            ragged=ragged,
            batches=lambda schema: _numbered(reader, schema, ragged),
        )


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """Turn what a reader says of a file into its refusal."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise  # the memory is too small, not the file damaged
    except (ValueError, OSError, EOFError, zlib.error, duckdb.Error) as error:
        raise unreadable(source, error) from None


def _taken_in(
    stage: Stage,
    number: int,
    source: Source,
    kind: Kind,
    columns: dict[str, str],
    *,
    ragged: list[tuple[int, str]],
    batches: Callable[[pa.Schema], Iterator[pa.RecordBatch]],
) -> Opened:
    """Make a table of the stage of a file's columns, as text, and the numbers of its rows."""
    table, taken = f"text_{number}", dict.fromkeys(columns.values())
    schema = pa.schema([*((column, pa.string()) for column in taken), ("row", pa.int64())])
    stage.connection.register(
        "arriving", pa.RecordBatchReader.from_batches(schema, batches(schema))
    )
    try:
        stage.run(f"CREATE TABLE {table} AS SELECT * FROM arriving")
    finally:
        stage.connection.unregister("arriving")
    rows = stage.value(f"SELECT count(*) FROM {table}") + len(ragged)
    return Opened(
        number, source, kind, columns, table, dict.fromkeys(columns, "VARCHAR"), rows, ragged
    )


@dataclass
class _Json:
    """The records of a JSON file: of its lines, or of its one document."""

    records: Iterator[Any]
    by_line: bool


def _json(source: Source, *, gzipped: bool) -> _Json | None:
    """Return the records of a JSON file; None where it is none."""
    with _reading(source):
        with open_regular(source.path) as raw:
            start = (gzip.GzipFile(fileobj=raw) if gzipped else raw).read(1 << 16)
        start = start.removeprefix(codecs.BOM_UTF8).lstrip()
        if start[:1] not in (b"{", b"["):
            return None
        first, _, more = start.partition(b"\n")
        one = _record(first)
        # A document of one line is told from a first line by what it has, or by what follows.
        whole = isinstance(one, dict) and (
            _by_address(one) or not one.keys().isdisjoint(_NOT_RECORDS)
        )
        if isinstance(one, dict) and (more.lstrip()[:1] == b"{" or not whole):
            return _Json(_lines(source, gzipped=gzipped), by_line=True)
        document = strict_json.parse(text_of(source.path))
    # Etherscan's API writes {"status", "message", "result": [...]}, Dune's {"result": {"rows": [...]}}, Blockscout's
    # {"items": [...], "next_page_params"}, Covalent's {"data": {"items": [...]}}.
    for key in _WRAPPED:
        inner = document.get(key) if isinstance(document, dict) else None
        document = inner if isinstance(inner, list | dict) else document
    if _by_address(document):
        document = [
            {"address": address, "balance": balance} for address, balance in document.items()
        ]
    return _Json(map(_flat, document if isinstance(document, list) else [document]), by_line=False)


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


def _lines(source: Source, *, gzipped: bool) -> Iterator[Any]:
    with open_regular(source.path) as raw:
        for line in gzip.GzipFile(fileobj=raw) if gzipped else raw:
            yield _flat(_record(line.removeprefix(codecs.BOM_UTF8)))


def _record(line: bytes) -> Any:
    """Return what a line holds; None where it is no JSON."""
    try:
        return strict_json.read_answer(line)[0]
    except strict_json.NotJson:
        return None


def _open_json(
    stage: Stage, number: int, source: Source, renamed: Mapping[str, str], found: _Json
) -> Opened | None:
    ragged: list[tuple[int, str]] = []
    with _reading(source):
        first = list(islice(found.records, _LOOKED_AT))
        names = list(
            dict.fromkeys(key for record in first if isinstance(record, dict) for key in record)
        )
        known = recognise(names, renamed)
        if not found.by_line and known is None and "tokens" in names:
            return None
        if not names:
            says = "its rows are no JSON objects" if any(first) else "the file has no rows"
            raise IngestError(f"{source.shown}: {says}.", path=source.name)
        kind, columns = recognised(source, names, renamed)
        late = {
            name for theirs in (*kind.needs.values(), *kind.may.values()) for name in theirs
        } - set(names)
        numbered = enumerate(chain(first, found.records), 1)
        return _taken_in(
            stage,
            number,
            source,
            kind,
            columns,
            ragged=ragged,
            batches=lambda schema: _of_records(numbered, schema, late, ragged),
        )


def _of_records(
    numbered: Iterator[tuple[int, Any]],
    schema: pa.Schema,
    late: set[str],
    ragged: list[tuple[int, str]],
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


def _csv_reader(file: Any, ragged: list[tuple[int, str]]) -> pacsv.CSVStreamingReader:
    def keep(row: Any) -> str:
        ragged.append(
            (row.number - 1, f"{row.actual_columns} fields instead of {row.expected_columns}")
        )
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
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=False,
            null_values=[],
        ),
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


def _numbered(
    reader: Any, schema: pa.Schema, ragged: list[tuple[int, str]]
) -> Iterator[pa.RecordBatch]:
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
) -> tuple[Kind, dict[str, str]]:
    if any(_OF_COINS.fullmatch(name.strip().lower()) for name in names):
        raise IngestError(
            f"{source.shown}: these are transactions of the chain's own coin, not transfers of tokens. "
            'On the address\'s page, download those of the tab "Token Transfers".',
            path=source.name,
        )
    if missing := renamed.keys() - {name.lower() for name in names}:
        raise IngestError(
            f"{source.shown}: it has no column {quoted_text(min(missing))}, which --map names. "
            f"Found: {_shown(names)}.",
            path=source.name,
        )
    found = recognise(names, renamed)
    if found is None:
        # Columns that --map names anew hide others of that name.
        now = [renamed.get(name.lower(), name) for name in names]
        raise IngestError(f"{source.shown}: {_closest(now)}", path=source.name)
    if twice := [name for name in found[1].values() if names.count(name) > 1]:
        raise IngestError(
            f"{source.shown}: two columns are called {quoted_text(twice[0])}. Rename one of them.",
            path=source.name,
        )
    if taken := [name for name in found[1].values() if name.lower() == "row"]:
        raise IngestError(
            f"{source.shown}: --map names {quoted_text(taken[0])}, by which nbext numbers the rows. "
            "Rename the column.",
            path=source.name,
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
        for kind in KINDS
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
        nearest = f"no known format has any of these columns: {found}. {_PLAIN}"
    return (
        f"{nearest}. If they are there by other names, map them: --map theirs=ours. `nbext ingest --help` lists "
        "all formats."
    )


def unreadable(source: Source, error: Exception) -> IngestError:
    """Return the error of a damaged file, with the first line of the reader's own message."""
    # Readers repeat the path, which the message begins with.
    why = getattr(error, "strerror", None) or str(error)
    first = why.replace(str(source.path), "").strip().splitlines()[0][:300]
    return IngestError(f"{source.shown}: the file cannot be read: {first}", path=source.name)


def is_about(source: Source, error: Exception) -> bool:
    """Return whether DuckDB's error is about that file: it names the file, or is about the data read."""
    return str(source.path) in str(error) or not isinstance(error, duckdb.IOException)


def text_of(path: Path) -> str:
    """Return a (possibly gzipped) UTF-8 text file's content."""
    with open_regular(path) as file:
        data = bytes(file.read())
    return (gzip.decompress(data) if data.startswith(_GZIP) else data).decode("utf-8-sig")
