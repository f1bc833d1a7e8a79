"""Tables and errors as data for a model: nothing in them hides, no digit is lost, and what was left out is said."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbext.client.frames import records_of
from nbext.core.provenance import MAX_NOTE, Provenance
from nbext.core.strict_json import keys_of
from nbext.core.untrusted_text import shown, visible
from nbext.errors import NbextError, ValidationError

if TYPE_CHECKING:
    import pandas as pd

# Readers of JSON take numbers for doubles: a whole number beyond this is its digits, as text.
_EXACT = 2**53


@dataclass
class ToolAnswer:
    """What a tool answers: a sentence, the data, and what its reader should know."""

    said: str
    data: dict[str, Any]
    about: Provenance = field(default_factory=Provenance)
    # What a limit cut off, with the numbers; what went wrong beside the answer.
    notes: list[str] = field(default_factory=list)

    def content(self) -> dict[str, Any]:
        """Return the answer as a JSON object: its data, the block that it is of, and all notes."""
        more = {"asOf": self.about.as_of, "notes": self._all_notes()}
        content: dict[str, Any] = plain({**self.data, **more})
        return content

    def text(self) -> str:
        """Return the answer in short, with all notes."""
        lines = [*self.said.splitlines(), *(f"note: {note}" for note in self._all_notes())]
        return "\n".join(visible(line, MAX_NOTE) for line in lines)

    def _all_notes(self) -> list[str]:
        return [*self.notes, *self.about.notes()]


def rows_answer(table: pd.DataFrame, most: int, what: str, cut: str | None = None) -> ToolAnswer:
    """Return a table's first rows; ``cut`` says what is not there, where a limit was asked for."""
    rows, number = list(records_of(table.head(most))), len(table)
    if number > most:
        cut = f"{most:,} of {number:,} {what} are here."
    notes = [cut] if cut else []
    return ToolAnswer(f"{number:,} {what}.", {"rows": rows}, Provenance.of(table), notes)


def error_answer(error: NbextError, asked: Mapping[str, Any]) -> ToolAnswer:
    """Return an error as data: each field that is wrong, with what came, what may come, and what is near."""
    data: dict[str, Any] = {
        "error": type(error).__name__,
        "candidates": getattr(error, "candidates", []),
    }
    if isinstance(error, ValidationError):
        data |= {"errors": [], "more": error.more}
        for one in error.errors:
            # To an analysis they are those of its segment.
            pointer, detail = re.sub("^/segment/", "/filters/", one["pointer"]), one["detail"]
            found = {"pointer": pointer, "detail": detail, "got": _at(asked, pointer)}
            if near := re.search(r"Did you mean '([^']+)'", detail):
                found["near"] = near[1]
            if allowed := re.search(r"Allowed: (.+?)\.?$", detail):
                found["allowed"] = allowed[1].split(", ")
            data["errors"].append(found)
    else:
        data["detail"] = str(error)
    return ToolAnswer(f"{data['error']}: {error}", data)


def _at(document: Any, pointer: str) -> Any:
    """Return what is at a JSON pointer: of an object or a list only that it is one, and None where nothing is."""
    for key in keys_of(pointer):
        if isinstance(document, list):
            document = {str(place): one for place, one in enumerate(document)}
        document = document.get(key) if isinstance(document, Mapping) else None
    return shown(document) if isinstance(document, Mapping | list) else document


def plain(value: Any) -> Any:
    """Return a value as JSON that every reader reads alike; a text from a chain shows its hidden characters.

    >>> plain({"amount": 2**70, "symbol": "US\\u202eDC", "share": float("nan")})
    {'amount': '1180591620717411303424', 'symbol': 'US\\\\u202eDC', 'share': None}
    """
    if isinstance(value, Mapping):
        return {visible(key, None): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, int):
        return value if abs(value) < _EXACT else str(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    return None if value is None or isinstance(value, float) else visible(value, MAX_NOTE)
