"""Answers from sets of wallets: one strategy for all engines, of which each runs statements in its own way.

Each leaf of a question is fetched as integers and combined with the others in memory; columns are read of the wallets
that are returned alone. What an engine does is in `Engine` and `Dataset.do`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from nbext.engine.catalog import Catalog, Clock
from nbext.engine.dataset import (
    MOST_EXPLAINED,
    Cancel,
    DataAbout,
    ExactColumn,
    QueryResult,
    Question,
    check_size,
    cut,
)
from nbext.engine.exact_columns import AMOUNT, in_exact_order, without_zeros
from nbext.engine.query.bitmaps import (
    Series,
    Throughout,
    always,
    among,
    apart,
    bits_of,
    combined,
    first_by,
    first_of,
    in_common,
    merged,
    packed,
    placed,
    series_of,
    settled,
    throughout,
    tied,
    totals_of,
    wallets_of,
)
from nbext.engine.query.rows import Rows, addresses_of_bytes
from nbext.engine.query.set_tree import (
    ENTERS,
    LEAVES,
    Leaf,
    Selection,
    Sql,
    Tree,
    WalletList,
    formula_of,
    spelled_out,
)
from nbext.engine.query.sql import SqlBuilder
from nbext.engine.schema import LIMBS
from nbext.errors import ResourceLimit

if TYPE_CHECKING:
    from nbext.engine.query.bitmaps import Wallets, WalletSet
    from nbext.engine.query.sql import Layers

Result = TypeVar("Result")
# The wallets that are returned, and addresses that are looked up, as tables of a statement.
RETURNED, LISTED = "nbext_returned", "nbext_list"
# Fewer addresses than this are looked up in their table as fast as in a file of their own.
MANY_WALLETS = 100_000
# Rows of a statement that are fetched at once.
CHUNK = 1_000_000
# One in so many wallets of a range is dense enough to read all of it. Of so many wallets a column is read and made at
# once: on the way each takes up to 400 bytes.
_DENSE, _AT_ONCE = 8, 250_000
# On a busy machine. For a million rows of an amount these are three seconds more.
_VALUES_A_SECOND = 1_000_000
# A column or a range of so many wallets is read whole: picking some of them is a join, which costs more. Of so many
# holders a join costs less, once: a column that is asked for again is read whole, and kept.
_READ_WHOLE, _KEPT_WHOLE = 100_000, 1_000_000
# The memory of the sets of wallets and of the small columns that were used last (bytes): parts of a segment share
# theirs, most segments leave the burn addresses out, and whoever asks again has mostly changed one condition. The least
# that a set counts as, however few its wallets are: there are never more than a thousand.
_KEPT, _SET = 32 << 20, 32 << 10
# The memory of the sets that one request compares (bytes).
_COUNTED_AT_ONCE = 256 << 20
# Balances of all wallets of one request, so that an answer stays some ten megabytes.
MOST_HELD = 500_000
_HELD = pa.schema(
    [("wallet", pa.int32()), ("contract", pa.int32()), ("sort_key", pa.int64()), *AMOUNT]
)


class Engine(Protocol):
    """Runs the statements of one question."""

    def fetch(self, sql: Sql) -> pa.Table:
        """Return all rows of a statement."""

    def batches(self, sql: Sql) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a statement, about `CHUNK` at a time."""

    def ahead(self, statements: Sequence[Sql]) -> None:
        """Begin statements that are fetched soon, each once, where the engine runs several at once."""

    def plan(self, sql: Sql) -> str:
        """Return how the engine would run a statement."""


class Dataset(ABC):
    """One immutable generation of data, open for questions. Safe to use from several threads.

    Attributes
    ----------
    layers
        Where the data is a base and a delta.
    ranks
        Each wallet's rank by address, and the wallet of each rank, where its number is not its rank.
    sets
        The wallets of statements and lists, and the rows of columns, that were used last, which are last; with the
        bytes of each. None for the rows of a large column that was asked for once.
    """

    layers: Layers | None = None
    ranks: tuple[Wallets, Wallets] | None = None

    def __init__(self, about: DataAbout) -> None:
        self.about = about
        self.catalog, self.clock = Catalog(self.read), Clock(self.read, about.chains)
        self.sets: dict[str, Any] = {}

    @abstractmethod
    def do(self, task: Callable[[Engine], Result], cancel: Cancel | None) -> Result:
        """Do work that may run several statements; however it ends, all of them end with it."""

    @abstractmethod
    def close(self) -> None:
        """Give back files and memory."""

    def aside(self) -> str | None:
        """Return the folder for rows that do not fit into memory; None: the system's."""
        return None

    def addresses_of(self, wallets: Wallets) -> pa.Array | None:
        """Return the addresses of wallets where they need no statement; None where one is needed."""
        return None

    def answers(self, task: Callable[[Answers], Result], cancel: Cancel | None = None) -> Result:
        """Do what may take several questions. Errors as `ask`."""
        return self.do(lambda engine: task(Answers(self, engine, cancel or Cancel())), cancel)

    def ask(self, question: Question, *, limit: int, cancel: Cancel | None = None) -> QueryResult:
        """Answer a question. ``limit=0`` only counts.

        Raises
        ------
        QueryCancelled, QueryTimeout, ResourceLimit
        """
        return self.answers(lambda answers: answers.answer(question, limit), cancel)

    def read(self, write: Callable[[SqlBuilder], str]) -> pa.Table:
        """Return the rows of a statement. Errors as `ask`."""
        sql = SqlBuilder(self.layers)
        statement = sql.statement(write(sql))
        return self.do(lambda engine: engine.fetch(statement), None)


class Answers:
    """What is done for one question, or for several that are asked together."""

    def __init__(self, data: Dataset, engine: Engine, cancel: Cancel) -> None:
        self._data, self._engine, self._cancel = data, engine, cancel
        # Of sets of wallets, by their texts, the statements of columns that are read of the very same rows: a statement
        # takes 1 ms however few rows it finds, so that one is fetched for both.
        self._wider = dict[str, Sql]()

    def wallets(self, question: Question) -> Wallets:
        """Return a question's wallets, in no order."""
        return wallets_of(self._set(question))

    def _set(self, question: Question, *others: Tree) -> WalletSet:
        """Return the set of a question's wallets; ``others`` are sets that are combined after it."""
        sets = question.wallets(self._builder()).tree
        self._ahead([sets, *others])
        return combined(sets, self._wallets_of)

    def answer(self, question: Question, limit: int) -> QueryResult:
        """Return how many wallets match, and the first rows of them."""
        self._widen(question, limit)
        matches = [column for column in question.columns if limit and column.kind == "match"]
        found = self._set(question, *map(self._match, matches))
        matched, first = len(found), np.empty(0, np.int32)
        if limit and matched:
            check_size(min(limit, matched), question)
            first = self._first(wallets_of(found), limit, question)
        if self._cancel.deadline:
            # Rows take time by how many were asked for, which is bounded; the limit is for finding the wallets.
            self._cancel.deadline += len(first) * question.width / _VALUES_A_SECOND
        return QueryResult(matched, self._rows(first, question))

    def counts(self, questions: Sequence[Question], together: Sequence[Sequence[int]]) -> list[int]:
        """Return how many wallets several questions have in common, for each of ``together``: their places.

        After the first place, ``~place`` leaves the wallets of a question out. What the questions share is read once:
        the history too, for many blocks.
        """
        joined = {
            ~place if place < 0 else place
            for places in together
            if len(places) > 1
            for place in places
        }
        alone: dict[int, int] = {}
        found: dict[int, WalletSet] = {}

        def add(place: int, wallets: WalletSet) -> None:
            found[place] = wallets
            if sum(one.nbytes for one in found.values()) > _COUNTED_AT_ONCE:
                raise ResourceLimit(
                    "The segments to compare need too much memory at once. Compare fewer of them."
                )

        for series, held in self._series(questions, columns=False):
            several = zip(series.places, held.counts(len(series.places)), strict=True)
            for point, (alike, number) in enumerate(several):
                alone |= dict.fromkeys(alike, number)
                for place in joined.intersection(alike):
                    add(place, settled(held.at(point)))
        sets = dict[int, Tree]()
        for place, question in enumerate(questions):
            if place not in alone:
                self._widen(question, 0)
                sets[place] = question.wallets(self._builder()).tree
        self._ahead(sets.values())
        for place, one in sets.items():
            self._cancel.check()
            wallets = combined(one, self._wallets_of)
            alone[place] = len(wallets)
            if place in joined:
                add(place, wallets)
        common = in_common(found, [places for places in together if len(places) > 1])
        counts = []
        for places in together:
            self._cancel.check()
            counts.append(alone[places[0]] if len(places) == 1 else next(common))
        return counts

    def totals(self, questions: Sequence[Question]) -> list[tuple[int, int]]:
        """Return for each question how many wallets match, and the sum of its first column: of a balance or a count.

        Questions that differ in their block alone are answered by one reading of the history, as by `counts`.
        """
        found: dict[int, tuple[int, int]] = {}
        for series, held in self._series(questions, columns=True):
            sums = self._sums(held, series.question, series.blocks, series.span)
            numbers = held.counts(len(sums))
            for places, number, total in zip(series.places, numbers, sums, strict=True):
                found |= dict.fromkeys(places, (number, total))
        for place, question in enumerate(questions):
            if place not in found:
                wallets = self.wallets(question)
                (total,) = self._sums(always(wallets), question, (0,))
                found[place] = (len(wallets), total)
        return [found[place] for place in range(len(questions))]

    def _sums(
        self,
        held: Throughout,
        question: Question,
        blocks: Sequence[int],
        span: tuple[int, int] | None = None,
    ) -> list[int]:
        """Return the sum of a question's first column over the wallets at each block."""
        column, sql = question.columns[0], self._builder(span)
        batches = self._batches(sql.statement(column.values(sql)))
        return totals_of(held, (valued(rows, column) for rows in batches), blocks)

    def holders(
        self, segment: Question, base: Question, at: Mapping[int, int | None]
    ) -> np.ndarray[tuple[int, int], Any]:
        """Return how many wallets of a segment, and of a base, hold each contract, by its number.

        ``at`` is the block of each chain at the end of which balances are read; None: the data's last.
        """
        sets = [packed(self.wallets(question)) for question in (segment, base)]
        many = len(self._data.catalog.places)
        counts = np.zeros((2, many), np.int64)
        for sql, held in self._held(at):
            pairs = f"SELECT contract, wallet FROM {held} AND sort_key > 0"
            for rows in self._batches(sql.statement(pairs)):
                of, wallets = (rows.column(name).to_numpy() for name in ("contract", "wallet"))
                counts += [np.bincount(of[one.has(wallets)], minlength=many) for one in sets]
        return counts

    def held_by(
        self, question: Question, at: Mapping[int, int | None]
    ) -> tuple[pa.Array, pa.Table]:
        """Return the addresses of a question's wallets, in order, and what these hold, in no order, but what is zero.

        A row has the ``wallet`` as its place among the addresses, the number of the ``contract``, and of the balance
        the ``sort_key`` and the limbs. ``at`` as of `holders`. More than `MOST_HELD` rows are a
        ResourceLimit.
        """
        ranks = np.sort(self._by_address(self.wallets(question)))
        wallets, rows = self._numbered(ranks), _HELD.empty_table()
        for sql, held in self._held(at) if len(wallets) else ():
            text = f"SELECT wallet, contract, sort_key, hi, mid, lo FROM {held} AND sort_key <> 0"
            found = self._engine.fetch(_of(wallets, sql.statement(text), MOST_HELD + 1))
            rows = pa.concat_tables([rows, found.cast(_HELD)])
            if len(rows) > MOST_HELD:
                raise ResourceLimit(
                    f"These wallets hold more than {MOST_HELD:,} tokens and collections. "
                    "Ask for fewer wallets, or for one chain."
                )
        places = np.searchsorted(ranks, self._by_address(rows["wallet"].to_numpy()))
        return self._addresses(wallets), rows.set_column(0, "wallet", pa.array(places))

    def _held(self, at: Mapping[int, int | None]) -> Iterator[tuple[SqlBuilder, str]]:
        """Yield what writes a statement, and the balances of chains, which more conditions may follow."""
        # Of now all chains are one scan.
        for block in dict.fromkeys(at.values()):
            sql, chains = self._builder(), [chain for chain, one in at.items() if one == block]
            contracts = f"SELECT contract FROM {sql.table('contracts', chain_id=chains)}"
            # Of all balances of 10 million transfers 17 ms, and 48 where each contract's chain is looked up.
            every = len(chains) == len(self._data.about.chains)
            of_chains = "true" if every else f"contract IN ({contracts})"
            yield sql, f"{sql.held(block)} WHERE {of_chains}"

    def explained(self, question: Question, limit: int) -> Mapping[str, Any]:
        """Return ``{"sql": ..., "plan": ...}``: the statements that answer the question, and their plans.

        Each is cut at `MOST_EXPLAINED` characters, and says so.
        """
        sql, numbered = self._builder(), dict[str, tuple[int, Leaf]]()
        formula = f"-- wallets: {formula_of(question.wallets(sql).tree, numbered)}"
        # One wallet in the place of those that are returned: Spark Connect makes no table of none.
        returned, order = np.zeros(1, np.int32), question.order
        columns: dict[str, Leaf] = {}
        for column in question.columns if limit else ():
            if column.kind == "match":
                formula += f"; {column.name}: {formula_of(self._match(column), numbered)}"
            else:
                columns[column.name] = self._statement(column, returned)
        by = "address"
        if limit and order.column is not None:
            first = question.columns[order.column]
            by = first.name
            columns[f"order by {by}"] = sql.statement((first.sort_keys or first.values)(sql))
        if limit and self._data.addresses_of(returned) is None:
            columns["address"] = _addresses(returned)
        self._widen(question, limit)
        sets_read = {
            str(number): self._wider.get(key, leaf) for key, (number, leaf) in numbered.items()
        }
        answered = f"the first {limit:,} by {by} are returned" if limit else "they are only counted"
        texts = {"sql": f"{formula}; {answered}", "plan": ""}
        # What is read for a set and for a column is one statement.
        shown = dict[str, tuple[list[str], Leaf]]()
        for name, one in {**sets_read, **columns}.items():
            shown.setdefault(repr(one), ([], one))[0].append(name)
        for names, one in shown.values():
            self._cancel.check()
            name = ", ".join(names)
            if isinstance(one, WalletList):
                texts["sql"] += f"\n\n-- {name}: the {one.wallets:,} wallets of the list {one.id}"
                continue
            # What would be cut is not made: it takes longer than all of the rest.
            if len(texts["sql"]) <= MOST_EXPLAINED:
                texts["sql"] += f"\n\n-- {name}\n{spelled_out(one)}"
            if len(texts["plan"]) <= MOST_EXPLAINED:
                texts["plan"] += f"\n\n{name}\n{self._engine.plan(one)}"
        return {"sql": cut(texts["sql"]), "plan": cut(texts["plan"].lstrip())}

    def _builder(self, span: tuple[int, int] | None = None) -> SqlBuilder:
        self._cancel.check()
        return SqlBuilder(self._data.layers, span)

    def _batches(self, sql: Sql) -> Iterator[pa.RecordBatch]:
        for batch in self._engine.batches(sql):
            self._cancel.check()
            yield batch

    def _ahead(self, sets: Iterable[Tree]) -> None:
        """Have the engine begin with the leaves of some sets that are not known."""
        needed = dict[str, tuple[int, Leaf]]()
        for one in sets:
            formula_of(one, needed)
        leaves = [self._wider.get(key, one) for key, (_, one) in needed.items()]
        self._engine.ahead(
            [one for one in leaves if isinstance(one, Sql) and repr(one) not in self._data.sets]
        )

    def _widen(self, question: Question, limit: int) -> None:
        """Note which sets are read with a small column: where rows are returned, or were."""
        for column in question.columns:
            if column.holders <= _READ_WHOLE:
                wider = self._statement(column)
                if limit or repr(wider) in self._data.sets:
                    rows = wider.text.partition(" FROM ")[2]
                    self._wider[repr(replace(wider, text=f"SELECT wallet FROM {rows}"))] = wider

    def _wallets_of(self, leaf: Leaf) -> WalletSet:
        found = self._kept(self._wider.get(repr(leaf), leaf))
        wallets: WalletSet = found["wallet"].to_numpy() if isinstance(found, pa.Table) else found
        return wallets

    def _kept(self, leaf: Leaf) -> Any:
        """Fetch what a statement or a list has, or return what is known of it: a set of wallets, or a table."""
        self._cancel.check()
        sets, key = self._data.sets, repr(leaf)
        if (known := sets.pop(key, None)) and known[1] is not None:
            sets[key] = known
            return known[1]
        fetched = self._engine.fetch(leaf) if isinstance(leaf, Sql) else self._listed(leaf)
        fetched = fetched.combine_chunks()
        one_column = fetched.num_columns == 1
        fetched = settled(fetched["wallet"].to_numpy()) if one_column else without_zeros(fetched)
        # Measured once: of a table that takes as long as a small question. What is too large would drive out all else.
        if (size := fetched.nbytes) > _KEPT:
            return fetched
        sets[key] = size, fetched
        # Copied at once: other threads change them, too.
        sizes = {key: max(_SET, len(key) + size) for key, (size, _) in sets.copy().items()}
        over = sum(sizes.values()) - _KEPT
        for key, size in sizes.items():
            if over > 0:
                sets.pop(key, None)
                over -= size
        return fetched

    def _listed(self, one: WalletList) -> pa.Table:
        """Return those of a list's wallets that the data has."""
        text = f"SELECT wallet FROM wallets WHERE address IN (SELECT address FROM {LISTED})"
        found = []
        for piece in one.pieces():
            listed = pa.table({"address": addresses_of_bytes(piece)})
            found.append(self._engine.fetch(Sql(text, tables={LISTED: listed})))
        return pa.concat_tables(found)

    def _series(
        self, questions: Sequence[Question], *, columns: bool
    ) -> Iterator[tuple[Series, Throughout]]:
        """Yield the questions that are alike but for their block, with their wallets at each block."""
        for series in series_of(questions, self._data.layers, columns=columns):

            def fetched(leaf: Leaf, series: Series = series) -> Throughout:
                if isinstance(leaf, WalletList) or not leaf.timed:
                    return always(self._wallets_of(leaf))
                return merged(
                    Throughout(one.column("wallet").to_numpy(), bits_of(one, series.blocks))
                    for one in self._batches(leaf)
                )

            sets = series.question.wallets(self._builder(series.span)).tree
            yield series, throughout(sets, fetched)

    def _first(self, wallets: Wallets, limit: int, question: Question) -> Wallets:
        """Return the wallets of the rows, in the rows' order."""
        order, ranks = question.order, self._by_address(wallets)
        if order.column is None:
            return self._numbered(first_of(ranks, limit, last=order.descending))
        sql, column = self._builder(), question.columns[order.column]
        keys = self._engine.fetch(sql.statement((column.sort_keys or column.values)(sql)))
        if column.kind != "amount":
            keys = valued(keys, column)
        keys = keys.set_column(0, "wallet", pa.array(self._by_address(keys["wallet"].to_numpy())))
        found, numbers = first_by(
            ranks,
            keys,
            limit,
            descending=order.descending,
            missing_last=column.kind in ("time", "number"),
        )
        # Sort keys do not tell amounts apart that are equal in their first digits: the limbs do. Not all at once: those
        # of ten million wallets take a gigabyte.
        alike = tied(numbers) if column.kind == "amount" else np.zeros(0, np.int64)
        for start, end in apart(numbers[alike], CHUNK):
            places = alike[start:end]
            by_address = found[places]
            amounts = self._column(column, self._numbered(by_address))
            ordered = in_exact_order(
                numbers[places], amounts, by_address, descending=order.descending
            )
            found[places] = by_address[ordered]
        return self._numbered(found[:limit])

    def _by_address(self, wallets: Wallets) -> Wallets:
        """Return the ranks of wallets by address: these are their numbers, where nothing was added to the base."""
        return wallets if self._data.ranks is None else self._data.ranks[0][wallets]

    def _numbered(self, ranks: Wallets) -> Wallets:
        """Return the wallets of ranks by address."""
        return ranks if self._data.ranks is None else self._data.ranks[1][ranks]

    def _rows(self, wallets: Wallets, question: Question) -> Rows:
        """Return the rows of these wallets, in their order: some of the wallets at a time, column after column."""
        rows = Rows(len(wallets), question.width, question.floats, self._data.aside())
        try:
            for some in rows.chunks(_AT_ONCE):
                self._cancel.check()
                rows.add("address", self._addresses(wallets[some]), "address")
                for column in question.columns:
                    values = self._column(column, wallets[some])
                    rows.add(column.name, values, column.kind, column.size)
        except BaseException:
            rows.close()
            raise
        return rows

    def _match(self, column: ExactColumn) -> Tree:
        """Return the wallets that a column of matches marks."""
        selected: Selection = column.values(self._builder())
        return selected.tree

    def _addresses(self, wallets: Wallets) -> pa.Array:
        if not len(wallets):
            return pa.array([], pa.string())
        known = self._data.addresses_of(wallets)
        return placed(wallets, self._engine.fetch(_addresses(wallets))) if known is None else known

    def _column(self, column: ExactColumn, wallets: Wallets) -> pa.Array:
        """Return a column of some wallets, null where one does not have it: of ranges of their numbers."""
        if not len(wallets):
            return pa.array([], AMOUNT if column.kind == "amount" else pa.int64())
        if column.kind == "match":
            members = combined(self._match(column), self._wallets_of)
            return pa.array(among(wallets, members).astype(np.int64))
        ordered = np.sort(wallets, kind="stable")
        # Those that came after the base have the last numbers, and are few.
        ranges = [ordered]
        if not _is_near(ordered):
            ranges = np.split(ordered, [1 + int(np.diff(ordered).argmax())])
        near, whole = all(map(_is_near, ranges)), self._statement(column)
        is_kept = column.holders <= _READ_WHOLE
        if not near and column.holders <= _KEPT_WHOLE:
            is_kept |= repr(whole) in self._data.sets
            self._data.sets.setdefault(repr(whole), (0, None))
        if is_kept:
            return placed(wallets, valued(self._kept(whole), column))
        parts = [
            placed(some, valued(self._engine.fetch(self._statement(column, some)), column))
            for some in (ranges if near else [ordered])
        ]
        return placed(wallets, pa.table({"wallet": ordered, "value": pa.concat_arrays(parts)}))

    def _statement(self, column: ExactColumn, wallets: Wallets | None = None) -> Sql:
        """Return the statement of a column: all of it, or of wallets in order and of others that cost no more."""
        sql = self._builder()
        values = column.values(sql)
        if wallets is None or column.holders <= _READ_WHOLE:
            return sql.statement(values)
        start, end = sql.value(int(wallets[0])), sql.value(int(wallets[-1]))
        text = f"SELECT * FROM ({values}) WHERE wallet BETWEEN {start} AND {end}"
        statement = sql.statement(text)
        return statement if _is_near(wallets) else _of(wallets, statement)


def _is_near(wallets: Wallets) -> bool:
    """Say whether wallets, in order, are so near each other that the range of their numbers is read whole.

    Of ten million rows a join takes 5 s for each million wallets, and a range 0.1 s: they are sorted by wallet. Of
    92,000 holders a thousand take 4 ms by a join, and 2 ms as a range.
    """
    return bool(wallets[-1] - wallets[0] <= max(_READ_WHOLE, len(wallets) * _DENSE))


def valued(rows: Any, column: ExactColumn) -> Any:
    """Return fetched rows, a table or a batch, with the value of a column as one: an `AMOUNT`, or an integer."""
    marks = [name for name in rows.schema.names if name in ("wallet", ENTERS, LEAVES)]
    if column.kind == "amount":
        value = rows.select(LIMBS).cast(pa.schema(AMOUNT)).to_struct_array()
    else:
        value = rows.column(len(marks)).cast(pa.int64())
    return rows.select(marks).append_column(column.name, value)


def _of(wallets: Wallets, statement: Sql, most: int | None = None) -> Sql:
    """Return the statement of those rows of another that are of some wallets."""
    among = f"WHERE wallet IN (SELECT wallet FROM {RETURNED})"
    limit = "" if most is None else f" LIMIT {most}"
    text = f"SELECT * FROM ({statement.text}) {among}{limit}"
    return Sql(text, statement.values, {RETURNED: pa.table({"wallet": wallets})})


def _addresses(wallets: Wallets) -> Sql:
    return _of(wallets, Sql("SELECT wallet, address FROM wallets"))
