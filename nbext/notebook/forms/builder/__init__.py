"""The segment builder: a tree of conditions in Python, which a page of ours draws as lines and changes by messages.

form        the form: what the page edits and is shown; the counts of each line and what remains; running; the cell
hits        what fields offer to pick: contracts, segments, lists, saved queries
tree        conditions and groups, how they are edited, undo and redo
filters     a tree as a segment's filters and back, and the cell that runs them
fields      what a builder offers, from the service's schema: a condition's fields, their texts, a line in words
"""

from __future__ import annotations

from typing import Any

from nbext.notebook.views.view import Button, ViewPart


class Edit(Button):
    """Opens a query in a builder, once, in the box ``below``."""

    def __init__(self, client: Any, query: Any, tip: str, label: str = "Edit") -> None:
        super().__init__(label, self.open, classes="nbext-edit", tip=tip)
        # No box: a snapshot has nothing of a builder that changes by itself.
        self.client, self.query, self.below = client, query, ViewPart("group")

    @property
    def builder(self) -> Any:
        """The builder that is open, or None."""
        return next(iter(self.below.members), None)

    def open(self) -> None:
        """Open the builder, where it is not open yet."""
        # Imported here: most cards are only looked at.
        from nbext.notebook.forms.builder.form import SegmentForm

        if self.builder is None:
            self.below.fill(SegmentForm(self.client, self.query))
