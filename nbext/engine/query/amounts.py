"""Amounts of up to 256 bits as Ibis expressions: limbs, the sort key that orders them, and bounds.

The limbs are those of `nbext.core.uint256`, in normal form in all tables: sums of limbs are put back into it by
`carried`. The expressions use only what every engine computes exactly on DECIMAL(38,0): ``+ - %``, comparison, and the
division of an exact multiple.

An amount's sort key, the column ``size`` of tables, is one 64-bit integer. Below 10**17 it is the amount itself; of a
larger one of n digits it is (n - 17) * 10**17 plus the first 17 digits; of a negative one its magnitude's, negative. A
larger amount never has a smaller key. So ``amount >= bound`` is ``size >= bound's key`` wherever the bound is the
smallest amount of its key, as bounds with up to 17 significant digits are; elsewhere limbs are compared, of the few
rows of that very key. Engines scan these integers some 50 times as fast as limbs of 128 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ibis

from nbext.core.uint256 import LIMB_BASE, LIMB_DIGITS, Limbs, split

if TYPE_CHECKING:
    import ibis.expr.types as ir

LIMB_TYPE = "decimal(38,0)"
KEY_DIGITS = 17
_STEP: int = 10**KEY_DIGITS


def limbs_of(table: ir.Table, prefix: str = "") -> Limbs:
    """Return a table's limb columns: ``hi mid lo``, or with a prefix such as ``id_``."""
    return Limbs(table[f"{prefix}hi"], table[f"{prefix}mid"], table[f"{prefix}lo"])


def limbs_at_least(amount: Limbs, bound: Limbs) -> ir.BooleanValue:
    """Say where ``amount >= bound``, both in normal form."""
    lower = (amount.mid > bound.mid) | ((amount.mid == bound.mid) & (amount.lo >= bound.lo))
    return (amount.hi > bound.hi) | ((amount.hi == bound.hi) & lower)


def limbs_at_most(amount: Limbs, bound: Limbs) -> ir.BooleanValue:
    """Say where ``amount <= bound``, both in normal form."""
    lower = (amount.mid < bound.mid) | ((amount.mid == bound.mid) & (amount.lo <= bound.lo))
    return (amount.hi < bound.hi) | ((amount.hi == bound.hi) & lower)


def limbs_equal(amount: Limbs, other: Limbs) -> ir.BooleanValue:
    """Say where two amounts are the same, both in normal form."""
    return (amount.lo == other.lo) & (amount.mid == other.mid) & (amount.hi == other.hi)


def carried(sums: Limbs) -> Limbs:
    """Return sums of limbs in normal form again; each sum may be of up to 10**11 limbs of either sign."""
    lo, carry = _carry(sums.lo)
    mid, carry = _carry(sums.mid + carry)
    return Limbs(sums.hi + carry, mid, lo)


def limb_sums(balance: ir.Column) -> dict[str, ir.Scalar]:
    """Return the limbs, not in normal form, of the sum of amounts (`rows.amount_struct`) or of counts; of no row, 0."""
    zero = ibis.literal(0, type=LIMB_TYPE)
    if not balance.type().is_struct():
        return {"hi": zero, "mid": zero, "lo": balance.cast(LIMB_TYPE).sum().fill_null(zero)}
    return {limb: balance[limb].sum().fill_null(zero) for limb in Limbs._fields}


def sort_key(amount: int) -> int:
    """Return the sort key of an amount.

    >>> sort_key(10**18)
    110000000000000000
    """
    if amount < 0:
        return -sort_key(-amount)
    digits = str(amount)
    more = len(digits) - KEY_DIGITS
    return amount if more <= 0 else more * _STEP + int(digits[:KEY_DIGITS])


@dataclass(frozen=True)
class Bound:
    """A bound of amounts: its limbs and sort key, as integers or scalars.

    ``sharp``: comparing sizes is comparing amounts.
    """

    limbs: Limbs
    size: Any
    sharp: bool


def lower_bound(amount: int) -> Bound:
    """Return an amount as the least that is allowed."""
    return Bound(split(amount), sort_key(amount), sort_key(amount - 1) < sort_key(amount))


def upper_bound(amount: int) -> Bound:
    """Return an amount as the most that is allowed."""
    return Bound(split(amount), sort_key(amount), sort_key(amount) < sort_key(amount + 1))


def stored_amount(amount: int) -> tuple[int, int, int, int]:
    """Return the columns that hold an amount and its sort key: ``hi mid lo size``."""
    return (*split(amount), sort_key(amount))


def digits_of(magnitude: Limbs) -> ir.StringValue:
    """Return the decimal digits of limbs in normal form that are not negative, without leading zeros."""
    hi, mid, lo = (limb.cast("string") for limb in magnitude)
    long = (hi + mid.lpad(LIMB_DIGITS, "0") + lo.lpad(LIMB_DIGITS, "0")).re_replace("^0+", "")
    return ibis.ifelse((magnitude.hi == 0) & (magnitude.mid == 0), lo, long)


def sort_key_of_digits(text: ir.StringValue) -> ir.IntegerValue:
    """Return the sort key of an amount that is not negative, of its decimal digits."""
    first, more = text.left(KEY_DIGITS).cast("int64"), text.length() - KEY_DIGITS
    return ibis.ifelse(more > 0, more.cast("int64") * _STEP + first, first)


def amount_near(size: ir.IntegerValue) -> ir.FloatingValue:
    """Return about the amount of a sort key, without its sign."""
    first = size.abs() % _STEP
    # An exact multiple: engines divide integers as floats, which would round to the next power of ten.
    return first.cast("float64") * ibis.literal(10.0) ** ((size.abs() - first) / _STEP).round()


def row_at_least(table: ir.Table, bound: Bound) -> ir.BooleanValue:
    """Say where the amount of a table's row is at least the bound."""
    if bound.sharp:
        return table.size >= bound.size
    return (table.size > bound.size) | (
        (table.size == bound.size) & limbs_at_least(limbs_of(table), bound.limbs)
    )


def row_at_most(table: ir.Table, bound: Bound) -> ir.BooleanValue:
    """Say where the amount of a table's row is at most the bound."""
    if bound.sharp:
        return table.size <= bound.size
    return (table.size < bound.size) | (
        (table.size == bound.size) & limbs_at_most(limbs_of(table), bound.limbs)
    )


def row_within(table: ir.Table, low: Bound, high: Bound | None) -> ir.BooleanValue:
    """Say where the amount of a table's row lies within bounds."""
    return (
        row_at_least(table, low)
        if high is None
        else row_at_least(table, low) & row_at_most(table, high)
    )


def rows_within(table: ir.Table, low: Bound, high: Bound | None) -> ir.Table:
    """Return the rows whose amount lies within bounds.

    Where sizes do not decide, the rows that they do decide are taken apart: an engine then reads the limbs of
    the others only.
    """
    if low.sharp and (high is None or high.sharp):
        return table.filter(row_within(table, low, high))
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
    return table.filter(sure).union(table.filter(edge, row_within(table, low, high)))


@dataclass(frozen=True)
class Range:
    """Bounds of a count. ``low`` is always set; ``none_too`` also takes wallets with nothing."""

    low: int
    high: int | None
    none_too: bool

    def holds(self, number: ir.IntegerValue) -> ir.BooleanValue:
        """Build the test of a column."""
        low = number >= self.low
        return low if self.high is None else low & (number <= self.high)


@dataclass(frozen=True)
class AmountRange(Range):
    """Bounds of an amount, which may need all of uint256.

    Bound to a statement, each is a `Bound`: a sort key, and limbs where that cannot tell.
    """

    def holds_of(self, amount: Limbs) -> ir.BooleanValue:
        """Build the test of an amount that has no sort key, as a sum has none."""
        bounds: Any = self
        low = limbs_at_least(amount, bounds.low.limbs)
        return low if bounds.high is None else low & limbs_at_most(amount, bounds.high.limbs)


class Block(int):
    """A block that stands for a time; ``written`` is that time as somebody wrote it, for people to read."""

    written: str

    def __new__(cls, block: int, written: str) -> Block:
        """Return the block with its time."""
        made = super().__new__(cls, block)
        made.written = written
        return made


@dataclass(frozen=True)
class Blocks:
    """Bounds in blocks; None where there is no bound."""

    first: int | None = None
    last: int | None = None

    def holds(self, block: ir.IntegerValue) -> list[ir.BooleanValue]:
        """Build the tests of a column, as many as there are bounds."""
        # No test where there is no bound: the shape has no value to bind there.
        first = [] if self.first is None else [block >= self.first]
        return first if self.last is None else [*first, block <= self.last]


# No data reaches this block, and every reader of JSON leaves it the number that it is.
NO_BLOCKS = Blocks(first=2**53 - 1)


def sort_key_sql(hi: str, mid: str, lo: str) -> str:
    """Return DuckDB's SQL of the sort key of limbs in normal form: for the writers of tables."""
    short = " ".join(
        f"WHEN {lo} < {10 ** (KEY_DIGITS + more)} THEN {more * _STEP} + ({lo}::HUGEINT // {10**more}::HUGEINT)::BIGINT"
        for more in range(LIMB_DIGITS - KEY_DIGITS + 1)
    )
    digits = _digits_sql(hi, mid, lo)
    long = (
        f"CASE WHEN length({digits}) <= {KEY_DIGITS} THEN ({digits})::BIGINT "
        f"ELSE (length({digits}) - {KEY_DIGITS}) * {_STEP} + left({digits}, {KEY_DIGITS})::BIGINT END"
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


def _carry(total: ir.DecimalColumn) -> tuple[ir.DecimalValue, ir.DecimalValue]:
    base = ibis.literal(LIMB_BASE, type=LIMB_TYPE)
    # The remainder takes the dividend's sign on every engine; adding the base first makes it the modulus.
    limb = (total % base + base) % base
    # Some engines divide decimals as doubles: the quotient is a small whole number, so rounding restores it.
    return limb, ((total - limb) / base).round().cast(LIMB_TYPE)
