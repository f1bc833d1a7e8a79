"""Transfers, holders, names and times as the files that people have: each format that ingest knows, written by hand.

A ``Format`` has, for each of its columns, the names that exporters give it, and what stands in it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from nbext.core.chains import chain_of
from tests.oracle.world import GENESIS, Transfer

CONTAINERS = ("csv", "parquet", "json", "ndjson")


class Sent(NamedTuple):
    """A transfer as a file has it: with its contract, and its chain's seconds between blocks."""

    transfer: Transfer
    contract: Any
    step: int

    @property
    def seconds(self) -> int:
        return GENESIS + self.transfer.block * self.step


def in_token(one: Sent) -> str:
    """Return an amount in its token's unit, as Etherscan's pages write it."""
    places = one.contract.decimals
    text = str(one.transfer.amount).rjust(places + 1, "0")
    return f"{text[: len(text) - places]}.{text[len(text) - places :]}".rstrip(".")


def transaction(one: Sent) -> str:
    return f"0x{one.transfer.log_index * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**256:064x}"


def iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


# What stands in a column, by our word for it.
CELLS: dict[str, Callable[[Sent], Any]] = {
    "contract": lambda one: one.contract.address,
    "standard": lambda one: one.contract.standard,
    "erc": lambda one: one.contract.standard.replace("ERC", "ERC-"),
    "lower": lambda one: one.contract.standard.lower(),
    "sender": lambda one: one.transfer.sender,
    "recipient": lambda one: one.transfer.recipient,
    "value": lambda one: str(one.transfer.amount),
    "binary": lambda one: one.transfer.amount.to_bytes(32, "big"),
    "count": lambda one: str(one.transfer.count),
    "moved": lambda one: str(
        one.transfer.amount if one.contract.standard == "ERC20" else one.transfer.count
    ),
    "token_id": lambda one: "" if one.contract.standard == "ERC20" else str(one.transfer.amount),
    "amount": in_token,
    "ids": lambda one: [str(one.transfer.amount)],
    "counts": lambda one: [str(one.transfer.count)],
    "tx": transaction,
    "log_index": lambda one: one.transfer.log_index,
    "block": lambda one: one.transfer.block,
    "unix": lambda one: one.seconds,
    "time": lambda one: iso(one.seconds),
    "chain_id": lambda one: one.contract.chain_id,
    "chain_name": lambda one: chain_of(one.contract.chain_id).name,
    "name": lambda one: one.contract.name or "",
    "symbol": lambda one: one.contract.symbol or "",
    "decimals": lambda one: "" if one.contract.decimals is None else str(one.contract.decimals),
}
ALL = ("ERC20", "ERC721", "ERC1155")


@dataclass(frozen=True)
class Format:
    """A file of transfers: its name in our reports, its columns as {their name: our word}, and who exports it so."""

    name: str
    standards: tuple[str, ...]
    columns: Mapping[str, str]
    # Columns that a file may lack: its times among them.
    may: Mapping[str, str] = field(default_factory=dict)
    containers: tuple[str, ...] = ("csv", "parquet")
    # Rows without the number of their log are matched by what they say.
    numbered: bool = True
    # Its contract is not in it, and has to be said.
    of_one: bool = False
    # What else has to be said of it.
    options: tuple[str, ...] = ()

    @property
    def timed(self) -> bool:
        return any(word in ("unix", "time") for word in self.columns.values())

    def row(self, one: Sent, told: Sequence[str]) -> dict[str, Any]:
        columns = {**self.columns, **{name: self.may[name] for name in told}}
        return {name: CELLS[word](one) for name, word in columns.items()}


ETL = {
    "from_address": "sender",
    "to_address": "recipient",
    "transaction_hash": "tx",
    "log_index": "log_index",
    "block_number": "block",
}
DUNE = {
    "contract_address": "contract",
    "from": "sender",
    "to": "recipient",
    "evt_tx_hash": "tx",
    "evt_index": "log_index",
    "evt_block_number": "block",
}
DUNE_MAY = {"evt_block_time": "time"}
CURATED = {
    "contract_address": "contract",
    "from": "sender",
    "to": "recipient",
    "tx_hash": "tx",
    "evt_index": "log_index",
    "block_number": "block",
    "blockchain": "chain_name",
}
API = {
    "contractAddress": "contract",
    "from": "sender",
    "to": "recipient",
    "hash": "tx",
    "blockNumber": "block",
}
API_MAY = {"timeStamp": "unix", "tokenName": "name", "tokenSymbol": "symbol"}
PAGE = {
    "Transaction Hash": "tx",
    "Blockno": "block",
    "UnixTimestamp": "unix",
    "From": "sender",
    "To": "recipient",
}
OWN = {"src": "sender", "dst": "recipient", "height": "block", "txid": "tx"}
MAP = "src=from,dst=to,height=block,hash=txid"
TABLE = {
    "sender": "sender",
    "recipient": "recipient",
    "block": "block",
    "tx_hash": "tx",
    "contract": "contract",
    "log_index": "log_index",
}
TABLE_MAY = {"date": "time", "chain_id": "chain_id"}
TIMES = {"block_timestamp": "unix"}
ETHERSCAN = {"containers": ("csv", "json"), "numbered": False}
FORMATS = (
    Format(
        "token_transfers (ethereum-etl)",
        ("ERC20", "ERC721"),
        {"token_address": "contract", "value": "value", **ETL},
        {**TIMES, "chain_id": "chain_id"},
        ("csv", "parquet", "ndjson"),
    ),
    Format(
        "token_transfers with token ids (ethereum-etl)",
        ALL,
        {
            "token_address": "contract",
            "value": "moved",
            "token_id": "token_id",
            "erc_standard": "standard",
            **ETL,
        },
        TIMES,
    ),
    Format(
        "token_transfers (BigQuery's blockchain analytics)",
        ALL,
        {
            "address": "contract",
            "quantity": "moved",
            "token_id": "token_id",
            "event_type": "erc",
            "event_index": "log_index",
            **{name: word for name, word in ETL.items() if word != "log_index"},
        },
        TIMES,
    ),
    Format(
        "token transfers (Blockscout's API)",
        ALL,
        {
            "token.address_hash": "contract",
            "token.type": "erc",
            "from.hash": "sender",
            "to.hash": "recipient",
            "transaction_hash": "tx",
            "log_index": "log_index",
            "block_number": "block",
            "total.value": "moved",
            "total.token_id": "token_id",
        },
        {"timestamp": "time"},
        ("json",),
    ),
    Format("ERC20 Transfer events (Dune)", ("ERC20",), {**DUNE, "value": "value"}, DUNE_MAY),
    Format("ERC721 Transfer events (Dune)", ("ERC721",), {**DUNE, "tokenId": "value"}, DUNE_MAY),
    Format(
        "ERC1155 TransferSingle events (Dune)",
        ("ERC1155",),
        {**DUNE, "id": "value", "value": "count"},
        DUNE_MAY,
    ),
    Format(
        "ERC1155 TransferBatch events (Dune)",
        ("ERC1155",),
        {**DUNE, "ids": "ids", "values": "counts"},
        DUNE_MAY,
    ),
    Format(
        "nft.transfers (Dune)",
        ("ERC721", "ERC1155"),
        {**CURATED, "token_id": "value", "amount": "count", "token_standard": "lower"},
        {"block_time": "time"},
    ),
    Format(
        "tokens.transfers (Dune)",
        ("ERC20",),
        {**CURATED, "amount_raw": "value", "token_standard": "lower"},
        {"block_time": "time"},
    ),
    Format(
        "erc721_transfers (cryo)",
        ("ERC721",),
        {"erc20": "contract", "token_id_string": "value", **ETL},
        TIMES,
        ("parquet", "csv"),
    ),
    Format(
        "erc20_transfers (cryo)",
        ("ERC20",),
        {"erc20": "contract", "value_binary": "binary", **ETL},
        TIMES,
        ("parquet",),
    ),
    Format(
        "tokentx (Etherscan)",
        ("ERC20",),
        {**API, "value": "value"},
        {**API_MAY, "tokenDecimal": "decimals"},
        **ETHERSCAN,
    ),
    Format(
        "tokennfttx (Etherscan)", ("ERC721",), {**API, "tokenID": "value"}, API_MAY, **ETHERSCAN
    ),
    Format(
        "token1155tx (Etherscan)",
        ("ERC1155",),
        {**API, "tokenID": "value", "tokenValue": "count"},
        API_MAY,
        **ETHERSCAN,
    ),
    Format(
        "NFT transfers (Etherscan's CSV export)",
        ("ERC721", "ERC1155"),
        {
            **PAGE,
            "ContractAddress": "contract",
            "Token ID": "value",
            "Quantity": "count",
            "Type": "erc",
        },
        containers=("csv",),
        numbered=False,
    ),
    Format(
        "ERC20 transfers (Etherscan's CSV export)",
        ("ERC20",),
        {**PAGE, "ContractAddress": "contract", "TokenValue": "amount"},
        containers=("csv",),
        numbered=False,
    ),
    Format(
        "transfers of one token (Etherscan's CSV export)",
        ("ERC20",),
        {**PAGE, "Quantity": "amount"},
        containers=("csv",),
        numbered=False,
        of_one=True,
    ),
    Format(
        "token transfers (Blockscout's CSV export)",
        ("ERC20",),
        {
            "TxHash": "tx",
            "BlockNumber": "block",
            "UnixTimestamp": "time",
            "FromAddress": "sender",
            "ToAddress": "recipient",
            "TokenContractAddress": "contract",
            "TokensTransferred": "value",
        },
        {"TokenSymbol": "symbol"},
        containers=("csv",),
        numbered=False,
    ),
    # Each table of anybody's own in two forms: the least that it may have, by --map, and with all.
    Format(
        "a table of transfers",
        ("ERC20",),
        {**OWN, "qty": "amount"},
        {"time": "unix"},
        numbered=False,
        of_one=True,
        options=("--map", f"{MAP},qty=amount"),
    ),
    Format(
        "a table of transfers",
        ("ERC20",),
        {**TABLE, "amount": "value"},
        TABLE_MAY,
        options=("--unit", "raw"),
    ),
    Format(
        "a table of transfers by token id",
        ("ERC721",),
        {**OWN, "piece": "value"},
        {"time": "unix"},
        numbered=False,
        of_one=True,
        options=("--map", f"{MAP},piece=token_id"),
    ),
    Format(
        "a table of transfers by token id", ("ERC721",), {**TABLE, "token_id": "value"}, TABLE_MAY
    ),
)


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows into a file, as its ending says."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    elif path.suffix == ".ndjson":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps({"status": "1", "result": [nested(row) for row in rows]}))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(
                {key: json.dumps(one) if isinstance(one, list) else one for key, one in row.items()}
                for row in rows
            )
    return path


def nested(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with ``{"from": {"hash": ...}}`` for ``from.hash``."""
    made: dict[str, Any] = {}
    for name, value in row.items():
        inner, *parts = name.split(".")
        if parts:
            made.setdefault(inner, {})[parts[0]] = value if value != "" else None
        else:
            made[name] = value
    return made
