"""Small files in the forms that exporters of chain data write, read out of the shipped sample tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import checksummed
from nbext.core.chains import chain_of
from nbext.engine.sample.known import KNOWN, Known
from nbext.engine.sample.unpack import PREPARED

if TYPE_CHECKING:
    import pyarrow as pa

_ON_ETHEREUM = ("ethereum:UNI", "ethereum:LINK", "ethereum:BAYC", "ethereum:AZUKI")
_ON_BASE = ("base:USDC", "base:DEGEN")
_NFT_ON_BASE = ("base:OKGO",)
TRANSFER_COLUMNS = (
    "token_address",
    "from_address",
    "to_address",
    "value",
    "transaction_hash",
    "log_index",
    "block_number",
)
# The tables hold no hashes: this one is the generator's, so that the files stay as they were first published.
_TRANSFERS = """
    SELECT c.address AS token_address, s.address AS from_address, r.address AS to_address,
        (mid::HUGEINT * 100000000000000000000000000::HUGEINT + lo::HUGEINT)::VARCHAR AS value,
        '0x' || sha256(concat_ws(' ', 'nbext synthetic transaction', '{chain}', block, log_index)) AS transaction_hash,
        log_index, block AS block_number
    FROM '{tables}/transfers.parquet' t JOIN '{tables}/contracts.parquet' c USING (contract)
    JOIN '{tables}/wallets.parquet' s ON s.wallet = sender JOIN '{tables}/wallets.parquet' r ON r.wallet = recipient
    WHERE chain_id = {chain_id} AND list_contains([{addresses}], c.address) ORDER BY block, log_index"""
_TIMES = """
    SELECT block, timestamp FROM '{tables}/blocks.parquet' WHERE chain_id = {chain_id}
        AND block IN (SELECT block_number FROM ({transfers})) ORDER BY block"""


def write_example_files(folder: str | Path) -> list[Path]:
    """Write small example files, as if exported from a node, to try `nbext ingest` on.

    ``ethereum/`` holds what ethereum-etl exports: ``token_transfers.csv`` (UNI, LINK, BAYC, AZUKI),
    ``tokens.csv`` and ``blocks.csv`` (numbers and times). The transfers have three flaws that real files
    have too: the last row but one repeats an earlier one, the last has ``1e18`` for a value, and the
    first has an address in mixed case. ``base/`` holds what cryo writes: Parquet with binary addresses,
    ERC20 (USDC, DEGEN), ERC721 (OKGO) and blocks. ``token_list.json`` is a token list in the Uniswap
    standard. Wallets and transfers are made up; the contracts' metadata is true.

    Parameters
    ----------
    folder
        Where to write; created if it does not exist. Files of the same names are replaced.

    Returns
    -------
    list of pathlib.Path
        The files written.

    Source
    ------
    The synthetic sample of this package; nothing is downloaded.
    """
    top = Path(folder)
    for part in ("ethereum", "base"):
        (top / part).mkdir(parents=True, exist_ok=True)
    return [
        *_ethereum_etl(top / "ethereum"),
        *_cryo(top / "base"),
        _token_list(top / "token_list.json"),
    ]


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write rows as CSV with a header; None is an empty field."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def _key(known: Known) -> str:
    """Return the chain and what people call the contract there: ``ethereum:BAYC``."""
    return f"{known.chain}:{known.symbol}"


def _transfers(*keys: str) -> str:
    """Return the SQL of the transfers of contracts that are all on one chain."""
    chosen = [known for known in KNOWN if _key(known) in keys]
    addresses = ", ".join(f"'{known.address}'" for known in chosen)
    return _TRANSFERS.format(
        chain=chosen[0].chain, chain_id=chosen[0].chain_id, addresses=addresses, tables=PREPARED
    )


def _times(chain: str, transfers: str) -> pa.Table:
    return _query(_TIMES.format(chain_id=chain_of(chain).id, transfers=transfers, tables=PREPARED))


def _query(sql: str) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        return connection.sql(sql).to_arrow_table()


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _ethereum_etl(folder: Path) -> list[Path]:
    transfers = _transfers(*_ON_ETHEREUM)
    # Names without what follows from the chain: ethereum-etl writes one chain a file and does not say which.
    rows = _rows(_query(transfers))
    token, sender, recipient, *rest = rows[0]
    rows[0] = (token, sender, checksummed(recipient), *rest)
    # The bad value has a hash of its own: one flaw a row.
    rows += [rows[10], (*rows[11][:3], "1e18", "0x" + "ab" * 32, *rows[11][5:])]
    tokens = [
        (known.address, known.symbol, known.name, known.decimals)
        for known in KNOWN
        if _key(known) in _ON_ETHEREUM
    ]
    return [
        write_csv(folder / "token_transfers.csv", TRANSFER_COLUMNS, rows),
        write_csv(folder / "tokens.csv", ("address", "symbol", "name", "decimals"), tokens),
        write_csv(
            folder / "blocks.csv", ("number", "timestamp"), _rows(_times("ethereum", transfers))
        ),
    ]


def _cryo(folder: Path) -> list[Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers, seconds = _times("base", _transfers(*_ON_BASE, *_NFT_ON_BASE)).columns
    span = f"{numbers[0]}_to_{numbers[-1]}"
    tables = {
        "erc20_transfers": _cryo_transfers(_query(_transfers(*_ON_BASE)), "value"),
        "erc721_transfers": _cryo_transfers(_query(_transfers(*_NFT_ON_BASE)), "token_id"),
        "blocks": pa.table(
            {
                "block_number": numbers.cast(pa.uint32()),
                "timestamp": seconds.cast(pa.uint32()),
                "chain_id": pa.array([chain_of("base").id] * len(numbers), pa.uint64()),
            }
        ),
    }
    paths = {name: folder / f"base__{name}__{span}.parquet" for name in tables}
    for name, table in tables.items():
        pq.write_table(table, paths[name])
    return list(paths.values())


def _cryo_transfers(transfers: pa.Table, value: str) -> pa.Table:
    """Return transfers in cryo's columns; it names the contract ``erc20`` whatever the standard is."""
    import pyarrow as pa

    def binary(column: str) -> Any:
        return pa.array(
            [bytes.fromhex(text[2:]) for text in transfers[column].to_pylist()], pa.binary()
        )

    # As bytes, as digits, and as a float that has lost some of them: cryo writes all three.
    values = [int(text) for text in transfers["value"].to_pylist()]
    return pa.table(
        {
            "block_number": transfers["block_number"].cast(pa.uint32()),
            # Every made-up transfer has a transaction of its own, three logs apart.
            "transaction_index": pa.array(
                [index // 3 for index in transfers["log_index"].to_pylist()], pa.uint32()
            ),
            "log_index": transfers["log_index"].cast(pa.uint32()),
            "transaction_hash": binary("transaction_hash"),
            "erc20": binary("token_address"),
            "from_address": binary("from_address"),
            "to_address": binary("to_address"),
            f"{value}_binary": pa.array(
                [number.to_bytes(32, "big") for number in values], pa.binary()
            ),
            f"{value}_string": transfers["value"],
            f"{value}_f64": pa.array([float(number) for number in values], pa.float64()),
            "chain_id": pa.array([chain_of("base").id] * len(values), pa.uint64()),
        }
    )


def _token_list(path: Path) -> Path:
    tokens = [
        {
            "chainId": known.chain_id,
            "address": known.checksum_address,
            "name": known.name,
            "symbol": known.symbol,
            "decimals": known.decimals,
        }
        for known in KNOWN
        if _key(known) in (*_ON_ETHEREUM, *_ON_BASE) and known.decimals is not None
    ]
    document = {
        "name": "nbext example",
        "timestamp": "2026-01-01T00:00:00Z",
        "version": {"major": 1, "minor": 0, "patch": 0},
        "tokens": tokens,
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return path
