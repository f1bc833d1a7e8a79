"""The stage of a run on a cluster: tables of Spark, and the statements of `nbext.engine.ingest.derive` in its dialect.

A statement is written once, for DuckDB. Here it is read by sqlglot; what Spark writes in another way is exchanged, and
the rows of each table that it creates or adds to are written as Parquet below the run's folder. Nothing comes to the
driver but what `rows` and `value` return: counts, and a few rows.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import sqlglot
import sqlglot.expressions as sge

from nbext.engine.ingest.derive.rows import DECIMAL
from nbext.engine.schema import TABLES

# The tables of the layout, as they are named here.
_OUT = "out_"
# How DuckDB packs a column means nothing elsewhere.
_PACKED = re.compile(r" USING COMPRESSION \w+")


class SparkStage:
    """One run's tables on Spark, as `nbext.engine.ingest.stage.Stage` has them on DuckDB: built anew, without a past.

    A table that is one of the layout is written below ``target``, all others below ``work``.
    """

    previous = None
    appending = False
    first = 1
    now = "out.main"
    # What one task of Python holds at once: some 0.3 GB.
    bucket_rows = 1 << 19

    def __init__(self, session: Any, target: str, work: str) -> None:
        self.session, self._target, self._work = session, target, work
        self._frames: dict[str, Any] = {}
        self._numbers = itertools.count()

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run one statement that creates or fills a table, or leaves rows of one out from then on."""
        tree = _parsed(sql, values)
        if isinstance(tree, sge.Create):
            self._create(tree)
        elif isinstance(tree, sge.Insert):
            self._insert(tree)
        else:
            self._delete(tree)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query: few."""
        return [tuple(row) for row in self.session.sql(translated(_parsed(sql, values))).collect()]

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Return the first column of a query's only row."""
        found = self.rows(sql, values)
        return found[0][0] if found else None

    def insert(self, table: str, arriving: pa.Table) -> None:
        """Add the rows of an Arrow table: facts about contracts that nbext itself has."""
        self.save(table, self.session.createDataFrame(arriving))

    def drop(self, *tables: str) -> None:
        """Forget tables; what they take is given back with the run's folder."""
        for table in tables:
            self._frames.pop(table, None)
            self.session.catalog.dropTempView(table)

    def save(self, table: str, rows: Any) -> None:
        """Create a table of the rows of a DataFrame, or add them to it."""
        before = self._frames.get(table)
        columns = dict((rows if before is None else before).dtypes)
        rows = rows.toDF(*columns)
        layout = TABLES.get(table.removeprefix(_OUT)) if table.startswith(_OUT) else None
        kept = rows.select(
            *(
                rows[name].cast(kind).alias(name)
                for name, kind in columns.items()
                if layout is None or name in layout
            )
        )
        path = (
            f"{self._target}/{table.removeprefix(_OUT)}.parquet"
            if layout
            else f"{self._work}/{table}/{next(self._numbers)}"
        )
        kept.write.parquet(path)
        written = self.session.read.schema(kept.schema).parquet(path)
        self._show(table, written if before is None or layout else before.union(written))

    def _show(self, table: str, rows: Any) -> None:
        self._frames[table] = rows
        rows.createOrReplaceTempView(table)

    def _create(self, tree: sge.Create) -> None:
        if tree.kind == "SCHEMA":
            return
        table = _target(tree)
        self.drop(table)
        if tree.kind == "VIEW":
            self._query(tree.expression).createOrReplaceTempView(table)
        elif tree.expression is not None:
            # Only what is served is sorted: to sort rows, Spark works them out twice.
            tree.expression.set("order", None)
            self.save(table, self._query(tree.expression))
        else:
            nothing = ", ".join(
                f"CAST(NULL AS {one.kind.sql(dialect='spark')}) AS `{one.name}`"
                for one in tree.this.expressions
            )
            # As a query: Spark knows that it is empty. Of a frame without rows it expects many, and broadcasts none.
            self._show(table, self.session.sql(f"SELECT {nothing} WHERE false"))

    def _insert(self, tree: sge.Insert) -> None:
        table, rows = _target(tree), self._query(tree.expression)
        if isinstance(tree.this, sge.Schema):
            given = [one.name for one in tree.this.expressions]
            rows = rows.toDF(*given).selectExpr(
                *(
                    f"`{name}`" if name in given else f"NULL AS `{name}`"
                    for name in self._frames[table].columns
                )
            )
        self.save(table, rows)

    def _delete(self, tree: sge.Delete) -> None:
        table, gone = _target(tree), translated(tree.args["where"].this)
        kept = self.session.sql(f"SELECT * FROM {table} WHERE NOT coalesce({gone}, false)")
        self._show(table, kept)

    def _query(self, tree: sge.Expr) -> Any:
        return self.session.sql(translated(tree))


def translated(tree: sge.Expr) -> str:
    """Return a query of DuckDB's as Spark's SQL."""
    tree = tree.copy()
    # From the leaves up: what is exchanged holds parts that are exchanged already.
    for node in reversed(list(tree.walk())):
        new = _exchanged(node)
        if new is not node:
            node.replace(new)
    return str(tree.sql(dialect="spark"))


def _parsed(sql: str, values: Sequence[Any]) -> Any:
    given = iter(values)
    tree = sqlglot.parse_one(_PACKED.sub("", sql), dialect="duckdb")
    return tree.transform(
        lambda node: sge.convert(next(given)) if isinstance(node, sge.Placeholder) else node
    )


def _target(tree: sge.Create | sge.Insert | sge.Delete) -> str:
    table = tree.this.this if isinstance(tree.this, sge.Schema) else tree.this
    assert isinstance(table, sge.Table)
    return _name(table)


def _name(table: sge.Table) -> str:
    """Return the one name that a table has on Spark: ``out.main.blocks`` and ``out.blocks`` are ``out_blocks``."""
    return "_".join(part.name for part in table.parts if part.name != "main")


def _exchanged(node: sge.Expr) -> sge.Expr:
    """Return what Spark writes in the place of a part of DuckDB's SQL."""
    if isinstance(node, sge.Try):
        node = node.this  # bytes that cannot be read are NULL there anyway
    if isinstance(node, sge.Table) and len(node.parts) > 1:
        name = _name(node)
        for part in ("db", "catalog"):
            node.set(part, None)
        node.set("this", sge.to_identifier(name))
    if isinstance(node, sge.Cast) and node.is_type(sge.DataType.Type.UUID):
        # Half of a hash, as its bytes.
        return node.this if isinstance(node.this, sge.Unhex) else sge.Unhex(this=node.this)
    if isinstance(node, sge.DataType) and node.this is sge.DataType.Type.INT128:
        return sge.DataType.build(DECIMAL)
    if isinstance(node, sge.First) and isinstance(node.this, sge.Order):
        return _first(node.this)
    if isinstance(node, sge.RegexpFullMatch):
        return sge.RegexpLike(
            this=node.this, expression=sge.Literal.string(f"^(?:{node.expression.this})\\z")
        )
    if isinstance(node, sge.Anonymous) and node.name.lower() == "list_position":
        return sge.Anonymous(this="array_position", expressions=node.expressions)
    return node


def _first(ordered: sge.Order) -> sge.Expr:
    """Return the SQL of the first of ordered values: the one of the least key. Nulls come last, as DuckDB has them."""
    keys = []
    for key in ordered.expressions:
        value = sge.Neg(this=sge.paren(key.this)) if key.args.get("desc") else key.this
        keys += [sge.Is(this=key.this.copy(), expression=sge.null()), value]
    return sge.func("min_by", ordered.this, sge.func("struct", *keys))
