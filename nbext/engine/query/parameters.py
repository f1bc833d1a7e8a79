"""Values bound into a compiled statement: a segment's shape, with a slot in place of each value.

Ibis takes 16-40 ms to compile a statement, more than most statements run. So segments that differ only in values share
one shape, which is compiled once. An example, of wallets that hold at least 1,000 UNI:

    condition   TokenCondition(contract=Contract(4, 1, "0x1f98...", "ERC20", ...), within=AmountRange(low=10**21, ...))
    shape       TokenCondition(contract=Contract(Slot(0, "int64"), 0, "", "ERC20"),
                    within=AmountRange(low=Bound(limbs=(Slot(1), Slot(2), Slot(3)), size=Slot(4), sharp=True), ...))
    values      (4,  0, 0, 10**21,  510000000000000000)      the contract; the bound's limbs; its sort key
    SQL         SELECT wallet FROM balances WHERE contract = $1 AND size >= $2
    arguments   [4, 510000000000000000]      a statement need not use every value: here the limbs decide nothing

At least 2,000 UNI has the same shape and SQL, and other values. At least 1,000.000000000000000001 UNI has another
shape: its sort key does not decide alone (``sharp=False``), so the SQL compares limbs too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any

from nbext.core.addresses import WIDTH
from nbext.core.uint256 import LIMB_BASE, Limbs, split
from nbext.engine.dataset import Contract, Question, Value, WalletList
from nbext.engine.query.amounts import LIMB_TYPE, AmountRange, Bound, lower_bound, upper_bound
from nbext.engine.query.set_tree import And

# The type of a list of wallets: a table that the engine names, not a value in the statement.
LIST = "list"


@dataclass(frozen=True)
class Slot:
    """The place of one value. Its type is part of the shape: a statement is compiled for its parameters' types."""

    index: int
    type: str


@dataclass(frozen=True)
class TokenIds:
    """Token ids: those of one limb as one list, so that their number is no part of the shape; the others as limbs."""

    small: Any
    large: tuple[Limbs, ...]


@dataclass
class Parameters:
    """Values in the order in which they were taken out of a shape."""

    values: list[Value] = field(default_factory=list)

    def shape_of(self, part: Any) -> Any:
        """Return the part of a plan with a slot in place of each value. Words that decide the statement stay.

        A text alone counts as such a word: an address has to be held in a tuple, or each one is compiled anew.
        """
        if isinstance(part, Contract):
            # Of a contract, only which one it is and its standard matter to the statement.
            return Contract(self.shape_of(part.contract), 0, "", part.standard)
        if isinstance(part, AmountRange):
            low: Any = self._bound(lower_bound(part.low))
            high: Any = None if part.high is None else self._bound(upper_bound(part.high))
            return AmountRange(low, high, part.none_too)
        if isinstance(part, tuple) and part and isinstance(part[0], int):
            return self._token_ids(part)
        # A bool is an int to Python, but decides what the statement is; a list of texts is one value, not many.
        is_number = isinstance(part, int) and not isinstance(part, bool)
        if is_number:
            # Plain: a block may carry the time that was written for it.
            return self._slot(int(part))
        if isinstance(part, WalletList) or (
            isinstance(part, tuple) and part and isinstance(part[0], str)
        ):
            return self._slot(part)
        return _rebuilt(part, self.shape_of)

    def _slot(self, value: Value) -> Slot:
        self.values.append(value)
        # Equal values get slots of their own: merging them would make the shape depend on the values.
        return Slot(len(self.values) - 1, type_of(value))

    def _bound(self, bound: Bound) -> Bound:
        return Bound(self._limbs(bound.limbs), self._slot(bound.size), bound.sharp)

    def _token_ids(self, ids: tuple[int, ...]) -> TokenIds:
        # Nearly all ids fit one limb, which an engine can look up in a list; the rest are compared one by one.
        small = tuple(one for one in ids if one < LIMB_BASE)
        large = tuple(self._limbs(split(one)) for one in ids if one >= LIMB_BASE)
        return TokenIds(self._slot(small) if small else None, large)

    def _limbs(self, amount: Limbs) -> Limbs:
        return Limbs(*map(self._slot, amount))


def bound(shape: Any, scalars: Any) -> Any:
    """Return a shape with the scalar of each slot in its place."""
    if isinstance(shape, Slot):
        return scalars[shape.index]
    return _rebuilt(shape, lambda part: bound(part, scalars))


def type_of(value: Value) -> str:
    """Return the type of the scalar that a value is bound to: as narrow as all values of its kind allow."""
    if isinstance(value, WalletList):
        return LIST
    if isinstance(value, tuple):
        # One large number among small ones makes them all decimals: an array has one type.
        return f"array<{max(map(type_of, value), key=len, default='string')}>"
    if isinstance(value, str):
        return "string"
    return "int64" if -(2**63) <= value < 2**63 else LIMB_TYPE


def _rebuilt(part: Any, change: Callable[[Any], Any]) -> Any:
    # A NamedTuple is a tuple, and must stay what it is.
    if isinstance(part, Limbs):
        return Limbs(*map(change, part))
    if isinstance(part, tuple):
        return tuple(map(change, part))
    # Its attributes are its fields; dataclasses.fields would build the same list anew at each of a hundred calls.
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return type(part)(**{name: change(value) for name, value in vars(part).items()})
    return part


def intersection(questions: Sequence[Question]) -> Question:
    """Return the question for the wallets that are in the answers of all of some questions, without columns."""
    starts = list(accumulate((len(one.values) for one in questions), initial=0))
    return Question(
        shape=repr([one.shape for one in questions]),
        wallets=lambda tables, scalars: And(
            [
                one.wallets(tables, scalars[start:])
                for one, start in zip(questions, starts, strict=False)
            ]
        ),
        columns=lambda tables, scalars: [],
        values=tuple(chain.from_iterable(one.values for one in questions)),
    )


def inline(question: Question) -> Question:
    """Return a question with the addresses of each list of wallets in its place, for engines that have no table of it.

    The language has refused lists that are too long for that (``Dataset.longest_list``).
    """
    return dataclasses.replace(question, values=tuple(map(_inline, question.values)))


def _inline(value: Value) -> Value:
    if not isinstance(value, WalletList):
        return value
    packed = b"".join(value.pieces())
    return tuple(
        "0x" + packed[start : start + WIDTH].hex() for start in range(0, len(packed), WIDTH)
    )
