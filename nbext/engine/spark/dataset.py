"""A dataset whose tables Spark reads: the statements of a question run as one group of jobs."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import duckdb

from nbext.engine.dataset import Cancel, ended
from nbext.engine.layers import attach, ranks_of
from nbext.engine.query.answers import CHUNK, Dataset, Engine
from nbext.engine.storage import DUCKDB, about
from nbext.errors import QueryCancelled

if TYPE_CHECKING:
    import pyarrow as pa

    from nbext.engine.query.set_tree import Sql
    from nbext.engine.spark.session import Spark
    from nbext.engine.storage import Generation

Result = TypeVar("Result")
# Each waits for the cluster, not for this machine; more would only queue there.
_QUESTIONS_AT_ONCE = 8
# Statements of all questions. One after the other, three conditions of a few rows take 2.5 times as long.
_STATEMENTS_AT_ONCE = 16
# Statements of one question: each may have some megabytes of wallets.
_AHEAD = 8


class SparkDataset(Dataset):
    """One generation on Spark. Safe to use from several threads; connects at the first question."""

    def __init__(self, generation: Generation, spark: Spark) -> None:
        super().__init__(about(generation, "pyspark"))
        if generation.delta is not None:
            with duckdb.connect(":memory:", config={**DUCKDB}) as connection:
                attach(connection.execute, generation, "generation")
                self.ranks = ranks_of(connection.execute, "generation")
        self._spark = spark
        self._workers = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, thread_name_prefix="nbext-question")
        # Others than those of the questions, which wait for them.
        self._statements = ThreadPoolExecutor(
            _STATEMENTS_AT_ONCE, thread_name_prefix="nbext-statement"
        )

    def do(self, task: Callable[[Engine], Result], cancel: Cancel | None) -> Result:
        """Do work that may run several statements; however it ends, all jobs of it end with it."""
        # A name of its own: stopping one question must not stop another that asks the same.
        jobs = _Jobs(self._spark, f"nbext-{uuid.uuid4().hex}", self._statements)
        running = self._workers.submit(task, jobs)
        try:
            stopped = ended(running, cancel)
        finally:
            if jobs.begun or not running.done():
                jobs.stop()
        if stopped is not None:
            raise stopped
        return running.result()

    def close(self) -> None:
        """End the connection."""
        self._workers.shutdown(wait=True)
        self._statements.shutdown(wait=True)
        self._spark.close()


class _Jobs:
    """Runs the statements of one question, as jobs of one group; ``begun`` may run, and nobody waits for them yet."""

    def __init__(self, spark: Spark, job: str, statements: Executor) -> None:
        self._spark, self._job, self._statements = spark, job, statements
        self._waiting: dict[str, Sql] = {}
        self.begun: dict[str, Future[pa.Table]] = {}
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End what runs, and let nothing begin."""
        self._stopped.set()
        self._spark.stop(self._job)

    def ahead(self, statements: Sequence[Sql]) -> None:
        """Begin statements that `fetch` then waits for, so many at a time as may wait in memory."""
        self._waiting |= {repr(sql): sql for sql in statements}
        self._begin()

    def _begin(self) -> None:
        while self._waiting and len(self.begun) < _AHEAD:
            name = next(iter(self._waiting))
            self.begun[name] = self._statements.submit(self._run, self._waiting.pop(name))

    def fetch(self, sql: Sql) -> pa.Table:
        """Return all rows of a statement."""
        name = repr(sql)
        self._waiting.pop(name, None)
        begun = self.begun.pop(name, None)
        self._begin()
        return self._run(sql) if begun is None else begun.result()

    def batches(self, sql: Sql) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a statement, about `CHUNK` at a time."""
        yield from self.fetch(sql).to_batches(CHUNK)

    def plan(self, sql: Sql) -> str:
        """Return Spark's plan of a statement."""
        return str(self._run(replace(sql, text=f"EXPLAIN {sql.text}")).column(0)[0])

    def _run(self, sql: Sql) -> pa.Table:
        if self._stopped.is_set():
            raise QueryCancelled("The segment was cancelled.")
        return self._spark.fetch(sql, self._job)
