"""The registry of segments: what was asked, its status, where its result is, and which call asked for it.

Each change is one UPDATE whose WHERE names the state that it expects: several services share the file, and whoever
comes second changes nothing and sees that in the count of rows.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nbext.core.operations import IDEMPOTENCY_HEADER, Status
from nbext.core.strict_json import canonical_json, to_json
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key
from nbext.service.http.problems import Problem

UNFINISHED = ("queued", "running")
# For how long a call may be repeated with its Idempotency-Key (seconds).
_CLAIM_SECONDS = 24 * 3600
_CLAIM_NAME = re.compile(r"[\x21-\x7e]{1,255}\Z")


@dataclass(frozen=True)
class Claim:
    """An Idempotency-Key of one caller, and the hash of the body that it came with."""

    key_id: str
    name: str
    body: str


def claim_of(header: str | None, key: Key, body: Mapping[str, Any]) -> Claim | None:
    """Return the claim that a request makes, or None without the header; 400 where the header is unusable."""
    if header is None:
        return None
    if not _CLAIM_NAME.match(header):
        raise Problem("bad-header", f"{IDEMPOTENCY_HEADER} is 1 to 255 printable ASCII characters without spaces.")
    return Claim(key.id, header, hashlib.sha256(canonical_json(body)).hexdigest())


def _claimed(db: sqlite3.Connection, claim: Claim, now: float) -> str | None:
    row = db.execute(
        "SELECT body, segment FROM idempotency WHERE key_id = ? AND name = ? AND created_at > ?",
        (claim.key_id, claim.name, now - _CLAIM_SECONDS),
    ).fetchone()
    # A key that is used again by mistake would return the segment of another question.
    if row and row["body"] != claim.body:
        raise Problem(
            "idempotency-key-reused",
            f"This {IDEMPOTENCY_HEADER} was sent with another body before. Use a new one for a new request.",
        )
    return row["segment"] if row else None


@dataclass(frozen=True)
class ResultFile:
    """The name of a result's file, and what its bytes were when it was written."""

    file: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Segment:
    """One segment as the registry has it; times are seconds since 1970."""

    id: str
    status: Status
    # The body of execute as it was read: operator, filters, fileType, limit.
    request: dict[str, Any]
    # What the plan says of the answer: chain, chainId, asOf, columns, warnings.
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
    result: ResultFile | None
    # The lease of the service that runs it, or None.
    owner: str | None
    cancel: bool

    @property
    def finished(self) -> bool:
        """Whether it has come to an end, good or bad."""
        return self.status not in UNFINISHED


def _segment(row: sqlite3.Row) -> Segment:
    return Segment(
        id=row["id"], status=row["status"], request=json.loads(row["request"]), facts=json.loads(row["facts"]),
        fingerprint=row["fingerprint"], matched=row["matched"], returned=row["returned"],
        preview=json.loads(row["preview"] or "[]"), error=json.loads(row["error"]) if row["error"] else None,
        created_at=row["created_at"], started_at=row["started_at"], completed_at=row["completed_at"],
        used_at=row["used_at"], result=ResultFile(row["file"], row["size"], row["sha256"]) if row["file"] else None,
        owner=row["owner"], cancel=bool(row["cancel"]),
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

        One that failed, expired or was cancelled starts anew. ``claim`` is stored in the same
        transaction: after a crash a repeat finds both or neither.
        """
        now = time.time()
        with self._database.write() as db:
            if claim:
                # An old claim gives way; a young one stays, and then has to be of the same body.
                db.execute(
                    "INSERT INTO idempotency (key_id, name, body, segment, created_at) VALUES (?, ?, ?, ?, ?)"
                    " ON CONFLICT DO UPDATE SET body = excluded.body, segment = excluded.segment,"
                    " created_at = excluded.created_at WHERE created_at <= ?",
                    (claim.key_id, claim.name, claim.body, segment_id, now, now - _CLAIM_SECONDS),
                )
                _claimed(db, claim, now)
            # Two callers may ask for one segment at once, in two services: one of them enters it, the other finds it.
            return db.execute(
                "INSERT INTO segments (id, status, request, facts, fingerprint, created_at, used_at, owner)"
                " VALUES (?, 'queued', ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
                " status = 'queued', request = excluded.request, facts = excluded.facts, error = NULL,"
                " created_at = excluded.created_at, started_at = NULL, completed_at = NULL,"
                " used_at = excluded.used_at, owner = excluded.owner, cancel = 0"
                " WHERE status IN ('failed', 'cancelled', 'expired')",
                (segment_id, to_json(request).decode(), to_json(facts).decode(), fingerprint, now, now, owner),
            ).rowcount > 0

    def claimed(self, claim: Claim) -> str | None:
        """Return the id of the segment that this claim made, or None where it is new; 422 where the body differs."""
        with self._database.read() as db:
            return _claimed(db, claim, time.time())

    def forget_old_claims(self) -> None:
        """Delete the claims that are older than 24 hours."""
        with self._database.write() as db:
            db.execute("DELETE FROM idempotency WHERE created_at <= ?", (time.time() - _CLAIM_SECONDS,))

    def start(self, segment_id: str, owner: str) -> bool:
        """Mark a queued segment as running; False where it was cancelled or taken over meanwhile."""
        return self._set(
            "status = 'running', started_at = ?", (time.time(),),
            "id = ? AND owner = ? AND status = 'queued' AND cancel = 0", (segment_id, owner),
        )

    def complete(
        self, segment_id: str, owner: str, *, matched: int, returned: int, preview: list[dict[str, Any]],
        result: ResultFile,
    ) -> bool:
        """Mark a running segment as completed, with its result."""
        now = time.time()
        return self._set(
            "status = 'completed', matched = ?, returned = ?, preview = ?, completed_at = ?, used_at = ?,"
            " file = ?, size = ?, sha256 = ?, owner = NULL",
            (matched, returned, to_json(preview).decode(), now, now, result.file, result.size, result.sha256),
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
        """Ask whichever service runs the segment to cancel it; False where it has finished."""
        return self._set("cancel = 1", (), "id = ? AND status IN ('queued', 'running')", (segment_id,))

    def to_cancel(self, owner: str) -> list[str]:
        """Return the ids of this owner's unfinished segments that someone asked to cancel."""
        asked = "SELECT id FROM segments WHERE owner = ? AND cancel = 1 AND status IN ('queued', 'running')"
        with self._database.read() as db:
            return [row[0] for row in db.execute(asked, (owner,))]

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
            # IS and not =: a segment that was put back has no owner, and NULL equals nothing.
            "id = ? AND owner IS ? AND status IN ('queued', 'running')", (segment_id, former),
        )

    def expire(self, segment_id: str, result: ResultFile, reason: Mapping[str, Any]) -> bool:
        """Mark a completed segment as expired; its request stays, so that it can be run again."""
        return self._set(
            # The preview goes with the file: an expired result leaves nothing of the data behind.
            "status = 'expired', error = ?, file = NULL, size = NULL, sha256 = NULL, preview = NULL",
            (to_json(reason).decode(),), "id = ? AND file = ? AND status = 'completed'", (segment_id, result.file),
        )

    def touch(self, segment_id: str, *, every: float) -> None:
        """Note that the result was used, unless that was noted less than ``every`` seconds ago."""
        now = time.time()
        self._set("used_at = ?", (now,), "id = ? AND used_at < ?", (segment_id, now - every))

    def with_status(self, *statuses: str) -> list[Segment]:
        """Return the segments of these statuses, the least recently used first."""
        # Marks and not the words themselves: no text is ever put into a statement.
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
