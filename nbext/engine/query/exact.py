"""Ibis expressions over exact amounts: limbs compared and carried; and fetched limbs as the amounts of an answer.

The limbs are those of `nbext.core.uint256`, in normal form in all tables: sums of limbs are put back into it by
`carried`. The expressions use only what every engine computes exactly on DECIMAL(38,0): ``+ - %``, comparison, and the
division of an exact multiple.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import ibis

from nbext.core.uint256 import LIMB_BASE, LIMB_DIGITS, Limbs, digits_of_column

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

LIMB_TYPE = "decimal(38,0)"
# The field of a time's struct, by which it is told from a number's.
_SECONDS = "seconds"


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


def sums(balance: ir.Column) -> dict[str, ir.Scalar]:
    """Return the limbs, not in normal form, of the sum of amounts (`column`) or of counts; of no row, of 0."""
    zero = ibis.literal(0, type=LIMB_TYPE)
    if not balance.type().is_struct():
        return {"hi": zero, "mid": zero, "lo": balance.cast(LIMB_TYPE).sum().fill_null(zero)}
    return {limb: balance[limb].sum().fill_null(zero) for limb in Limbs._fields}


def column(amount: Limbs) -> ir.StructValue:
    """Return an amount as a column of rows; `answered` makes exact numbers of it."""
    return ibis.struct(amount._asdict())


def time(seconds: ir.IntegerValue) -> ir.StructValue:
    """Return a time, in seconds since 1970, as a column of rows: `answered` makes timestamps of it."""
    # Not as the engine's own timestamps: some are in the session's time zone.
    return ibis.struct({_SECONDS: seconds})


def optional(number: ir.IntegerValue) -> ir.StructValue:
    """Return a number that a wallet may be without as a column of rows: there null is not 0."""
    return ibis.struct({"number": number})


def answered(rows: pa.Table, floats: Mapping[str, tuple[str, int]]) -> pa.Table:
    """Return fetched rows as an answer's: amounts as exact numbers, with floats before them, times as timestamps.

    Null, a wallet without it, is 0 of amounts and counts.

    The type of exact numbers is `type_of` their size. ``floats`` is that of `nbext.engine.dataset.Question`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    columns: dict[str, Any] = {}
    for field in rows.schema:
        values = rows[field.name]
        if is_amount(field.type):
            amounts = _amounts(values.combine_chunks())
            amounts = amounts.cast(type_of(size_of(amounts)))
            if field.name in floats:
                name, decimals = floats[field.name]
                columns[name] = in_units(amounts, decimals)
            columns[field.name] = amounts
        elif pa.types.is_struct(field.type):
            columns[field.name] = _value(values.combine_chunks())
        else:
            columns[field.name] = (
                pc.fill_null(values, 0) if pa.types.is_integer(field.type) else values
            )
    return pa.table(columns)


def is_amount(fetched: pa.DataType) -> bool:
    """Say whether a fetched column has amounts: a time, or a number that may be missing, is a struct of one field."""
    import pyarrow as pa

    return bool(pa.types.is_struct(fetched) and fetched.num_fields > 1)


def size_of(amounts: pa.Array) -> float:
    """Return the sum of exact amounts without their signs, by which `type_of` chooses: a number, or infinity."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(amounts.type):
        return math.inf
    least, most = (bound.as_py() or 0 for bound in pc.min_max(amounts).values())
    if least >= 0 and most * len(amounts) < 10**38:
        return int(pc.sum(amounts).as_py() or 0)
    amounts = pc.abs(amounts.cast(pa.decimal256(76, 0)))
    near = pc.sum(amounts.cast(pa.float64())).as_py() or 0
    # Near enough where an exact sum might not fit; exact where it decides.
    return near if near > 1e70 else int(pc.sum(amounts).as_py() or 0)


def type_of(size: float) -> pa.DataType:
    """Return the type of a column of exact amounts of that size, in which their sum fits too."""
    import pyarrow as pa

    return {38: pa.decimal128(38, 0), 76: pa.decimal256(76, 0), None: pa.string()}[
        digits_of_column(size)
    ]


def in_units(amounts: pa.Array, decimals: int) -> pa.Array:
    """Return exact amounts in a token's unit, each as the float that is nearest to it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Reading a text rounds once. Dividing floats rounds the amount first and the quotient after it.
    return pc.binary_join_element_wise(amounts.cast(pa.string()), f"e-{decimals}", "").cast(
        pa.float64()
    )


def in_order(rows: pa.Table, column: str, ties: str, *, descending: bool) -> pa.Table:
    """Return rows, before `answered`, ordered by one of their columns exactly; missing last, ties by another column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = rows[column].combine_chunks()
    parts = values.flatten() if pa.types.is_struct(values.type) else [values]
    # Of an amount or a count, missing is 0; a time, or a number that may be missing, is last.
    if len(parts) > 1 or pa.types.is_integer(values.type):
        parts = [pc.fill_null(part, pa.scalar(0).cast(part.type)) for part in parts]
    keys = {str(number): part for number, part in enumerate(parts)}
    direction: Any = "descending" if descending else "ascending"
    by: Any = [*((name, direction) for name in keys), ("ties", "ascending")]
    table = pa.table({**keys, "ties": rows[ties].combine_chunks()})
    # Nulls come last by default, in either direction.
    return rows.take(pc.sort_indices(table, sort_keys=by))


def _carry(total: ir.DecimalColumn) -> tuple[ir.DecimalValue, ir.DecimalValue]:
    base = ibis.literal(LIMB_BASE, type=LIMB_TYPE)
    # The remainder takes the dividend's sign on every engine; adding the base first makes it the modulus.
    limb = (total % base + base) % base
    # Some engines divide decimals as doubles: the quotient is a small whole number, so rounding restores it.
    return limb, ((total - limb) / base).round().cast(LIMB_TYPE)


def _value(column: pa.StructArray) -> pa.Array:
    import pyarrow as pa

    (value,) = column.flatten()
    return (
        value.cast(pa.int64()).cast(pa.timestamp("s", "UTC"))
        if column.type[0].name == _SECONDS
        else value
    )


def _amounts(limbs: pa.StructArray) -> pa.Array:
    """Return the integers of limbs, without a Python loop: two of 26 digits by arithmetic, three as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Not in SQL: padding and signs of three limbs make a query that nobody can read, and slow to plan.
    hi, mid, lo = (pc.fill_null(limb, Decimal(0)) for limb in limbs.flatten())
    if _any(hi):
        texts = _texts(hi, mid, lo)
        # Measured, because a cast of more digits than 76 returns another number without a word.
        longest = pc.max(pc.utf8_length(pc.utf8_ltrim(texts, "-"))).as_py()
        return texts.cast(pa.decimal256(76, 0)) if longest <= 76 else texts
    if not _any(mid):
        return lo
    limb = pa.decimal256(LIMB_DIGITS, 0)
    whole = pc.add(pc.multiply(mid.cast(limb), pa.scalar(Decimal(LIMB_BASE))), lo.cast(limb))
    return whole.cast(
        pa.decimal128(38, 0) if pc.max(whole).as_py() < 10**38 else pa.decimal256(76, 0)
    )


def _texts(hi: pa.Array, mid: pa.Array, lo: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    zero, base = Decimal(0), Decimal(LIMB_BASE)
    below = pc.less(hi, zero)
    # The size of a negative number: its limbs subtracted from nothing, each borrowing from the next.
    size, borrowed = list[pa.Array](), zero
    # Sums have a digit more than their terms, so that the terms must not claim all that the type has.
    hi, mid, lo = (limb.cast(pa.decimal256(38, 0)) for limb in (hi, mid, lo))
    for limb in (lo, mid):
        taken = pc.add(limb, borrowed)
        rest = pc.if_else(pc.equal(taken, zero), taken, pc.subtract(base, taken))
        size.insert(0, pc.if_else(below, rest, limb))
        borrowed = pc.if_else(pc.equal(taken, zero), zero, Decimal(1))
    first = pc.if_else(below, pc.subtract(pc.negate(hi), borrowed), hi)
    texts = (
        first.cast(pa.string()),
        *(pc.utf8_lpad(limb.cast(pa.string()), LIMB_DIGITS, "0") for limb in size),
    )
    digits = pc.utf8_ltrim(pc.binary_join_element_wise(*texts, ""), "0")
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    return pc.if_else(below, pc.binary_join_element_wise("-", digits, ""), digits)


def _any(limb: pa.Array) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.not_equal(limb, Decimal(0))).as_py())
