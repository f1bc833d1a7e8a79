"""Inclusive bounds of counts, amounts and blocks: as integers in a plan, as scalars where they test a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbext.core.uint256 import Limbs
from nbext.engine.query import exact

if TYPE_CHECKING:
    import ibis.expr.types as ir


class Block(int):
    """A block that stands for a time; ``written`` is that time as somebody wrote it, for people to read."""

    written: str

    def __new__(cls, block: int, written: str) -> Block:
        """Return the block with its time."""
        made = super().__new__(cls, block)
        made.written = written
        return made


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
class Amounts(Range):
    """Bounds of an amount, which may need all of uint256.

    Bound to a statement, each is a `nbext.engine.query.sort_key.Bound`: a sort key, and limbs where that cannot tell.
    """

    def holds_of(self, amount: Limbs) -> ir.BooleanValue:
        """Build the test of an amount that has no sort key, as a sum has none."""
        bounds: Any = self
        low = exact.at_least(amount, bounds.low.limbs)
        return low if bounds.high is None else low & exact.at_most(amount, bounds.high.limbs)


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
