"""A dataset on DuckDB: one generation, opened read-only and locked down, a cursor for each question."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from hashlib import sha256
from itertools import chain as chained
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import ibis
import numpy as np
import pyarrow as pa

from nbext.core.locks import ProcessLock
from nbext.engine.catalog import TableCatalog, TableClock
from nbext.engine.dataset import (
    MOST_EXPLAINED,
    TICK,
    Answer,
    Build,
    Cancel,
    Catalog,
    Clock,
    Common,
    Question,
    Tables,
    Value,
    WalletList,
    check_size,
    cut,
    ended,
)
from nbext.engine.duckdb import series
from nbext.engine.duckdb.addresses import Addresses, texts_of
from nbext.engine.duckdb.bitmaps import Bits, apart, combined, first_by, first_of, placed
from nbext.engine.holdings import build_profile, build_total, in_common, profile_values, sum_of
from nbext.engine.layers import Layers, attach
from nbext.engine.query.rows import Rows, has_amounts, in_exact_order
from nbext.engine.query.series import ENTERS, Series, series_of
from nbext.engine.query.set_tree import Leaf, Narrowed, Settled, Union
from nbext.engine.query.statements import LISTED, RETURNED, WALLET, Statement, Statements
from nbext.engine.storage import ADVICE, DUCKDB, about
from nbext.errors import NbextError, ResourceLimit, SegmentFailed, StorageError

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.duckdb.bitmaps import Wallets
    from nbext.engine.duckdb.series import Throughout
    from nbext.engine.storage import Generation

Result = TypeVar("Result")
# With the libraries, the addresses' file and the wallets under way, a service stays below 1.5 GB.
MEMORY = "640MB"
_SPILL = "4GB"
_QUESTIONS_AT_ONCE = 16
# Fewer addresses than this are looked up in their table as fast as in a file of their own.
_MANY_WALLETS = 100_000
_BATCH = 100_000
# Wallets whose rows are fetched at once: of each, a column takes up to 200 bytes on the way.
_CHUNK = 1_000_000
# One in so many wallets of a range is dense enough to read all of it, and so many wallets are read at once.
_DENSE, _SPAN = 8, 2_000_000
# On a busy machine. For a million rows of an amount these are three seconds more.
_VALUES_A_SECOND = 1_000_000
# A column of so many wallets is read whole: picking some of them is a join, which costs more.
_READ_WHOLE = 100_000
# Small sets of wallets are cached, such as the burn addresses, which most segments leave out.
_FEW = 64
_KEPT = 1024
# The wallets of lists, of 4 bytes each, that were used last: a segment and its parts look each list up once.
_LISTS_KEPT = 4
# The memory of the sets that one request compares (bytes); what several of them share is only kept while there is room.
_COUNTED_AT_ONCE = 256 << 20
# The wallets of a segment and of what it is compared with, while a profile is made.
MEMBERS, BASE = "nbext_members", "nbext_base"
# Columns of a notebook's text output before its lines break; DuckDB's own boxes may take several hundred.
_WIDTH = 100


class DuckDataset:
    """One generation on DuckDB, asked with ``threads`` cores (None: all). Safe to use from several threads.

    ``memory`` is what DuckDB may hold for all questions together; beyond it a question spills into the data folder,
    then fails.
    """

    longest_list: int | None = None

    def __init__(
        self,
        generation: Generation,
        *,
        data_dir: Path,
        memory: str = MEMORY,
        threads: int | None = None,
    ) -> None:
        self.about = about(generation, "duckdb")
        self._memory = memory
        self._spill = Spill(data_dir)
        self._connection, layers, self._ranks = _locked_down(
            generation, self._spill, memory, threads or os.cpu_count() or 1
        )
        self._workers = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, thread_name_prefix="nbext-question")
        self._statements = Statements("duckdb", layers=layers)
        self._few: dict[bytes, Wallets] = {}
        self._lists: dict[str, Wallets] = {}
        self._closing = threading.Event()
        self._addresses = Addresses(generation.folder)
        self.catalog: Catalog = TableCatalog(self.read)
        self.clock: Clock = TableClock(self.read, self.about.chains)
        self._preparing = self._workers.submit(self._prepare)

    def ask(self, question: Question, *, limit: int, cancel: Cancel | None = None) -> Answer:
        """Answer a question; see `nbext.engine.dataset.Dataset.ask`."""
        return self._on_a_cursor(
            lambda cursor: self._answer(cursor, question, limit, cancel), cancel
        )

    def _answer(
        self,
        cursor: duckdb.DuckDBPyConnection,
        question: Question,
        limit: int,
        cancel: Cancel | None,
    ) -> Answer:
        sets = self._statements.wallets(question, cancel)
        self._statements.columns(question, cancel)
        check = cancel.check if cancel else lambda: None

        def fetched(leaf: Statement) -> Wallets:
            check()
            return self._wallets(cursor, leaf, question.values)

        wallets = combined(sets, fetched)
        if limit == 0 or not len(wallets):
            return Answer(len(wallets), self._statements.no_rows(question))
        check_size(min(limit, len(wallets)), question, len(self._statements.columns(question)))
        first, ordering = self._first(cursor, wallets, limit, question, check)
        if cancel and cancel.deadline:
            # Rows take time by how many were asked for, which is bounded; the limit is for finding the wallets.
            cancel.deadline += (
                len(first) * (1 + len(question.holders) + len(question.floats)) / _VALUES_A_SECOND
            )
        return Answer(len(wallets), self._rows(cursor, first, ordering, question, check))

    def count(
        self,
        questions: Sequence[Question],
        together: Sequence[Sequence[int]],
        *,
        cancel: Cancel | None = None,
    ) -> list[int]:
        """Count from bitmaps, each set of wallets read once; see `nbext.engine.dataset.Dataset.count`."""
        return self._on_a_cursor(
            lambda cursor: self._counted(cursor, questions, together, cancel or Cancel()), cancel
        )

    def _counted(
        self,
        cursor: duckdb.DuckDBPyConnection,
        questions: Sequence[Question],
        together: Sequence[Sequence[int]],
        cancel: Cancel,
    ) -> list[int]:
        joined = set(chained.from_iterable(places for places in together if len(places) > 1))
        bits, alone = Bits(), dict[int, int]()
        kept: dict[bytes, Wallets] = {}

        def add(place: int, wallets: Wallets) -> None:
            bits.add(place, wallets)
            if bits.nbytes > _COUNTED_AT_ONCE:
                raise ResourceLimit(
                    "The segments to compare need too much memory at once. Compare fewer of them."
                )

        for asked, held in self._series(cursor, questions, cancel):
            for point, (alike, number) in enumerate(
                zip(asked.places, held.counts(len(asked.places)), strict=True)
            ):
                alone |= dict.fromkeys(alike, number)
                for place in joined.intersection(alike):
                    add(place, held.at(point))
        for place, question in enumerate(questions):
            cancel.check()
            if place in alone:
                continue
            sets = self._statements.wallets(question, cancel)

            def fetched(leaf: Statement, values: Sequence[Value] = question.values) -> Wallets:
                cancel.check()
                found = self._wallets(cursor, leaf, values, kept)
                # At each: the 200 conditions of one segment alone may have gigabytes of wallets.
                if bits.nbytes + sum(map(len, kept.values())) * found.itemsize > _COUNTED_AT_ONCE:
                    kept.clear()
                return found

            wallets = combined(sets, fetched)
            alone[place] = len(wallets)
            if place in joined:
                add(place, wallets)
        counts = []
        for places in together:
            cancel.check()
            counts.append(alone[places[0]] if len(places) == 1 else bits.common(places))
        return counts

    def _first(
        self,
        cursor: duckdb.DuckDBPyConnection,
        wallets: Wallets,
        limit: int,
        question: Question,
        check: Callable[[], None],
    ) -> tuple[Wallets, dict[str, pa.Table]]:
        """Return the wallets of the rows, in the rows' order, and what was fetched of the column that orders them."""
        order = question.order
        if order is None or order.column is None:
            first = first_of(
                self._by_address(wallets), limit, last=order is not None and order.descending
            )
            return self._numbered(first), {}
        keys = _fetch(cursor, self._statements.sort_keys(question), question.values)
        keys = keys.set_column(0, "wallet", pa.array(self._by_address(keys["wallet"].to_numpy())))
        found, ranks = first_by(
            self._by_address(wallets),
            keys,
            limit,
            descending=order.descending,
            missing_last=order.missing_last,
        )
        field, statement = list(self._columns_of(question))[order.column]
        if not has_amounts(field.type):
            return self._numbered(found[:limit]), {}
        # Sizes do not tell amounts apart that are equal in their first digits: the limbs of the best do. Not all at
        # once: those of ten million wallets take a gigabyte.
        ordered, fetched = [], None
        for start, end in apart(ranks, _CHUNK):
            check()
            some = self._numbered(found[start:end])
            cursor.register(RETURNED, pa.table({"wallet": some}))
            fetched = _fetch(cursor, statement, question.values)
            best = pa.table({"wallet": found[start:end], "amount": placed(some, fetched)})
            ordered.append(
                in_exact_order(best, "amount", "wallet", descending=order.descending)[
                    "wallet"
                ].to_numpy()
            )
        by_amount = self._numbered(np.concatenate(ordered))
        # Not fetched a second time: of 700,000 holders that is a third of the answer's time.
        return by_amount[:limit], {field.name: fetched} if len(
            ordered
        ) == 1 and fetched is not None else {}

    def _by_address(self, wallets: Wallets) -> Wallets:
        """Return the ranks of wallets by address: these are their numbers, where nothing was added to the base."""
        return wallets if self._ranks is None else self._ranks[0][wallets]

    def _numbered(self, ranks: Wallets) -> Wallets:
        """Return the wallets of ranks by address."""
        return ranks if self._ranks is None else self._ranks[1][ranks]

    def _wallets(
        self,
        cursor: duckdb.DuckDBPyConnection,
        leaf: Statement,
        values: Sequence[Value],
        kept: dict[bytes, Wallets] | None = None,
    ) -> Wallets:
        """Fetch a leaf's wallets; ``kept`` has those that the same request fetched before."""
        lists = leaf.lists(values)
        named = {name: one.id for name, one in lists.items()}
        key = sha256(repr((leaf.prepared, leaf.arguments(values), named)).encode()).digest()
        for known in (self._few, kept or {}):
            if key in known:
                return known[key]
        for name, one in lists.items():
            cursor.register(name, pa.table({"wallet": self._listed(cursor, one)}))
        wallets: Wallets = _fetch(cursor, leaf, values)["wallet"].combine_chunks().to_numpy()
        if len(wallets) <= _FEW and len(self._few) < _KEPT:
            self._few[key] = wallets
        elif kept is not None:
            kept[key] = wallets
        return wallets

    def _listed(self, cursor: duckdb.DuckDBPyConnection, one: WalletList) -> Wallets:
        """Return those of a list's wallets that the data has."""
        found = self._lists.pop(one.id, None)
        if found is None:
            statement, parts = self._statements.reading("listed", _of_list), []
            for piece in one.pieces():
                cursor.register(LISTED, pa.table({"address": texts_of(piece)}))
                parts.append(_fetch(cursor, statement, ())["wallet"].to_numpy())
            cursor.unregister(LISTED)
            found = np.concatenate(parts)
        self._lists[one.id] = found
        for used_before in list(self._lists)[:-_LISTS_KEPT]:
            self._lists.pop(used_before, None)
        return found

    def _rows(
        self,
        cursor: duckdb.DuckDBPyConnection,
        wallets: Wallets,
        fetched: Mapping[str, pa.Table],
        question: Question,
        check: Callable[[], None],
    ) -> Rows:
        """Return the rows of these wallets, in their order: column after column, some of the wallets at a time.

        Columns that are ``fetched`` are not asked for.
        """
        columns = list(self._columns_of(question))
        number = 1 + len(columns) + len(question.floats)
        rows = Rows(len(wallets), number, question.floats, question.sizes, self._spill.made())
        try:
            for start, end in rows.chunks(_CHUNK):
                check()
                rows.add(pa.table({"address": self._addresses_of(cursor, wallets[start:end])}))
            for place, (field, statement) in enumerate(columns):
                for start, end in rows.chunks(_CHUNK):
                    check()
                    some = wallets[start:end]
                    if field.name in fetched:
                        found = pa.chunked_array([placed(some, fetched[field.name])])
                    elif _is_dense(self._by_address(some)):
                        found = self._range(
                            cursor, self._statements.ranges(question)[place], some, question.values
                        )
                    else:
                        # What is read whole names no wallets. To register them takes as long as a short statement.
                        if statement is self._statements.columns(question)[place].joined:
                            cursor.register(RETURNED, pa.table({"wallet": some}))
                        found = pa.chunked_array(
                            [placed(some, _fetch(cursor, statement, question.values))]
                        )
                    rows.add(pa.table({field.name: found.cast(field.type)}))
        except BaseException:
            rows.close()
            raise
        return rows

    def _range(
        self,
        cursor: duckdb.DuckDBPyConnection,
        statement: Statement,
        wallets: Wallets,
        values: Sequence[Value],
    ) -> pa.ChunkedArray:
        """Return a column of wallets that are near each other: ranges are read, others in them left out.

        Of ten million rows a join takes 5 s for each million wallets, and a range 0.1 s: they are sorted by wallet.
        """
        order = None if self._ranks is None else np.argsort(wallets)
        wallets = wallets if order is None else wallets[order]
        first, last = int(wallets[0]), int(wallets[-1])
        parts = []
        for some in np.split(
            wallets, np.searchsorted(wallets, np.arange(first + _SPAN, last + 1, _SPAN))
        ):
            ranged = (*values, int(some[0]), int(some[-1])) if len(some) else None
            parts += [placed(some, _fetch(cursor, statement, ranged))] if ranged else []
        column = pa.chunked_array(parts)
        return column if order is None else column.take(pa.array(np.argsort(order)))

    def _columns_of(self, question: Question) -> Iterator[tuple[pa.Field, Statement]]:
        """Yield each returned column and its statement: of all holders where they are few, else of the wallets."""
        for column, holders in zip(
            self._statements.columns(question), question.holders, strict=True
        ):
            read_whole = holders is not None and holders <= _READ_WHOLE
            yield column.field, column.whole if read_whole else column.joined

    def _addresses_of(self, cursor: duckdb.DuckDBPyConnection, wallets: Wallets) -> pa.Array:
        if self._addresses.ready:
            return self._addresses.of(wallets)
        cursor.register(RETURNED, pa.table({"wallet": wallets}))
        return placed(
            wallets, _fetch(cursor, self._statements.reading("addresses", _addresses, ()), ())
        )

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
            # They are stored in this order. To sort them would take all of the memory that questions may use.
            reader = cursor.execute("SELECT wallet, address FROM wallets").to_arrow_reader(_BATCH)
            self._addresses.write(self._in_order(reader), number)

    def _in_order(self, batches: Any) -> Iterator[pa.Array]:
        """Yield the addresses, as long as the wallets are numbered one after the other."""
        seen = 0
        for batch in batches:
            numbers = batch.column(0).to_numpy()
            if (
                self._closing.is_set()
                or not (numbers == np.arange(seen, seen + len(numbers))).all()
            ):
                return
            seen += len(numbers)
            yield batch.column(1)

    def totals(
        self, questions: Sequence[Question], *, cancel: Cancel | None = None
    ) -> list[tuple[int, int]]:
        """Add up the first columns; see `nbext.engine.dataset.Dataset.totals`."""
        return self._on_a_cursor(
            lambda cursor: self._totals(cursor, questions, cancel or Cancel()), cancel
        )

    def _totals(
        self, cursor: duckdb.DuckDBPyConnection, questions: Sequence[Question], cancel: Cancel
    ) -> list[tuple[int, int]]:
        found: dict[int, tuple[int, int]] = {}
        for asked, held in self._series(cursor, questions, cancel):
            if (column := self._statements.series_column(asked, cancel)) is None:
                continue
            values = (*asked.question.values, *asked.ends)
            reader = cursor.execute(column.prepared, column.arguments(values)).to_arrow_reader(
                _CHUNK
            )
            sums = series.totals(held, _heeding(cancel, reader), asked.blocks)
            for places, *each in zip(asked.places, held.counts(len(sums)), sums, strict=True):
                found |= dict.fromkeys(places, (each[0], each[1]))
        for place, question in enumerate(questions):
            if place not in found:
                found[place] = self._total(cursor, question, cancel)
        return [found[place] for place in range(len(questions))]

    def _total(
        self, cursor: duckdb.DuckDBPyConnection, question: Question, cancel: Cancel
    ) -> tuple[int, int]:
        cancel.check()
        build = build_total(question, lambda *_: ibis.table(WALLET, name=MEMBERS))
        statement = self._statements.reading(f"total {question.shape}", build, question.values)
        sets = self._statements.wallets(question, cancel)
        wallets = combined(sets, partial(self._wallets, cursor, values=question.values))
        cursor.register(MEMBERS, pa.table({"wallet": wallets}))
        (row,) = _fetch(cursor, statement, question.values).to_pylist()
        return len(wallets), sum_of(row)

    def _series(
        self, cursor: duckdb.DuckDBPyConnection, questions: Sequence[Question], cancel: Cancel
    ) -> Iterator[tuple[Series, Throughout]]:
        """Yield the questions that are alike but for their block, with their wallets at each block."""
        for asked in series_of(questions):
            values = (*asked.question.values, *asked.ends)

            def fetched(
                leaf: Statement, asked: Series = asked, values: Sequence[Value] = values
            ) -> Throughout:
                cancel.check()
                if ENTERS not in leaf.schema.names:
                    return series.always(self._wallets(cursor, leaf, values))
                reader = cursor.execute(leaf.prepared, leaf.arguments(values)).to_arrow_reader(
                    _CHUNK
                )
                rows = _heeding(cancel, reader)
                return series.merged(
                    (one["wallet"].to_numpy(), series.bits_of(one, asked.blocks)) for one in rows
                )

            if (sets := self._statements.series(asked, cancel)) is not None:
                yield asked, series.throughout(sets, fetched)

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
        """Count the holders of each contract among two sets of wallets; see `nbext.engine.dataset.Dataset.profile`."""
        cancel = cancel or Cancel()
        sides, values = {MEMBERS: segment, BASE: base}, profile_values(ends, least)
        members, others = (ibis.table(WALLET, name=name) for name in sides)
        build = build_profile(lambda *_: members, lambda *_: others, len(ends), 0, now=now)
        statement = self._statements.reading(f"profile {len(ends)} {now}", build, values)

        def work(cursor: duckdb.DuckDBPyConnection) -> pa.Table:
            for name, question in sides.items():
                sets = self._statements.wallets(question, cancel)
                wallets = combined(sets, partial(self._wallets, cursor, values=question.values))
                cursor.register(name, pa.table({"wallet": wallets}))
            return _fetch(cursor, statement, values)

        return in_common(self._on_a_cursor(work, cancel), self)

    def explain(
        self, question: Question, *, limit: int, cancel: Cancel | None = None
    ) -> Mapping[str, Any]:
        """Return the statements that answer, with their values written in, how they are combined, and their plans."""
        return self._on_a_cursor(
            lambda cursor: self._explained(cursor, question, limit, cancel or Cancel()), cancel
        )

    def _explained(
        self, cursor: duckdb.DuckDBPyConnection, question: Question, limit: int, cancel: Cancel
    ) -> Mapping[str, Any]:
        statements: dict[str, Statement] = {}
        formula = _formula(self._statements.wallets(question, cancel), statements)
        if limit:
            self._statements.columns(question, cancel)
            statements.update(
                {field.name: statement for field, statement in self._columns_of(question)}
            )
            if not self._addresses.ready:
                statements["address"] = self._statements.reading("addresses", _addresses, ())
        # The columns' statements name the wallets that are returned; their plans need a table of that name.
        cursor.register(RETURNED, pa.table({"wallet": pa.array([], pa.int32())}))
        returned = (
            f"the first {limit:,} by address are returned" if limit else "they are only counted"
        )
        texts = {"sql": f"-- wallets: {formula}; {returned}", "plan": ""}
        for name, one in statements.items():
            cancel.check()
            # What would be cut is not made: it takes longer than all of the rest.
            if len(texts["sql"]) <= MOST_EXPLAINED:
                texts["sql"] += f"\n\n-- {name}\n{one.with_literals(question.values, pretty=True)};"
            if len(texts["plan"]) <= MOST_EXPLAINED:
                for listed in one.lists(question.values).values():
                    cursor.register(listed.id, pa.table({"wallet": self._listed(cursor, listed)}))
                rows = cursor.execute(
                    f"EXPLAIN (FORMAT json) {one.with_literals(question.values)}"
                ).fetchall()
                texts["plan"] += f"\n\n{name}\n{drawn(str(rows[0][1]))}"
        return {"sql": cut(texts["sql"]), "plan": cut(texts["plan"].lstrip())}

    def close(self) -> None:
        """Give back the file and the memory."""
        self._closing.set()
        self._workers.shutdown(wait=True)
        self._connection.close()
        self._spill.release()

    def read(
        self, name: str, build: Build, values: Sequence[Value] = (), cancel: Cancel | None = None
    ) -> pa.Table:
        """Read a table that is built of the data\'s; see `nbext.engine.dataset.Dataset.read`."""
        statement = self._statements.reading(name, build, values)
        return self._on_a_cursor(lambda cursor: _fetch(cursor, statement, values), cancel)

    def _on_a_cursor(
        self, work: Callable[[duckdb.DuckDBPyConnection], Result], cancel: Cancel | None
    ) -> Result:
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
                f"The segment needs more memory than the service may use ({self._memory}, and {_SPILL} on disk). "
                "Narrow it, or give the service more: engine duckdb://?memory=4GB."
            )
        why = str(error).splitlines()[0]
        if "checksum" in why:  # DuckDB compares each block that it reads with its own
            return StorageError(f"The chain data is damaged: {why}. {ADVICE}")
        return SegmentFailed(f"DuckDB could not answer: {why}")


def _locked_down(
    generation: Generation, spill: Spill, memory: str, threads: int
) -> tuple[duckdb.DuckDBPyConnection, Layers | None, tuple[Wallets, Wallets] | None]:
    """Attach the generation to an empty database, and read its ranks: two datasets of one file then share nothing."""
    connection = duckdb.connect(
        ":memory:",
        config={
            **DUCKDB,
            "memory_limit": memory,
            "threads": threads,
            "temp_directory": str(spill.folder),
            "max_temp_directory_size": _SPILL,
            "python_enable_replacements": False,
        },
    )
    files = ("generation_base", "generation_delta") if generation.delta else ("generation",)
    try:
        layers = attach(connection.execute, generation, "generation")
        ranks = _ranks(connection) if generation.delta else None
        found = sum(
            connection.execute(f"SELECT count(*) FROM {file}.main.transfers").fetchall()[0][0]
            for file in files
        )
    except duckdb.Error as error:
        connection.close()
        spill.release()
        raise StorageError(
            f"{generation.folder} cannot be opened: {str(error).splitlines()[0]}. {ADVICE}"
        ) from None
    # A file of another generation in the place of one's own is whole, and would answer from that one's rows.
    stated = generation.manifest["tables"].get("transfers")
    if stated not in (None, found):
        connection.close()
        spill.release()
        raise StorageError(
            f"{generation.folder} is damaged: it has {found:,} transfers, and its manifest says "
            f"{stated:,}. {ADVICE}"
        )
    # From here on no query can name a file, an address, a setting or a table of Python's.
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection, layers, ranks


def _ranks(connection: duckdb.DuckDBPyConnection) -> tuple[Wallets, Wallets]:
    """Return each wallet's rank by address, and the wallet of each rank."""
    with connection.cursor() as cursor:
        added = cursor.execute(
            "SELECT wallet, place FROM generation_delta.ingest.places ORDER BY place, address"
        )
        wallets, places = (column.to_numpy() for column in added.to_arrow_table().columns)
        base = cursor.execute("SELECT count(*) FROM generation_base.main.wallets").fetchall()[0][0]
    by_rank = np.insert(np.arange(base, dtype=np.int32), places, wallets)
    ranks = np.empty_like(by_rank)
    ranks[by_rank] = np.arange(len(by_rank), dtype=np.int32)
    return ranks, by_rank


def _is_dense(wallets: Wallets) -> bool:
    """Say whether so many wallets are in ascending order, and near each other, that ranges are best read whole."""
    if len(wallets) < _MANY_WALLETS or len(wallets) * _DENSE < int(wallets[-1]) - int(wallets[0]):
        return False
    return bool((np.diff(wallets) > 0).all())


def _fetch(
    cursor: duckdb.DuckDBPyConnection, statement: Statement, values: Sequence[Value]
) -> pa.Table:
    return cursor.execute(statement.prepared, statement.arguments(values)).to_arrow_table()


def _heeding(cancel: Cancel, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        cancel.check()
        yield batch


def _addresses(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
    return (
        tables["wallets"]
        .semi_join(ibis.table(WALLET, name=RETURNED), "wallet")
        .select("wallet", "address")
    )


def _of_list(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
    asked = ibis.table({"address": "string"}, name=LISTED)
    return tables["wallets"].semi_join(asked, "address").select("wallet")


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
        for name in {
            *self._lease.others(),
            *(path.name for path in place.iterdir() if path.is_dir()),
        }:
            if not self._lease.is_alive(name):
                shutil.rmtree(place / name, ignore_errors=True)

    def made(self) -> Path:
        """Return the folder, which DuckDB makes only when it spills."""
        self.folder.mkdir(exist_ok=True)
        return self.folder

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
    yield from textwrap.wrap(
        _in_words(step), _WIDTH, initial_indent=first, subsequent_indent=below
    ) or [first]
    for i, child in enumerate(inputs):
        last = i == len(inputs) - 1
        yield from _lines(
            child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  ")
        )


def _in_words(step: Mapping[str, Any]) -> str:
    told = dict(step.get("extra_info") or {})
    rows = str(told.pop("Estimated Cardinality", ""))
    texts = {
        name: ", ".join(value) if isinstance(value, list) else value for name, value in told.items()
    }
    facts = [f"{name}: {text}" for name, text in texts.items() if text]
    facts += [f"~{int(rows):,} row{'s' * (rows != '1')}"] if rows.isdecimal() else []
    return f"{step.get('name', '').strip()}  {'; '.join(facts)}".strip()
