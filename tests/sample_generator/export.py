"""The sample's transfers in the files that exporters write: what `nbext ingest` makes the shipped tables of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nbext.engine.sample.known import Known
from notebooks.example_files import TRANSFER_COLUMNS, write_csv
from tests.sample_generator.diary import by_key
from tests.sample_generator.slots import PACES, timestamp
from tests.sample_generator.transfers import Log, logs

# ethereum-etl exports no ERC1155 transfers; Etherscan's export of them says how many moved.
_ERC1155 = (
    "contractAddress",
    "from",
    "to",
    "tokenID",
    "hash",
    "logIndex",
    "blockNumber",
    "tokenValue",
    "chain_id",
)


def write_export(folder: Path) -> None:
    """Write all that exporters know of the sample: transfers and block times of each chain, and its tokens."""
    for chain in PACES:
        own = [log for log in logs() if log.transfer.contract.chain == chain]
        number = own[0].transfer.contract.chain_id
        counted = [log for log in own if log.transfer.contract.standard == "ERC1155"]
        rows = [
            (*row, number)
            for row in etl_rows(log for log in own if log.transfer.contract.standard != "ERC1155")
        ]
        write_csv(folder / f"{chain} transfers.csv", (*TRANSFER_COLUMNS, "chain_id"), rows)
        if counted:
            items = zip(etl_rows(counted), (log.transfer.count for log in counted), strict=True)
            write_csv(
                folder / f"{chain} items.csv",
                _ERC1155,
                [(*row, count, number) for row, count in items],
            )
        times = sorted({(log.block, timestamp(log.transfer.slot), number) for log in own})
        write_csv(folder / f"{chain} blocks.csv", ("number", "timestamp", "chain_id"), times)
    contracts = by_key().values()
    tokens = [
        (*row, of.chain_id, of.standard)
        for row, of in zip(etl_tokens(contracts), contracts, strict=True)
    ]
    write_csv(
        folder / "tokens.csv",
        ("address", "symbol", "name", "decimals", "chain_id", "standard"),
        tokens,
    )


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
