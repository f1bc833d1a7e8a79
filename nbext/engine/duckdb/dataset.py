"""A dataset on DuckDB: one generation, opened read-only and locked down, a cursor for each question."""

from __future__ import annotations

import os
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import numpy as np
import pyarrow as pa

from nbext.engine.dataset import TICK, Cancel, ended
from nbext.engine.duckdb.files import MOST_SPILLED, Addresses, Spill, locked_down
from nbext.engine.query.answers import CHUNK, MANY_WALLETS, Dataset, Engine
from nbext.engine.query.set_tree import Sql
from nbext.engine.storage import ADVICE, about
from nbext.errors import NbextError, ResourceLimit, SegmentFailed, StorageError

if TYPE_CHECKING:
    from nbext.engine.query.bitmaps import Wallets
    from nbext.engine.storage import Generation

Result = TypeVar("Result")
# With the libraries, the addresses' file, the wallets kept and those under way, a service stays below 1.5 GB.
MEMORY = "640MB"
_QUESTIONS_AT_ONCE = 16
_BATCH = 100_000
# A relation with values is made row by row by DuckDB 1: 5.7 s for 3 million. Of DuckDB 2 it is what copies least.
_LAZY = hasattr(duckdb.DuckDBPyConnection, "complete")


class DuckDataset(Dataset):
    """One generation on DuckDB, asked with ``threads`` cores (0: all). Safe to use from several threads.

    ``memory`` is what DuckDB may hold for all questions together; beyond it a question spills into the data folder,
    then fails.
    """

    def __init__(
        self, generation: Generation, *, data_dir: Path, memory: str = MEMORY, threads: int = 0
    ) -> None:
        super().__init__(about(generation, "duckdb"))
        self._memory = memory
        self._spill = Spill(data_dir)
        self._connection, self.layers, self.ranks = locked_down(
            generation, self._spill, memory, threads or os.cpu_count() or 1
        )
        self._workers = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, thread_name_prefix="nbext-question")
        self._closing = threading.Event()
        self._addresses = Addresses(generation.folder, generation.fingerprint)
        self._preparing = self._workers.submit(self._prepare)

    def close(self) -> None:
        """Give back the file and the memory."""
        self._closing.set()
        self._workers.shutdown(wait=True)
        self._connection.close()
        self._spill.release()

    def _prepare(self) -> None:
        """Do what the first question would wait for: the libraries' own start, the contracts, the addresses' file."""
        for chain in self.about.chains:
            self.catalog.symbols(chain.chain_id, nft=False)
            self.catalog.contract(chain.chain_id, "")
        with self._connection.cursor() as cursor:
            cursor.execute("USE generation")
            number = cursor.execute("SELECT count(*) FROM wallets").fetchall()[0][0]
            if number >= MANY_WALLETS:
                self._addresses.make(self._in_order(cursor), number)

    def _in_order(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[pa.Array]:
        """Yield the addresses, as long as the wallets are numbered one after the other."""
        seen = 0
        # They are stored in this order. To sort them would take all of the memory that questions may use.
        stored = cursor.sql("SELECT wallet, address FROM wallets")
        for batch in stored.to_arrow_reader(_BATCH):
            numbers = batch.column(0).to_numpy()
            if (
                self._closing.is_set()
                or not (numbers == np.arange(seen, seen + len(numbers))).all()
            ):
                return
            seen += len(numbers)
            yield batch.column(1)

    def addresses_of(self, wallets: Wallets) -> pa.Array | None:
        """Return the addresses of wallets from their file, once it is made."""
        return self._addresses.of(wallets)

    def aside(self) -> str:
        """Return the folder for rows that do not fit into memory."""
        # DuckDB makes it only when it spills.
        self._spill.folder.mkdir(exist_ok=True)
        return str(self._spill.folder)

    def do(self, task: Callable[[Engine], Result], cancel: Cancel | None) -> Result:
        """Do work that may run several statements; however it ends, the statement under way ends with it."""
        cursor = self._connection.cursor()
        cursor.execute("USE generation")
        running = self._workers.submit(task, CursorEngine(cursor))
        try:
            stopped = ended(running, cancel)
        finally:
            # Also where the caller's own thread is interrupted. Between two statements an interrupt is lost.
            while not running.done():
                cursor.interrupt()
                wait([running], TICK)
            cursor.close()
        try:
            return running.result()
        except duckdb.Error as error:
            stopped = stopped or self._failure(error)
        finally:
            # An error that a frame of its own traceback refers to keeps them all, with what they had fetched, until
            # Python looks for circles.
            del running
        try:
            raise stopped
        finally:
            del stopped

    def _failure(self, error: duckdb.Error) -> NbextError:
        # A disk that has no room for what is spilled says so in many ways; nothing else is ever written.
        unspilled = isinstance(error, duckdb.IOException) and str(self._spill.folder) in str(error)
        if unspilled or isinstance(error, duckdb.OutOfMemoryException):
            return ResourceLimit(
                f"The segment needs more memory than the service may use ({self._memory}, and {MOST_SPILLED} on disk). "
                "Narrow it, or give the service more: engine duckdb://?memory=4GB."
            )
        why = str(error).splitlines()[0]
        if "checksum" in why:  # DuckDB compares each block that it reads with its own
            return StorageError(f"The chain data is damaged: {why}. {ADVICE}")
        return SegmentFailed(f"DuckDB could not answer: {why}")


class CursorEngine:
    """Runs the statements of one question, on a cursor of its own."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor

    def fetch(self, sql: Sql) -> pa.Table:
        """Return all rows of a statement."""
        return self._relation(sql).to_arrow_table()

    def batches(self, sql: Sql) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a statement, about `CHUNK` at a time."""
        yield from self._relation(sql).to_arrow_reader(CHUNK)

    def ahead(self, statements: Sequence[Sql]) -> None:
        """Begin nothing: each statement uses all cores."""

    def plan(self, sql: Sql) -> str:
        """Return DuckDB's plan of a statement, its steps indented below those that they are inputs of."""
        rows = self.fetch(replace(sql, text=f"EXPLAIN (FORMAT yaml) {sql.text}"))
        # A notebook breaks the lines of a text output after some hundred columns.
        plan = str(rows.column(1)[0]).replace('"', "")
        lines = [(line, " " * (line.find(line.strip()) + 4)) for line in plan.splitlines()]
        return "\n".join(textwrap.fill(line, 100, subsequent_indent=deep) for line, deep in lines)

    def _relation(self, sql: Sql) -> Any:
        for name, table in sql.tables.items():
            self._cursor.register(name, table)
        if _LAZY:
            return self._cursor.sql(sql.text, params=dict(sql.values))
        return self._cursor.execute(sql.text, dict(sql.values))
