"""What the wallets of a segment hold beside what others do: for each contract, how many of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nbext.engine.dataset import Catalog, Common, Question, Tables, Value
from nbext.engine.query.history import standing
from nbext.engine.query.set_tree import folded, joined, settled

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from nbext.engine.query.statements import Build

Members = Callable[[Tables, Sequence[Any]], "ir.Table"]


def members(question: Question) -> Members:
    """Build a question's wallets as one table, for engines that combine sets as joins."""
    return lambda tables, scalars: joined(settled(question.wallets(tables, scalars)))


def build(segment: Members, base: Members, chains: int, split: int, *, now: bool) -> Build:
    """Build for each contract how many wallets of a segment and of a base hold it, where it is enough of the segment.

    The scalars are the least number of the segment's wallets, each chain and its block, and from there on ``split``
    values of the segment and those of the base.
    """

    def of_chain(tables: Tables, scalars: Sequence[Any], chain: Any, end: Any) -> ir.Table:
        first = 1 + 2 * chains
        held = tables["balances"] if now else standing(tables["history"], end)
        held = held.filter(held["size"] > 0)
        ours = _counted(held, segment(tables, scalars[first : first + split]), "wallets")
        theirs = _counted(held, base(tables, scalars[first + split :]), "base")
        contracts = tables["contracts"].filter(tables["contracts"].chain_id == chain)
        contracts = contracts.select("contract", "chain_id", "address")
        found = (
            ours.filter(ours.wallets >= scalars[0])
            .join(contracts, "contract")
            .left_join(theirs, "contract")
        )
        return found.select("chain_id", "address", "wallets", base=found.base.fill_null(0))

    def whole(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
        ends = scalars[1 : 1 + 2 * chains]
        parts = [
            of_chain(tables, scalars, chain, end)
            for chain, end in zip(ends[::2], ends[1::2], strict=True)
        ]
        return folded(lambda one, other: one.union(other), parts)

    return whole


def _counted(held: ir.Table, wallets: ir.Table, name: str) -> ir.Table:
    rows = held.semi_join(wallets, "wallet")
    return rows.group_by("contract").agg(**{name: rows.count()})


def values_of(ends: Mapping[int, int], least: int, *questions: Question) -> tuple[Value, ...]:
    """Return the values of `build`'s scalars."""
    chains = [number for chain in ends.items() for number in chain]
    return (least, *chains, *(value for question in questions for value in question.values))


def in_common(found: pa.Table, catalog: Catalog) -> list[Common]:
    """Return what was fetched with the contracts, those that the segment holds most beyond the base first."""
    rows = found.to_pylist()
    contracts = catalog.contracts([(row["chain_id"], row["address"]) for row in rows])
    made = [
        Common(contract, row["wallets"], row["base"])
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
