"""From a plan to a question: Ibis expressions over the tables of `nbext.engine.schema`.

Only what DuckDB, Spark, BigQuery and Trino all have is used. A plan's values become scalars, so that questions
that differ only in values have one shape, which an engine compiles once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nbext.engine.dataset import Question, Tables
from nbext.engine.query import exact
from nbext.engine.query.set_tree import Wallets, both, complement, either, settled
from nbext.language.conditions import token as leaves
from nbext.language.describe import in_words
from nbext.language.model import Acting, All, Amounts, Being, Holding, Moving, Node, Not, Owning, Plan, Saved, Some
from nbext.language.slots import Slots, filled

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.core.operations import Column
    from nbext.engine.dataset import Contract


def compile(plan: Plan) -> Question:  # noqa: A001  the step's name; the builtin is not wanted here
    """Return the plan's question."""
    return question(plan.whole, plan.shown, plan.columns)


def parts(plan: Plan) -> list[tuple[str, Question]]:
    """Return each of the plan's conditions alone: its words and its question."""
    whole = plan.whole
    return [(in_words(leaf), question(Saved(leaf, whole.seen, whole.exclude))) for leaf in plan.leaves]


def question(
    whole: Saved, shown: Sequence[tuple[Contract, int | None]] = (), columns: Sequence[Column] = ()
) -> Question:
    """Return the question for a tree's wallets, with a column of balances for each contract shown."""
    slots = Slots()
    needed = dict(_needed(whole.node))
    tree = slots.emptied(whole)
    rows = slots.emptied(tuple((contract, at, needed.get((contract.contract, at))) for contract, at in shown))
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


def _needed(node: Node) -> Iterator[tuple[tuple[int, int | None], Amounts]]:
    """Yield what every wallet of a tree holds at least, by the contract and the block that tell it."""
    if isinstance(node, All):
        for child in node.children:
            yield from _needed(child)
    elif isinstance(node, Holding) and not node.ids and node.within.low > 0:
        yield (node.contract.contract, node.at), Amounts(node.within.low, None, none_too=False)


def _columns(shown: Sequence[Any], names: Sequence[str], tables: Tables) -> list[ir.Table]:
    return [
        _column(contract, at, needed, name, tables) for (contract, at, needed), name in zip(shown, names, strict=True)
    ]


def _column(contract: Any, at: Any, needed: Any, name: str, tables: Tables) -> ir.Table:
    held = leaves.balances(contract, at, tables)
    if needed is not None:
        # Smaller balances are no matching wallet's; not to read them halves the work, or better.
        held = held.filter(held.size >= needed.low.size)
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
