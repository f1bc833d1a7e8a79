"""Questions that differ only in the block at which they are asked, answered by one reading of the history.

A statement of a series has the first and the last block of all in the place of the block: its rows stood at one of
them, and say between which blocks (`nbext.engine.query.sql.SqlBuilder`). That becomes a bit for each question
(`nbext.engine.query.bitmaps.Throughout`). A condition that uses the block in another way, as one that counts transfers
does, makes the statements differ: its questions are answered one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbext.engine.query.set_tree import normal_form
from nbext.engine.query.sql import SqlBuilder

if TYPE_CHECKING:
    from nbext.engine.dataset import Question
    from nbext.engine.query.sql import Layers

# A bit of 64 for each question; of fewer questions, one by one is as fast.
MOST, FEWEST = 64, 3


@dataclass(frozen=True)
class Series:
    """Questions by their places, and the block at which each is asked, in ascending order.

    ``question`` is one of them.
    """

    question: Question
    blocks: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last block."""
        return self.blocks[0], self.blocks[-1]


def series_of(
    questions: Sequence[Question], layers: Layers | None, *, columns: bool
) -> Iterator[Series]:
    """Yield the questions that are alike but for one block, at least `FEWEST` and at most `MOST` of them at a time.

    ``columns``: their first columns, too.
    """
    alike: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, one in enumerate(questions):
        sql = SqlBuilder(layers, span=(0, 0))
        sets = normal_form(one.wallets(sql))
        column = one.columns[0].values(sql) if columns else ""
        key = repr((sets, sql.statement(column)))
        # Several blocks, as of two chains, are no one moment.
        if sql.covered and len(sql.moments) == 1:
            alike[key][sql.moments.pop()].append(place)
    for at in alike.values():
        blocks = sorted(at)
        for start in range(0, len(blocks), MOST):
            some = blocks[start : start + MOST]
            if len(some) >= FEWEST:
                places = tuple(tuple(at[block]) for block in some)
                yield Series(questions[places[0][0]], tuple(some), places)
