"""Questions that differ only in the block at which they are asked, answered by one reading of the history.

Their shape is one, so one tree of sets is built for all of them, with a `Moments` in place of the block. What stood at
the blocks is then rows with the columns of `MARKS`: on DuckDB the blocks between which a row stood, which become a bit
for each question (`nbext.engine.duckdb.bitmaps`); elsewhere a row for each block, joined by it.

A condition needs no more for that than `standing`, `until` and `wallets_of` of `nbext.engine.query.history`. One that
compares the block in another way, as one that counts transfers does, is not covered: its questions are answered one by
one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import ibis
import ibis.expr.operations as ops

from nbext.engine.query.amounts import limb_sums
from nbext.engine.query.parameters import type_of
from nbext.engine.query.set_tree import (
    Leaf,
    Settled,
    Union,
    as_one_table,
    folded,
    mapped,
    normal_form,
)
from nbext.engine.schema import FOREVER, LIMBS

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.dataset import Question, Tables

# A bit of 64 for each question; of fewer questions, one by one is as fast.
MOST, FEWEST = 64, 3
ENTERS, LEAVES, POINT = "enters", "leaves", "point"
MARKS = (ENTERS, LEAVES, POINT)


class Uncovered(Exception):
    """A condition asks something else than what stood at a block."""


@dataclass(frozen=True)
class Series:
    """Questions by their places, and the block at which each is asked, in ascending order.

    ``question`` is one of them; ``slots`` are the places of the block among its values.
    """

    question: Question
    slots: tuple[int, ...]
    blocks: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last block."""
        return self.blocks[0], self.blocks[-1]

    def scalars(self, scalars: Sequence[Any], moments: Moments) -> list[Any]:
        """Return the scalars of a question's values, with the blocks in place of its block."""
        return [
            moments if slot in self.slots else scalars[slot]
            for slot in range(len(self.question.values))
        ]


def series_of(questions: Sequence[Question]) -> Iterator[Series]:
    """Yield the questions that are alike but for one number, at least `FEWEST` and at most `MOST` of them at a time."""
    alike = defaultdict[Any, list[int]](list)
    for place, one in enumerate(questions):
        alike[one.shape, tuple(map(type_of, one.values))].append(place)
    for places in alike.values():
        columns = list(zip(*(questions[place].values for place in places), strict=True))
        slots = tuple(slot for slot, column in enumerate(columns) if len(set(column)) > 1)
        numbers = {columns[slot] for slot in slots}
        # Several numbers that differ, as of two chains, are no one moment.
        if len(numbers) != 1 or not all(isinstance(number, int) for number in columns[slots[0]]):
            continue
        at = defaultdict[Any, list[int]](list)
        for place, number in zip(places, *numbers, strict=True):
            at[number].append(place)
        blocks = sorted(at)
        for start in range(0, len(blocks), MOST):
            some = blocks[start : start + MOST]
            if len(some) >= FEWEST:
                yield Series(
                    questions[places[0]], slots, tuple(some), tuple(tuple(at[one]) for one in some)
                )


class Moments(ABC):
    """Many blocks, where a builder expects the scalar of one: it says what stood at them, and nothing else of them."""

    def __init__(self, *scalars: Any) -> None:
        self._scalars = scalars

    @abstractmethod
    def standing(self, rows: ir.Table, begun: str, ended: str | None) -> ir.Table:
        """Return the rows that had begun by a block and not ended, for each of the blocks, with columns of `MARKS`."""

    def checked(self, rows: ir.Table) -> ir.Table:
        """Return the rows, where they say of which blocks they are if they depend on the blocks."""
        used = rows.op().find(ops.ScalarParameter)
        # As of what is counted by wallet over all blocks.
        if any(one.op() in used for one in self._scalars) and not any(
            mark in rows.columns for mark in MARKS
        ):
            raise Uncovered
        return rows

    def _uncovered(self, _: object) -> NoReturn:
        raise Uncovered

    __le__ = __lt__ = __ge__ = __gt__ = __eq__ = __ne__ = _uncovered
    __hash__ = object.__hash__


class Between(Moments):
    """All blocks from a first to a last one, two scalars: rows get the blocks between which they stood."""

    def standing(self, rows: ir.Table, begun: str, ended: str | None) -> ir.Table:
        """Return the rows that stood at one of the blocks, and from and until when."""
        first, last = self._scalars
        rows = rows.filter(rows[begun] <= last)
        rows = rows if ended is None else rows.filter(rows[ended] > first)
        until = ibis.literal(FOREVER, type="int64") if ended is None else rows[ended]
        return rows.mutate(**{ENTERS: rows[begun], LEAVES: until})


class Each(Moments):
    """The blocks themselves, an array: rows are there once for each block at which they stood."""

    @property
    def points(self) -> ir.Table:
        """The blocks as a table."""
        return self._scalars[0].unnest().name(POINT).as_table()

    def standing(self, rows: ir.Table, begun: str, ended: str | None) -> ir.Table:
        """Return the rows beside each block at which they stood."""
        points = self.points
        stood = [
            rows[begun] <= points[POINT],
            *([] if ended is None else [rows[ended] > points[POINT]]),
        ]
        return rows.join(points, stood)


def wallets(
    series: Series, tables: Tables, scalars: Sequence[Any], moments: Moments
) -> Settled[ir.Table]:
    """Build the wallets of a series; `Uncovered` where a condition cannot be asked of many blocks at once."""
    return mapped(
        normal_form(series.question.wallets(tables, series.scalars(scalars, moments))),
        moments.checked,
    )


def first_column(
    series: Series, tables: Tables, scalars: Sequence[Any], moments: Moments
) -> ir.Table:
    """Build the first returned column of a series; `Uncovered` as `wallets`."""
    return moments.checked(series.question.columns(tables, series.scalars(scalars, moments))[0])


def by_point(
    series: Series, tables: Tables, scalars: Sequence[Any], each: Each, *, amounts: bool
) -> ir.Table:
    """Build a row for each block that has wallets: ``point``, ``matched``, with ``amounts`` the limbs of what is held.

    What is held is the sum of the first returned column. `Uncovered` as `wallets`.
    """
    members = _joined(wallets(series, tables, scalars, each), each.points).select("wallet", POINT)
    counts = members.group_by(POINT).agg(matched=members.count())
    if not amounts:
        return counts
    held = first_column(series, tables, scalars, each)
    rows = held.join(members, [name for name in ("wallet", POINT) if name in held.columns])
    sums = rows.group_by(POINT).agg(**limb_sums(rows[held.columns[-1]]))
    # Some wallets match, and none of them has any.
    return counts.left_join(sums, POINT).select(POINT, "matched", *LIMBS)


def _joined(node: Settled[ir.Table], points: ir.Table) -> ir.Table:
    """Build the one table of a settled tree, with ``wallet`` and ``point``."""
    if not _timed(node):
        return as_one_table(node).cross_join(points)
    if isinstance(node, Leaf):
        return node.wallets
    if isinstance(node, Union):
        parts = [_joined(part, points).select("wallet", POINT) for part in node.parts]
        return folded(lambda left, right: left.union(right), parts).distinct()
    first, *inside = sorted([node.first, *node.inside], key=_timed, reverse=True)
    kept = _joined(first, points)
    # What is the same at every point is looked up by the wallet alone.
    for timed, keys in ((True, ["wallet", POINT]), (False, ["wallet"])):
        within, without = (
            [
                _joined(one, points).select(keys) if timed else as_one_table(one)
                for one in some
                if _timed(one) == timed
            ]
            for some in (inside, node.outside)
        )
        if within:
            kept = kept.semi_join(folded(partial(_in_both, keys), within), keys)
        if without:
            kept = kept.anti_join(folded(lambda one, other: one.union(other), without), keys)
    return kept


def _in_both(keys: list[str], one: ir.Table, other: ir.Table) -> ir.Table:
    return one.semi_join(other, keys)


def _timed(node: Settled[ir.Table]) -> bool:
    found: list[bool] = []
    mapped(node, lambda rows: found.append(POINT in rows.columns))
    return any(found)
