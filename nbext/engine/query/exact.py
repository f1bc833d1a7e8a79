"""Ibis expressions over exact amounts: limbs compared, carried, and written as text.

The limbs are those of `nbext.core.uint256`, in normal form in all tables: sums of limbs are put back into it by
`carried`. The expressions use only what every engine computes exactly on DECIMAL(38,0): ``+ - %``, comparison, and the
division of an exact multiple.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import ibis

from nbext.core.uint256 import LIMB_BASE, Limbs, join

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

LIMB_TYPE = "decimal(38,0)"


def of(table: ir.Table, prefix: str = "") -> Limbs:
    """Return a table's limb columns: ``hi mid lo``, or with a prefix such as ``id_``."""
    return Limbs(table[f"{prefix}hi"], table[f"{prefix}mid"], table[f"{prefix}lo"])


def at_least(amount: Limbs, bound: Limbs) -> ir.BooleanValue:
    """Say where ``amount >= bound``, both in normal form."""
    lower = (amount.mid > bound.mid) | ((amount.mid == bound.mid) & (amount.lo >= bound.lo))
    return (amount.hi > bound.hi) | ((amount.hi == bound.hi) & lower)


def at_most(amount: Limbs, bound: Limbs) -> ir.BooleanValue:
    """Say where ``amount <= bound``, both in normal form."""
    lower = (amount.mid < bound.mid) | ((amount.mid == bound.mid) & (amount.lo <= bound.lo))
    return (amount.hi < bound.hi) | ((amount.hi == bound.hi) & lower)


def equal(amount: Limbs, other: Limbs) -> ir.BooleanValue:
    """Say where two amounts are the same, both in normal form."""
    return (amount.lo == other.lo) & (amount.mid == other.mid) & (amount.hi == other.hi)


def carried(sums: Limbs) -> Limbs:
    """Return sums of limbs in normal form again; each sum may be of up to 10**11 limbs of either sign."""
    lo, carry = _carry(sums.lo)
    mid, carry = _carry(sums.mid + carry)
    return Limbs(sums.hi + carry, mid, lo)


def column(amount: Limbs) -> ir.StructValue:
    """Return an amount as a column of rows; the engine hands it over as decimal digits (`as_text`)."""
    return ibis.struct(amount._asdict())


def as_text(rows: pa.Table) -> pa.Table:
    """Return fetched rows with every amount `column` as decimal digits; null, a wallet without one, is 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for number, field in enumerate(rows.schema):
        if pa.types.is_struct(field.type):
            rows = rows.set_column(number, field.name, _digits(rows[number].combine_chunks()))
        elif pa.types.is_integer(field.type):
            rows = rows.set_column(number, field.name, pc.fill_null(rows[number], 0))
    return rows


def _carry(total: ir.DecimalColumn) -> tuple[ir.DecimalValue, ir.DecimalValue]:
    base = ibis.literal(LIMB_BASE, type=LIMB_TYPE)
    # The remainder takes the dividend's sign on every engine; adding the base first makes it the modulus.
    limb = (total % base + base) % base
    # Some engines divide decimals as doubles: the quotient is a small whole number, so rounding restores it.
    return limb, ((total - limb) / base).round().cast(LIMB_TYPE)


def _digits(amounts: pa.StructArray) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    # Not in SQL: padding and signs of three limbs make a query that nobody can read, and slow to plan.
    hi, mid, lo = (pc.fill_null(limb, Decimal(0)) for limb in amounts.flatten())
    digits = lo.cast(pa.string())
    small = pc.and_(pc.equal(hi, Decimal(0)), pc.equal(mid, Decimal(0)))
    large = pc.invert(small)
    if not pc.any(large).as_py():
        return digits
    limbs = zip(*(limb.filter(large).to_pylist() for limb in (hi, mid, lo)), strict=True)
    return pc.replace_with_mask(digits, large, pa.array([str(join(Limbs(*row))) for row in limbs], pa.string()))
