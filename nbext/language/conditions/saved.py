"""``segment``: wallets of a saved segment, asked again of the data as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from nbext.engine.query.set_tree import Selection
from nbext.language.conditions.condition import Condition
from nbext.language.fields import Field

if TYPE_CHECKING:
    from nbext.engine.query.sql import SqlBuilder
    from nbext.language.lookup import Context
    from nbext.language.model import ParsedCondition, SegmentNode


@dataclass(frozen=True)
class SavedSegmentCondition(Condition):
    """The wallet is in a saved segment, with the chain, the wallets excluded and the time of its own."""

    segment_id: str
    segment: SegmentNode

    name = "segment"
    help = "Wallets of a saved segment, run again on the current data."
    fields = (
        Field(
            "id",
            "segment",
            "The saved segment's id.",
            required=True,
            examples=("sg_ExampleExampleExampleEx",),
        ),
    )
    examples = ({"id": "sg_ExampleExampleExampleEx"},)
    denials = (("are ", "are not "),)

    @classmethod
    def resolve(cls, asked: ParsedCondition, context: Context) -> Self:
        """Return the saved request, resolved on this data, as of this segment's time where it has none."""
        return cls(asked.values["id"], context.saved_segment(asked))

    def most(self) -> int | None:
        """Return how many the segment has at most."""
        return self.segment.most()

    def wallets(self, sql: SqlBuilder) -> Selection:
        """Return the whole segment: its complements are taken from the wallets that it sees itself."""
        return self.segment.wallets(sql)

    def canonical(self) -> dict[str, Any]:
        """Return its id: what was saved under one never changes."""
        return {"id": self.segment_id}

    def words(self) -> str:
        """Return it with the saved segment's own words."""
        return f"are in the saved segment {self.segment_id} ({self.segment.words()})"
