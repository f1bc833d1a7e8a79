"""Values of any type as tables show them, and the sizes of tables in words."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from nbext.core.uint256 import share_text, six_digits
from nbext.core.untrusted_text import visible

# Numbers that say which one, not how many.
IS_ID = re.compile(r"(?:^|_)id$|Id$")
IS_SHARE = re.compile(r"(?:^|_)share$")


def value_text(value: Any, column: str = "") -> str | None:
    """Return a number, a truth or a time of a column as a table shows it; None of any other value."""
    if isinstance(value, bool):
        return str(value)
    grouping = "" if IS_ID.search(column) else ","
    if isinstance(value, Real):  # NumPy's, too
        number = int(value) if isinstance(value, Integral) else float(value)
        if isinstance(number, float) and IS_SHARE.search(column):
            return share_text(number)
        # Beside a missing one pandas makes floats of whole numbers.
        return six_digits(number).replace(",", grouping)
    if isinstance(value, Decimal):
        return f"{value:{grouping}f}"
    if isinstance(value, datetime):
        zone = "Z" if value.tzinfo else ""
        # By no format: pandas has times of years past 9999, and formats none of them.
        return f"{(value.astimezone(UTC) if zone else value).replace(tzinfo=None).isoformat(' ', 'seconds')}{zone}"
    return str(value) if isinstance(value, date) else None


def size_in_words(value: Any) -> str:
    """Return the size of a table in words, or any other value as text."""
    shape = getattr(value, "shape", None)
    if shape is None or len(shape) != 2:
        return visible(value)
    return shape_in_words(*shape)


def shape_in_words(rows: int, columns: int) -> str:
    """Return how many rows and columns a table has, in words."""
    return f"{rows_in_words(rows)}, {columns:,} column{'s' * (columns != 1)}"


def rows_in_words(rows: int) -> str:
    """Return a number of rows in words."""
    return f"{rows:,} row{'' if rows == 1 else 's'}"
