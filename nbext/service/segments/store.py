"""The registry of segments: what was asked, its status, where its result is, which call asked for it, and whose it is.

Each change is one UPDATE whose WHERE names the state that it expects: several services share the file, and whoever
comes second changes nothing and sees that in the count of rows. Keys that ask the same share a segment, which is that
of the key that made it; a private key shares none, as its segments have ids of their own.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from nbext.core.strict_json import canonical_json, to_json
from nbext.core.wire import IDEMPOTENCY_HEADER, Status
from nbext.engine.dataset import MOST_VALUES
from nbext.service.accounts.database import Database, Lent, Row, insert_into
from nbext.service.accounts.keys import Key
from nbext.service.limits import Limits, Policy
from nbext.service.problems import Problem

UNFINISHED = ("queued", "running")
# Whoever asks again for one of these begins it anew.
WITHOUT_RESULT = ("expired", "failed", "cancelled")
CANCELLED = Problem("cancelled", "It was cancelled.").summary
# Rows of one look or change, where all of them might be a million.
_BATCH = 500
# For how long a call may be repeated with its Idempotency-Key (seconds).
_CLAIM_SECONDS = 24 * 3600
_CLAIM_NAME = re.compile(r"[\x21-\x7e]{1,255}\Z")


@dataclass(frozen=True)
class IdempotencyKey:
    """An Idempotency-Key of one caller, the hash of the body that it came with, and the segment that it had then."""

    key_id: str
    name: str
    body: str
    segment: str | None = None


class ClaimedMeanwhile(Exception):
    """Another call with the same Idempotency-Key made another segment, after this one had looked for it."""


@dataclass(frozen=True)
class ResultFile:
    """The name of a result's file, and what its bytes were when it was written."""

    file: str
    size: int
    sha256: str


@dataclass(frozen=True)
class SegmentRecord:
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
    # The lease of the service that runs it, or None; and the key that it is run for.
    lease: str | None
    key_id: str
    # Only that key and those with the scope admin see it.
    private: bool
    # How many services began to run it and did not end in order; whether somebody asked to cancel the last one's run.
    attempts: int
    cancel: int

    @property
    def finished(self) -> bool:
        """Whether it has come to an end, good or bad."""
        return self.status not in UNFINISHED

    def ended_by(self, key: Key) -> bool:
        """Return whether the key may cancel and delete it."""
        return self.key_id == key.id or "admin" in key.scopes


_GET = "SELECT * FROM segments WHERE id = :id"
_UNFINISHED = f"status IN {UNFINISHED}"
# What a segment takes without a result.
_TEXTS = "length(request) + length(facts)"
# Of the service that runs it.
_OWN = f"id = :id AND lease = :lease AND {_UNFINISHED}"
# All that the bounds of the queue and a place in it need: hundreds of rows at most, and the sum of a key's. The owner's
# is bounded by ``keep_bytes`` alone, as it has no rate: for one person the oldest results go.
_QUEUE = f"""
    SELECT
        count(*) FILTER (WHERE status = 'queued') AS waiting,
        count(*) FILTER (WHERE key_id = :key) AS of_key,
        coalesce(max(turn) FILTER (WHERE key_id = :key AND priority = :priority) + 1, 0) AS after_last,
        coalesce(min(turn) FILTER (WHERE status = 'queued'), max(turn) FILTER (WHERE status = 'running'), 0) AS served,
        coalesce(sum(stored), 0) AS reserved,
        (SELECT coalesce(sum(stored), 0) FROM segments WHERE key_id = :key AND key_id <> 'owner') AS taken
    FROM segments WHERE {_UNFINISHED}
"""
_NEXT = """
    SELECT id FROM segments WHERE status = 'queued' AND fingerprint IN :data AND key_id NOT IN :busy
    ORDER BY turn, priority, created_at LIMIT 1
"""
_START = f"""
    UPDATE segments
    SET status = 'running', lease = :lease, started_at = :now, attempts = attempts + 1
    WHERE id = ({_NEXT}) AND status = 'queued' RETURNING *
"""
_COMPLETE = """
    UPDATE segments
    SET status = 'completed', lease = NULL, matched = :matched, returned = :returned, preview = :preview,
        facts = :facts, completed_at = :now, used_at = :now, file = :file, size = :size, sha256 = :sha256,
        stored = :bytes + length(request)
    WHERE id = :id AND lease = :lease AND status = 'running' RETURNING *
"""
_CLAIM = """
    INSERT INTO idempotency (key_id, name, body, segment, created_at) VALUES (:key_id, :name, :body, :segment, :now)
    ON CONFLICT (key_id, name)
    DO UPDATE SET body = excluded.body, segment = excluded.segment, created_at = excluded.created_at
"""
# Some hundred segments of a status, those that were not used for longest: the old ones, and the first bytes of them.
_OLD = f"""
    SELECT * FROM (
        SELECT oldest.*, sum(stored) OVER (ORDER BY used_at, id) - stored AS ahead FROM (
            SELECT id, used_at, stored, file, size, sha256 FROM segments WHERE status = :status
            ORDER BY used_at LIMIT {_BATCH}
        ) AS oldest
    ) AS summed
    WHERE used_at < :before OR ahead < :excess ORDER BY used_at, id
"""
_ENDED = f"completed_at = :now, error = :error, stored = {_TEXTS}"
# Bytes of one row of a result, at most about, and of each of its columns: reserved when a segment is accepted.
_ROW_BYTES, _COLUMN_BYTES = 44, 20
# Idempotency-Keys of one key within their 24 hours.
_MOST_CLAIMS = 10_000
# What a row has as text, as it is stored, and is in JSON there.
_JSON = ("request", "facts", "preview", "error")


def _text(value: Any) -> str:
    return to_json(value).decode()


def _result(row: Row) -> ResultFile:
    return ResultFile(row.file, row.size, row.sha256)


def _segment(row: Row) -> SegmentRecord:
    found = row._asdict()
    found |= {name: json.loads(found[name] or "null") for name in _JSON}
    found |= {"result": _result(row) if row.file else None, "preview": found["preview"] or []}
    found["private"] = bool(row.private)
    return SegmentRecord(**{each.name: found[each.name] for each in fields(SegmentRecord)})


def _claimed(db: Lent | Database, claim: IdempotencyKey) -> str | None:
    since = time.time() - _CLAIM_SECONDS
    young = (
        "SELECT * FROM idempotency WHERE key_id = :key_id AND name = :name AND created_at > :since"
    )
    rows = db.rows(young, since=since, **vars(claim))
    # A key that is used again by mistake would return the segment of another question.
    if rows and rows[0].body != claim.body:
        raise Problem(
            "idempotency-key-reused",
            f"This {IDEMPOTENCY_HEADER} was sent with another body before. Use a new one for a new request.",
        )
    return rows[0].segment if rows else None


def _reserved(request: Mapping[str, Any], facts: Mapping[str, Any], most: int | None) -> int:
    """Return how many bytes a result may take, which are the segment's until it is written or ends without one."""
    columns = len(facts.get("columns", ()))
    # A segment of more values is refused, and so is never written.
    rows = min(int(request["limit"]), MOST_VALUES // max(1, columns))
    rows = rows if most is None else min(rows, most)
    return rows * (_ROW_BYTES + _COLUMN_BYTES * columns)


def _turn(db: Lent, key_id: str, priority: int, limits: Limits, policy: Policy) -> int:
    """Return a place in the queue: after the key's own last one, and not before those that are served now.

    So the keys take turns however many segments each has, and a key's counts do not wait for its other segments. The
    problem is 507 where the key's segments take all that they may, 503 where the queue is full, 429 where its share is.
    """
    (queue,) = db.rows(_QUEUE, key=key_id, priority=priority)
    # With what is reserved for those that have not finished: many at once would each find room.
    if queue.taken >= policy.key_bytes:
        raise Problem(
            "quota",
            f"The results of this key take {queue.taken:,} bytes, and may take {policy.key_bytes:,}; a segment that is"
            " not finished counts with all rows that its limit allows. Delete some with ?result=delete, or wait:"
            f" results are deleted {policy.keep_days:g} days after their last use.",
        )
    if queue.waiting >= limits.queue:
        raise Problem("busy", f"{queue.waiting} segments are waiting. Try again soon.")
    # Results give way to newer ones once these are written; what all may write at once has to fit.
    if queue.reserved >= policy.keep_bytes:
        detail = f"Unfinished segments may take {queue.reserved:,} bytes, of {policy.keep_bytes:,} in all."
        raise Problem("busy", f"{detail} Try again soon.")
    # A loop around execute fills the share of its own key, and not the queue of all.
    if queue.of_key >= limits.per_key:
        raise Problem(
            "too-many-segments",
            f"This key has {limits.per_key} unfinished segments. Wait for one to finish, or cancel one.",
        )
    return int(max(queue.served, queue.after_last))


@dataclass
class SegmentStore:
    """Segments by their id. Each change is one transaction."""

    _database: Database

    def get(self, segment_id: str, key: Key | None = None) -> SegmentRecord | None:
        """Return the segment, or None where there is none, or ``key`` may not see it."""
        segment = next(map(_segment, self._database.rows(_GET, id=segment_id)), None)
        # Ids travel in shared notebooks, but not those of private keys.
        hidden = segment and key and (segment.private or key.private) and not segment.ended_by(key)
        return None if hidden else segment

    def enqueue(
        self,
        segment_id: str,
        request: Mapping[str, Any],
        facts: Mapping[str, Any],
        fingerprint: str,
        *,
        key: Key,
        limits: Limits,
        most: int | None = None,
        claim: IdempotencyKey | None = None,
        lost: ResultFile | None = None,
    ) -> SegmentRecord:
        """Queue a segment for a key, unless it is there, and return it; it has ``most`` wallets, if known.

        One that failed, expired or was cancelled, or whose result is ``lost``, starts anew. ``claim`` is stored in the
        same transaction: after a crash a repeat finds both or neither; ClaimedMeanwhile where it is another segment's
        by now. The problem is 503 where the queue of all
        services is full, or all that may be stored is reserved; 429 where the key's share of the queue is full, 507
        where that of the disk is.
        """
        now, asked, said = time.time(), _text(request), _text(facts)
        # A count needs no rows and is quick.
        priority = int(request["limit"] > 0)
        # Two callers may ask for one segment at once, in two services: one of them enters it, the other finds it. It is
        # on the disk with its result; whoever answers without a new one has it written first, by `touch`.
        with self._database.write(alone=True, lasting=False) as db:
            # An old claim gives way; a young one has to be of the same body, and of the segment that the caller knows.
            former = _claimed(db, claim) if claim else segment_id
            if claim and former != segment_id:
                if former != claim.segment:
                    raise ClaimedMeanwhile
                sent = (
                    "SELECT count(*) FROM idempotency WHERE key_id = :key AND created_at > :since"
                )
                since = now - _CLAIM_SECONDS
                if former is None and db.rows(sent, key=key.id, since=since)[0][0] >= _MOST_CLAIMS:
                    detail = f"This key has sent {_MOST_CLAIMS:,} of {IDEMPOTENCY_HEADER} within a day. Leave it out."
                    raise Problem("quota", detail)
                db.change(_CLAIM, **{**vars(claim), "segment": segment_id, "now": now})
            rows = db.rows(_GET, id=segment_id)
            if (
                not rows
                or rows[0].status in WITHOUT_RESULT
                or (lost is not None and rows[0].file == lost.file)
            ):
                new = {
                    "id": segment_id,
                    "status": "queued",
                    "request": asked,
                    "facts": said,
                    "fingerprint": fingerprint,
                    "created_at": now,
                    "used_at": now,
                    "key_id": key.id,
                    "private": int(key.private),
                    "stored": len(asked) + len(said) + _reserved(request, facts, most),
                    "priority": priority,
                    "turn": _turn(db, key.id, priority, limits, self._database.policy),
                }
                if rows:
                    db.change("DELETE FROM segments WHERE id = :id", id=segment_id)
                rows = db.rows(f"{insert_into('segments', new)} RETURNING *", **new)
        return _segment(rows[0])

    def claim(self, header: str, key: Key, body: Mapping[str, Any]) -> IdempotencyKey:
        """Return what a request's header names, with the segment of a call before, if there was one.

        The problem is 400 where it is unusable, 422 where the body was another.
        """
        if not _CLAIM_NAME.match(header):
            raise Problem(
                "bad-header",
                f"{IDEMPOTENCY_HEADER} is 1 to 255 printable ASCII characters without spaces.",
            )
        claim = IdempotencyKey(key.id, header, hashlib.sha256(canonical_json(body)).hexdigest())
        return replace(claim, segment=_claimed(self._database, claim))

    def forget_old_claims(self) -> None:
        """Delete the claims that are older than 24 hours."""
        self._database.change(
            "DELETE FROM idempotency WHERE created_at <= :before",
            before=time.time() - _CLAIM_SECONDS,
        )

    def queued(self) -> int:
        """Return how many segments wait, for whichever service."""
        return int(self._database.scalar("SELECT count(*) FROM segments WHERE status = 'queued'"))

    def queue_age(self) -> float:
        """Return how long the segment has waited that waits longest, in seconds."""
        oldest = self._database.scalar(
            "SELECT min(created_at) FROM segments WHERE status = 'queued'"
        )
        return max(0.0, time.time() - oldest) if oldest else 0.0

    def start(
        self, lease: str, fingerprints: Collection[str], busy: Collection[str] = ()
    ) -> SegmentRecord | None:
        """Mark the next segment of the queue as running in that service, and return it; None where none waits.

        Of those that ask data of these fingerprints, and of no key in ``busy``.
        """
        wanted = {"data": list(fingerprints), "busy": list(busy)}
        # Most looks find nothing, and readers wait for nobody.
        if not self._database.rows(_NEXT, **wanted):
            return None
        # After a power cut it waits again, as it would in any case.
        with self._database.write(alone=True, lasting=False) as db:
            rows = db.rows(_START, lease=lease, now=time.time(), **wanted)
        return _segment(rows[0]) if rows else None

    def complete(
        self,
        segment_id: str,
        lease: str,
        result: ResultFile,
        *,
        preview: list[dict[str, Any]],
        facts: Mapping[str, Any],
        **counts: int,
    ) -> SegmentRecord | None:
        """Mark a running segment as completed, with its result and what its answer says now; None where it is not so.

        It was cancelled, or taken over by another service that took this one for ended. The counts are ``matched`` and
        ``returned``.
        """
        texts = {"preview": _text(preview), "facts": _text(facts)}
        taken = {"bytes": result.size + sum(map(len, texts.values())), **vars(result)}
        with self._database.write() as db:
            rows = db.rows(
                _COMPLETE, id=segment_id, lease=lease, now=time.time(), **counts, **texts, **taken
            )
        return _segment(rows[0]) if rows else None

    def end(
        self, segment_id: str, lease: str, status: Status, error: Mapping[str, Any] | None
    ) -> None:
        """Mark an unfinished segment of this service as failed or cancelled."""
        this = f"UPDATE segments SET status = :status, lease = NULL, {_ENDED} WHERE {_OWN}"
        said = error and _text(error)
        self._database.change(
            this, status=status, id=segment_id, lease=lease, error=said, now=time.time()
        )

    def requeue(self, segment_id: str, lease: str, *, killed: bool) -> bool:
        """Put an unfinished segment back, for the next service to run; end one that was to be cancelled.

        Its service ends in order, or was ``killed``. False where it is not put back, or another was quicker.
        """
        back = f"""
            UPDATE segments
            SET status = 'queued', started_at = NULL, lease = NULL, attempts = attempts - :less
            WHERE {_OWN} AND cancel = 0
        """
        if self._database.change(back, less=int(not killed), id=segment_id, lease=lease):
            return True
        self.end(segment_id, lease, "cancelled", CANCELLED)
        return False

    def cancel(self, segment_id: str) -> bool:
        """Cancel a segment that waits, or ask the service that runs it to; False where it has finished."""
        waits = f"UPDATE segments SET status = 'cancelled', {_ENDED} WHERE id = :id AND status = 'queued'"
        runs = f"UPDATE segments SET cancel = 1 WHERE id = :id AND {_UNFINISHED}"
        with self._database.write() as db:
            waited = db.change(waits, id=segment_id, error=_text(CANCELLED), now=time.time())
            return bool(waited or db.change(runs, id=segment_id))

    def unsettled(self, ids: Collection[str]) -> list[tuple[str, bool]]:
        """Return which of these segments have finished, with False, or are to be cancelled, with True."""
        asked = f"""
            SELECT id, {_UNFINISHED} AS unfinished FROM segments
            WHERE id IN :ids AND (cancel = 1 OR NOT ({_UNFINISHED}))
        """
        return [(row.id, bool(row.unfinished)) for row in self._database.rows(asked, ids=[*ids])]

    def fail_of_other_data(
        self, fingerprints: Collection[str], before: float, why: Mapping[str, Any]
    ) -> None:
        """Fail the segments that wait since ``before`` for data of other fingerprints, which is not open any more."""
        gone = f"""
            UPDATE segments SET status = 'failed', {_ENDED}
            WHERE status = 'queued' AND fingerprint NOT IN :data AND created_at < :before
        """
        self._database.change(
            gone, error=_text(why), now=time.time(), data=[*fingerprints], before=before
        )

    def lead(self, lease: str, is_alive: Callable[[str], bool]) -> bool:
        """Return whether this service is the one that cleans up for all: it is, unless another is that is alive."""
        leader = self._database.scalar("SELECT leader FROM registry")
        if leader and is_alive(leader):
            return bool(leader == lease)
        free = "UPDATE registry SET leader = :lease WHERE coalesce(leader, '') = :former"
        return self._database.change(free, lease=lease, former=leader or "") > 0

    def expire(self, results: Collection[ResultFile], reason: Mapping[str, Any]) -> dict[str, str]:
        """Mark the segments of these results as expired, in one transaction; return the ids and files of those marked.

        Their requests stay for a while, so that they can be run again: see `forget`.
        """
        # By the file alone, and then by the id: of a million segments SQLite would look at each that is completed.
        named = "SELECT id, file, status FROM segments WHERE file IN :files"
        # The preview goes with the file: an expired result leaves nothing of the data behind.
        gone = f"""
            UPDATE segments SET status = 'expired', error = :error, stored = {_TEXTS},
                file = NULL, size = NULL, sha256 = NULL, preview = NULL
            WHERE id IN :ids
        """
        with self._database.write(alone=True) as db:
            rows = db.rows(named, files=[each.file for each in results])
            found = {row.id: row.file for row in rows if row.status == "completed"}
            db.change(gone, error=_text(reason), ids=[*found])
        return found

    def forget(self, before: float, excess: int = 0) -> None:
        """Delete what has no result, with its request: all last used ``before``, and the first ``excess`` bytes of it.

        Those first that were not used for longest, some hundred at a time: others write in between.
        """
        # One status after the other: of all three together, each look would sort all of them.
        for status in WITHOUT_RESULT:
            old = None
            while old is None or len(old) == _BATCH:
                with self._database.write(alone=True) as db:
                    old = db.rows(_OLD, status=status, before=before, excess=excess)
                    these = "DELETE FROM segments WHERE id IN :ids"
                    db.change(these, ids=[row.id for row in old])
                excess -= sum(row.stored for row in old)

    def touch(self, segment_id: str) -> None:
        """Note that the result was used now."""
        self._database.change(
            "UPDATE segments SET used_at = :now WHERE id = :id", id=segment_id, now=time.time()
        )

    def running(self) -> list[SegmentRecord]:
        """Return the segments that run, in whichever service, the least recently used first."""
        running = "SELECT * FROM segments WHERE status = 'running' ORDER BY used_at"
        return list(map(_segment, self._database.rows(running)))

    def results(self) -> Iterator[tuple[str, ResultFile]]:
        """Yield all results with their segments' ids; some hundred are read at a time."""
        some = f"""
            SELECT id, file, size, sha256 FROM segments WHERE file > :after ORDER BY file LIMIT {_BATCH}
        """
        last = ""
        while rows := self._database.rows(some, after=last):
            last = rows[-1].file
            yield from ((row.id, _result(row)) for row in rows)

    def least_used(self, before: float, excess: int) -> list[ResultFile]:
        """Return the results that were last used ``before``, and those that take the first ``excess`` bytes.

        Those first that were not used for longest, some hundred of them; with all that is stored of their segments.
        """
        old = self._database.rows(_OLD, status="completed", before=before, excess=excess)
        return [_result(row) for row in old]

    def stored_bytes(self) -> int:
        """Return how many bytes all segments take: results, requests, previews."""
        return int(self._database.scalar("SELECT sum(stored) FROM segments") or 0)

    def unnamed(self, files: Collection[str]) -> set[str]:
        """Return which of these files no segment has."""
        named = "SELECT file FROM segments WHERE file IN :files"
        return set(files) - {row.file for row in self._database.rows(named, files=[*files])}
