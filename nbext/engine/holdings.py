"""What wallets hold: contract by contract, what a segment holds together, and beside what others hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from nbext.core.uint256 import Limbs, join
from nbext.engine.dataset import Cancel, Common, Holding
from nbext.errors import ResourceLimit

if TYPE_CHECKING:
    from nbext.engine.dataset import Question
    from nbext.engine.query.answers import Dataset
    from nbext.engine.query.sql import SqlBuilder

    Numbers = np.ndarray[tuple[int], np.dtype[Any]]

# Of all wallets of one request, so that an answer stays a few megabytes.
MOST = 10_000


def holdings_of(
    dataset: Dataset,
    addresses: Sequence[str],
    ends: Mapping[int, int],
    *,
    now: bool,
    cancel: Cancel | None = None,
) -> list[Holding]:
    """Return what wallets hold on some chains, without what is zero; in no order.

    ``ends`` is the block of each chain at the end of which balances are read; ``now``: each is the data's last.

    Raises
    ------
    ResourceLimit
        There are more than `MOST`.
    QueryCancelled, QueryTimeout
    """

    def write(sql: SqlBuilder) -> str:
        # The wallets' own rows first, as columns: all other columns of ten million balances take seconds.
        listed = sql.listed(addresses, "address")
        wallets = f"SELECT wallet, address FROM wallets WHERE address IN {listed}"
        rows = sql.table("balances" if now else "history")
        held = f"SELECT * FROM {rows} WHERE wallet IN {sql.wallets_at(addresses)}"
        # One scan for all chains: they differ only in the block.
        wanted = []
        for chain, end in ends.items():
            of_chain, block = f"chain_id = {sql.value(chain)}", sql.value(end)
            stood = "" if now else f" AND from_block <= {block} AND to_block > {block}"
            wanted.append(of_chain + stood)
        return (
            "SELECT w.address, chain_id, c.address AS contract_address, hi, mid, lo "
            f"FROM ({held}) AS h JOIN ({wallets}) AS w ON h.wallet = w.wallet "
            "JOIN contracts AS c ON h.contract = c.contract "
            f"WHERE sort_key <> 0 AND ({' OR '.join(wanted)}) LIMIT {MOST + 1}"
        )

    found = dataset.read(write, cancel).to_pylist()
    if len(found) > MOST:
        advice = "Ask for fewer wallets, or for one chain."
        raise ResourceLimit(
            f"These wallets hold more than {MOST:,} tokens and collections. {advice}"
        )
    contracts = dataset.catalog.contracts(
        [(row["chain_id"], row["contract_address"]) for row in found]
    )
    return [
        Holding(row["address"], contract, join(Limbs(row["hi"], row["mid"], row["lo"])))
        for row, contract in zip(found, contracts, strict=True)
    ]


def profile_of_holders(
    dataset: Dataset,
    segment: Question,
    base: Question,
    ends: Mapping[int, int],
    *,
    now: bool,
    least: int,
    most: int,
    cancel: Cancel | None = None,
) -> tuple[int, list[Common]]:
    """Return how many contracts at least so many wallets of a segment hold, and those with the highest lift.

    ``ends`` and ``now`` as of `holdings_of`. Errors as `nbext.engine.query.answers.Dataset.ask`.
    """
    counts = dataset.holders(segment, base, ends, now=now, cancel=cancel)
    contracts = np.flatnonzero(counts[0] >= max(1, least))
    if not len(contracts):
        return 0, []
    found = dataset.read(
        lambda sql: (
            "SELECT contract, chain_id, address FROM contracts "
            f"WHERE contract IN {sql.listed(contracts.tolist(), 'contract')} ORDER BY contract"
        ),
        cancel,
    )
    wallets, others = (each[contracts] for each in counts)
    # Of the same sets, the lift is this ratio times a constant; what the base does not hold at all comes last.
    ratio = np.divide(wallets, others, out=np.zeros(len(others)), where=others > 0)
    for name, column in (("wallets", wallets), ("base", others), ("ratio", ratio)):
        found = found.append_column(name, pa.array(column))
    by = [("ratio", "descending"), ("wallets", "descending"), ("chain_id", "ascending")]
    rows = found.sort_by([*by, ("address", "ascending")]).slice(0, most).to_pylist()
    known = dataset.catalog.contracts([(row["chain_id"], row["address"]) for row in rows])
    return len(contracts), [
        Common(contract, row["wallets"], row["base"])
        for row, contract in zip(rows, known, strict=True)
    ]
