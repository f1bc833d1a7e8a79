"""What wallets hold: contract by contract, what a segment holds together, and beside what others hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import or_
from typing import TYPE_CHECKING, Any

from nbext.core.uint256 import Limbs, join
from nbext.engine.dataset import Build, Cancel, Common, Dataset, Holding, Question, Tables, Value
from nbext.engine.query.amounts import limb_sums
from nbext.engine.query.history import standing, wallets_listed
from nbext.engine.query.set_tree import as_one_table, folded, normal_form
from nbext.errors import ResourceLimit

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

# Of all wallets of one request, so that an answer stays a few megabytes.
MOST = 10_000
Members = Callable[[Tables, Sequence[Any]], "ir.Table"]


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

    def build(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
        asked, *blocks = scalars
        wallets = tables["wallets"].semi_join(wallets_listed(asked, tables), "wallet")
        contracts = tables["contracts"].select(
            "contract", "chain_id", contract_address=tables["contracts"].address
        )
        # The limbs are read of the rows that are found alone: those of ten million balances take seconds.
        held = tables["balances" if now else "history"].join(
            wallets.select("wallet", "address"), "wallet"
        )
        held = held if now else held.filter(held["size"] != 0)
        held = held.join(contracts, "contract")
        # One scan for all chains: they differ only in the block.
        wanted = [
            held.chain_id == chain
            if now
            else (held.chain_id == chain) & (held.from_block <= end) & (held.to_block > end)
            for chain, end in zip(blocks[::2], blocks[1::2], strict=True)
        ]
        rows = held.filter(folded(or_, wanted))
        return rows.select("address", "chain_id", "contract_address", *Limbs._fields).limit(
            MOST + 1
        )

    values: list[Value] = [tuple(addresses), *_numbers(ends)]
    found = dataset.read(f"holdings {len(ends)} {now}", build, values, cancel).to_pylist()
    if len(found) > MOST:
        advice = "Ask for fewer wallets, or for one chain."
        raise ResourceLimit(
            f"These wallets hold more than {MOST:,} tokens and collections. {advice}"
        )
    contracts = dataset.catalog.contracts(
        [(row["chain_id"], row["contract_address"]) for row in found]
    )
    return [
        Holding(row["address"], contract, sum_of(row))
        for row, contract in zip(found, contracts, strict=True)
    ]


def members_of(question: Question) -> Members:
    """Build a question's wallets as one table, for an engine that combines sets as joins."""
    return lambda tables, scalars: as_one_table(normal_form(question.wallets(tables, scalars)))


def build_total(question: Question, members: Members) -> Build:
    """Build the sum of a question's first column over some wallets: limbs, not in normal form; see `sum_of`."""

    def sums(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
        column = question.columns(tables, scalars)[0]
        held = column.semi_join(members(tables, scalars), "wallet")
        return held.agg(**limb_sums(held[column.columns[-1]]))

    return sums


def sum_of(row: Mapping[str, Any]) -> int:
    """Return the sum of a row of limbs."""
    return join(Limbs(*(row[limb] or 0 for limb in Limbs._fields)))


def build_profile(segment: Members, base: Members, chains: int, split: int, *, now: bool) -> Build:
    """Build for each contract how many wallets of a segment and of a base hold it, where it is enough of the segment.

    The scalars are the least number of the segment's wallets, each chain and its block, and from there on ``split``
    values of the segment and those of the base.
    """

    def of_chain(tables: Tables, scalars: Sequence[Any], chain: Any, end: Any) -> ir.Table:
        first = 1 + 2 * chains
        held = tables["balances"] if now else standing(tables["history"], end)
        held = held.filter(held["size"] > 0)
        ours, theirs = (
            rows.group_by("contract").agg(**{name: rows.count()})
            for name, wallets in (
                ("wallets", segment(tables, scalars[first : first + split])),
                ("base", base(tables, scalars[first + split :])),
            )
            for rows in [held.semi_join(wallets, "wallet")]
        )
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


def profile_values(ends: Mapping[int, int], least: int, *questions: Question) -> tuple[Value, ...]:
    """Return the values of `build_profile`'s scalars."""
    return (least, *_numbers(ends), *(value for one in questions for value in one.values))


def in_common(found: pa.Table, dataset: Dataset) -> list[Common]:
    """Return what was fetched with the contracts, those that the segment holds most beyond the base first."""
    rows = found.to_pylist()
    contracts = dataset.catalog.contracts([(row["chain_id"], row["address"]) for row in rows])
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


def _numbers(ends: Mapping[int, int]) -> list[int]:
    return [number for chain in ends.items() for number in chain]
