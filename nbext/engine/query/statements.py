"""Compile a question's shape once, and bind each question's values to it afterwards.

Why, and what a shape is: `nbext.engine.query.parameters`. The builders are called with a scalar parameter for each
value, the parameters are compiled as values that nobody writes, and those are the holes of the kept SQL: placeholders
where the engine binds values (DuckDB), literals written by sqlglot, which escapes them, where it does not.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import ibis
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql import compilers

from nbext.engine.dataset import Answer, Question, Tables, Value
from nbext.engine.query.exact import LIMB_TYPE, as_text
from nbext.engine.query.parameters import type_of
from nbext.engine.query.set_tree import Settled, joined, mapped, settled
from nbext.engine.schema import TABLES

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

Kept = TypeVar("Kept")
Build = Callable[[Tables, Sequence[Any]], "ir.Table"]
MATCHED = "matched"
RETURNED = "returned"
WALLET = {"wallet": "int32"}
# Shapes are written by users, so their number must have an end; the least used goes first.
_KEPT = 512
# What stands in for the value number n: no block, limb or address looks like one of these.
_INTEGER_HOLE = 9_000_000_000_000_000_000
_LIMB_HOLE = 10**28
_TEXT_HOLE = "nbext-hole-"


@dataclass(frozen=True)
class Statement:
    """One shape as SQL with holes, and the schema of its rows (``matched`` not counted)."""

    tree: sge.Select
    dialect: Any
    schema: pa.Schema

    @cached_property
    def prepared(self) -> str:
        """The SQL with ``$1``, ``$2``, ... for its `arguments`."""
        places = {number: place for place, number in enumerate(self._used, 1)}
        return self._filled(
            lambda number, kind: sge.Cast(this=sge.Parameter(this=sge.Literal.number(places[number])), to=_type(kind))
        )

    def arguments(self, values: Sequence[Value]) -> list[Any]:
        """Return the values that the SQL has a place for: a builder need not use every one."""
        used = [values[number] for number in self._used]
        # A tuple would be a row to the engines; a list is an array.
        return [list(value) if isinstance(value, tuple) else value for value in used]

    def with_literals(self, values: Sequence[Value], *, pretty: bool = False) -> str:
        """Return the SQL with the values written into it."""
        listed = [list(value) if isinstance(value, tuple) else value for value in values]
        return self._filled(lambda number, kind: sge.convert(listed[number]), pretty=pretty)

    def finished(self, fetched: pa.Table) -> pa.Table:
        """Return fetched rows as an answer's: amounts as digits, integers of 64 bits."""
        return as_text(fetched.cast(self.schema))

    @cached_property
    def _used(self) -> list[int]:
        # What a builder did not use has no hole: DuckDB refuses a parameter that the statement does not name.
        holes = (_hole(node) for node in self.tree.find_all(sge.Literal))
        return sorted({hole[0] for hole in holes if hole})

    def _filled(self, fill: Callable[[int, str], sge.Expr], *, pretty: bool = False) -> str:
        def visit(node: sge.Expr) -> sge.Expr:
            hole = _hole(node)
            if hole is None:
                return node
            filling = fill(*hole)
            # Some engines take a number of more than 64 bits only as text that is cast.
            as_text = isinstance(node, sge.Literal) and node.is_string and not isinstance(filling, sge.Cast)
            return sge.Literal.string(filling.sql()) if as_text and filling.is_number else filling

        return str(self.tree.transform(visit).sql(dialect=self.dialect, pretty=pretty))


@dataclass(frozen=True)
class Column:
    """The statements of a returned column and its ``wallet``: whole, and of the wallets in `RETURNED` alone."""

    whole: Statement
    joined: Statement

    @property
    def field(self) -> pa.Field:
        """The column's name and type, as in an answer's rows before `as_text`."""
        return self.whole.schema.field(-1)


class Statements:
    """The statements of one engine's dialect, kept by shape. Safe to use from several threads."""

    def __init__(self, dialect: str, tables: Tables | None = None) -> None:
        self._compiler = getattr(compilers, dialect).compiler
        self.tables: Tables = tables or unbound_tables()
        self._kept: OrderedDict[tuple[str, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def counting(self, question: Question) -> Statement:
        """Return the statement of one row, ``matched``; its values are the question's."""
        return self._keep(("count", question.shape), question.values, lambda holes: self._count(question, holes))

    def returning(self, question: Question) -> Statement:
        """Return the statement of the rows and ``matched`` beside each; its values end with the limit."""
        values = (*question.values, 0)
        return self._keep(("rows", question.shape), values, lambda holes: self._rows(question, holes))

    def wallets(self, question: Question) -> Settled[Statement]:
        """Return the question's wallets as sets to combine, each leaf a statement; their values are the question's."""
        return self._keep(("wallets", question.shape), question.values, lambda holes: self._wallets(question, holes))

    def columns(self, question: Question) -> list[Column]:
        """Return the statements of each returned column."""
        return self._keep(("columns", question.shape), question.values, lambda holes: self._columns(question, holes))

    def no_rows(self, question: Question) -> pa.Table:
        """Return the rows of an answer that matched nothing, or only counted."""
        import pyarrow as pa

        fields = [column.field for column in self.columns(question)]
        return as_text(pa.schema([("address", pa.string()), *fields]).empty_table())

    def reading(self, name: str, build: Build, values: Sequence[Value] = ()) -> Statement:
        """Return the statement of a table that the engine itself reads, kept under its name."""
        return self._keep(
            ("read", name), values, lambda holes: self._statement(build(self.tables, holes.scalars), holes)
        )

    def _keep(self, name: tuple[str, ...], values: Sequence[Value], compiled: Callable[[_Holes], Kept]) -> Kept:
        kinds = tuple(map(type_of, values))
        # The kinds too: values of one shape may be of 64 bits in one question and decimals in the next.
        key = (*name, *kinds)
        # Compiled under the lock: Ibis is not known to be safe in threads, and two would compile the same shape twice.
        with self._lock:
            if key not in self._kept:
                self._kept[key] = compiled(_Holes(kinds))
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            kept: Kept = self._kept[key]
            return kept

    def _wallets(self, question: Question, holes: _Holes) -> Settled[Statement]:
        tree = settled(question.wallets(self.tables, holes.scalars))
        return mapped(tree, lambda table: self._statement(table, holes))

    def _columns(self, question: Question, holes: _Holes) -> list[Column]:
        returned = ibis.table(WALLET, name=RETURNED)
        return [
            Column(self._statement(column, holes), self._statement(column.semi_join(returned, "wallet"), holes))
            for column in question.columns(self.tables, holes.scalars)
        ]

    def _count(self, question: Question, holes: _Holes) -> Statement:
        wallets = joined(settled(question.wallets(self.tables, holes.scalars)))
        return self._statement(wallets.agg(**{MATCHED: wallets.count()}), holes)

    def _rows(self, question: Question, holes: _Holes) -> Statement:
        """Join the two halves so that the wallets are found once, counted, and cut, in one statement."""
        scalars = holes.scalars[:-1]
        wallets = joined(settled(question.wallets(self.tables, scalars)))
        matched = self._statement(wallets.select("wallet"), holes).tree
        returned = ibis.table(WALLET, name=RETURNED)
        columns = question.columns(self.tables, scalars)
        rows = self._statement(side_by_side(returned, self.tables["wallets"], columns), holes)
        wallet, found = sg.column("wallet", quoted=True), sge.Table(this=sg.to_identifier(MATCHED, quoted=True))
        first = sg.select(wallet).from_(found).order_by(wallet).limit(sge.convert(holes.stand_ins[-1]))
        ctes = [_named(MATCHED, matched), _named(RETURNED, first), *rows.tree.ctes]
        tree = rows.tree.copy()
        tree.set("with_", sge.With(expressions=ctes))
        total = sg.select(sge.Count(this=sge.Star())).from_(found).subquery()
        tree.select(total.as_(MATCHED, quoted=True), copy=False)
        return Statement(tree, rows.dialect, rows.schema)

    def _statement(self, table: ir.Table, holes: _Holes) -> Statement:
        tree = self._compiler.to_sqlglot(table, params=dict(zip(holes.scalars, holes.stand_ins, strict=True)))
        return Statement(tree, self._compiler.dialect, _arrow_schema(table))


def side_by_side(returned: ir.Table, wallets: ir.Table, columns: Sequence[ir.Table]) -> ir.Table:
    """Build the rows of the returned wallets: the address, and each column."""
    rows = wallets.select("wallet", "address").semi_join(returned, "wallet")
    for column in columns:
        name = column.columns[-1]
        # Of the few wallets returned only: else the engine would read the limbs of every holder.
        joined = rows.left_join(column.semi_join(returned, "wallet"), "wallet")
        rows = joined.select(*rows.columns, name)
    return rows.drop("wallet").order_by("address")


def answer(returning: Statement, fetched: pa.Table) -> Answer:
    """Return what `Statements.returning` fetched as an answer."""
    matched = int(fetched[MATCHED][0].as_py()) if fetched.num_rows else 0
    return Answer(matched, returning.finished(fetched.drop_columns([MATCHED])))


class _Holes:
    """The scalar parameters of values of some kinds, and what stands in for each in the compiled SQL."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.stand_ins = [_stand_in(number, kind) for number, kind in enumerate(kinds)]
        self.scalars: list[ir.Scalar] = [ibis.param(kind) for kind in kinds]


def unbound_tables(**where: str) -> Mapping[str, ir.Table]:
    """Return the layout's tables as names only; ``where`` may give their catalog and database."""
    return {name: ibis.table(columns, name=name, **where) for name, columns in TABLES.items()}


def _stand_in(number: int, kind: str) -> Any:
    if kind.startswith("array<"):
        return [_stand_in(number, kind[6:-1])]
    return {"string": f"{_TEXT_HOLE}{number}", "int64": _INTEGER_HOLE + number}.get(kind, Decimal(_LIMB_HOLE + number))


def _hole(node: sge.Expr) -> tuple[int, str] | None:
    """Return the number and kind of the value that the node stands in for, if it does."""
    if isinstance(node, sge.Array) and len(node.expressions) == 1:
        # The items of a list of limbs are wrapped in casts.
        item = _hole(node.expressions[0].unalias().find(sge.Literal) or node.expressions[0])
        return (item[0], f"array<{item[1]}>") if item else None
    if not isinstance(node, sge.Literal):
        return None
    text = str(node.this)
    if text.startswith(_TEXT_HOLE):
        return int(text[len(_TEXT_HOLE) :]), "string"
    for start, kind in ((_INTEGER_HOLE, "int64"), (_LIMB_HOLE, LIMB_TYPE)):
        if text.isdigit() and start <= int(text) < start + 10**9:
            return int(text) - start, kind
    return None


def _named(name: str, query: sge.Query) -> sge.CTE:
    return sge.CTE(alias=sge.TableAlias(this=sg.to_identifier(name, quoted=True)), this=query)


def _type(kind: str) -> sge.DataType:
    inner = kind.removeprefix("array<").removesuffix(">")
    name = {"string": "VARCHAR", "int64": "BIGINT"}.get(inner, "DECIMAL(38, 0)")
    return sge.DataType.build(f"{name}[]" if inner != kind else name, dialect="duckdb")


def _arrow_schema(table: ir.Table) -> pa.Schema:
    """Return the rows' schema with every integer as int64, the one width that answers use."""
    import pyarrow as pa

    schema = table.schema().to_pyarrow()
    return pa.schema([f.with_type(pa.int64()) if pa.types.is_integer(f.type) else f for f in schema])
