"""Numbers and times as people read them: at most six digits that say something, thousands set apart.

`views/numbers.js` writes the same in the browser: both are held to the cases of `tests/views/numbers.json`.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from numbers import Integral, Real
from typing import Any

from nbext.core.uint256 import without_last_zeros
from nbext.core.untrusted_text import visible

# Halves go up, in the digits that a float is written with, as JavaScript rounds; Python's formats round to the even.
_SIX, _FOUR = (Context(prec=digits, rounding=ROUND_HALF_UP) for digits in (6, 4))
_SHORT = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
# Numbers that say which one, not how many.
IS_ID = re.compile(r"(?:^|_)id$|Id$")
IS_SHARE = re.compile(r"(?:^|_)share$")


def six_digits(value: float) -> str:
    """Return a number as a table shows it: a whole one with all its digits, a fraction with six significant ones.

    >>> six_digits(1047.3333333), six_digits(20_000_000.0), six_digits(1.5e-9), six_digits(10**18)
    ('1,047.33', '20,000,000', '1.5e-9', '1,000,000,000,000,000,000')
    """
    if isinstance(value, int):
        return f"{value:,}"
    exact = Decimal(str(value))
    if not exact:
        return "0"
    if not exact.is_finite():
        return str(value)
    size = abs(value)
    if size < 1e-6 or size >= 1e15:
        return _exponential(exact)
    if size >= 1e6:
        return f"{exact.to_integral_value(ROUND_HALF_UP):,f}"
    return without_last_zeros(f"{_SIX.plus(exact):,f}")


def share_text(value: float) -> str:
    """Return a share as per cent, with four significant digits.

    >>> share_text(0.679686), share_text(1.0), share_text(0.00012)
    ('67.97%', '100%', '0.012%')
    """
    percent = Decimal(str(value)) * 100
    if not percent.is_finite():
        return str(value)
    return f"{without_last_zeros(f'{_FOUR.plus(percent):,f}')}%"


def short_text(value: float) -> str:
    """Return a number as a few characters, for an edge of a bin.

    >>> short_text(20_000.0), short_text(0.5), short_text(1e-18)
    ('20k', '0.5', '1e-18')
    """
    for unit, letter in _SHORT:
        if unit <= abs(value) < 1e15:
            return f"{value / unit:.6g}{letter}"
    if 0 < abs(value) < 1e-3 or 1e15 <= abs(value) < math.inf:
        return _exponential(Decimal(str(value)))
    return f"{value:.6g}"


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


def _exponential(exact: Decimal) -> str:
    mantissa, _, power = f"{_SIX.plus(exact):.5e}".partition("e")
    return f"{without_last_zeros(mantissa)}e{power}"
