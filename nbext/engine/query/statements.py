"""Compile a question's shape once, and bind each question's values to it afterwards.

Why, and what a shape is: `nbext.engine.query.parameters`. The builders are called with a scalar parameter for each
value, the parameters are compiled as values that nobody writes, and those are the holes of the kept SQL: placeholders
where the engine binds values (DuckDB), literals written by sqlglot, which escapes them, where it does not.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import ibis
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql import compilers

from nbext.engine.dataset import (
    Build,
    Cancel,
    Order,
    QueryResult,
    Question,
    Tables,
    Value,
    WalletList,
    check_size,
)
from nbext.engine.query import series
from nbext.engine.query.amounts import LIMB_TYPE
from nbext.engine.query.parameters import LIST, type_of
from nbext.engine.query.rows import Rows, in_exact_order
from nbext.engine.query.series import Between, Each, Series, Uncovered
from nbext.engine.query.set_tree import (
    Leaf,
    Narrowed,
    Settled,
    Union,
    as_one_table,
    mapped,
    normal_form,
    replaced,
)
from nbext.engine.schema import TABLES

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from nbext.engine.layers import Layers

Kept = TypeVar("Kept")
MATCHED = "matched"
RETURNED = "returned"
WALLET = {"wallet": "int32"}
# The table of a list's wallets: this, and the number of the list among the values.
LISTED = "nbext_list_"
# Shapes are written by users, so their number must have an end; the least used goes first.
_KEPT = 512
# A pause between two turns at Ibis (seconds).
_BREATH = 0.0005
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
            lambda number, kind: sge.Cast(
                this=sge.Parameter(this=sge.Literal.number(places[number])), to=_type(kind)
            )
        )

    def lists(self, values: Sequence[Value]) -> dict[str, WalletList]:
        """Return the lists of wallets that the SQL reads, by the name of the table that it reads each from."""
        named = {name: values[int(name.removeprefix(LISTED))] for name in self._lists}
        return {name: value for name, value in named.items() if isinstance(value, WalletList)}

    def arguments(self, values: Sequence[Value]) -> list[Any]:
        """Return the values that the SQL has a place for: a builder need not use every one."""
        used = [values[number] for number in self._used]
        # A tuple would be a row to the engines; a list is an array.
        return [list(value) if isinstance(value, tuple) else value for value in used]

    def with_literals(self, values: Sequence[Value], *, pretty: bool = False) -> str:
        """Return the SQL with the values written into it. A list of wallets is a table, named by the list's id."""
        tables = {
            name: sg.to_identifier(one.id, quoted=True) for name, one in self.lists(values).items()
        }
        listed = [list(value) if isinstance(value, tuple) else value for value in values]
        return self._filled(
            lambda number, kind: sge.convert(listed[number]), pretty=pretty, tables=tables
        )

    @cached_property
    def _lists(self) -> list[str]:
        return sorted(
            {table.name for table in self.tree.find_all(sge.Table) if table.name.startswith(LISTED)}
        )

    @cached_property
    def _used(self) -> list[int]:
        # What a builder did not use has no hole: DuckDB refuses a parameter that the statement does not name.
        holes = (_hole(node) for node in self.tree.find_all(sge.Literal))
        return sorted({hole[0] for hole in holes if hole})

    def _filled(
        self,
        fill: Callable[[int, str], sge.Expr],
        *,
        pretty: bool = False,
        tables: Mapping[str, Any] | None = None,
    ) -> str:
        def visit(node: sge.Expr) -> sge.Expr:
            if isinstance(node, sge.Table) and tables and node.name in tables:
                return sge.Table(this=tables[node.name], alias=node.args.get("alias"))
            hole = _hole(node)
            if hole is None:
                return node
            filling = fill(*hole)
            # Some engines take a number of more than 64 bits only as text that is cast.
            as_text = (
                isinstance(node, sge.Literal)
                and node.is_string
                and not isinstance(filling, sge.Cast)
            )
            return sge.Literal.string(filling.sql()) if as_text and filling.is_number else filling

        return str(self.tree.transform(visit).sql(dialect=self.dialect, pretty=pretty))


@dataclass(frozen=True)
class ColumnStatements:
    """The statements of a returned column and its ``wallet``: whole, and of the wallets in `RETURNED` alone."""

    whole: Statement
    joined: Statement

    @property
    def field(self) -> pa.Field:
        """The column's name and type, as in an answer's rows before `answered`."""
        return self.whole.schema.field(-1)


class Statements:
    """The statements of one engine's dialect, kept by shape. Safe to use from several threads.

    ``layers``: where the tables are, if each is a base and a delta.
    """

    def __init__(self, dialect: str, layers: Layers | None = None) -> None:
        self._layers = layers
        self._compiler, self._is_spark = getattr(compilers, dialect).compiler, dialect == "pyspark"
        # The layout's tables as names only.
        self.tables: Tables = {
            name: ibis.table(columns, name=name) for name, columns in TABLES.items()
        }
        self._kept: OrderedDict[tuple[str, ...], Any] = OrderedDict()
        self._lock, self._compiling = threading.Lock(), threading.Lock()

    def returning(self, question: Question, cancel: Cancel | None = None) -> Statement:
        """Return the statement of the rows and ``matched`` beside each; its values end with the limit.

        The wallets are found once, counted, and cut, in one statement.
        """

        def compiled(holes: _Holes) -> Statement:
            scalars = holes.scalars[:-1]
            wallets = as_one_table(normal_form(question.wallets(self.tables, scalars)))
            matched = self._statement(wallets.select("wallet"), holes).tree
            returned = ibis.table(WALLET, name=RETURNED)
            columns = question.columns(self.tables, scalars)
            rows = self._statement(side_by_side(returned, self.tables["wallets"], columns), holes)
            found = sge.Table(this=sg.to_identifier(MATCHED, quoted=True))
            first = wallets_in_order(
                ibis.table(WALLET, name=MATCHED), question.order, self.tables, scalars
            )
            returned_first = self._statement(first.limit(holes.stand_ins[-1]), holes).tree
            ctes = [_named(MATCHED, matched), _named(RETURNED, returned_first), *rows.tree.ctes]
            tree = rows.tree.copy()
            tree.set("with_", sge.With(expressions=ctes))
            total = sg.select(sge.Count(this=sge.Star())).from_(found).subquery()
            tree.select(total.as_(MATCHED, quoted=True), copy=False)
            return Statement(tree, rows.dialect, rows.schema)

        return self._keep(("rows", question.shape), (*question.values, 0), compiled, cancel)

    def wallets(self, question: Question, cancel: Cancel | None = None) -> Settled[Statement]:
        """Return the question's wallets as sets to combine, each leaf a statement; their values are the question's.

        Where base and delta are best read apart, a leaf is a set of three.
        """

        def leaf(table: ir.Table, holes: _Holes) -> Settled[Statement]:
            apart = self._layers and self._layers.apart(self._tree(table, holes))
            if not apart:
                return Leaf(self._statement(table, holes))
            base, stale, delta = (Leaf(self._of(tree, table)) for tree in apart)
            return Union([Narrowed(base, (), (stale,)), delta], disjoint=True)

        def compiled(holes: _Holes) -> Settled[Statement]:
            with self._turn(holes):
                tree = normal_form(question.wallets(self.tables, holes.scalars))
            return replaced(tree, lambda table: leaf(table, holes))

        return self._keep(("wallets", question.shape), question.values, compiled, cancel)

    def series(self, asked: Series, cancel: Cancel | None = None) -> Settled[Statement] | None:
        """Return the wallets of a series as `wallets` does; None where it is not covered.

        The values end with its first and its last block.
        """

        def compiled(holes: _Holes) -> Settled[Statement]:
            with self._turn(holes):
                between = Between(*holes.scalars[-2:])
                tree = series.wallets(asked, self.tables, holes.scalars, between)
            return mapped(tree, lambda table: self._statement(table, holes))

        return self._of_series("series", asked, asked.ends, compiled, cancel)

    def series_column(self, asked: Series, cancel: Cancel | None = None) -> Statement | None:
        """Return the statement of the first returned column of a series; None where it is not covered."""

        def compiled(holes: _Holes) -> Statement:
            between = Between(*holes.scalars[-2:])
            column = series.first_column(asked, self.tables, holes.scalars, between)
            return self._statement(column, holes)

        return self._of_series("series column", asked, asked.ends, compiled, cancel)

    def series_by_point(
        self, asked: Series, *, amounts: bool, cancel: Cancel | None = None
    ) -> Statement | None:
        """Return the statement of a series as a row for each block that has wallets: ``point`` and ``matched``.

        With ``amounts`` also the limbs of the sum of the first returned column. The values end with the array of its
        blocks. None where it is not covered.
        """

        def compiled(holes: _Holes) -> Statement:
            each = Each(holes.scalars[-1])
            with self._turn(holes):
                counted = series.by_point(asked, self.tables, holes.scalars, each, amounts=amounts)
            return self._statement(counted, holes)

        name = f"series by point {amounts}"
        return self._of_series(name, asked, (asked.blocks,), compiled, cancel)

    def columns(self, question: Question, cancel: Cancel | None = None) -> list[ColumnStatements]:
        """Return the statements of each returned column."""

        def compiled(holes: _Holes) -> list[ColumnStatements]:
            returned = ibis.table(WALLET, name=RETURNED)
            return [
                ColumnStatements(
                    self._statement(column, holes),
                    self._statement(column.semi_join(returned, "wallet"), holes),
                )
                for column in question.columns(self.tables, holes.scalars)
            ]

        return self._keep(("columns", question.shape), question.values, compiled, cancel)

    def ranges(self, question: Question) -> list[Statement]:
        """Return the statement of each returned column of a range of wallets: its values end with both ends."""

        def compiled(holes: _Holes) -> list[Statement]:
            *scalars, first, last = holes.scalars
            return [
                self._statement(column.filter(column.wallet.between(first, last)), holes)
                for column in question.columns(self.tables, scalars)
            ]

        return self._keep(("ranges", question.shape), (*question.values, 0, 0), compiled)

    def sort_keys(self, question: Question) -> Statement:
        """Return the statement of ``wallet`` and the integer that orders the wallets, where a column does."""

        def build(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
            assert question.order is not None
            assert question.order.keys is not None
            keys = question.order.keys(tables, scalars)
            return keys.select("wallet", keys.columns[1])

        return self.reading(f"keys {question.shape}", build, question.values)

    def no_rows(self, question: Question) -> Rows:
        """Return the rows of an answer that matched nothing, or only counted."""
        import pyarrow as pa

        fields = [column.field for column in self.columns(question)]
        return stored_rows(pa.schema([("address", pa.string()), *fields]).empty_table(), question)

    def reading(
        self, name: str, build: Build, values: Sequence[Value] = (), cancel: Cancel | None = None
    ) -> Statement:
        """Return the statement of a table that the engine itself reads, kept under its name."""
        return self._keep(
            ("read", name),
            values,
            lambda holes: self._statement(build(self.tables, holes.scalars), holes),
            cancel,
        )

    def _keep(
        self,
        name: tuple[str, ...],
        values: Sequence[Value],
        compiled: Callable[[_Holes], Kept],
        cancel: Cancel | None = None,
    ) -> Kept:
        kinds = tuple(map(type_of, values))
        # The kinds too: values of one shape may be of 64 bits in one question and decimals in the next.
        key = (*name, *kinds)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                found: Kept = self._kept[key]
                return found
        # Not under that lock: 200 conditions of different shapes take half a minute, and look-ups do not wait for them.
        made = compiled(_Holes(kinds, cancel))
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return made

    @contextlib.contextmanager
    def _turn(self, holes: _Holes) -> Iterator[None]:
        """Take a turn at Ibis, which is not known to be safe in threads; end where the question was stopped."""
        holes.check()
        with self._compiling:
            yield
        # Who takes a lock again at once finds it free before those that wait wake up.
        time.sleep(_BREATH)

    def _of_series(
        self,
        name: str,
        asked: Series,
        more: tuple[Value, ...],
        compiled: Callable[[_Holes], Kept],
        cancel: Cancel | None,
    ) -> Kept | None:
        def covered(holes: _Holes) -> Kept | None:
            try:
                return compiled(holes)
            except Uncovered:
                return None

        key = (name, asked.question.shape, repr(asked.slots))
        return self._keep(key, (*asked.question.values, *more), covered, cancel)

    def _statement(self, table: ir.Table, holes: _Holes) -> Statement:
        tree = self._tree(table, holes)
        if self._is_spark:
            name_apart(tree)
        return self._of(self._layers.narrowed(tree) if self._layers else tree, table)

    def _tree(self, table: ir.Table, holes: _Holes) -> sge.Select:
        with self._turn(holes):
            tree: sge.Select = self._compiler.to_sqlglot(table, params=holes.params)
            return tree

    def _of(self, tree: sge.Select, table: ir.Table) -> Statement:
        return Statement(tree, self._compiler.dialect, _arrow_schema(table))


def name_apart(tree: sge.Select) -> None:
    """Give each query that is named below the top of a statement a name of its own.

    Ibis numbers the names of a subquery anew, and Spark's SQL is written with all of them at the top: there two queries
    of one name are refused.
    """
    numbers = itertools.count()
    # The innermost first: whatever bears the name after that, within the query that gives it, is what it names.
    below = [
        (found, found.parent)
        for found in tree.find_all(sge.With)
        if found.parent and found.parent is not tree
    ]
    for each, query in reversed(below):
        for named in each.expressions:
            before = named.alias
            after = sg.to_identifier(f"{before}_{next(numbers)}", quoted=True)
            for table in query.find_all(sge.Table):
                if table.name == before and not table.db:
                    if not table.alias:
                        table.set(
                            "alias", sge.TableAlias(this=sg.to_identifier(before, quoted=True))
                        )
                    table.set("this", after.copy())
            named.set("alias", sge.TableAlias(this=after))


def wallets_in_order(
    matched: ir.Table, order: Order | None, tables: Tables, scalars: Sequence[Any]
) -> ir.Table:
    """Build the matching wallets in the order of the rows."""
    if order is None or order.keys is None:
        return matched.order_by(
            ibis.desc("wallet") if order is not None and order.descending else "wallet"
        )
    keys = order.keys(tables, scalars)
    names = keys.columns[1:]
    placed = matched.left_join(keys, "wallet")
    if not order.missing_last:
        placed = placed.mutate(**{name: placed[name].fill_null(0) for name in names})
    # Engines differ in where null comes.
    by = [(ibis.desc if order.descending else ibis.asc)(name, nulls_first=False) for name in names]
    return placed.order_by([*by, "wallet"]).select("wallet")


def side_by_side(returned: ir.Table, wallets: ir.Table, columns: Sequence[ir.Table]) -> ir.Table:
    """Build the rows of the returned wallets: the address, and each column."""
    rows = wallets.select("wallet", "address").semi_join(returned, "wallet")
    for column in columns:
        name = column.columns[-1]
        # Of the few wallets returned only: else the engine would read the limbs of every holder.
        joined = rows.left_join(column.semi_join(returned, "wallet"), "wallet")
        rows = joined.select(*rows.columns, name)
    return rows.drop("wallet").order_by("address")


def answer(question: Question, returning: Statement, fetched: pa.Table) -> QueryResult:
    """Return what `Statements.returning` fetched as an answer, its rows in order: engines need not keep it."""
    matched = int(fetched[MATCHED][0].as_py()) if fetched.num_rows else 0
    check_size(fetched.num_rows, question, fetched.num_columns - 2)
    rows, by = (
        fetched.drop_columns([MATCHED]).cast(returning.schema),
        question.order or Order(None, descending=False),
    )
    column = "address" if by.column is None else rows.column_names[1 + by.column]
    rows = in_exact_order(rows, column, "address", descending=by.descending)
    return QueryResult(matched, stored_rows(rows, question))


def stored_rows(fetched: pa.Table, question: Question) -> Rows:
    """Return fetched rows as an answer's."""
    rows = Rows(
        fetched.num_rows,
        fetched.num_columns + len(question.floats),
        question.floats,
        question.sizes,
    )
    rows.add(fetched)
    return rows


class _Holes:
    """The scalar parameters of values of some kinds, and what stands in for each in the compiled SQL."""

    def __init__(self, kinds: Sequence[str], cancel: Cancel | None = None) -> None:
        self.check = cancel.check if cancel else lambda: None
        self.stand_ins = [_stand_in(number, kind) for number, kind in enumerate(kinds)]
        self.scalars: list[Any] = [
            ibis.table(WALLET, name=f"{LISTED}{number}") if kind == LIST else ibis.param(kind)
            for number, kind in enumerate(kinds)
        ]
        both = zip(self.scalars, self.stand_ins, kinds, strict=True)
        self.params = {scalar: stand_in for scalar, stand_in, kind in both if kind != LIST}


def _stand_in(number: int, kind: str) -> Any:
    if kind.startswith("array<"):
        return [_stand_in(number, kind[6:-1])]
    return {"string": f"{_TEXT_HOLE}{number}", "int64": _INTEGER_HOLE + number}.get(
        kind, Decimal(_LIMB_HOLE + number)
    )


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
    return pa.schema(
        [f.with_type(pa.int64()) if pa.types.is_integer(f.type) else f for f in schema]
    )
