"""A dataset on DuckDB: one generation, opened read-only and locked down, a cursor for each question."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import ibis
import pyarrow as pa

from nbext.engine.catalog import TableCatalog, TableClock
from nbext.engine.dataset import TICK, Answer, Cancel, Catalog, Clock, Question, Tables, Value, ended
from nbext.engine.duckdb.addresses import Addresses
from nbext.engine.duckdb.bitmaps import combined, first_of, placed
from nbext.engine.query.exact import as_text
from nbext.engine.query.set_tree import Leaf, Narrowed, Settled, Union
from nbext.engine.query.statements import RETURNED, WALLET, Build, Statement, Statements
from nbext.engine.storage import ProcessLock, about
from nbext.errors import NbextError, ResourceLimit, SegmentFailed, StorageError

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.duckdb.bitmaps import Wallets
    from nbext.engine.storage import Generation

Result = TypeVar("Result")
# With the libraries, the addresses' file and the wallets under way, a service stays below 1.5 GB.
MEMORY = "640MB"
_SPILL = "4GB"
_QUESTIONS_AT_ONCE = 16
# Fewer addresses than this are looked up in their table as fast as in a file of their own.
_MANY_WALLETS = 100_000
_BATCH = 100_000
# A column of so many wallets is read whole: picking some of them is a join, which costs more.
_READ_WHOLE = 100_000
# Small sets of wallets are cached, such as the burn addresses, which most segments leave out.
_FEW = 64
_KEPT = 1024
# Columns of a notebook's text output before its lines break; DuckDB's own boxes may take several hundred.
_WIDTH = 100


class DuckDataset:
    """One generation on DuckDB, asked with ``threads`` cores (None: all). Safe to use from several threads.

    ``memory`` is what DuckDB may hold for all questions together; beyond it a question spills into the data folder,
    then fails.
    """

    def __init__(
        self, generation: Generation, *, data_dir: Path, memory: str = MEMORY, threads: int | None = None
    ) -> None:
        self.about = about(generation, "duckdb")
        self._memory = memory
        self._spill = Spill(data_dir)
        self._connection = _locked_down(generation, self._spill, memory, threads or os.cpu_count() or 1)
        self._workers = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, thread_name_prefix="nbext-question")
        self._statements = Statements("duckdb")
        self._few: dict[bytes, Wallets] = {}
        self._closing = threading.Event()
        self._addresses = Addresses(generation.folder)
        self.catalog: Catalog = TableCatalog(self._read)
        self.clock: Clock = TableClock(self._read, self.about.chains)
        self._preparing = self._workers.submit(self._prepare)

    def ask(self, question: Question, *, limit: int, cancel: Cancel | None = None) -> Answer:
        """Answer a question; see `nbext.engine.dataset.Dataset.ask`."""
        return self._on_a_cursor(lambda cursor: self._answer(cursor, question, limit), cancel)

    def _answer(self, cursor: duckdb.DuckDBPyConnection, question: Question, limit: int) -> Answer:
        sets = self._statements.wallets(question)
        wallets = combined(sets, lambda leaf: self._wallets(cursor, leaf, question.values))
        if limit == 0 or not len(wallets):
            return Answer(len(wallets), self._statements.no_rows(question))
        return Answer(len(wallets), self._rows(cursor, first_of(wallets, limit), question))

    def _wallets(self, cursor: duckdb.DuckDBPyConnection, leaf: Statement, values: Sequence[Value]) -> Wallets:
        key = sha256(repr((leaf.prepared, leaf.arguments(values))).encode()).digest()
        if key in self._few:
            return self._few[key]
        wallets: Wallets = _fetch(cursor, leaf, values)["wallet"].combine_chunks().to_numpy()
        if len(wallets) <= _FEW and len(self._few) < _KEPT:
            self._few[key] = wallets
        return wallets

    def _rows(self, cursor: duckdb.DuckDBPyConnection, wallets: Wallets, question: Question) -> pa.Table:
        """Return the rows of these wallets, which are in order."""
        cursor.register(RETURNED, pa.table({"wallet": wallets}))
        rows = pa.table({"address": self._addresses_of(cursor, wallets)})
        for field, statement in self._columns_of(question):
            found = _fetch(cursor, statement, question.values)
            rows = rows.append_column(field, placed(wallets, found).cast(field.type))
        return as_text(rows)

    def _columns_of(self, question: Question) -> Iterator[tuple[pa.Field, Statement]]:
        """Yield each returned column and its statement: of all holders where they are few, else of the wallets."""
        for column, holders in zip(self._statements.columns(question), question.holders, strict=True):
            read_whole = holders is not None and holders <= _READ_WHOLE
            yield column.field, column.whole if read_whole else column.joined

    def _addresses_of(self, cursor: duckdb.DuckDBPyConnection, wallets: Wallets) -> pa.Array:
        if self._addresses.ready:
            return self._addresses.of(wallets)
        return placed(wallets, _fetch(cursor, self._statements.reading("addresses", _addresses, ()), ()))

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
        """Return the statements that answer, with their values written in, how they are combined, and their plans."""
        statements: dict[str, Statement] = {}
        formula = _formula(self._statements.wallets(question), statements)
        if limit:
            statements.update({field.name: statement for field, statement in self._columns_of(question)})
            if not self._addresses.ready:
                statements["address"] = self._statements.reading("addresses", _addresses, ())
        with self._connection.cursor() as cursor:
            cursor.execute("USE generation")
            # The columns' statements name the wallets that are returned; their plans need a table of that name.
            cursor.register(RETURNED, pa.table({"wallet": pa.array([], pa.int32())}))
            plans = {}
            for name, one in statements.items():
                explained = cursor.execute(f"EXPLAIN (FORMAT json) {one.with_literals(question.values)}").fetchall()
                plans[name] = drawn(str(explained[0][1]))
        returned = f"the first {limit:,} by address are returned" if limit else "they are only counted"
        sql = [f"-- {name}\n{one.with_literals(question.values, pretty=True)};" for name, one in statements.items()]
        return {
            "sql": "\n\n".join([f"-- wallets: {formula}; {returned}", *sql]),
            "plan": "\n\n".join(f"{name}\n{plan}" for name, plan in plans.items()),
        }

    def close(self) -> None:
        """Give back the file and the memory."""
        self._closing.set()
        self._workers.shutdown(wait=True)
        self._connection.close()
        self._spill.release()

    def _read(self, name: str, build: Build, values: Sequence[Value] = ()) -> pa.Table:
        statement = self._statements.reading(name, build, values)
        return self._on_a_cursor(lambda cursor: _fetch(cursor, statement, values), None)

    def _on_a_cursor(self, work: Callable[[duckdb.DuckDBPyConnection], Result], cancel: Cancel | None) -> Result:
        """Do work that may run several statements; however it ends, the statement under way ends with it."""
        cursor = self._connection.cursor()
        cursor.execute("USE generation")
        running = self._workers.submit(work, cursor)
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
            failure = stopped or self._failure(error)
        raise failure

    def _failure(self, error: duckdb.Error) -> NbextError:
        # A disk that has no room for what is spilled says so in many ways; nothing else is ever written.
        unspilled = isinstance(error, duckdb.IOException) and str(self._spill.folder) in str(error)
        if unspilled or isinstance(error, duckdb.OutOfMemoryException):
            return ResourceLimit(
                f"The segment needs more memory than the service may use ({self._memory}, and {_SPILL} on disk). "
                "Narrow it, or give the service more: engine duckdb://?memory=4GB."
            )
        return SegmentFailed(f"DuckDB could not answer: {str(error).splitlines()[0]}")


def _locked_down(generation: Generation, spill: Spill, memory: str, threads: int) -> duckdb.DuckDBPyConnection:
    """Attach the generation to an empty database: two datasets of one file then share nothing."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": memory,
            "threads": threads,
            "temp_directory": str(spill.folder),
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
        spill.release()
        raise StorageError(f"{generation.tables} cannot be opened: {str(error).splitlines()[0]}") from None
    # From here on no query can name a file, an address, a setting or a table of Python's.
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


def _fetch(cursor: duckdb.DuckDBPyConnection, statement: Statement, values: Sequence[Value]) -> pa.Table:
    return cursor.execute(statement.prepared, statement.arguments(values)).to_arrow_table()


def _addresses(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
    return tables["wallets"].semi_join(ibis.table(WALLET, name=RETURNED), "wallet").select("wallet", "address")


class Spill:
    """A folder of its own for one dataset to spill into; what ended processes left beside it is removed."""

    def __init__(self, data_dir: Path) -> None:
        place = data_dir / "spill"
        self._lease: ProcessLock | None = None
        try:
            self._lease = ProcessLock(place)
        except (OSError, sqlite3.OperationalError):
            # A data folder that may only be read: questions spill among the system's temporary files.
            self.folder = Path(tempfile.mkdtemp(prefix="nbext-spill-"))
            return
        self.folder = place / self._lease.name
        for name in {*self._lease.others(), *(path.name for path in place.iterdir() if path.is_dir())}:
            if not self._lease.is_alive(name):
                shutil.rmtree(place / name, ignore_errors=True)

    def release(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lease:
            self._lease.release()


def _formula(node: Settled[Statement], statements: dict[str, Statement]) -> str:
    """Return how the leaves of a tree are combined, as ``1 and (2 or 3) and not 4``; number them in ``statements``."""
    if isinstance(node, Leaf):
        name = str(len(statements) + 1)
        statements[name] = node.wallets
        return name
    if isinstance(node, Union):
        return " or ".join(_member(part, statements) for part in node.parts)
    # What is narrowed is read from left to right: it needs no brackets.
    narrowed = isinstance(node.first, Narrowed)
    first = _formula(node.first, statements) if narrowed else _member(node.first, statements)
    inside = [_member(part, statements) for part in node.inside]
    outside = [f"not {_member(part, statements)}" for part in node.outside]
    return " and ".join([first, *inside, *outside])


def _member(node: Settled[Statement], statements: dict[str, Statement]) -> str:
    text = _formula(node, statements)
    return text if isinstance(node, Leaf) else f"({text})"


def drawn(plan: str) -> str:
    """Return a plan of ``EXPLAIN (FORMAT json)`` with one step to a line and its inputs below it."""
    return "\n".join(line for step in json.loads(plan) for line in _lines(step, "", ""))


def _lines(step: Mapping[str, Any], first: str, rest: str) -> Iterator[str]:
    inputs = step.get("children") or []
    below = rest + ("│    " if inputs else "     ")
    yield from textwrap.wrap(_in_words(step), _WIDTH, initial_indent=first, subsequent_indent=below) or [first]
    for i, child in enumerate(inputs):
        last = i == len(inputs) - 1
        yield from _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _in_words(step: Mapping[str, Any]) -> str:
    told = dict(step.get("extra_info") or {})
    rows = str(told.pop("Estimated Cardinality", ""))
    texts = {name: ", ".join(value) if isinstance(value, list) else value for name, value in told.items()}
    facts = [f"{name}: {text}" for name, text in texts.items() if text]
    facts += [f"~{int(rows):,} row{'s' * (rows != '1')}"] if rows.isdecimal() else []
    return f"{step.get('name', '').strip()}  {'; '.join(facts)}".strip()
