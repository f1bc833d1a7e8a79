"""The first rows of a table as HTML, every cell shown literally."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbext.notebook.forms.parts import table_html
from nbext.notebook.forms.values import records, shown

if TYPE_CHECKING:
    import pandas as pd

ROWS = 8
# A table of more columns than this is cut, and says so.
COLUMNS = 12


def frame_html(frame: pd.DataFrame, rows: int = ROWS) -> str:
    """Return the first rows of a table, and how many there are in all."""
    import pandas as pd

    names = list(frame.columns[:COLUMNS])
    numbers = [index for index, name in enumerate(names) if pd.api.types.is_numeric_dtype(frame.dtypes.iloc[index])]
    body = [[shown(row[str(name)]) for name in names] for row in records(frame.iloc[:rows, :COLUMNS])]
    left_out = f", {len(frame.columns) - COLUMNS:,} more columns" if len(frame.columns) > COLUMNS else ""
    note = f'<div class="nbext-note">{min(rows, len(frame)):,} of {len(frame):,} rows{left_out}</div>'
    return table_html([str(name) for name in names], body, numbers) + note
