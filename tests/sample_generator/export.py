"""The sample's transfers and contracts as rows of an exporter's files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nbext.engine.sample.known import Known
from tests.sample_generator.transfers import Log


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
