"""The segment language's steps: `parse` a request, `resolve` it on some data, `compile` it to a question for an engine.

A question is a shape with slots, and the values in them. Only what DuckDB, Spark, BigQuery and Trino all have is used
in the expressions that conditions build.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nbext.engine.dataset import Question, Tables
from nbext.engine.query import exact, history
from nbext.engine.query.parameters import Parameters, bound
from nbext.language.canonical import segment_id
from nbext.language.json_schema import json_schema
from nbext.language.model import Plan, Segment
from nbext.language.parse import parse
from nbext.language.resolve import resolve

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.core.operations import Column
    from nbext.engine.dataset import Contract

__all__ = ["compile", "json_schema", "parse", "parts", "resolve", "segment_id"]


def compile(plan: Plan) -> Question:  # noqa: A001  the step's name; the builtin is not wanted here
    """Return the plan's question."""
    return question(plan.whole, plan.shown, plan.columns)


def parts(plan: Plan) -> list[tuple[str, Question]]:
    """Return each of the plan's conditions alone: its words and its question."""
    whole = plan.whole
    return [(leaf.words(), question(Segment(leaf, whole.seen, whole.exclude))) for leaf in plan.leaves]


def question(
    whole: Segment, shown: Sequence[tuple[Contract, int | None]] = (), columns: Sequence[Column] = ()
) -> Question:
    """Return the question for a segment's wallets, with a column of balances for each contract shown."""
    parameters = Parameters()
    # Of two conditions on one contract the later bound counts: each alone would be right.
    least = dict(whole.node.least_balances())
    segment = parameters.shape_of(whole)
    rows = parameters.shape_of(tuple((contract, at, least.get((contract.contract, at))) for contract, at in shown))
    # A column's name is an alias in the compiled text, so it belongs to the shape.
    names = tuple(column["name"] for column in columns[1:])
    return Question(
        shape=repr((segment, rows, names)),
        wallets=lambda tables, scalars: bound(segment, scalars).wallets(tables),
        columns=lambda tables, scalars: [
            _column(contract, at, needed, name, tables)
            for (contract, at, needed), name in zip(bound(rows, scalars), names, strict=True)
        ],
        values=tuple(parameters.values),
        holders=tuple(contract.holders if at is None else None for contract, at in shown),
    )


def _column(contract: Any, at: Any, least: Any, name: str, tables: Tables) -> ir.Table:
    held = history.balances(contract, at, tables)
    if least is not None:
        # Smaller balances are no matching wallet's; not to read them halves the work, or better.
        held = held.filter(held.size >= least.low.size)
    return held.select("wallet", **{name: held.size if contract.is_nft else exact.column(exact.of(held))})
