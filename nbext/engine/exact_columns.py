"""Columns of exact numbers: amounts of three limbs as one, the type that holds a sum, their order, their quotients."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nbext.core.uint256 import LIMB_BASE, LIMB_DIGITS, Limbs, amount_type, join
from nbext.engine.schema import LIMBS

_LIMB = pa.decimal128(38, 0)
# Above this limb, arithmetic would claim more than the 76 digits that decimals have.
_TOO_LARGE = 10**22
Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[Any]]
# A fetched amount.
AMOUNT = pa.struct([(limb, _LIMB) for limb in LIMBS])


def exact_amounts(fetched: pa.StructArray) -> pa.Array:
    """Return the integers of an `AMOUNT`: decimals, or texts where one has more digits than decimals hold."""
    # Not in SQL: padding and signs of three limbs make a query that nobody can read, and slow to plan.
    hi, mid, lo = (pc.fill_null(limb, Decimal(0)) for limb in fetched.flatten())
    largest = _largest(hi)
    if not largest and not _largest(mid):
        return lo
    if largest < _TOO_LARGE:
        whole = _behind(_behind(hi, mid), lo)
        return whole.cast(amount_type(_largest(whole)))
    amounts = [
        join(Limbs(*map(int, one)))
        for one in zip(*(limb.to_pylist() for limb in (hi, mid, lo)), strict=True)
    ]
    texts = pa.array(list(map(str, amounts)))
    # Measured, because a cast of more digits than 76 returns another number without a word.
    return texts.cast(pa.decimal256(76, 0)) if max(map(abs, amounts)) < 10**76 else texts


def without_zeros(rows: pa.Table) -> pa.Table:
    """Return rows with nulls, which take no memory, in place of a limb that is zero in all of them."""
    for place, name in enumerate(rows.schema.names):
        if name in LIMBS and not pc.any(pc.not_equal(rows[name], Decimal(0))).as_py():
            rows = rows.set_column(place, name, pa.nulls(len(rows)))
    return rows


def _behind(upper: pa.Array, lower: pa.Array) -> pa.Array:
    """Return upper limbs with another limb behind them; a product claims the digits of both and one more."""
    upper, lower = upper.cast(pa.decimal256(48, 0)), lower.cast(pa.decimal256(LIMB_DIGITS, 0))
    shifted = pc.multiply(upper, pa.scalar(Decimal(LIMB_BASE))).cast(pa.decimal256(75, 0))
    return pc.add(shifted, lower)


def _largest(numbers: pa.Array) -> int:
    return max((abs(int(one.as_py() or 0)) for one in pc.min_max(numbers).values()), default=0)


def in_exact_order(
    ranks: Numbers, amounts: pa.StructArray, ties: Numbers, *, descending: bool
) -> Numbers:
    """Return the places of ranks in order, those that are equal by amounts, as an `AMOUNT` has them, then by ties."""
    limbs = dict(zip(LIMBS, amounts.flatten(), strict=True))
    table = pa.table({"ranks": ranks, **limbs, "ties": ties})
    direction: Any = "descending" if descending else "ascending"
    by = [("ranks", "ascending"), *((limb, direction) for limb in LIMBS), ("ties", "ascending")]
    places: Numbers = pc.sort_indices(table, sort_keys=by).to_numpy()
    return places


def quotients(numbers: pa.Array, divisors: Sequence[int | None]) -> pa.Array:
    """Return exact numbers divided by one each, or all by the only one, each as the float that is nearest to the
    quotient; by None or 0, missing, and of what is missing.
    """
    missing = np.asarray(numbers.is_null())
    by = np.array([one or 1 for one in divisors], object)
    units = by.astype(float)
    near, sure = np.zeros(len(numbers)), np.zeros(len(numbers), bool)
    if pa.types.is_integer(numbers.type) or pa.types.is_decimal128(numbers.type):
        limb = numbers.cast(_LIMB)
        # Two integers of 64 bits each, the lower one first.
        words = np.frombuffer(limb.buffers()[1], np.int64)[2 * limb.offset :][: 2 * len(limb)]
        near, sure = _near(words[::2], words[1::2], units)
    # Python divides whole numbers of any size, and rounds once: a million take a second, and 15 ms by floats.
    for place in np.flatnonzero(~(missing | sure & (by == units))):
        near[place] = int(numbers[place].as_py()) / by[place % len(by)]
    near[missing] = np.nan
    return pa.array(np.where([not one for one in divisors], np.nan, near), from_pandas=True)


def _near(low: Numbers, high: Numbers, units: Numbers) -> tuple[Numbers, Numbers]:
    """Return the quotients of 128-bit integers and floats, and which are surely the floats nearest to them.

    A number and its quotient are sums of two floats each, which have twice the digits of one. Where a little less and a
    little more than such a quotient is one float, it is the nearest.
    """
    upper = high * 2.0**64
    amount, rest = _summed(upper, (low & ~2047).view(np.uint64).astype(float))
    amount, rest = _summed(amount, rest + (low & 2047))
    near = amount / units
    # What is missing to the amount, exactly: halves of floats have exact products (Dekker).
    (upper_near, lower_near), (upper_unit, lower_unit) = _halves(near), _halves(units)
    product = near * units
    error = upper_near * upper_unit - product + upper_near * lower_unit
    # From left to right: each of these sums is exact.
    error = error + lower_near * upper_unit + lower_near * lower_unit
    more = (amount - product - error + rest) / units
    # A hundred times what was rounded here.
    slack = abs(near) * 2.0**-95
    least, most = near + (more - slack), near + (more + slack)
    # The upper half of a larger number is no float.
    return least, (least == most) & (abs(upper) < 2.0**117)


def _summed(one: Numbers, smaller: Numbers) -> tuple[Numbers, Numbers]:
    """Return a sum as a float, and what is missing to it."""
    total = one + smaller
    return total, smaller - (total - one)


def _halves(numbers: Numbers) -> tuple[Numbers, Numbers]:
    shifted = numbers * (2.0**27 + 1)
    upper = shifted - (shifted - numbers)
    return upper, numbers - upper
