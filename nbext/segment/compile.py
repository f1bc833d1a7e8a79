"""From a plan to a question: Ibis expressions over the tables of `nbext.engine.layout`.

Only what DuckDB, Spark, BigQuery and Trino all have is used. A plan's values become scalars, so that questions
that differ only in values have one shape, which an engine compiles once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from nbext.engine import exact
from nbext.engine.dataset import Question, Tables
from nbext.segment import leaves
from nbext.segment.model import Acting, All, Being, Holding, Moving, Not, Owning, Plan, Saved, Some
from nbext.segment.sets import Wallets, both, complement, either, settled
from nbext.segment.slots import Slots, filled

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.dataset import Contract
    from nbext.wire.operations import Column


def compile(plan: Plan) -> Question:  # noqa: A001  the step's name; the builtin is not wanted here
    """Return the plan's question."""
    return question(plan.whole, plan.shown, plan.columns)


def question(
    whole: Saved, shown: Sequence[tuple[Contract, int | None]] = (), columns: Sequence[Column] = ()
) -> Question:
    """Return the question for a tree's wallets, with a column of balances for each contract shown."""
    slots = Slots()
    tree, rows = slots.emptied(whole), slots.emptied(tuple(shown))
    # A column's name is an alias in the compiled text, so it belongs to the shape.
    names = tuple(column["name"] for column in columns[1:])
    return Question(
        shape=repr((tree, rows, names)),
        wallets=lambda tables, scalars: saved(filled(tree, scalars), tables).table,
        columns=lambda tables, scalars: _columns(filled(rows, scalars), names, tables),
        values=tuple(slots.values),
        holders=tuple(contract.holders if at is None else None for contract, at in shown),
    )


def saved(whole: Saved, tables: Tables) -> Wallets:
    """Build a whole segment: its tree, over the wallets it sees, without those it excludes."""
    table = settled(build(whole.node, tables), lambda: leaves.seen(whole.seen, tables))
    if leaves.given(whole.exclude):
        table = table.anti_join(leaves.wallets_at(whole.exclude, tables), "wallet")
    return Wallets(table, loose=whole.loose)


def build(node: Any, tables: Tables) -> Wallets:
    """Build the wallets of a node."""
    return _BUILDERS[type(node)](node, tables)


def _columns(shown: Sequence[Any], names: Sequence[str], tables: Tables) -> list[ir.Table]:
    return [_column(contract, at, name, tables) for (contract, at), name in zip(shown, names, strict=True)]


def _column(contract: Any, at: Any, name: str, tables: Tables) -> ir.Table:
    held = leaves.balances(contract, at, tables)
    return held.select("wallet", **{name: held.size if leaves.is_nft(contract) else exact.column(exact.of(held))})


_BUILDERS: dict[type, Callable[[Any, Tables], Wallets]] = {
    All: lambda node, tables: both([build(child, tables) for child in node.children]),
    Some: lambda node, tables: either([build(child, tables) for child in node.children]),
    Not: lambda node, tables: complement(build(node.child, tables)),
    Holding: leaves.holding,
    Owning: leaves.owning,
    Moving: leaves.moving,
    Acting: leaves.acting,
    Being: leaves.being,
    Saved: saved,
}
