"""The size of an amount: one 64-bit integer that orders amounts, so that bounds need not be compared by limbs.

An amount below 10**17 is its own size; a larger one of n digits has (n - 17) * 10**17 plus its first 17
digits; a negative one has its magnitude's, negative. A larger amount never has a smaller size. So
``amount >= bound`` is ``size >= bound's size`` wherever the bound is the smallest amount of its size, as
bounds with up to 17 significant digits are; elsewhere limbs are compared, of the few rows of that very size.

Engines scan these integers some 50 times as fast as limbs of 128 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ibis

from nbext.core.uint256 import LIMB_BASE, LIMB_DIGITS, Limbs, split
from nbext.engine.query import exact

if TYPE_CHECKING:
    import ibis.expr.types as ir

DIGITS = 17
_STEP: int = 10**DIGITS


@dataclass(frozen=True)
class Bound:
    """A bound of amounts: its limbs and size, as integers or scalars.

    ``sharp``: comparing sizes is comparing amounts.
    """

    limbs: Limbs
    size: Any
    sharp: bool


def size(amount: int) -> int:
    """Return the size of an amount.

    >>> size(10**18)
    110000000000000000
    """
    if amount < 0:
        return -size(-amount)
    digits = str(amount)
    more = len(digits) - DIGITS
    return amount if more <= 0 else more * _STEP + int(digits[:DIGITS])


def digits(magnitude: Limbs) -> ir.StringValue:
    """Return the decimal digits of limbs in normal form that are not negative, without leading zeros."""
    hi, mid, lo = (limb.cast("string") for limb in magnitude)
    long = (hi + mid.lpad(LIMB_DIGITS, "0") + lo.lpad(LIMB_DIGITS, "0")).re_replace("^0+", "")
    return ibis.ifelse((magnitude.hi == 0) & (magnitude.mid == 0), lo, long)


def of_digits(text: ir.StringValue) -> ir.IntegerValue:
    """Return the size of an amount that is not negative, of its decimal digits."""
    first, more = text.left(DIGITS).cast("int64"), text.length() - DIGITS
    return ibis.ifelse(more > 0, more.cast("int64") * _STEP + first, first)


def stored(amount: int) -> tuple[int, int, int, int]:
    """Return the columns that hold an amount with its size: ``hi mid lo size``."""
    return (*split(amount), size(amount))


def lower(amount: int) -> Bound:
    """Return an amount as the least that is allowed."""
    return Bound(split(amount), size(amount), size(amount - 1) < size(amount))


def upper(amount: int) -> Bound:
    """Return an amount as the most that is allowed."""
    return Bound(split(amount), size(amount), size(amount) < size(amount + 1))


def at_least(table: ir.Table, bound: Bound) -> ir.BooleanValue:
    """Say where the amount of a table's row is at least the bound."""
    if bound.sharp:
        return table.size >= bound.size
    return (table.size > bound.size) | (
        (table.size == bound.size) & exact.at_least(exact.of(table), bound.limbs)
    )


def at_most(table: ir.Table, bound: Bound) -> ir.BooleanValue:
    """Say where the amount of a table's row is at most the bound."""
    if bound.sharp:
        return table.size <= bound.size
    return (table.size < bound.size) | (
        (table.size == bound.size) & exact.at_most(exact.of(table), bound.limbs)
    )


def within(table: ir.Table, low: Bound, high: Bound | None) -> ir.BooleanValue:
    """Say where the amount of a table's row lies within bounds."""
    return at_least(table, low) if high is None else at_least(table, low) & at_most(table, high)


def rows_within(table: ir.Table, low: Bound, high: Bound | None) -> ir.Table:
    """Return the rows whose amount lies within bounds.

    Where sizes do not decide, the rows that they do decide are taken apart: an engine then reads the limbs of
    the others only.
    """
    if low.sharp and (high is None or high.sharp):
        return table.filter(within(table, low, high))
    sure = (
        table.size > low.size
        if high is None
        else (table.size > low.size) & (table.size < high.size)
    )
    edge = (
        table.size == low.size
        if high is None
        else (table.size == low.size) | (table.size == high.size)
    )
    return table.filter(sure).union(table.filter(edge, within(table, low, high)))


def near(size: ir.IntegerValue) -> ir.FloatingValue:
    """Return about the amount of a size, without its sign."""
    first = size.abs() % _STEP
    # An exact multiple: engines divide integers as floats, which would round to the next power of ten.
    return first.cast("float64") * ibis.literal(10.0) ** ((size.abs() - first) / _STEP).round()


def sql(hi: str, mid: str, lo: str) -> str:
    """Return DuckDB's SQL of the size of limbs in normal form: for the writers of tables."""
    short = " ".join(
        f"WHEN {lo} < {10 ** (DIGITS + more)} THEN {more * _STEP} + ({lo}::HUGEINT // {10**more}::HUGEINT)::BIGINT"
        for more in range(LIMB_DIGITS - DIGITS + 1)
    )
    digits = _digits_sql(hi, mid, lo)
    long = (
        f"CASE WHEN length({digits}) <= {DIGITS} THEN ({digits})::BIGINT "
        f"ELSE (length({digits}) - {DIGITS}) * {_STEP} + left({digits}, {DIGITS})::BIGINT END"
    )
    return (
        f"CASE WHEN {hi} = 0 AND {mid} = 0 THEN CASE {short} END "
        f"WHEN {hi} < 0 THEN -({long}) ELSE {long} END::BIGINT"
    )


def _digits_sql(hi: str, mid: str, lo: str) -> str:
    """Return the SQL of the decimal digits of the magnitude, without leading zeros where it is not zero."""
    base, rest = f"{LIMB_BASE}::HUGEINT", f"({mid}::HUGEINT + ({lo} <> 0)::HUGEINT)"
    limbs = (
        f"CASE WHEN {hi} < 0 THEN -({hi}::HUGEINT) - ({rest} <> 0)::HUGEINT ELSE {hi}::HUGEINT END",
        f"CASE WHEN {hi} >= 0 THEN {mid}::HUGEINT WHEN {rest} = 0 THEN 0 ELSE {base} - {rest} END",
        f"CASE WHEN {hi} >= 0 OR {lo} = 0 THEN {lo}::HUGEINT ELSE {base} - {lo}::HUGEINT END",
    )
    return (
        "ltrim("
        + " || ".join(f"lpad(({limb})::VARCHAR, {LIMB_DIGITS}, '0')" for limb in limbs)
        + ", '0')"
    )
