"""Small files in the forms that exporters of chain data write, made of the synthetic sample's transfers."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nbext.core.addresses import checksummed
from nbext.engine.sample.known import KNOWN, Known
from nbext.engine.sample.slots import timestamp
from nbext.engine.sample.transfers import Log, logs

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
        Where to write; made where it does not exist. Files of the same names are replaced.

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
    return [*_ethereum_etl(top / "ethereum"), *_cryo(top / "base"), _token_list(top / "token_list.json")]


def etl_rows(chosen: Iterable[Log]) -> list[tuple[Any, ...]]:
    """Return transfers as rows of ``TRANSFER_COLUMNS``, with values as decimal digits."""
    return [
        (
            log.transfer.contract.address,
            log.transfer.sender,
            log.transfer.recipient,
            str(log.transfer.value),
            log.transaction_hash,
            log.log_index,
            log.block,
        )
        for log in chosen
    ]


def etl_tokens(contracts: Iterable[Known]) -> list[tuple[Any, ...]]:
    """Return contracts as rows of ethereum-etl's tokens: address, symbol, name, decimals."""
    return [(known.address, known.symbol, known.name, known.decimals) for known in contracts]


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write rows as CSV with a header; None is an empty field."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def _of(keys: Sequence[str]) -> list[Log]:
    return [log for log in logs() if log.transfer.contract.key in keys and log.transfer.contract in KNOWN]


def _ethereum_etl(folder: Path) -> list[Path]:
    chosen = _of(_ON_ETHEREUM)
    # Names without what follows from the chain: ethereum-etl writes one chain a file and does not say which.
    rows = etl_rows(chosen)
    token, sender, recipient, *rest = rows[0]
    rows[0] = (token, sender, checksummed(recipient), *rest)
    # The bad value has a hash of its own: one flaw a row.
    rows += [rows[10], (*rows[11][:3], "1e18", "0x" + "ab" * 32, *rows[11][5:])]
    contracts = [known for known in KNOWN if known.key in _ON_ETHEREUM]
    times = sorted({(log.block, timestamp(log.transfer.slot)) for log in chosen})
    return [
        write_csv(folder / "token_transfers.csv", TRANSFER_COLUMNS, rows),
        write_csv(folder / "tokens.csv", ("address", "symbol", "name", "decimals"), etl_tokens(contracts)),
        write_csv(folder / "blocks.csv", ("number", "timestamp"), times),
    ]


def _cryo(folder: Path) -> list[Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tokens, nfts = _of(_ON_BASE), _of(_NFT_ON_BASE)
    times = sorted({(log.block, timestamp(log.transfer.slot)) for log in (*tokens, *nfts)})
    numbers, seconds = zip(*times, strict=True)
    span = f"{numbers[0]:08d}_to_{numbers[-1]:08d}"
    blocks = {"block_number": pa.array(numbers, pa.uint32()), "timestamp": pa.array(seconds, pa.uint32())}
    blocks["chain_id"] = pa.array([8453] * len(numbers), pa.uint64())
    tables = {
        "erc20_transfers": _cryo_transfers(tokens, "value"),
        "erc721_transfers": _cryo_transfers(nfts, "token_id"),
        "blocks": pa.table(blocks),
    }
    paths = {name: folder / f"base__{name}__{span}.parquet" for name in tables}
    for name, table in tables.items():
        pq.write_table(table, paths[name])
    return list(paths.values())


def _cryo_transfers(chosen: Sequence[Log], value: str) -> Any:
    """Return transfers in cryo's columns; it names the contract ``erc20`` whatever the standard is."""
    import pyarrow as pa

    def binary(texts: Iterable[str]) -> Any:
        return pa.array([bytes.fromhex(text[2:]) for text in texts], pa.binary())

    # As bytes, as digits, and as a float that has lost some of them: cryo writes all three.
    values = [log.transfer.value for log in chosen]
    return pa.table(
        {
            "block_number": pa.array([log.block for log in chosen], pa.uint32()),
            "transaction_index": pa.array([log.log_index // 3 for log in chosen], pa.uint32()),
            "log_index": pa.array([log.log_index for log in chosen], pa.uint32()),
            "transaction_hash": binary(log.transaction_hash for log in chosen),
            "erc20": binary(log.transfer.contract.address for log in chosen),
            "from_address": binary(log.transfer.sender for log in chosen),
            "to_address": binary(log.transfer.recipient for log in chosen),
            f"{value}_binary": pa.array([number.to_bytes(32, "big") for number in values], pa.binary()),
            f"{value}_string": pa.array([str(number) for number in values]),
            f"{value}_f64": pa.array([float(number) for number in values], pa.float64()),
            "chain_id": pa.array([log.transfer.contract.chain_id for log in chosen], pa.uint64()),
        }
    )


def _token_list(path: Path) -> Path:
    chosen = [known for known in KNOWN if known.key in (*_ON_ETHEREUM, *_ON_BASE) and known.decimals is not None]
    tokens = [
        {
            "chainId": known.chain_id,
            "address": known.checksum_address,
            "name": known.name,
            "symbol": known.symbol,
            "decimals": known.decimals,
        }
        for known in chosen
    ]
    document = {
        "name": "nbext example",
        "timestamp": "2026-01-01T00:00:00Z",
        "version": {"major": 1, "minor": 0, "patch": 0},
        "tokens": tokens,
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return path
