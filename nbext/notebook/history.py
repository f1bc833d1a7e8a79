"""This session's queries, by number; and queries kept under a name, across sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbext.core.atomic_files import write_whole
from nbext.errors import StorageError, UsageError, did_you_mean
from nbext.notebook.cell.request import Query

COLUMNS = ["number", "segment_id", "operator", "filters", "limit", "matched", "returned", "seconds", "service"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


@dataclass(frozen=True)
class Ran:
    """One query that ran, and what came of it."""

    number: int
    query: Query
    about: Mapping[str, Any]


@dataclass
class History:
    """The queries of one session, the first being number 1."""

    ran: list[Ran] = field(default_factory=list)

    def add(self, query: Query, about: Mapping[str, Any]) -> Ran:
        """Note a query, and its result's provenance."""
        self.ran.append(Ran(len(self.ran) + 1, query, dict(about)))
        return self.ran[-1]

    def number(self, number: int | None) -> Ran:
        """Return the query of a number, or the last one.

        Raises
        ------
        UsageError
            There is none.
        """
        if not self.ran:
            raise UsageError("%nbext: no query has run in this session yet; `%nbext history` lists those that have.")
        wanted = len(self.ran) if number is None else number
        if not 1 <= wanted <= len(self.ran):
            raise UsageError(f"%nbext: there is no query {wanted}; this session's are 1 to {len(self.ran)}.")
        return self.ran[wanted - 1]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per query: what it asked, its id, how many matched and came, and the seconds."""
        return [
            {
                "number": one.number,
                "segment_id": one.about.get("segment_id"),
                "operator": one.query.operator,
                "filters": json.dumps(one.query.filters, default=str),
                "limit": one.query.limit,
                "matched": one.about.get("matched"),
                "returned": one.about.get("returned"),
                "seconds": one.about.get("seconds"),
                "service": one.about.get("service"),
            }
            for one in self.ran
        ]


def save(folder: Path, name: str, query: Query) -> Path:
    """Keep a query under a name, for ``%%segment_query --from NAME``.

    Raises
    ------
    UsageError
        The name is not one.
    StorageError
        It cannot be written.
    """
    path = _path(folder, name)
    request = {
        "operator": query.operator, "filters": query.filters, "fileType": query.file_type, "limit": query.limit,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(request, default=str, indent=2))
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from None
    return path


def saved(folder: Path, name: str) -> str:
    """Return the request kept under a name, as JSON text.

    Raises
    ------
    UsageError
        There is none of that name.
    StorageError
        It cannot be read.
    """
    path = _path(folder, name)
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        names = saved_names(folder)
        known = f" Saved: {', '.join(names)}." if names else " None is yet; `%nbext save NAME` saves the last one."
        raise UsageError(f"no query is saved as {name!r}.{did_you_mean(name, names)}{known}") from None
    except (OSError, UnicodeDecodeError):
        raise StorageError(f"{path} cannot be read; delete it and save the query again.") from None


def saved_names(folder: Path) -> list[str]:
    """Return the names of the kept queries, in order."""
    return sorted(path.stem for path in (folder / "queries").glob("*.json"))


def _path(folder: Path, name: str) -> Path:
    # The name becomes a file's: nothing that could leave the folder.
    if not _NAME.match(name):
        raise UsageError(f"{name[:80]!r} is not a name: letters, digits, _ and -, at most 64.")
    return folder / "queries" / f"{name}.json"
