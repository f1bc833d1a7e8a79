"""A dataset whose tables Spark reads: each question is one SQL statement, sent as text."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from nbext.engine.catalog import TableCatalog, TableClock
from nbext.engine.dataset import (
    Build,
    Cancel,
    Catalog,
    Clock,
    Common,
    QueryResult,
    Question,
    Tables,
    Value,
    cut,
    ended,
)
from nbext.engine.holdings import (
    build_profile,
    build_total,
    in_common,
    members_of,
    profile_values,
    sum_of,
)
from nbext.engine.query.parameters import inline, intersection
from nbext.engine.query.series import POINT, series_of
from nbext.engine.query.statements import (
    MATCHED,
    Statement,
    Statements,
    answer,
)
from nbext.engine.storage import about

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from nbext.engine.spark.session import Spark
    from nbext.engine.storage import Generation

# What Ibis calls Spark's dialect, and the service the engine.
_ENGINE = "pyspark"
# Each waits for the cluster, not for this machine; more would only queue there.
_QUESTIONS_AT_ONCE = 8
# A list of wallets is text in the statement: 10,000 addresses are 450 KB.
_LONGEST_LIST = 10_000


class SparkDataset:
    """One generation on Spark. Safe to use from several threads; connects at the first question."""

    longest_list: int | None = _LONGEST_LIST

    def __init__(self, generation: Generation, spark: Spark) -> None:
        self.about = about(generation, _ENGINE)
        self._spark = spark
        self._statements = Statements(_ENGINE)
        self._workers = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, thread_name_prefix="nbext-question")
        self.catalog: Catalog = TableCatalog(self.read)
        self.clock: Clock = TableClock(self.read, self.about.chains)

    def ask(self, question: Question, *, limit: int, cancel: Cancel | None = None) -> QueryResult:
        """Answer a question; see `nbext.engine.dataset.Dataset.ask`."""
        question = inline(question)
        returning = self._statements.returning(question, cancel)
        if limit == 0:
            return QueryResult(self._matched(question, cancel), self._statements.no_rows(question))
        return answer(question, returning, self._run(returning, (*question.values, limit), cancel))

    def count(
        self,
        questions: Sequence[Question],
        together: Sequence[Sequence[int]],
        *,
        cancel: Cancel | None = None,
    ) -> list[int]:
        """Count with one statement each, or one for many blocks; see `nbext.engine.dataset.Dataset.count`."""
        asked = [
            intersection([inline(questions[place]) for place in places]) for places in together
        ]
        found = self._series(asked, cancel, amounts=False)
        return [
            found[place][0] if place in found else self._matched(question, cancel)
            for place, question in enumerate(asked)
        ]

    def _series(
        self, questions: Sequence[Question], cancel: Cancel | None, *, amounts: bool
    ) -> dict[int, tuple[int, int]]:
        """Return how many wallets match, and the sum of the first column, of questions that differ in their block."""
        found: dict[int, tuple[int, int]] = {}
        for asked in series_of(questions):
            statement = self._statements.series_by_point(asked, amounts=amounts, cancel=cancel)
            if statement is None:
                continue
            rows = self._run(statement, (*asked.question.values, asked.blocks), cancel).to_pylist()
            points = {
                row[POINT]: (int(row[MATCHED]), sum_of(row) if amounts else 0) for row in rows
            }
            for block, places in zip(asked.blocks, asked.places, strict=True):
                found |= dict.fromkeys(places, points.get(block, (0, 0)))
        return found

    def _matched(self, question: Question, cancel: Cancel | None) -> int:
        def build(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
            wallets = members_of(question)(tables, scalars)
            return wallets.agg(**{MATCHED: wallets.count()})

        counted = self.read(f"count {question.shape}", build, question.values, cancel)
        return int(counted[MATCHED][0].as_py())

    def totals(
        self, questions: Sequence[Question], *, cancel: Cancel | None = None
    ) -> list[tuple[int, int]]:
        """Add up the first columns; see `nbext.engine.dataset.Dataset.totals`."""
        inlined = [inline(question) for question in questions]
        found = self._series(inlined, cancel, amounts=True)
        return [
            found[place] if place in found else self._total(question, cancel)
            for place, question in enumerate(inlined)
        ]

    def _total(self, question: Question, cancel: Cancel | None) -> tuple[int, int]:
        build = build_total(question, members_of(question))
        found = self.read(f"total {question.shape}", build, question.values, cancel)
        (row,) = found.to_pylist()
        return self._matched(question, cancel), sum_of(row)

    def profile(
        self,
        segment: Question,
        base: Question,
        ends: Mapping[int, int],
        *,
        now: bool,
        least: int,
        cancel: Cancel | None = None,
    ) -> list[Common]:
        """Count the holders of each contract in one statement; see `nbext.engine.dataset.Dataset.profile`."""
        segment, base = inline(segment), inline(base)
        build = build_profile(
            members_of(segment), members_of(base), len(ends), len(segment.values), now=now
        )
        name = f"profile {len(ends)} {now} {segment.shape} {base.shape}"
        found = self.read(name, build, profile_values(ends, least, segment, base), cancel)
        return in_common(found, self)

    def explain(
        self, question: Question, *, limit: int, cancel: Cancel | None = None
    ) -> Mapping[str, Any]:
        """Return the SQL with its values written in, and the engine's plan of it; see `Dataset.explain`."""
        question = inline(question)
        statement, values = self._statements.returning(question, cancel), (*question.values, limit)
        plan = self._spark.plan(statement.with_literals(values))
        if cancel:
            cancel.check()
        return {"sql": cut(statement.with_literals(values, pretty=True)), "plan": cut(plan)}

    def close(self) -> None:
        """End the connection."""
        self._workers.shutdown(wait=True)
        self._spark.close()

    def read(
        self, name: str, build: Build, values: Sequence[Value] = (), cancel: Cancel | None = None
    ) -> pa.Table:
        """Read a table that is built of the data's; see `nbext.engine.dataset.Dataset.read`."""
        return self._run(self._statements.reading(name, build, values, cancel), values, cancel)

    def _run(
        self, statement: Statement, values: Sequence[Value], cancel: Cancel | None
    ) -> pa.Table:
        # A name of its own for each statement: stopping one must not stop another of the same text.
        job = f"nbext-{uuid.uuid4().hex}"
        running = self._workers.submit(self._spark.fetch, statement.with_literals(values), job)
        try:
            stopped = ended(running, cancel)
        finally:
            if not running.done():
                self._spark.stop(job)
        if stopped is not None:
            raise stopped
        return running.result()
