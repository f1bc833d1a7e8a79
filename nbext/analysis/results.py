"""The table of an analysis: a plain DataFrame that also knows the segment behind each of its cells, and its chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

import pandas as pd

from nbext.core.provenance import Provenance
from nbext.core.untrusted_text import quoted
from nbext.errors import ValidationError

if TYPE_CHECKING:
    from nbext.analysis.charts import Chart
    from nbext.analysis.segments import Segment


class Result(pd.DataFrame):
    """A table whose cells are segments. What pandas makes of it is a plain DataFrame.

    ``attrs["nbext"]`` says which service and block it is of, and the filters of the segments that were compared.
    """

    # pandas keeps attributes that are named here out of the columns.
    _metadata: ClassVar[list[str]] = ["_cells", "_drawn"]
    _cells: Callable[[int, Any], Segment | None]
    _drawn: Mapping[str, Callable[[], Chart]]

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        # A client, which the cells have, is not pickled.
        return pd.DataFrame.copy, (self.copy(),)

    def segment(self, row: Any, column: Any = None) -> Segment:
        """Return the segment of a cell, by the labels of its row and column: ``.filters``, and ``.open()`` for wallets.

        Raises
        ------
        ValidationError
            There is no such cell, or it counts no wallets.
        """
        place = self.index.get_indexer(pd.Index([row]))[0]
        if place < 0 or (column is not None and column not in self.columns):
            raise ValidationError.of(
                "", "cell", f"The table has no cell {quoted(row)}, {quoted(column)}."
            )
        found = self._cells(int(place), column)
        if found is None and column is None:
            raise ValidationError.of(
                "", "cell", f"Name the column, too: {', '.join(map(quoted, self.columns[:20]))}."
            )
        if found is None:
            raise ValidationError.of(
                "", "cell", f"The column {quoted(column)} counts no wallets: choose another one."
            )
        return found

    def chart(self, kind: str | None = None) -> Chart:
        """Return the table's chart, a static picture; ``kind`` chooses where there are several."""
        kinds = self._drawn
        if kind is not None and kind not in kinds:
            raise ValidationError.of(
                "/kind", "choice", f"{quoted(kind)} is not one of: {', '.join(kinds)}."
            )
        return kinds[kind or next(iter(kinds))]()


def result(
    table: pd.DataFrame,
    about: Provenance,
    cells: Callable[[int, Any], Segment | None],
    charts: Mapping[str, Callable[[Result], Chart]],
) -> Result:
    """Return a table with its provenance, what is behind its cells, and its charts."""
    made = about.attach(Result(table))
    made._cells = cells
    made._drawn = {name: partial(draw, made) for name, draw in charts.items()}
    return made
