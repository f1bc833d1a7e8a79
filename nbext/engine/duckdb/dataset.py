"""A dataset on DuckDB: one generation, opened read-only and locked down, a cursor for each question."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from hashlib import sha256
from itertools import chain as chained
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import ibis
import numpy as np
import pyarrow as pa

from nbext.engine.catalog import TableCatalog, TableClock
from nbext.engine.dataset import (
    MOST_EXPLAINED,
    TICK,
    Build,
    Cancel,
    Catalog,
    Clock,
    Common,
    QueryResult,
    Question,
    Tables,
    Value,
    WalletList,
    check_size,
    cut,
    ended,
)
from nbext.engine.duckdb.bitmaps import (
    Bits,
    always,
    apart,
    bits_of,
    combined,
    first_by,
    first_of,
    merged,
    placed,
    throughout,
    totals_of,
)
from nbext.engine.duckdb.explain import drawn, formula_of
from nbext.engine.duckdb.files import MOST_SPILLED, Addresses, Spill, locked_down, texts_of
from nbext.engine.holdings import build_profile, build_total, in_common, profile_values, sum_of
from nbext.engine.query.rows import Rows, has_amounts, in_exact_order
from nbext.engine.query.series import ENTERS, Series, series_of
from nbext.engine.query.statements import LISTED, RETURNED, WALLET, Statement, Statements
from nbext.engine.storage import ADVICE, about
from nbext.errors import NbextError, ResourceLimit, SegmentFailed, StorageError

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.duckdb.bitmaps import Throughout, Wallets
    from nbext.engine.storage import Generation

Result = TypeVar("Result")
# With the libraries, the addresses' file and the wallets under way, a service stays below 1.5 GB.
MEMORY = "640MB"
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
        self._connection, layers, self._ranks = locked_down(
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

    def ask(self, question: Question, *, limit: int, cancel: Cancel | None = None) -> QueryResult:
        """Answer a question; see `nbext.engine.dataset.Dataset.ask`."""
        return self._do(lambda work: work.answer(question, limit), cancel)

    def count(
        self,
        questions: Sequence[Question],
        together: Sequence[Sequence[int]],
        *,
        cancel: Cancel | None = None,
    ) -> list[int]:
        """Count from bitmaps, each set of wallets read once; see `nbext.engine.dataset.Dataset.count`."""
        return self._do(lambda work: work.counts(questions, together), cancel)

    def read(
        self, name: str, build: Build, values: Sequence[Value] = (), cancel: Cancel | None = None
    ) -> pa.Table:
        """Read a table that is built of the data's; see `nbext.engine.dataset.Dataset.read`."""
        statement = self._statements.reading(name, build, values, cancel)
        return self._do(lambda work: work.fetch(statement, values), cancel)

    def totals(
        self, questions: Sequence[Question], *, cancel: Cancel | None = None
    ) -> list[tuple[int, int]]:
        """Add up the first columns; see `nbext.engine.dataset.Dataset.totals`."""
        return self._do(lambda work: work.totals(questions), cancel)

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
        sides, values = {MEMBERS: segment, BASE: base}, profile_values(ends, least)
        members, others = (ibis.table(WALLET, name=name) for name in sides)
        build = build_profile(lambda *_: members, lambda *_: others, len(ends), 0, now=now)
        statement = self._statements.reading(f"profile {len(ends)} {now}", build, values)

        def counted(work: _Work) -> pa.Table:
            for name, question in sides.items():
                work.register(name, work.wallets(question))
            return work.fetch(statement, values)

        return in_common(self._do(counted, cancel), self)

    def explain(
        self, question: Question, *, limit: int, cancel: Cancel | None = None
    ) -> Mapping[str, Any]:
        """Return the statements that answer, with their values written in, how they are combined, and their plans."""
        return self._do(lambda work: work.explained(question, limit), cancel)

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

    def _do(self, task: Callable[[_Work], Result], cancel: Cancel | None) -> Result:
        """Do work that may run several statements; however it ends, the statement under way ends with it."""
        cursor = self._connection.cursor()
        cursor.execute("USE generation")
        running = self._workers.submit(task, _Work(self, cursor, cancel or Cancel()))
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


class _Work:
    """What is done for one question, on a cursor of its own."""

    def __init__(
        self, data: DuckDataset, cursor: duckdb.DuckDBPyConnection, cancel: Cancel
    ) -> None:
        self._data, self._cursor, self._cancel = data, cursor, cancel
        self._statements = data._statements

    def fetch(self, statement: Statement, values: Sequence[Value]) -> pa.Table:
        """Run a statement."""
        return self._execute(statement, values).to_arrow_table()

    def register(self, name: str, wallets: Wallets) -> None:
        """Have statements read these wallets as a table."""
        self._cursor.register(name, pa.table({"wallet": wallets}))

    def wallets(self, question: Question) -> Wallets:
        """Return a question's wallets, in no order."""
        sets = self._statements.wallets(question, self._cancel)
        return combined(sets, lambda leaf: self._wallets_of(leaf, question.values))

    def answer(self, question: Question, limit: int) -> QueryResult:
        """Return how many wallets match, and the first rows of them."""
        wallets = self.wallets(question)
        columns = self._statements.columns(question, self._cancel)
        if limit == 0 or not len(wallets):
            return QueryResult(len(wallets), self._statements.no_rows(question))
        check_size(min(limit, len(wallets)), question, len(columns))
        first, ordering = self._first(wallets, limit, question)
        if self._cancel.deadline:
            # Rows take time by how many were asked for, which is bounded; the limit is for finding the wallets.
            self._cancel.deadline += (
                len(first) * (1 + len(question.holders) + len(question.floats)) / _VALUES_A_SECOND
            )
        return QueryResult(len(wallets), self._rows(first, ordering, question))

    def counts(self, questions: Sequence[Question], together: Sequence[Sequence[int]]) -> list[int]:
        """Return how many wallets several questions have in common."""
        joined = set(chained.from_iterable(places for places in together if len(places) > 1))
        bits, alone = Bits(), dict[int, int]()
        kept: dict[bytes, Wallets] = {}

        def add(place: int, wallets: Wallets) -> None:
            bits.add(place, wallets)
            if bits.nbytes > _COUNTED_AT_ONCE:
                raise ResourceLimit(
                    "The segments to compare need too much memory at once. Compare fewer of them."
                )

        for asked, held in self._series(questions):
            for point, (alike, number) in enumerate(
                zip(asked.places, held.counts(len(asked.places)), strict=True)
            ):
                alone |= dict.fromkeys(alike, number)
                for place in joined.intersection(alike):
                    add(place, held.at(point))
        for place, question in enumerate(questions):
            self._cancel.check()
            if place in alone:
                continue

            def fetched(leaf: Statement, values: Sequence[Value] = question.values) -> Wallets:
                found = self._wallets_of(leaf, values, kept)
                # At each: the 200 conditions of one segment alone may have gigabytes of wallets.
                if bits.nbytes + sum(map(len, kept.values())) * found.itemsize > _COUNTED_AT_ONCE:
                    kept.clear()
                return found

            wallets = combined(self._statements.wallets(question, self._cancel), fetched)
            alone[place] = len(wallets)
            if place in joined:
                add(place, wallets)
        counts = []
        for places in together:
            self._cancel.check()
            counts.append(alone[places[0]] if len(places) == 1 else bits.common(places))
        return counts

    def totals(self, questions: Sequence[Question]) -> list[tuple[int, int]]:
        """Return for each question how many wallets match, and the sum of its first column."""
        found: dict[int, tuple[int, int]] = {}
        for asked, held in self._series(questions):
            column = self._statements.series_column(asked, self._cancel)
            if column is None:
                continue
            rows = self._batches(column, (*asked.question.values, *asked.ends))
            sums = totals_of(held, rows, asked.blocks)
            for places, number, total in zip(
                asked.places, held.counts(len(sums)), sums, strict=True
            ):
                found |= dict.fromkeys(places, (number, total))
        for place, question in enumerate(questions):
            if place in found:
                continue
            self._cancel.check()
            build = build_total(question, lambda *_: ibis.table(WALLET, name=MEMBERS))
            statement = self._statements.reading(f"total {question.shape}", build, question.values)
            wallets = self.wallets(question)
            self.register(MEMBERS, wallets)
            (row,) = self.fetch(statement, question.values).to_pylist()
            found[place] = (len(wallets), sum_of(row))
        return [found[place] for place in range(len(questions))]

    def explained(self, question: Question, limit: int) -> Mapping[str, Any]:
        """Return what `DuckDataset.explain` does."""
        statements: dict[str, Statement] = {}
        formula = formula_of(self._statements.wallets(question, self._cancel), statements)
        if limit:
            self._statements.columns(question, self._cancel)
            statements.update(
                {field.name: statement for field, statement in self._columns_of(question)}
            )
            if not self._data._addresses.ready:
                statements["address"] = self._statements.reading("addresses", _addresses)
        # The columns' statements name the wallets that are returned; their plans need a table of that name.
        self.register(RETURNED, np.array([], np.int32))
        returned = (
            f"the first {limit:,} by address are returned" if limit else "they are only counted"
        )
        texts = {"sql": f"-- wallets: {formula}; {returned}", "plan": ""}
        for name, one in statements.items():
            self._cancel.check()
            # What would be cut is not made: it takes longer than all of the rest.
            if len(texts["sql"]) <= MOST_EXPLAINED:
                texts["sql"] += f"\n\n-- {name}\n{one.with_literals(question.values, pretty=True)};"
            if len(texts["plan"]) <= MOST_EXPLAINED:
                for listed in one.lists(question.values).values():
                    self.register(listed.id, self._listed(listed))
                rows = self._cursor.execute(
                    f"EXPLAIN (FORMAT json) {one.with_literals(question.values)}"
                ).fetchall()
                texts["plan"] += f"\n\n{name}\n{drawn(str(rows[0][1]))}"
        return {"sql": cut(texts["sql"]), "plan": cut(texts["plan"].lstrip())}

    def _execute(self, statement: Statement, values: Sequence[Value]) -> duckdb.DuckDBPyConnection:
        return self._cursor.execute(statement.prepared, statement.arguments(values))

    def _batches(self, statement: Statement, values: Sequence[Value]) -> Iterator[pa.RecordBatch]:
        for batch in self._execute(statement, values).to_arrow_reader(_CHUNK):
            self._cancel.check()
            yield batch

    def _wallets_of(
        self, leaf: Statement, values: Sequence[Value], kept: dict[bytes, Wallets] | None = None
    ) -> Wallets:
        """Fetch a leaf's wallets; ``kept`` has those that the same request fetched before."""
        self._cancel.check()
        lists, few = leaf.lists(values), self._data._few
        named = {name: one.id for name, one in lists.items()}
        key = sha256(repr((leaf.prepared, leaf.arguments(values), named)).encode()).digest()
        for known in (few, kept or {}):
            if key in known:
                return known[key]
        for name, one in lists.items():
            self.register(name, self._listed(one))
        wallets: Wallets = self.fetch(leaf, values)["wallet"].combine_chunks().to_numpy()
        if len(wallets) <= _FEW and len(few) < _KEPT:
            few[key] = wallets
        elif kept is not None:
            kept[key] = wallets
        return wallets

    def _listed(self, one: WalletList) -> Wallets:
        """Return those of a list's wallets that the data has."""
        lists = self._data._lists
        found = lists.pop(one.id, None)
        if found is None:
            statement, parts = self._statements.reading("listed", _of_list), []
            for piece in one.pieces():
                self._cursor.register(LISTED, pa.table({"address": texts_of(piece)}))
                parts.append(self.fetch(statement, ())["wallet"].to_numpy())
            self._cursor.unregister(LISTED)
            found = np.concatenate(parts)
        lists[one.id] = found
        for used_before in list(lists)[:-_LISTS_KEPT]:
            lists.pop(used_before, None)
        return found

    def _series(self, questions: Sequence[Question]) -> Iterator[tuple[Series, Throughout]]:
        """Yield the questions that are alike but for their block, with their wallets at each block."""
        for asked in series_of(questions):
            values = (*asked.question.values, *asked.ends)

            def fetched(
                leaf: Statement, asked: Series = asked, values: Sequence[Value] = values
            ) -> Throughout:
                if ENTERS not in leaf.schema.names:
                    return always(self._wallets_of(leaf, values))
                self._cancel.check()
                return merged(
                    (one["wallet"].to_numpy(), bits_of(one, asked.blocks))
                    for one in self._batches(leaf, values)
                )

            if (sets := self._statements.series(asked, self._cancel)) is not None:
                yield asked, throughout(sets, fetched)

    def _first(
        self,
        wallets: Wallets,
        limit: int,
        question: Question,
    ) -> tuple[Wallets, dict[str, pa.Table]]:
        """Return the wallets of the rows, in the rows' order, and what was fetched of the column that orders them."""
        order = question.order
        if order is None or order.column is None:
            first = first_of(
                self._by_address(wallets), limit, last=order is not None and order.descending
            )
            return self._numbered(first), {}
        keys = self.fetch(self._statements.sort_keys(question), question.values)
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
            self._cancel.check()
            some = self._numbered(found[start:end])
            self.register(RETURNED, some)
            fetched = self.fetch(statement, question.values)
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
        return wallets if self._data._ranks is None else self._data._ranks[0][wallets]

    def _numbered(self, ranks: Wallets) -> Wallets:
        """Return the wallets of ranks by address."""
        return ranks if self._data._ranks is None else self._data._ranks[1][ranks]

    def _rows(
        self,
        wallets: Wallets,
        fetched: Mapping[str, pa.Table],
        question: Question,
    ) -> Rows:
        """Return the rows of these wallets, in their order: column after column, some of the wallets at a time.

        Columns that are ``fetched`` are not asked for.
        """
        columns = list(self._columns_of(question))
        number = 1 + len(columns) + len(question.floats)
        rows = Rows(len(wallets), number, question.floats, question.sizes, self._data._spill.made())
        try:
            for start, end in rows.chunks(_CHUNK):
                self._cancel.check()
                rows.add(pa.table({"address": self._addresses_of(wallets[start:end])}))
            for place, (field, statement) in enumerate(columns):
                for start, end in rows.chunks(_CHUNK):
                    self._cancel.check()
                    some = wallets[start:end]
                    if field.name in fetched:
                        found = pa.chunked_array([placed(some, fetched[field.name])])
                    elif _is_dense(self._by_address(some)):
                        found = self._range(
                            self._statements.ranges(question)[place], some, question.values
                        )
                    else:
                        # What is read whole names no wallets. To register them takes as long as a short statement.
                        if statement is self._statements.columns(question)[place].joined:
                            self.register(RETURNED, some)
                        found = pa.chunked_array(
                            [placed(some, self.fetch(statement, question.values))]
                        )
                    rows.add(pa.table({field.name: found.cast(field.type)}))
        except BaseException:
            rows.close()
            raise
        return rows

    def _range(
        self,
        statement: Statement,
        wallets: Wallets,
        values: Sequence[Value],
    ) -> pa.ChunkedArray:
        """Return a column of wallets that are near each other: ranges are read, others in them left out.

        Of ten million rows a join takes 5 s for each million wallets, and a range 0.1 s: they are sorted by wallet.
        """
        order = None if self._data._ranks is None else np.argsort(wallets)
        wallets = wallets if order is None else wallets[order]
        first, last = int(wallets[0]), int(wallets[-1])
        parts = []
        for some in np.split(
            wallets, np.searchsorted(wallets, np.arange(first + _SPAN, last + 1, _SPAN))
        ):
            ranged = (*values, int(some[0]), int(some[-1])) if len(some) else None
            parts += [placed(some, self.fetch(statement, ranged))] if ranged else []
        column = pa.chunked_array(parts)
        return column if order is None else column.take(pa.array(np.argsort(order)))

    def _columns_of(self, question: Question) -> Iterator[tuple[pa.Field, Statement]]:
        """Yield each returned column and its statement: of all holders where they are few, else of the wallets."""
        for column, holders in zip(
            self._statements.columns(question), question.holders, strict=True
        ):
            read_whole = holders is not None and holders <= _READ_WHOLE
            yield column.field, column.whole if read_whole else column.joined

    def _addresses_of(self, wallets: Wallets) -> pa.Array:
        if self._data._addresses.ready:
            return self._data._addresses.of(wallets)
        self.register(RETURNED, wallets)
        return placed(wallets, self.fetch(self._statements.reading("addresses", _addresses), ()))


def _is_dense(wallets: Wallets) -> bool:
    """Say whether so many wallets are in ascending order, and near each other, that ranges are best read whole."""
    if len(wallets) < _MANY_WALLETS or len(wallets) * _DENSE < int(wallets[-1]) - int(wallets[0]):
        return False
    return bool((np.diff(wallets) > 0).all())


def _addresses(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
    return (
        tables["wallets"]
        .semi_join(ibis.table(WALLET, name=RETURNED), "wallet")
        .select("wallet", "address")
    )


def _of_list(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
    asked = ibis.table({"address": "string"}, name=LISTED)
    return tables["wallets"].semi_join(asked, "address").select("wallet")
