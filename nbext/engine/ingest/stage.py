"""The stage: a DuckDB file that lives as long as one run, bounded in memory and shut off from the outside.

The generation before is ``prev`` in it. A source is a file that was ingested; for the next run a generation also has,
beside the tables of `nbext.engine.schema`:

    transfers          also has source and row, which name the row, and given, the count that the row had
    ingest.keys        chain_id tx low key_index, of each transfer, with its source and row
    ingest.repeats     whole rows that repeat a transfer: it stays when one of the two sources is removed
    ingest.blocks      the blocks that a source names, with their times
    ingest.openings    the balances of every snapshot, also of those that a newer one replaces
    ingest.facts       what a source says of a contract; ``seq`` has its number (`derive.facts`)

Where nothing is taken out of it, its file is ``prev`` as it is. Else ``prev`` is views of it, and
``prev.ingest.again`` has the rows that are to be decided again, because what they repeated may be gone.
"""

from __future__ import annotations

import glob
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from nbext.engine.ingest.files import Source, short_path
from nbext.engine.layers import attach
from nbext.engine.schema import sql_literal
from nbext.engine.storage import (
    ADVICE,
    DELTA_FILE,
    DUCKDB,
    TABLES_FILE,
    Generation,
    files_of,
    link_file,
)
from nbext.errors import IngestError, OutOfMemory, StorageError

# What DuckDB has beside the size of what it reads: with twice as much, five million transfers took 5 % less processor
# time.
LITTLE_MEMORY = 512_000_000
# With buckets of two million rows 100 million transfers took 6.5 GB, for DuckDB's 4 GB.
BUCKET_ROWS, LEAST_BUCKET_ROWS = 500_000, 150_000
BATCH = 122_880  # rows: a row group of DuckDB's
# Rows that Python reads at a time, so that memory does not grow with the file.
_AT_ONCE = 100_000
# Of the ``seq`` of a fact: a file's number times this, and the row's number, so that what comes later is larger.
OF_A_FILE = 10_000_000_000
T = TypeVar("T")


# Of ingest.repeats: the columns of a row that is read (`derive.rows`), but why it could not be parsed, and its time.
REPEATED = (
    "source, row, chain_id, contract, sender, recipient, hi, mid, lo, tx, low, key_index, log_index, block, "
    "given"
)
# What identifies a transfer, and what two rows of one have in common, whatever their keys.
KEY = "chain_id, tx, low, key_index"
CONTENT = "contract, sender, recipient, hi, mid, lo, block"


def name(column: str) -> str:
    """Return the text as an SQL identifier."""
    return '"' + column.replace('"', '""') + '"'


def ahead(tasks: Iterable[Callable[[], T]]) -> Iterator[T]:
    """Yield each task's result, with the next task under way in a thread while one result is used."""
    # One ahead, not all: each result is a bucket of half a million rows, and memory is bounded by two of them.
    with ThreadPoolExecutor(1) as pool:
        for waiting, _ in pairwise(chain(map(pool.submit, tasks), [Future[T]()])):
            yield waiting.result()


@contextmanager
def storage_errors(
    folder: Path, *, more: str = "Allow more with --memory 8GB.", then: str = "Nothing was changed."
) -> Iterator[None]:
    """Translate the errors of a full memory or disk into ours, with how to have more, or with what becomes of it."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise OutOfMemory(
            f"{folder}: ingest ran out of memory ({_first_line(error)}). {more}"
        ) from None
    except (
        duckdb.IOException,
        duckdb.FatalException,
        duckdb.TransactionException,
        OSError,
    ) as error:
        if isinstance(error, duckdb.FatalException | duckdb.TransactionException) and not any(
            words in str(error) for words in ("IO Error", "Could not write file")
        ):
            raise
        if "checksum" in str(error):  # DuckDB compares each block that it reads with its own
            raise StorageError(f"{folder} is damaged: {_first_line(error)}. {ADVICE}") from None
        raise StorageError(f"{folder} cannot be written: {_first_line(error)}. {then}") from None


def _first_line(error: Exception) -> str:
    # DuckDB appends hints about its own settings, which cannot be changed from here. Its first versions of 1.5 put
    # what failed, closing the file, before why.
    text = str(error)
    return text[max(0, text.find("IO Error")) :].strip().splitlines()[0][:300]


class Stage:
    """One run's database, with the tables being built as ``out`` and the generation before as ``prev``.

    ``first`` is the number of this run's first source, and ``paths`` has the path of each by its number, also of those
    of earlier runs. The generation before is attached as ``before`` where ``prev`` is made of it (`take_out`).
    ``appending``: ``out`` is the delta of the generation before, to add to; its base is ``base``. ``now`` names the
    tables as they will be served. ``needed``: how many bytes of the generation before are read at a
    time; None takes all the memory allowed. ``spared``: less than that is taken.
    Only the given sources, the run's own folders and the generation before can be read: external access
    is off before the first file is opened, and cannot be switched on again.
    """

    def __init__(
        self,
        work: Path,
        building: Path,
        previous: Generation | None,
        sources: Iterable[Source],
        *,
        memory: str,
        previous_as: str = "prev",
        appending: bool = False,
        needed: int | None = 0,
    ) -> None:
        self.work, self.building = work, building
        self.previous, self.appending = previous, appending
        # The files of earlier runs.
        self.files = files_of(previous)
        self.paths: dict[int, str] = {entry["source"]: entry["path"] for entry in self.files}
        self.first = 1 + max(self.paths, default=0)
        self.base = "prev_base" if previous and previous.delta else "prev"
        self.now = "now.main" if appending else "out.main"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        sources = list(sources)
        size = sum(source.size for source in sources)
        most = int(memory[:-2]) * {"MB": 10**6, "GB": 10**9}[memory[-2:].upper()]
        # A database on disk is written through at every statement: 0.5 s for little data, and of ten million transfers
        # (1.2 GB of Parquet) 15 s of 72. One in memory is spilled too where the memory allowed does not suffice, which
        # then takes longer.
        in_memory = size < most // 2
        little = most if needed is None else size + needed + LITTLE_MEMORY
        self.spared = little < most
        most = min(little, most)
        # A row of a bucket takes some hundred bytes in arrays, beside DuckDB's own memory, and two buckets exist at a
        # time. Each share of a popular token reads all of its rows, so that buckets are not made ever smaller.
        self.bucket_rows = min(BUCKET_ROWS, max(LEAST_BUCKET_ROWS, most // 1000))
        self.connection = duckdb.connect(
            ":memory:" if in_memory else str(work / "stage.duckdb"),
            config={
                **DUCKDB,
                "memory_limit": f"{most // 10**6}MB",
                "temp_directory": str(work / "spill"),
            },
        )
        self.run("SET enable_progress_bar = false")  # the command draws its own
        self.run(
            "SET TimeZone = 'UTC'"
        )  # of a time that names none, where the machine's would be taken
        if appending:
            assert previous is not None
            link_file(previous.tables, building)
            if previous.delta:
                shutil.copyfile(previous.delta, building / DELTA_FILE)
            self.run("ATTACH ':memory:' AS now")
        file = building / (DELTA_FILE if appending else TABLES_FILE)
        # What any DuckDB of ours reads, so that a folder outlives an up- or downgrade.
        self.run(f"ATTACH {sql_literal(file)} AS out (STORAGE_VERSION 'v1.5.0')")
        if previous:
            attach(self.run, previous, previous_as)
        self._shut(sources)

    def _shut(self, sources: Iterable[Source]) -> None:
        folders = [self.work, self.building, *([self.previous.folder] if self.previous else [])]
        self.run(f"SET allowed_directories = [{', '.join(sql_literal(f) for f in folders)}]")
        # Also as patterns that match themselves only: so a name with `*` or `[` in it has to be asked for.
        paths = {path for source in sources for path in (source.name, glob.escape(source.name))}
        self.run(f"SET allowed_paths = [{', '.join(map(sql_literal, sorted(paths)))}]")
        self.run("SET enable_external_access = false")
        # A file's contents never become SQL; if some day they did, they could not open the rest of the disk.
        self.run("SET lock_configuration = true")

    def run(self, sql: str, values: Sequence[Any] = ()) -> duckdb.DuckDBPyConnection:
        """Run one statement; its rows can be fetched from what is returned."""
        return self.connection.execute(sql, list(values))

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self.run(sql, values).fetchall()

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Return the first column of a query's only row."""
        # To its end: DuckDB 2 runs nothing else on a connection that has rows left.
        rows = self.rows(sql, values)
        return rows[0][0] if rows else None

    def arrow(self, sql: str) -> pa.Table:
        """Return all rows of a query as an Arrow table."""
        # Made whole while the query runs. On the stream that `run` returns, DuckDB waits for ever where many rows
        # come from several parts of an ordered union.
        return self.connection.sql(sql).to_arrow_table()

    def insert(
        self, table: str, arriving: pa.Table, read: str = "FROM arriving", *, create: bool = False
    ) -> None:
        """Add the rows of an Arrow table, in their order; ``read`` is a query of it, which is named ``arriving``."""
        # In batches, which are read on every core.
        self.connection.register(
            "arriving", pa.Table.from_batches(arriving.to_batches(BATCH), arriving.schema)
        )
        self.run(f"{f'CREATE TABLE {table} AS' if create else f'INSERT INTO {table}'} {read}")
        self.connection.unregister("arriving")

    def spell(
        self,
        table: str,
        columns: tuple[str, ...],
        query: str,
        read: Callable[..., tuple[str | None, ...] | None],
    ) -> None:
        """Create a table of texts: of what ``read`` returns of each row of a query, but not of None.

        By Python, where SQL has no integers of 256 bits or no exact decimals. A query should be of distinct values.
        """
        self.run(
            f"CREATE OR REPLACE TABLE {table} ({', '.join(f'{column} VARCHAR' for column in columns)})"
        )
        found = self.connection.cursor().execute(query)
        while batch := found.fetchmany(_AT_ONCE):
            if rows := [one for row in batch if (one := read(*row)) is not None]:
                arrays = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
                self.insert(table, pa.table(arrays, names=columns))

    def shown(self, source: int) -> str:
        """Return the path of a source of this run or of an earlier one, for messages."""
        return short_path(self.paths[source])

    def fault(self, source: int, why: str, row: int | None = None) -> IngestError:
        """Return the error of a source, of which a row may be named."""
        return IngestError(f"{self.shown(source)}: {why}", path=self.paths[source], row=row)

    def drop(self, *tables: str) -> None:
        """Give back what these tables take."""
        for table in tables:
            self.run(f"DROP TABLE IF EXISTS {table}")

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *error: object) -> None:
        """Close the files and remove the run's own folder."""
        self.connection.close()
        shutil.rmtree(self.work, ignore_errors=True)


@dataclass(frozen=True)
class TakenOut:
    """What a run takes out of the generation before: whole sources, and everything of a chain from a block on."""

    sources: frozenset[int] = frozenset()
    chain_id: int = 0
    block: int | None = None

    def __bool__(self) -> bool:
        return bool(self.sources) or self.block is not None

    def kept(
        self, block: str | None = None, on_chain: str | None = None, source: str = "source"
    ) -> str:
        """Return the SQL of whether a row stays; ``block`` is its block, if it has one, ``on_chain`` its chain."""
        numbers = ", ".join(map(str, sorted(self.sources)))
        gone = [f"{source} IN ({numbers})"] if numbers else []
        if block and self.block is not None:
            gone.append(
                f"coalesce({on_chain or f'chain_id = {self.chain_id}'} AND {block} >= {self.block}, false)"
            )
        return f"NOT ({' OR '.join(gone)})" if gone else "true"


def take_out(stage: Stage, out: TakenOut) -> None:
    """Create ``prev`` of what is ``before``: without what is taken out, and ``prev.ingest.again``."""
    stage.run("ATTACH ':memory:' AS prev")
    stage.run("CREATE SCHEMA prev.ingest")
    on_chain = (
        f"contract IN (SELECT contract FROM before.main.contracts WHERE chain_id = {out.chain_id})"
    )
    transfers = f"(SELECT * FROM before.main.transfers WHERE {out.kept('block', on_chain)})"
    repeats = f"(SELECT * FROM before.ingest.repeats WHERE {out.kept('block')})"
    keys = f"(SELECT * FROM before.ingest.keys WHERE {out.kept()})"
    beyond = "false" if out.block is None else f"{on_chain} AND block >= {out.block}"
    stage.run(
        f"CREATE TABLE prev.main.beyond AS SELECT source, row FROM before.main.transfers "
        f"WHERE {out.kept()} AND {beyond}"
    )
    # What repeats a transfer by its contents alone is decided together with all rows of these contents: which of them
    # stay depends on how many there are.
    stage.run(
        f"CREATE TABLE prev.main.undecided AS SELECT source, row FROM {transfers} "
        f"SEMI JOIN (SELECT * FROM {repeats} ANTI JOIN {keys} USING ({KEY})) USING ({CONTENT})"
    )
    stage.run(f"""
        CREATE TABLE prev.ingest.again AS SELECT {REPEATED} FROM {repeats}
        UNION ALL SELECT {REPEATED} FROM {transfers} JOIN prev.main.undecided USING (source, row)
        JOIN {keys} USING (source, row)""")
    stage.run(
        f"CREATE VIEW prev.main.transfers AS SELECT * FROM {transfers} "
        "ANTI JOIN prev.main.undecided USING (source, row)"
    )
    stage.run(
        f"CREATE VIEW prev.ingest.keys AS SELECT * FROM {keys} "
        "ANTI JOIN (FROM prev.main.undecided UNION ALL FROM prev.main.beyond) USING (source, row)"
    )
    stage.run(f"CREATE VIEW prev.ingest.repeats AS SELECT * FROM {repeats} WHERE false")
    for table in ("blocks", "openings"):
        stage.run(
            f"CREATE VIEW prev.ingest.{table} AS SELECT * FROM before.ingest.{table} "
            f"WHERE {out.kept('block')}"
        )
    facts = out.kept(source=f"seq // {OF_A_FILE}")
    stage.run(f"CREATE VIEW prev.ingest.facts AS SELECT * FROM before.ingest.facts WHERE {facts}")
    _keep_used_addresses(stage)


def _keep_used_addresses(stage: Stage) -> None:
    moved = "SELECT {0} FROM prev.main.transfers UNION SELECT {0} FROM prev.ingest.again"
    stage.run(
        "CREATE TABLE prev.main.contracts AS SELECT * FROM before.main.contracts "
        f"SEMI JOIN ({moved.format('contract')}) USING (contract)"
    )
    sides = " UNION ".join(moved.format(f"{side} AS wallet") for side in ("sender", "recipient"))
    stage.run(
        f"CREATE TABLE prev.main.wallets AS SELECT * FROM before.main.wallets SEMI JOIN ({sides}) USING (wallet)"
    )
