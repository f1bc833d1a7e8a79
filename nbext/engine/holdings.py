"""What wallets hold: contract by contract, what a segment holds together, and beside what others hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nbext.core.uint256 import Limbs, join
from nbext.engine.dataset import Cancel, Common, Dataset, Holding
from nbext.errors import ResourceLimit

if TYPE_CHECKING:
    from nbext.engine.query.sql import SqlBuilder

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
        # The limbs are read of the rows that are found alone: those of ten million balances take seconds.
        wallets = f"SELECT wallet, address FROM wallets WHERE address IN {sql.listed(addresses, 'address')}"
        # One scan for all chains: they differ only in the block.
        wanted = []
        for chain, end in ends.items():
            of_chain, block = f"chain_id = {sql.value(chain)}", sql.value(end)
            stood = "" if now else f" AND from_block <= {block} AND to_block > {block}"
            wanted.append(of_chain + stood)
        return (
            "SELECT w.address, chain_id, c.address AS contract_address, hi, mid, lo "
            f"FROM {sql.table('balances' if now else 'history')} AS h "
            f"JOIN ({wallets}) AS w ON h.wallet = w.wallet "
            "JOIN contracts AS c ON h.contract = c.contract "
            f"WHERE size <> 0 AND ({' OR '.join(wanted)}) LIMIT {MOST + 1}"
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


def in_common(
    found: Sequence[tuple[int, int, int]], dataset: Dataset, cancel: Cancel | None
) -> list[Common]:
    """Return contracts that wallets of a segment hold, those first that it holds most beyond the base.

    ``found`` has the number of each, and how many wallets of the segment and of the base hold it.
    """
    counts = {contract: (wallets, base) for contract, wallets, base in found}
    if not counts:
        return []
    rows = dataset.read(
        lambda sql: (
            "SELECT contract, chain_id, address FROM contracts "
            f"WHERE contract IN {sql.listed(list(counts), 'contract')}"
        ),
        cancel,
    ).to_pylist()
    contracts = dataset.catalog.contracts([(row["chain_id"], row["address"]) for row in rows])
    made = [
        Common(contract, *counts[row["contract"]])
        for row, contract in zip(rows, contracts, strict=True)
    ]
    # Of the same sets, the lift is this ratio times a constant; what the base does not hold at all comes last.
    return sorted(
        made,
        key=lambda one: (
            -(one.wallets / one.base if one.base else 0),
            -one.wallets,
            one.contract.chain_id,
            one.contract.address,
        ),
    )
