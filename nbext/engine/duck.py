"""A dataset on DuckDB: one generation, opened read-only and locked down, a cursor for each question."""

from __future__ import annotations

import os
import tempfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import ibis
import pyarrow as pa

from nbext.engine.about import about
from nbext.engine.addresses import Addresses
from nbext.engine.catalog import TableCatalog
from nbext.engine.clock import TableClock
from nbext.engine.dataset import Answer, Cancel, Catalog, Clock, Question, Tables, Value
from nbext.engine.sets import combined, first_of
from nbext.engine.shape import RETURNED, Build, Shapes, Statement
from nbext.engine.waiting import TICK, ended
from nbext.errors import NbextError, ResourceLimit, SegmentFailed, StorageError

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.generation import Generation
    from nbext.engine.sets import Wallets

# With the libraries, the addresses' file and the wallets under way, a service stays below 1.5 GB.
MEMORY = "640MB"
_SPILL = "4GB"
_QUESTIONS_AT_ONCE = 16
# Fewer addresses than this are looked up in their table as fast as in a file of their own.
_MANY_WALLETS = 100_000
_BATCH = 100_000


class DuckDataset:
    """One generation on DuckDB. Safe to use from several threads.

    Parameters
    ----------
    generation
        The generation; its file is opened read-only, and nothing else can be reached through it.
    memory
        How much DuckDB may hold, for all questions together; beyond it a question spills, then fails.
    threads
        How many cores a question may use.
    """

    def __init__(self, generation: Generation, *, memory: str = MEMORY, threads: int | None = None) -> None:
        self.about = about(generation, "duckdb")
        self._memory = memory
        self._connection = _locked_down(generation, memory, threads or os.cpu_count() or 1)
        self._workers = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, thread_name_prefix="nbext-question")
        self._shapes = Shapes("duckdb")
        self._closing = threading.Event()
        self._addresses = Addresses(generation.folder)
        self.catalog: Catalog = TableCatalog(self._read)
        self.clock: Clock = TableClock(self._read, self.about.chains)
        self._preparing = self._workers.submit(self._prepare)

    def ask(self, question: Question, *, limit: int, cancel: Cancel | None = None) -> Answer:
        """Answer a question; see `nbext.engine.dataset.Dataset.ask`."""
        naming, values = self._shapes.naming(question), question.values
        wallets = combined(self._shapes.sets(question), lambda leaf: _integers(self._run(leaf, values, cancel)))
        if limit == 0 or not len(wallets):
            return Answer(len(wallets), naming.no_rows())
        first = self._with_addresses(first_of(wallets, limit), cancel)
        return Answer(len(wallets), naming.finished(self._run(naming, values, cancel, first)))

    def _with_addresses(self, wallets: Wallets, cancel: Cancel | None) -> pa.Table:
        if self._addresses.ready:
            return pa.table({"wallet": wallets, "address": self._addresses.of(wallets)})
        reading = self._shapes.reading("addresses", _addresses_of, ())
        return self._run(reading, (), cancel, pa.table({"wallet": wallets}))

    def _prepare(self) -> None:
        """Do what the first question would wait for: the libraries' own start, the contracts, the addresses' file."""
        for chain in self.about.chains:
            self.catalog.symbols(chain.chain_id, nft=False)
            self.catalog.contract(chain.chain_id, "")
        with self._connection.cursor() as cursor:
            cursor.execute("USE generation")
            number = cursor.execute("SELECT count(*) FROM wallets").fetchall()[0][0]
            if self._addresses.ready or number < _MANY_WALLETS:
                return
            reader = cursor.execute("SELECT address FROM wallets ORDER BY wallet").to_arrow_reader(_BATCH)
            self._addresses.write((batch.column(0) for batch in reader if not self._closing.is_set()), number)

    def explain(self, question: Question, *, limit: int) -> Mapping[str, Any]:
        """Return one statement with its values written in that gives the answer's rows, and DuckDB's plan of it.

        To answer, the conditions of that statement are fetched one by one (`nbext.engine.sets`).
        """
        statement, values = self._shapes.returning(question), (*question.values, limit)
        with self._connection.cursor() as cursor:
            cursor.execute("USE generation")
            plan = cursor.execute(f"EXPLAIN {statement.with_literals(values)}").fetchall()[0][1]
        return {"sql": statement.with_literals(values, pretty=True), "plan": plan}

    def close(self) -> None:
        """Give back the file and the memory."""
        self._closing.set()
        self._workers.shutdown(wait=True)
        self._connection.close()

    def _read(self, name: str, build: Build, values: Sequence[Value] = ()) -> pa.Table:
        return self._run(self._shapes.reading(name, build, values), values, None)

    def _run(
        self, statement: Statement, values: Sequence[Value], cancel: Cancel | None, returned: pa.Table | None = None
    ) -> pa.Table:
        cursor = self._connection.cursor()
        if returned is not None:
            cursor.register(RETURNED, returned)
        running = self._workers.submit(_fetch, cursor, statement.prepared, statement.arguments(values))
        try:
            stopped = ended(running, cancel)
        finally:
            # Also where the caller's own thread is interrupted. Before the query begins an interrupt is lost.
            while not running.done():
                cursor.interrupt()
                wait([running], TICK)
            cursor.close()
        try:
            return running.result()
        except duckdb.Error as error:
            failure = stopped or self._failure(error)
        raise failure

    def _failure(self, error: duckdb.Error) -> NbextError:
        if isinstance(error, duckdb.OutOfMemoryException):
            return ResourceLimit(
                f"the segment needs more memory than the service may use ({self._memory}, and {_SPILL} on disk). "
                "Narrow it, or give the service more: engine duckdb://?memory=4GB."
            )
        return SegmentFailed(f"DuckDB could not answer: {str(error).splitlines()[0]}")


def _locked_down(generation: Generation, memory: str, threads: int) -> duckdb.DuckDBPyConnection:
    """Attach the generation to an empty database: two datasets of one file then share nothing."""
    # DuckDB makes this folder when it first spills, and removes it at the end.
    spill = Path(tempfile.gettempdir()) / f"nbext-spill-{uuid.uuid4().hex}"
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": memory,
            "threads": threads,
            "temp_directory": str(spill),
            "max_temp_directory_size": _SPILL,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        },
    )
    path = str(generation.tables).replace("'", "''")
    try:
        connection.execute(f"ATTACH '{path}' AS generation (READ_ONLY)")
    except duckdb.Error as error:
        connection.close()
        raise StorageError(f"{generation.tables} cannot be opened: {str(error).splitlines()[0]}") from None
    # From here on no query can name a file, an address, a setting or a table of Python's.
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


def _fetch(cursor: duckdb.DuckDBPyConnection, sql: str, values: Sequence[Any]) -> pa.Table:
    cursor.execute("USE generation")
    return cursor.execute(sql, values).to_arrow_table()


def _addresses_of(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
    returned = ibis.table({"wallet": "int32"}, name=RETURNED)
    return tables["wallets"].semi_join(returned, "wallet").select("wallet", "address")


def _integers(fetched: pa.Table) -> Wallets:
    wallets: Wallets = fetched["wallet"].combine_chunks().to_numpy()
    return wallets
