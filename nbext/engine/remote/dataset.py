"""A dataset whose tables lie in an engine elsewhere: each question is one SQL statement, sent as text."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from nbext.engine.catalog import TableCatalog, TableClock
from nbext.engine.dataset import Answer, Cancel, Catalog, Clock, Question, Value, ended
from nbext.engine.query.statements import MATCHED, Build, Statement, Statements, answer, unbound_tables
from nbext.engine.storage import about

if TYPE_CHECKING:
    import pyarrow as pa

    from nbext.engine.storage import Generation

# Each waits for the engine elsewhere, not for this machine; more would only queue there.
_QUESTIONS_AT_ONCE = 8


class Backend(Protocol):
    """One engine elsewhere."""

    @property
    def name(self) -> str:
        """What the service calls it, and Ibis its dialect."""

    @property
    def where(self) -> Mapping[str, str]:
        """The catalog and database of the tables, where a statement has to name them."""

    def fetch(self, sql: str, job: str) -> pa.Table:
        """Run a statement to its end; ``job`` names it for `stop`. Connects when it is first asked."""

    def stop(self, job: str) -> None:
        """End a running statement, where the engine can."""

    def plan(self, sql: str) -> str:
        """Return the engine's plan of a statement."""

    def close(self) -> None:
        """End the connection."""


class RemoteDataset:
    """One generation on an engine elsewhere. Safe to use from several threads; connects at the first question."""

    def __init__(self, generation: Generation, backend: Backend) -> None:
        self.about = about(generation, backend.name)
        self._backend = backend
        self._statements = Statements(backend.name, unbound_tables(**backend.where))
        self._workers = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, thread_name_prefix="nbext-question")
        self.catalog: Catalog = TableCatalog(self._read)
        self.clock: Clock = TableClock(self._read, self.about.chains)

    def ask(self, question: Question, *, limit: int, cancel: Cancel | None = None) -> Answer:
        """Answer a question; see `nbext.engine.dataset.Dataset.ask`."""
        returning = self._statements.returning(question)
        if limit == 0:
            counted = self._run(self._statements.counting(question), question.values, cancel)
            return Answer(int(counted[MATCHED][0].as_py()), self._statements.no_rows(question))
        found = answer(returning, self._run(returning, (*question.values, limit), cancel))
        # What collects the parts of an answer need not keep their order.
        return Answer(found.matched, found.rows.sort_by("address"))

    def explain(self, question: Question, *, limit: int) -> Mapping[str, Any]:
        """Return the SQL with its values written in, and the engine's plan of it."""
        statement, values = self._statements.returning(question), (*question.values, limit)
        plan = self._backend.plan(statement.with_literals(values))
        return {"sql": statement.with_literals(values, pretty=True), "plan": plan}

    def close(self) -> None:
        """End the connection."""
        self._workers.shutdown(wait=True)
        self._backend.close()

    def _read(self, name: str, build: Build, values: Sequence[Value] = ()) -> pa.Table:
        return self._run(self._statements.reading(name, build, values), values, None)

    def _run(self, statement: Statement, values: Sequence[Value], cancel: Cancel | None) -> pa.Table:
        # A name of its own for each statement: stopping one must not stop another of the same text.
        job = f"nbext-{uuid.uuid4().hex}"
        running = self._workers.submit(self._backend.fetch, statement.with_literals(values), job)
        try:
            stopped = ended(running, cancel)
        finally:
            if not running.done():
                self._backend.stop(job)
        if stopped is not None:
            raise stopped
        return running.result()

