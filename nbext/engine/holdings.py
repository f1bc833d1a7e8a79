"""What wallets hold: every contract of which they have a balance, now or as it stood at a block of each chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import or_
from typing import TYPE_CHECKING, Any

from nbext.core.uint256 import Limbs, join
from nbext.engine.dataset import Cancel, Catalog, Holding, Tables, Value
from nbext.engine.query.history import listed
from nbext.engine.query.set_tree import folded
from nbext.errors import ResourceLimit

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.catalog import Reader
    from nbext.engine.query.statements import Build

# Of all wallets of one request, so that an answer stays a few megabytes.
MOST = 10_000


def holdings(
    read: Reader,
    catalog: Catalog,
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
    values: list[Value] = [
        tuple(addresses),
        *(number for chain in ends.items() for number in chain),
    ]
    found = read(f"holdings {len(ends)} {now}", _build(now=now), values, cancel).to_pylist()
    if len(found) > MOST:
        advice = "Ask for fewer wallets, or for one chain."
        raise ResourceLimit(
            f"These wallets hold more than {MOST:,} tokens and collections. {advice}"
        )
    contracts = catalog.contracts([(row["chain_id"], row["contract_address"]) for row in found])
    return [
        Holding(row["address"], contract, join(Limbs(row["hi"], row["mid"], row["lo"])))
        for row, contract in zip(found, contracts, strict=True)
    ]


def _build(*, now: bool) -> Build:
    def build(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
        addresses, *ends = scalars
        chains = list(zip(ends[::2], ends[1::2], strict=True))
        wallets = (
            tables["wallets"]
            .semi_join(listed(addresses, tables), "wallet")
            .select("wallet", "address")
        )
        contracts = tables["contracts"].select(
            "contract", "chain_id", contract_address=tables["contracts"].address
        )
        # The limbs are read of the rows that are found alone: those of ten million balances take seconds.
        held = tables["balances" if now else "history"].join(wallets, "wallet")
        held = held if now else held.filter(held["size"] != 0)
        held = held.join(contracts, "contract")
        # One scan for all chains: they differ only in the block.
        wanted = [
            held.chain_id == chain
            if now
            else (held.chain_id == chain) & (held.from_block <= end) & (held.to_block > end)
            for chain, end in chains
        ]
        rows = held.filter(folded(or_, wanted))
        return rows.select("address", "chain_id", "contract_address", "hi", "mid", "lo").limit(
            MOST + 1
        )

    return build
