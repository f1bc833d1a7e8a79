"""Exact integers of up to 78 digits: read from text, split into limbs, and written in a token's unit.

A float holds 15 digits, and DuckDB's and Spark's widest exact types 38; an ERC20 balance may need 78. So tables hold an
amount as three limbs of 26 decimal digits: ``hi * 10**52 + mid * 10**26 + lo``, each DECIMAL(38,0), whose spare digits
let 10**11 of them be summed. The expressions over such columns are `nbext.engine.query.amounts`.
"""

from __future__ import annotations

import math
import re
from decimal import MAX_PREC, ROUND_HALF_UP, Context, Decimal
from typing import Any, NamedTuple

MAX_UINT256 = 2**256 - 1
LIMB_DIGITS = 26
LIMB_BASE: int = 10**LIMB_DIGITS
# int() also takes signs, spaces, underscores and the digits of every script. The length is bounded: a million of
# them would take it its time.
_DECIMAL = re.compile(r"[0-9]{1,78}\Z")
_GROUPED = re.compile(r"-?[0-9]{1,3}([,_][0-9]{3})+(\.[0-9]+)?")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,64}\Z")
# A sum that 256 bits hold, with room for what floats round.
_MOST_IN_76 = 5e76
# Nothing is rounded away: Decimal's own context keeps 28 digits.
_EXACT = Context(prec=MAX_PREC)
# Halves go up, in the digits that a float is written with, as JavaScript rounds; Python's formats round to the even.
_SIX, _FOUR = (Context(prec=digits, rounding=ROUND_HALF_UP) for digits in (6, 4))
_SHORT = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


class Limbs(NamedTuple):
    """One amount: three integers, or three columns or scalars of an engine."""

    hi: Any
    mid: Any
    lo: Any


def split(amount: int) -> Limbs:
    """Return the limbs of an integer, in normal form: ``hi`` alone carries the sign, so comparing limbs compares.

    >>> split(-1)
    Limbs(hi=-1, mid=99999999999999999999999999, lo=99999999999999999999999999)
    """
    rest, lo = divmod(amount, LIMB_BASE)
    hi, mid = divmod(rest, LIMB_BASE)
    return Limbs(hi, mid, lo)


def join(limbs: Limbs) -> int:
    """Return the integer of limbs, which need not be in normal form."""
    hi, mid, lo = (int(limb) for limb in limbs)
    return (hi * LIMB_BASE + mid) * LIMB_BASE + lo


def whole_of(text: str) -> int | None:
    """Return the number that decimal digits write, and nothing else beside them; None for any other text.

    >>> whole_of("25"), whole_of("1_0"), whole_of("²")
    (25, None, None)
    """
    return int(text) if _DECIMAL.match(text) else None


def ungrouped(text: str) -> str:
    """Return a number without what separates its thousands, and any other text as it is.

    >>> ungrouped("1,000.5"), ungrouped("0,5")
    ('1000.5', '0,5')
    """
    return re.sub("[,_]", "", text) if _GROUPED.fullmatch(text) else text


def uint256_of(text: str) -> int | None:
    """Return the number that decimal digits, or 0x and hex digits, write; None where it is not a uint256.

    >>> uint256_of("0x10"), uint256_of("007"), uint256_of("-1")
    (16, 7, None)
    """
    number = int(text, 16) if _HEX.match(text) else whole_of(text)
    return number if number is not None and number <= MAX_UINT256 else None


def amount_type(size: float) -> Any:
    """Return the Arrow type of a column of exact amounts: decimals, or text where only that holds its numbers.

    ``size`` is the sum of its numbers without their signs, a number or infinity: Arrow, and pandas with it, returns
    another number for a sum of more digits than the type has.

    >>> [str(amount_type(size)) for size in (10**38 - 1, 10**38, 1e77)]
    ['decimal128(38, 0)', 'decimal256(76, 0)', 'string']
    """
    import pyarrow as pa

    if size < 10**38:
        return pa.decimal128(38, 0)
    return pa.decimal256(76, 0) if size < _MOST_IN_76 else pa.string()


def size_of(amounts: Any) -> float:
    """Return the sum of an Arrow array of exact numbers without their signs, or of texts infinity.

    It is exact wherever `amount_type` depends on its digits.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if "string" in str(amounts.type):
        return float("inf")
    least, most = (bound.as_py() or 0 for bound in pc.min_max(amounts).values())
    if least < 0 or most * len(amounts) >= 10**38:
        amounts = pc.abs(amounts.cast(pa.decimal256(76, 0)))
        near = pc.sum(amounts.cast(pa.float64())).as_py() or 0
        # Near enough where an exact sum might not fit.
        if near > 1e70:
            return float(near)
    return int(pc.sum(amounts).as_py() or 0)


class TooManyDecimals(ValueError):
    """An amount has more decimals than its token; ``places`` is how many."""

    def __init__(self, places: int) -> None:
        super().__init__(places)
        self.places = places


def to_raw(amount: Decimal | int, decimals: int) -> int:
    """Return an amount of token units in the token's smallest unit; TooManyDecimals where the token has fewer.

    >>> to_raw(Decimal("0.5"), 6)
    500000
    """
    # Without its trailing zeros.
    number = _EXACT.normalize(Decimal(amount))
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if -exponent > decimals:
        raise TooManyDecimals(-exponent)
    return int(_EXACT.scaleb(number, decimals))


def in_units(raw: Decimal | int | str, decimals: int) -> Decimal:
    """Return a raw amount in the token's unit, exactly; `decimal.InvalidOperation` where the text is not a number.

    >>> in_units(1500000, 6)
    Decimal('1.500000')
    """
    return _EXACT.scaleb(_EXACT.create_decimal(raw), -decimals)


def units_text(raw: Decimal | int | str, decimals: int) -> str:
    """Return a raw amount in the token's unit, as people write it: thousands set apart, without trailing zeros.

    >>> units_text(1234500000, 6)
    '1,234.5'
    """
    return without_last_zeros(f"{in_units(raw, decimals):,f}")


def without_last_zeros(text: str) -> str:
    """Return a number's text without the zeros that end its fraction.

    >>> without_last_zeros("1.500"), without_last_zeros("2.000"), without_last_zeros("100")
    ('1.5', '2', '100')
    """
    return text.rstrip("0").rstrip(".") if "." in text else text


def as_texts(rows: Any, *, wide: bool = False) -> Any:
    """Return an Arrow table or batch with exact numbers as their digits; ``wide``: only those of more than 38."""
    import pyarrow as pa

    given = pa.types.is_decimal256 if wide else pa.types.is_decimal
    for number, field in enumerate(rows.schema):
        if given(field.type):
            rows = rows.set_column(number, field.name, rows.column(number).cast(pa.string()))
    return rows


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


def _exponential(exact: Decimal) -> str:
    mantissa, _, power = f"{_SIX.plus(exact):.5e}".partition("e")
    return f"{without_last_zeros(mantissa)}e{power}"
