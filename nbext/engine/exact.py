"""Exact amounts: three limbs of 26 decimal digits, split, joined, carried, compared and written as text.

``amount = hi * 10**52 + mid * 10**26 + lo``. In normal form ``0 <= mid, lo < 10**26`` and ``hi`` alone
carries the sign, so that comparing limb by limb compares amounts. All tables hold normal form; limbs
that were summed are put back into it by `carried`. The expressions use only what every engine computes
exactly on DECIMAL(38,0): ``+ - %``, comparison, and the division of an exact multiple.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import ibis

from nbext.engine.layout import LIMB_DIGITS

if TYPE_CHECKING:
    import ibis.expr.types as ir

BASE: int = 10**LIMB_DIGITS
LIMB_TYPE = "decimal(38,0)"


class Limbs(NamedTuple):
    """One amount: three integers, or three Ibis columns or scalars."""

    hi: Any
    mid: Any
    lo: Any


def split(amount: int) -> Limbs:
    """Return the limbs of an integer, in normal form.

    >>> split(-1)
    Limbs(hi=-1, mid=99999999999999999999999999, lo=99999999999999999999999999)
    """
    rest, lo = divmod(amount, BASE)
    hi, mid = divmod(rest, BASE)
    return Limbs(hi, mid, lo)


def join(limbs: Limbs) -> int:
    """Return the integer of limbs, which need not be in normal form."""
    hi, mid, lo = (int(limb) for limb in limbs)
    return hi * BASE * BASE + mid * BASE + lo


def of(table: ir.Table, prefix: str = "") -> Limbs:
    """Return a table's limb columns: ``hi mid lo``, or with a prefix such as ``id_``."""
    return Limbs(table[f"{prefix}hi"], table[f"{prefix}mid"], table[f"{prefix}lo"])


def at_least(amount: Limbs, bound: Limbs) -> ir.BooleanValue:
    """Say where ``amount >= bound``, both in normal form."""
    return _beyond(amount.hi > bound.hi, amount.mid > bound.mid, amount.lo >= bound.lo, amount, bound)


def at_most(amount: Limbs, bound: Limbs) -> ir.BooleanValue:
    """Say where ``amount <= bound``, both in normal form."""
    return _beyond(amount.hi < bound.hi, amount.mid < bound.mid, amount.lo <= bound.lo, amount, bound)


def equal(amount: Limbs, other: Limbs) -> ir.BooleanValue:
    """Say where two amounts are the same, both in normal form."""
    return (amount.lo == other.lo) & (amount.mid == other.mid) & (amount.hi == other.hi)


def carried(sums: Limbs) -> Limbs:
    """Return sums of limbs in normal form again; each sum may be of up to 10**11 limbs of either sign."""
    lo, carry = _carry(sums.lo)
    mid, carry = _carry(sums.mid + carry)
    return Limbs(sums.hi + carry, mid, lo)


def text(amount: Limbs) -> ir.StringValue:
    """Write an amount in normal form as decimal digits, with a sign where it is negative."""
    negative = amount.hi < 0
    magnitude = _negated(amount)
    limbs = Limbs(*(negative.ifelse(n, p) for n, p in zip(magnitude, amount, strict=True)))
    high, middle, low = (limb.cast("string") for limb in limbs)
    digits = ibis.cases(
        (limbs.hi > 0, high + _padded(middle) + _padded(low)),
        (limbs.mid > 0, middle + _padded(low)),
        else_=low,
    )
    return negative.ifelse(ibis.literal("-") + digits, digits)


def _beyond(
    hi: ir.BooleanValue, mid: ir.BooleanValue, lo: ir.BooleanValue, amount: Limbs, bound: Limbs
) -> ir.BooleanValue:
    return hi | ((amount.hi == bound.hi) & (mid | ((amount.mid == bound.mid) & lo)))


def _whole(value: int) -> ir.DecimalScalar:
    return ibis.literal(value, type=LIMB_TYPE)


def _carry(total: ir.DecimalColumn) -> tuple[ir.DecimalValue, ir.DecimalValue]:
    base = _whole(BASE)
    # The remainder takes the dividend's sign on every engine; adding the base first makes it the modulus.
    limb = (total % base + base) % base
    # Some engines divide decimals as doubles: the quotient is a small whole number, so rounding restores it.
    return limb, ((total - limb) / base).round().cast(LIMB_TYPE)


def _negated(amount: Limbs) -> Limbs:
    base, zero, one = _whole(BASE), _whole(0), _whole(1)
    lo = (amount.lo == 0).ifelse(zero, base - amount.lo)
    borrow = (amount.lo == 0).ifelse(zero, one)
    rest = amount.mid + borrow
    mid = (rest == 0).ifelse(zero, base - rest)
    return Limbs(zero - amount.hi - (rest == 0).ifelse(zero, one), mid, lo)


def _padded(digits: ir.StringValue) -> ir.StringValue:
    return digits.lpad(LIMB_DIGITS, "0")
