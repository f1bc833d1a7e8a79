"""What every condition of the segment language defines: its fields, its meaning on data, its wallets, its words.

A condition is a frozen dataclass whose attributes are its values on some data. Its class says what people may write
(`Condition.fields` and the rest), from which parsing, the JSON Schema, completion, forms and pages are made. Its
methods are the steps from what was written to the wallets. A new condition is a module beside this one, and an entry
of ``_ALL`` in `nbext.language.conditions`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from nbext.engine.query.amounts import Range
from nbext.language.fields import Field
from nbext.language.model import PlanNode

if TYPE_CHECKING:
    from nbext.engine.dataset import Contract
    from nbext.language.lookup import Context
    from nbext.language.model import ParsedCondition

# Known to every reader, so that an example needs no explanation.
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
BAYC = "0xBC4CA0EdA7647A8aB7C2061c2E118A18a936f13D"
VITALIK = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"

CHAIN = Field(
    "chain",
    "chain",
    "The chain of this condition; without it, the segment's.",
    examples=("polygon", "eip155:10", 8453),
)
UNIT = Field(
    "unit",
    "choice",
    "What amounts are written in: the token's own unit, or its smallest one.",
    default="token",
    choices=("token", "raw"),
    examples=("raw",),
)
HELD_SINCE = Field(
    "heldSince",
    "time",
    "Since this time (a date: its 00:00 UTC) the holding never fell below min; without min, never to zero.",
    examples=("90d", "2024-01-01", 19_000_000),
)


class Condition(PlanNode):
    """One condition: what may be written, and what it means.

    Attributes
    ----------
    exclusive
        Pairs of fields of which a condition has at most one.
    needs
        Pairs ``(field, others)``: the field is only taken beside one of the others.
    idle
        Fields that alone ask nothing.
    denials
        How the words begin, and what they begin with when the condition is denied. Without one that fits, the words
        are denied as a whole: "do not a and b" would deny only a.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]]
    examples: ClassVar[tuple[dict[str, Any], ...]]
    exclusive: ClassVar[tuple[tuple[str, str], ...]] = ()
    needs: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ()
    idle: ClassVar[frozenset[str]] = frozenset({"chain", "unit"})
    denials: ClassVar[tuple[tuple[str, str], ...]] = ()

    @classmethod
    @abstractmethod
    def resolve(cls, asked: ParsedCondition, context: Context) -> Self:
        """Return the condition on the data at hand.

        Raises
        ------
        Unresolved
            After an error was reported.
        """

    @abstractmethod
    def canonical(self) -> dict[str, Any]:
        """Return it as a request that means the same, with nothing left to look up. A field of None is left out."""

    def denied(self) -> str:
        """Return the words with their verb denied, or denied as a whole."""
        text = self.words()
        for start, denied in self.denials:
            if text.startswith(start):
                return denied + text[len(start) :]
        return super().denied()

    def shown(self) -> tuple[Contract, int | None] | None:
        """Return the contract that gives the rows a column, and the block at which it is looked at; None for none."""
        return None


def bounds_json(
    bounds: Range, written: Callable[[int], Any] = int, low: str = "min", high: str = "max"
) -> dict[str, Any] | None:
    """Return bounds as a request writes them, None of none: amounts as texts, which no reader of JSON rounds."""
    both = {low: bounds.low, high: bounds.high}
    return {key: written(one) for key, one in both.items() if one is not None} or None
