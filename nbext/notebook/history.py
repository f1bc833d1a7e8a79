"""This session's queries, by number; and saved queries, by name, which outlive the session."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbext.core.atomic_files import write_whole
from nbext.core.untrusted_text import quoted
from nbext.errors import StorageError, UsageError, did_you_mean
from nbext.notebook.cell.request import Query

COLUMNS = ["number", "segment_id", "operator", "filters", "limit", "matched", "returned", "seconds", "service"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


@dataclass(frozen=True)
class Run:
    """One query that ran, and its result's provenance."""

    number: int
    query: Query
    about: Mapping[str, Any]


@dataclass
class History:
    """The queries of one session, the first being number 1."""

    runs: list[Run] = field(default_factory=list)

    def add(self, query: Query, about: Mapping[str, Any]) -> Run:
        """Add a query, and its result's provenance."""
        # A copy: the user may change the table, and its attrs with it.
        self.runs.append(Run(len(self.runs) + 1, query, dict(about)))
        return self.runs[-1]

    def number(self, number: int | None) -> Run:
        """Return the query of a number, or the last one."""
        if not self.runs:
            raise UsageError("%nbext: no query has run in this session yet.")
        wanted = len(self.runs) if number is None else number
        if not 1 <= wanted <= len(self.runs):
            raise UsageError(f"%nbext: there is no query {wanted}. This session has queries 1 to {len(self.runs)}.")
        return self.runs[wanted - 1]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per query: its request, its id, the rows that matched and were returned, and the seconds."""
        return [
            {
                "number": one.number,
                "operator": one.query.operator,
                # Filters from Python may contain Decimals, which json cannot write.
                "filters": json.dumps(one.query.filters, default=str),
                "limit": one.query.limit,
                **{name: one.about.get(name) for name in ("segment_id", "matched", "returned", "seconds", "service")},
            }
            for one in self.runs
        ]


def save(folder: Path, name: str, query: Query) -> Path:
    """Save a query under a name, for ``%%segment_query --from NAME``."""
    path = _path(folder, name)
    # The request, not the cell: the variables of its {{expressions}} are gone in the next session.
    request = {"operator": query.operator, "filters": query.filters, "fileType": query.file_type, "limit": query.limit}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(request, default=str, indent=2))
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from None
    return path


def saved(folder: Path, name: str) -> str:
    """Return the request saved under a name, as JSON text."""
    path = _path(folder, name)
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        names = saved_names(folder)
        known = f" Saved: {', '.join(names)}." if names else " `%nbext save NAME` saves the last query."
        raise UsageError(f"No query is saved as {name!r}.{did_you_mean(name, names)}{known}") from None
    except (OSError, UnicodeDecodeError):
        raise StorageError(f"{path} cannot be read. Delete it and save the query again.") from None


def saved_names(folder: Path) -> list[str]:
    """Return the names of the saved queries, in order."""
    return sorted(path.stem for path in (folder / "queries").glob("*.json"))


def _path(folder: Path, name: str) -> Path:
    # The name becomes a file's: it must not lead out of the folder.
    if not _NAME.match(name):
        raise UsageError(f"{quoted(name)} is not a name for a query. Names use letters, digits, _ and -, at most 64.")
    return folder / "queries" / f"{name}.json"
