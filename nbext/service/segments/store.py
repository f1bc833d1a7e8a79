"""The registry of segments: what was asked, how it stands, and where its result is."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nbext.core.operations import Status
from nbext.core.strict_json import to_json
from nbext.service.accounts.database import Database
from nbext.service.segments.idempotency import Claim
from nbext.service.segments.results import ResultFile

UNFINISHED = ("queued", "running")


@dataclass(frozen=True)
class Segment:
    """One segment as the registry knows it; moments are seconds since 1970.

    Attributes
    ----------
    request
        The body of execute as it was read: operator, filters, fileType, limit.
    facts
        What the compiled plan says: chain, chainId, asOf, columns, warnings, canonical, words.
    owner
        The lease of the service that runs it; None where none does.
    """

    id: str
    status: Status
    request: dict[str, Any]
    facts: dict[str, Any]
    fingerprint: str
    matched: int | None
    returned: int | None
    preview: list[dict[str, Any]]
    error: dict[str, Any] | None
    created_at: float
    started_at: float | None
    completed_at: float | None
    used_at: float
    kept: ResultFile | None
    owner: str | None
    cancel: bool

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.status not in UNFINISHED


def _segment(row: sqlite3.Row) -> Segment:
    return Segment(
        id=row["id"],
        status=row["status"],
        request=json.loads(row["request"]),
        facts=json.loads(row["facts"]),
        fingerprint=row["fingerprint"],
        matched=row["matched"],
        returned=row["returned"],
        preview=json.loads(row["preview"] or "[]"),
        error=json.loads(row["error"]) if row["error"] else None,
        created_at=row["created_at"],
        started_at=row["started_at"],
        completed_at=row["completed_at"],
        used_at=row["used_at"],
        kept=ResultFile(row["file"], row["size"], row["sha256"]) if row["file"] else None,
        owner=row["owner"],
        cancel=bool(row["cancel"]),
    )


class SegmentStore:
    """Segments by their id. Each change is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, segment_id: str) -> Segment | None:
        """Return the segment, or None."""
        with self._database.read() as db:
            row = db.execute("SELECT * FROM segments WHERE id = ?", (segment_id,)).fetchone()
        return _segment(row) if row else None

    def enter(
        self, segment_id: str, request: Mapping[str, Any], facts: Mapping[str, Any], fingerprint: str, owner: str,
        *, claim: Claim | None = None,
    ) -> bool:
        """Enter a segment as queued by ``owner``; False where it is there already, running or completed.

        One that failed, expired or was cancelled starts anew. ``claim`` is kept in the same transaction.
        """
        now = time.time()
        with self._database.write() as db:
            if claim:
                claim.keep(db, segment_id, now)
            return db.execute(
                "INSERT INTO segments (id, status, request, facts, fingerprint, created_at, used_at, owner)"
                " VALUES (?, 'queued', ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
                " status = 'queued', request = excluded.request, facts = excluded.facts, error = NULL,"
                " created_at = excluded.created_at, started_at = NULL, completed_at = NULL,"
                " used_at = excluded.used_at, owner = excluded.owner, cancel = 0"
                " WHERE status IN ('failed', 'cancelled', 'expired')",
                (segment_id, to_json(request).decode(), to_json(facts).decode(), fingerprint, now, now, owner),
            ).rowcount > 0

    def start(self, segment_id: str, owner: str) -> bool:
        """Mark a queued segment as running; False where it was cancelled or taken over meanwhile."""
        return self._set(
            "status = 'running', started_at = ?", (time.time(),),
            "id = ? AND owner = ? AND status = 'queued' AND cancel = 0", (segment_id, owner),
        )

    def complete(
        self, segment_id: str, owner: str, *, matched: int, returned: int, preview: list[dict[str, Any]],
        kept: ResultFile,
    ) -> bool:
        """Mark a running segment as completed, with its result."""
        return self._set(
            "status = 'completed', matched = ?, returned = ?, preview = ?, completed_at = ?, used_at = ?,"
            " file = ?, size = ?, sha256 = ?, owner = NULL",
            (matched, returned, to_json(preview).decode(), time.time(), time.time(), kept.file, kept.size, kept.sha256),
            "id = ? AND owner = ? AND status = 'running'", (segment_id, owner),
        )

    def end(self, segment_id: str, owner: str, status: Status, error: Mapping[str, Any] | None) -> bool:
        """Mark an unfinished segment of this owner as failed or cancelled."""
        return self._set(
            "status = ?, error = ?, completed_at = ?, owner = NULL",
            (status, to_json(error).decode() if error else None, time.time()),
            "id = ? AND owner = ? AND status IN ('queued', 'running')", (segment_id, owner),
        )

    def ask_to_cancel(self, segment_id: str) -> bool:
        """Leave the wish to cancel for whichever service runs the segment; False where it has finished."""
        return self._set("cancel = 1", (), "id = ? AND status IN ('queued', 'running')", (segment_id,))

    def to_cancel(self, owner: str) -> list[str]:
        """Return the ids of this owner's unfinished segments that someone wishes to cancel."""
        return self._ids("owner = ? AND cancel = 1 AND status IN ('queued', 'running')", (owner,))

    def release(self, segment_id: str, owner: str) -> bool:
        """Put an unfinished segment back, for the next service to run."""
        return self._set(
            "status = 'queued', started_at = NULL, owner = NULL",
            (), "id = ? AND owner = ? AND status IN ('queued', 'running')", (segment_id, owner),
        )

    def adopt(self, segment_id: str, former: str | None, owner: str) -> bool:
        """Take over an unfinished segment whose service has ended; False where another was quicker."""
        return self._set(
            "status = 'queued', started_at = NULL, owner = ?", (owner,),
            "id = ? AND owner IS ? AND status IN ('queued', 'running')", (segment_id, former),
        )

    def expire(self, segment_id: str, kept: ResultFile, reason: Mapping[str, Any]) -> bool:
        """Mark a completed segment as expired; its request stays, so that it can be run again."""
        return self._set(
            "status = 'expired', error = ?, file = NULL, size = NULL, sha256 = NULL, preview = NULL",
            (to_json(reason).decode(),), "id = ? AND file = ? AND status = 'completed'", (segment_id, kept.file),
        )

    def touch(self, segment_id: str, *, every: float = 3600.0) -> None:
        """Note that the result was used; at most once an hour, so that reading does not write."""
        now = time.time()
        self._set("used_at = ?", (now,), "id = ? AND used_at < ?", (segment_id, now - every))

    def with_status(self, *statuses: str) -> list[Segment]:
        """Return the segments of these statuses, the least recently used first."""
        marks = ", ".join("?" * len(statuses))
        with self._database.read() as db:
            rows = db.execute(f"SELECT * FROM segments WHERE status IN ({marks}) ORDER BY used_at", statuses)
            return [_segment(row) for row in rows]

    def files(self) -> set[str]:
        """Return the names of all result files that a segment has."""
        with self._database.read() as db:
            return {row[0] for row in db.execute("SELECT file FROM segments WHERE file IS NOT NULL")}

    def _set(self, change: str, values: Iterable[Any], where: str, which: Iterable[Any]) -> bool:
        with self._database.write() as db:
            return db.execute(f"UPDATE segments SET {change} WHERE {where}", (*values, *which)).rowcount > 0

    def _ids(self, where: str, which: Iterable[Any]) -> list[str]:
        with self._database.read() as db:
            return [row[0] for row in db.execute(f"SELECT id FROM segments WHERE {where}", tuple(which))]
