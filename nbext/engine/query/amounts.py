"""Amounts of up to 256 bits in SQL: limbs, the sort key that orders them, and bounds.

The limbs are those of `nbext.core.uint256`, in normal form in all tables: sums of limbs are put back into it by
`carried`. The texts use only what every engine computes exactly on DECIMAL(38,0): ``+ - %``, comparison, and the
division of an exact multiple.

An amount's sort key, the column ``sort_key`` of tables, is one 64-bit integer. Below 10**17 it is the amount itself; of
a larger one of n digits it is (n - 17) * 10**17 plus the first 17 digits; of a negative one its magnitude's, negative.
A larger amount never has a smaller key. So ``amount >= bound`` is ``sort_key >= bound's key`` wherever the bound is the
smallest amount of its key, as bounds with up to 17 significant digits are; elsewhere limbs are compared, of the few
rows of that very key. Engines scan these integers some 50 times as fast as limbs of 128 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NewType

from nbext.core.uint256 import LIMB_BASE, LIMB_DIGITS, Limbs, split
from nbext.engine.query.sql import LIMB, SqlBuilder

# Orders amounts, and is none: nothing that is shown or added up may be one.
SortKey = NewType("SortKey", int)
KEY_DIGITS = 17
_STEP: int = 10**KEY_DIGITS
_BASE = f"CAST({LIMB_BASE} AS {LIMB})"


def limbs_at_least(sql: SqlBuilder, amount: int) -> str:
    """Return the test that limbs in normal form are at least an amount."""
    hi, mid, lo = map(sql.value, split(amount))
    return f"(hi > {hi} OR (hi = {hi} AND (mid > {mid} OR (mid = {mid} AND lo >= {lo}))))"


def carried(sums: str, others: str) -> str:
    """Return the statement of rows whose sums of limbs are in normal form again, with other columns.

    Each sum may be of up to 10**11 limbs of either sign.
    """
    for upper, lower, rest in (("mid", "lo", "hi"), ("hi", "mid", "lo")):
        # Decimals are divided slowly, and hardly a sum needs it: of 86,000 sums 340 ms, and 30 ms where none does.
        near = (
            f"CASE WHEN {lower} >= 0 AND {lower} < {_BASE} THEN {{}} "
            f"WHEN {lower} < 0 AND {lower} >= -{_BASE} THEN {{}} ELSE {{}} END"
        )
        # The remainder takes the dividend's sign on every engine; adding the base first makes it the modulus.
        rest_of = f"({lower} % {_BASE} + {_BASE}) % {_BASE}"
        limb = near.format(lower, f"{lower} + {_BASE}", rest_of)
        # Some engines divide decimals as doubles: the quotient is a small whole number, so rounding restores it.
        carry = near.format(0, -1, f"CAST(round(({lower} - {rest_of}) / {_BASE}) AS {LIMB})")
        limbs = f"{upper} + {carry} AS {upper}, {limb} AS {lower}, {rest}"
        sums = f"(SELECT {others}, {limbs} FROM {sums}) AS {lower}_carried"
    return f"SELECT * FROM {sums}"


def as_amounts(sums: str, others: str) -> str:
    """Return the statement of sums of limbs as `carried` has them, with other columns, and ``sort_key``."""
    # A key is that of the magnitude, whose limbs are in normal form again where a sum is below zero.
    exact = ", ".join(f"exact_{limb}" for limb in Limbs._fields)
    magnitude = ", ".join(
        f"{limb} AS exact_{limb}, CASE WHEN hi < 0 THEN -{limb} ELSE {limb} END AS {limb}"
        for limb in Limbs._fields
    )
    negated = f"(SELECT {others}, {magnitude} FROM ({carried(sums, others)}) AS sums)"
    hi, mid, lo = (f"CAST({limb} AS STRING)" for limb in Limbs._fields)
    lower = [f"lpad({limb}, {LIMB_DIGITS}, '0')" for limb in (mid, lo)]
    # In a statement of their own: DuckDB works out twice what is written twice.
    spelled = f"""
        SELECT {others}, {exact}, CASE WHEN hi <> 0 THEN concat({hi}, {lower[0]}, {lower[1]})
            WHEN mid <> 0 THEN concat({mid}, {lower[1]}) ELSE {lo} END AS digits
        FROM ({carried(negated, f"{others}, {exact}")}) AS magnitudes"""
    return f"""
        SELECT {others}, {", ".join(f"exact_{limb} AS {limb}" for limb in Limbs._fields)},
            CASE WHEN exact_hi < 0 THEN -1 ELSE 1 END * {_key("digits")} AS sort_key
        FROM ({spelled}) AS spelled"""


def count_as_amount(count: str) -> str:
    """Return the columns of a count that is not negative as an amount: the limbs and ``sort_key``."""
    zero, digits = f"CAST(0 AS {LIMB})", f"CAST({count} AS STRING)"
    return f"{zero} AS hi, {zero} AS mid, CAST({count} AS {LIMB}) AS lo, {_key(digits)} AS sort_key"


def _key(digits: str) -> str:
    # DuckDB cuts by substr in less time than by left.
    first = f"CAST(substr({digits}, 1, {KEY_DIGITS}) AS BIGINT)"
    return f"(CAST(greatest(length({digits}) - {KEY_DIGITS}, 0) AS BIGINT) * {_STEP} + {first})"


def sort_key(amount: int) -> SortKey:
    """Return the sort key of an amount.

    >>> sort_key(10**18)
    210000000000000000
    """
    if amount < 0:
        return SortKey(-sort_key(-amount))
    digits = str(amount)
    more = len(digits) - KEY_DIGITS
    return SortKey(amount if more <= 0 else more * _STEP + int(digits[:KEY_DIGITS]))


def amount_near(key: str) -> str:
    """Return about the amount of a sort key, without its sign."""
    first = f"abs({key}) % {_STEP}"
    # An exact multiple: engines divide integers as floats, which would round to the next power of ten.
    power = f"power(CAST(10 AS DOUBLE), round((abs({key}) - {first}) / {_STEP}))"
    return f"CAST({first} AS DOUBLE) * {power}"


def row_at_least(sql: SqlBuilder, amount: int) -> str:
    """Return the test that a row's amount is at least a bound: its sort key decides nearly all by one comparison."""
    key = sort_key(amount)
    value = sql.value(key)
    # Smaller than every amount of its key: comparing keys is comparing amounts.
    if sort_key(amount - 1) < key:
        return f"sort_key >= {value}"
    return f"(sort_key > {value} OR (sort_key = {value} AND {limbs_at_least(sql, amount)}))"


@dataclass(frozen=True)
class Range:
    """Inclusive bounds of a count, an amount or a block; None where there is no bound."""

    low: int | None = None
    high: int | None = None

    def holds(self, sql: SqlBuilder, number: str) -> list[str]:
        """Return the tests of a column, as many as there are bounds."""
        low = [] if self.low is None else [f"{number} >= {sql.value(self.low)}"]
        return low if self.high is None else [*low, f"{number} <= {sql.value(self.high)}"]

    def holds_by(self, at_least: Callable[[SqlBuilder, int], str], sql: SqlBuilder) -> list[str]:
        """Return the tests of an amount, which may need all of uint256, by what tests a lower bound.

        That is `row_at_least`, or `limbs_at_least` of an amount without a sort key, as of a sum.
        """
        low = [] if self.low is None else [at_least(sql, self.low)]
        return low if self.high is None else [*low, f"NOT {at_least(sql, self.high + 1)}"]


class Block(int):
    """A block that stands for a time; ``written`` is that time as somebody wrote it, for people to read."""

    written: str

    def __new__(cls, block: int, written: str) -> Block:
        """Return the block with its time."""
        made = super().__new__(cls, block)
        made.written = written
        return made


# No data reaches this block, and every reader of JSON leaves it the number that it is.
NO_BLOCKS = Range(2**53 - 1)
