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
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from nbext.core.strict_json import canonical_json, to_json
from nbext.core.wire import IDEMPOTENCY_HEADER, Status
from nbext.engine.dataset import MOST_VALUES
from nbext.service.accounts.database import (
    Database,
    idempotency,
    registry,
    segments,
)
from nbext.service.accounts.keys import Key
from nbext.service.http.problems import Problem
from nbext.service.limits import Limits, Policy

UNFINISHED = ("queued", "running")
# Whoever asks again for one of these begins it anew.
WITHOUT_RESULT = ("expired", "failed", "cancelled")
# When a caller may come again who found no room.
RETRY_SOON = {"Retry-After": "2"}
# Rows of one look or change, where all of them might be a million.
_BATCH = 500
# For how long a call may be repeated with its Idempotency-Key (seconds).
_CLAIM_SECONDS = 24 * 3600
_CLAIM_NAME = re.compile(r"[\x21-\x7e]{1,255}\Z")


@dataclass(frozen=True)
class IdempotencyKey:
    """An Idempotency-Key of one caller, and the hash of the body that it came with."""

    key_id: str
    name: str
    body: str


def idempotency_key_of(header: str, key: Key, body: Mapping[str, Any]) -> IdempotencyKey:
    """Return what a request's header names, or the problem 400 where it is unusable."""
    if not _CLAIM_NAME.match(header):
        raise Problem(
            "bad-header",
            f"{IDEMPOTENCY_HEADER} is 1 to 255 printable ASCII characters without spaces.",
        )
    return IdempotencyKey(key.id, header, hashlib.sha256(canonical_json(body)).hexdigest())


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
    cancel: bool
    # How many services began to run it and did not end in order.
    attempts: int

    @property
    def finished(self) -> bool:
        """Whether it has come to an end, good or bad."""
        return self.status not in UNFINISHED

    def seen_by(self, key: Key) -> bool:
        """Return whether the key may read it: ids travel in shared notebooks, but not those of private keys."""
        return self.ended_by(key) or not (self.private or key.private)

    def ended_by(self, key: Key) -> bool:
        """Return whether the key may cancel and delete it."""
        return self.key_id == key.id or "admin" in key.scopes


_WHICH: BindParameter[str] = bindparam("which")
_KEY: BindParameter[str] = bindparam("key")
_OWN = (segments.c.id == _WHICH, segments.c.lease == bindparam("by"))
_UNFINISHED = segments.c.status.in_(UNFINISHED)
# Built once: to build a statement costs as much as to run it. Each bound value that is no column of a change has a
# name of its own.
_GET = select(segments).where(segments.c.id == _WHICH)
_CLAIMED = select(idempotency.c.body, idempotency.c.segment).where(
    idempotency.c.key_id == _KEY,
    idempotency.c.name == bindparam("claim"),
    idempotency.c.created_at > bindparam("since"),
)
# Whoever enters a segment holds this row, so that what it finds is still so when it writes.
_ENTERING = select(registry.c.number).with_for_update()
# All that the bounds of the queue and a place in it need; hundreds of rows at most.
_IN_QUEUE, _OF_KEY = segments.c.status == "queued", segments.c.key_id == _KEY
_QUEUE = select(
    func.count().filter(_IN_QUEUE).label("waiting"),
    func.count().filter(_OF_KEY).label("of_key"),
    func.max(segments.c.turn)
    .filter(_OF_KEY, segments.c.priority == bindparam("rank"))
    .label("last"),
    func.min(segments.c.turn).filter(_IN_QUEUE).label("head"),
    func.max(segments.c.turn).filter(segments.c.status == "running").label("served"),
    func.sum(segments.c.stored).label("reserved"),
).where(_UNFINISHED)
_NEXT = (
    select(segments)
    .where(
        _IN_QUEUE,
        segments.c.fingerprint.in_(bindparam("data", expanding=True)),
        segments.c.key_id.not_in(bindparam("busy", expanding=True)),
    )
    .order_by(segments.c.turn, segments.c.priority, segments.c.created_at)
    .limit(1)
)
# The one that another service takes just now is passed over.
_START = (
    update(segments)
    .where(
        segments.c.id
        == _NEXT.with_only_columns(segments.c.id)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    .values(attempts=segments.c.attempts + 1)
    .returning(segments)
)
_COMPLETE = (
    update(segments)
    .where(*_OWN, segments.c.status == "running")
    .values(lease=None, stored=bindparam("bytes") + func.length(segments.c.request))
    .returning(segments)
)
_END = update(segments).where(*_OWN, _UNFINISHED)
# What a segment takes without a result.
_TEXTS = func.length(segments.c.request) + func.length(segments.c.facts)
# Bytes of one row of a result, at most about, and of each of its columns: reserved when a segment is accepted.
_ROW_BYTES, _COLUMN_BYTES = 44, 20
# Idempotency-Keys of one key within their 24 hours.
_MOST_CLAIMS = 10_000
_ADD = insert(segments).returning(segments)
_TAKEN = select(func.sum(segments.c.stored)).where(_OF_KEY)
_OF_FILE = (segments.c.file, segments.c.size, segments.c.sha256)
# What a row has as text, as it is stored, and is in JSON there.
_JSON = ("request", "facts", "preview", "error")


def _text(value: Any) -> str:
    return to_json(value).decode()


def _result(row: Row[Any]) -> ResultFile:
    return ResultFile(row.file, row.size, row.sha256)


def _segment(row: Row[Any]) -> SegmentRecord:
    stored = row._mapping
    found = {each.name: stored[each.name] for each in fields(SegmentRecord) if each.name in stored}
    found |= {name: json.loads(stored[name] or "null") for name in _JSON}
    found |= {name: bool(stored[name]) for name in ("private", "cancel")}
    return SegmentRecord(
        **{**found, "preview": found["preview"] or []},
        result=_result(row) if row.file else None,
    )


def _claimed(db: Connection, claim: IdempotencyKey, now: float) -> str | None:
    row = db.execute(
        _CLAIMED, {"key": claim.key_id, "claim": claim.name, "since": now - _CLAIM_SECONDS}
    ).first()
    # A key that is used again by mistake would return the segment of another question.
    if row and row.body != claim.body:
        raise Problem(
            "idempotency-key-reused",
            f"This {IDEMPOTENCY_HEADER} was sent with another body before. Use a new one for a new request.",
        )
    return row.segment if row else None


def _check_quota(db: Connection, key_id: str, policy: Policy) -> None:
    """Raise the problem 507 where a key's segments take all that they may."""
    # The owner's key is bounded by ``keep_bytes`` alone, as it has no rate: for one person the oldest results go.
    if key_id == "owner":
        return
    # With what is reserved for those that have not finished: many at once would each find room.
    taken = db.scalar(_TAKEN, {"key": key_id}) or 0
    if taken >= policy.key_bytes:
        raise Problem(
            "quota",
            f"The results of this key take {taken:,} bytes, and may take {policy.key_bytes:,}; a segment that is not"
            " finished counts with all rows that its limit allows. Delete some"
            f" with ?result=delete, or wait: results are deleted {policy.keep_days:g} days after their last use.",
        )


def _reserved(request: Mapping[str, Any], facts: Mapping[str, Any], most: int | None) -> int:
    """Return how many bytes a result may take, which are the segment's until it is written or ends without one."""
    columns = len(facts.get("columns", ()))
    # A segment of more values is refused, and so is never written.
    rows = min(int(request["limit"]), MOST_VALUES // max(1, columns))
    rows = rows if most is None else min(rows, most)
    return rows * (_ROW_BYTES + _COLUMN_BYTES * columns)


def _turn(db: Connection, key_id: str, priority: int, limits: Limits, policy: Policy) -> int:
    """Return a place in the queue: after the key's own last one, and not before those that are served now.

    So the keys take turns however many segments each has, and a key's counts do not wait for its other segments.
    """
    queue = db.execute(_QUEUE, {"key": key_id, "rank": priority}).one()
    if queue.waiting >= limits.queue:
        detail = f"{queue.waiting} segments are waiting. Try again soon."
        raise Problem("busy", detail, headers=RETRY_SOON)
    # Results give way to newer ones once these are written; what all may write at once has to fit.
    if (queue.reserved or 0) >= policy.keep_bytes:
        detail = f"Unfinished segments may take {queue.reserved:,} bytes, of {policy.keep_bytes:,} in all."
        raise Problem("busy", f"{detail} Try again soon.", headers=RETRY_SOON)
    # A loop around execute fills the share of its own key, and not the queue of all.
    if queue.of_key >= limits.per_key:
        detail = f"This key has {limits.per_key} unfinished segments. Wait for one to finish, or cancel one."
        raise Problem("too-many-segments", detail, headers=RETRY_SOON)
    now = queue.served or 0 if queue.head is None else queue.head
    return int(now if queue.last is None else max(now, queue.last + 1))


class SegmentStore:
    """Segments by their id. Each change is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, segment_id: str) -> SegmentRecord | None:
        """Return the segment, or None."""
        rows = self._database.rows(_GET, {"which": segment_id})
        return _segment(rows[0]) if rows else None

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
    ) -> tuple[SegmentRecord, bool]:
        """Queue a segment for a key, unless it is there, running or completed; it has ``most`` wallets, if known.

        One that failed, expired or was cancelled, or whose result is ``lost``, starts anew. ``claim`` is stored in the
        same transaction: after a crash a repeat finds both or neither. The problem is 503 where the queue of all
        services is full, or all that may be stored is reserved; 429 where the key's share of the queue is full, 507
        where that of the disk is.

        Returns
        -------
        tuple
            The segment as it is now, and whether it begins now.
        """
        now, asked, said = time.time(), _text(request), _text(facts)
        # A count needs no rows and is quick.
        priority = 0 if request["limit"] == 0 else 1
        with self._database.write() as db:
            # Two callers may ask for one segment at once, in two services: one of them enters it, the other finds it.
            db.execute(_ENTERING)
            # An old claim gives way; a young one stays, and has to be of the same body.
            if claim and _claimed(db, claim, now) is None:
                c = idempotency.c
                db.execute(
                    delete(idempotency).where(c.key_id == claim.key_id, c.name == claim.name)
                )
                sent = db.scalar(select(func.count()).where(c.key_id == claim.key_id)) or 0
                if sent >= _MOST_CLAIMS:
                    detail = f"This key has sent {_MOST_CLAIMS:,} of {IDEMPOTENCY_HEADER} within a day. Leave it out."
                    raise Problem("quota", detail)
                made = {**vars(claim), "segment": segment_id, "created_at": now}
                db.execute(insert(idempotency), made)
            former = row = db.execute(_GET, {"which": segment_id}).first()
            begins = (
                former is None
                or former.status in WITHOUT_RESULT
                or (lost is not None and former.file == lost.file)
            )
            if begins:
                _check_quota(db, key.id, self._database.policy)
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
                if former is not None:
                    db.execute(delete(segments).where(segments.c.id == segment_id))
                row = db.execute(_ADD, new).one()
            assert row is not None, "it was there, or is there now"
        return _segment(row), begins

    def claimed(self, claim: IdempotencyKey) -> str | None:
        """Return the id of the segment that this claim made, or None where it is new; 422 where the body differs."""
        with self._database.read() as db:
            return _claimed(db, claim, time.time())

    def forget_old_claims(self) -> None:
        """Delete the claims that are older than 24 hours."""
        self._database.change(
            delete(idempotency).where(idempotency.c.created_at <= time.time() - _CLAIM_SECONDS)
        )

    def queued(self) -> int:
        """Return how many segments wait, for whichever service."""
        return self._database.scalar(select(func.count()).where(_IN_QUEUE)) or 0

    def queue_age(self) -> float:
        """Return how long the segment has waited that waits longest, in seconds."""
        oldest = self._database.scalar(select(func.min(segments.c.created_at)).where(_IN_QUEUE))
        return max(0.0, time.time() - oldest) if oldest else 0.0

    def start(
        self, lease: str, fingerprints: Collection[str], busy: Collection[str] = ()
    ) -> SegmentRecord | None:
        """Mark the next segment of the queue as running in that service, and return it; None where none waits.

        Of those that ask data of these fingerprints, and of no key in ``busy``.
        """
        wanted = {"data": list(fingerprints), "busy": list(busy)}
        # Most looks find nothing, and readers wait for nobody.
        if not self._database.rows(_NEXT, wanted):
            return None
        running = {"status": "running", "lease": lease, "started_at": time.time()}
        with self._database.write() as db:
            row = db.execute(_START, {**wanted, **running}).first()
        return _segment(row) if row else None

    def complete(
        self,
        segment_id: str,
        lease: str,
        *,
        matched: int,
        returned: int,
        preview: list[dict[str, Any]],
        result: ResultFile,
        facts: Mapping[str, Any],
    ) -> SegmentRecord | None:
        """Mark a running segment as completed, with its result and what its answer says now; None where it is not so.

        It was cancelled, or taken over by another service that took this one for ended.
        """
        now, first, said = time.time(), _text(preview), _text(facts)
        change = {
            "which": segment_id,
            "by": lease,
            "status": "completed",
            "matched": matched,
            "returned": returned,
            "preview": first,
            "completed_at": now,
            "used_at": now,
            "facts": said,
            **vars(result),
            "bytes": result.size + len(first) + len(said),
        }
        with self._database.write() as db:
            row = db.execute(_COMPLETE, change).first()
        return _segment(row) if row else None

    def end(
        self, segment_id: str, lease: str, status: Status, error: Mapping[str, Any] | None
    ) -> bool:
        """Mark an unfinished segment of this service as failed or cancelled."""
        ended = {"status": status, "error": error and _text(error), "completed_at": time.time()}
        own = {"which": segment_id, "by": lease}
        return (
            self._database.change(_END.values(stored=_TEXTS), {**own, **ended, "lease": None}) > 0
        )

    def requeue(self, segment_id: str, lease: str, *, killed: bool) -> bool:
        """Put an unfinished segment back, for the next service to run; False where another was quicker.

        Its service ends in order, or was ``killed``.
        """
        back = _END.values(
            status="queued",
            started_at=None,
            lease=None,
            attempts=segments.c.attempts - (0 if killed else 1),
        )
        return self._database.change(back, {"which": segment_id, "by": lease}) > 0

    def cancel(self, segment_id: str, why: Mapping[str, Any]) -> bool:
        """Cancel a segment that waits, or ask the service that runs it to; False where it has finished."""
        this = update(segments).where(segments.c.id == segment_id)
        ended = {"status": "cancelled", "error": _text(why), "completed_at": time.time()}
        with self._database.write() as db:
            waited = db.execute(this.where(_IN_QUEUE).values(stored=_TEXTS, **ended)).rowcount > 0
            return waited or bool(db.execute(this.where(_UNFINISHED).values(cancel=1)).rowcount)

    def unsettled(self, ids: Collection[str]) -> list[tuple[str, bool]]:
        """Return which of these segments have finished, with False, or are to be cancelled, with True."""
        asked = select(segments.c.id, _UNFINISHED.label("unfinished")).where(
            segments.c.id.in_(ids),
            or_(segments.c.cancel == 1, segments.c.status.not_in(UNFINISHED)),
        )
        return [(row.id, bool(row.unfinished)) for row in self._database.rows(asked)]

    def fail_of_other_data(
        self, fingerprints: Collection[str], before: float, why: Mapping[str, Any]
    ) -> None:
        """Fail the segments that wait since ``before`` for data of other fingerprints, which is not open any more."""
        gone = update(segments).where(
            _IN_QUEUE, segments.c.fingerprint.not_in(fingerprints), segments.c.created_at < before
        )
        self._database.change(
            gone.values(status="failed", error=_text(why), completed_at=time.time(), stored=_TEXTS)
        )

    def lead(self, lease: str, is_alive: Callable[[str], bool]) -> bool:
        """Return whether this service is the one that cleans up for all: it is, unless another is that is alive."""
        leader = self._database.scalar(select(registry.c.leader))
        if leader and (leader == lease or is_alive(leader)):
            return bool(leader == lease)
        free = update(registry).where(registry.c.leader.is_not_distinct_from(leader))
        return self._database.change(free.values(leader=lease)) > 0

    def expire(self, files: Collection[str], reason: Mapping[str, Any]) -> list[str]:
        """Mark the completed segments of these files as expired, in one transaction; return the files of those marked.

        Their requests stay for a while, so that they can be run again: see `forget`.
        """
        # By the file alone, and then by the id: of a million segments SQLite would look at each that is completed.
        named = select(segments.c.id, segments.c.file, segments.c.status).where(
            segments.c.file.in_(files)
        )
        # The preview goes with the file: an expired result leaves nothing of the data behind.
        gone = {
            **dict.fromkeys(("file", "size", "sha256", "preview")),
            "status": "expired",
            "error": _text(reason),
            "stored": _TEXTS,
        }
        with self._database.write() as db:
            rows = db.execute(named.with_for_update()).all()
            found = {row.id: row.file for row in rows if row.status == "completed"}
            db.execute(update(segments).where(segments.c.id.in_(found)).values(gone))
        return [*found.values()]

    def forget(self, before: float, excess: int = 0) -> None:
        """Delete what has no result, with its request: all last used ``before``, and the first ``excess`` bytes of it.

        Those first that were not used for longest, some hundred at a time: others write in between.
        """
        # One status after the other: of all three together, each look would sort all of them.
        for status in WITHOUT_RESULT:
            ended = (
                select(segments.c.id, segments.c.stored, segments.c.used_at)
                .where(segments.c.status == status)
                .order_by(segments.c.used_at)
                .limit(_BATCH)
            )
            ids = [""] * _BATCH
            while len(ids) == _BATCH:
                with self._database.write() as db:
                    ids = []
                    for row in db.execute(ended).all():
                        if row.used_at < before or excess > 0:
                            ids.append(row.id)
                            excess -= row.stored
                    db.execute(delete(segments).where(segments.c.id.in_(ids)))

    def touch(self, segment_id: str, *, every: float) -> None:
        """Note that the result was used, unless that was noted less than ``every`` seconds ago."""
        now = time.time()
        used = update(segments).where(segments.c.id == segment_id, segments.c.used_at < now - every)
        self._database.change(used.values(used_at=now))

    def running(self) -> list[SegmentRecord]:
        """Return the segments that run, in whichever service, the least recently used first."""
        status = segments.c.status == "running"
        rows = self._database.rows(select(segments).where(status).order_by(segments.c.used_at))
        return [_segment(row) for row in rows]

    def results(self) -> Iterator[list[tuple[str, ResultFile]]]:
        """Yield all results with their segments' ids, some hundred at a time."""
        some = (
            select(segments.c.id, *_OF_FILE)
            .where(segments.c.file > bindparam("after"))
            .order_by(segments.c.file)
            .limit(_BATCH)
        )
        last = ""
        while rows := self._database.rows(some, {"after": last}):
            last = rows[-1].file
            yield [(row.id, _result(row)) for row in rows]

    def has_results(self) -> bool:
        """Return whether any segment has a result."""
        return bool(self._database.rows(select(*_OF_FILE).where(segments.c.file > "").limit(1)))

    def least_used(self) -> list[tuple[float, int, ResultFile]]:
        """Return some hundred results, those first that were not used for longest.

        Each with the time of its last use, and the bytes that it takes with all that is stored of its segment.
        """
        some = (
            select(segments.c.used_at, segments.c.stored, *_OF_FILE)
            .where(segments.c.status == "completed")
            .order_by(segments.c.used_at)
            .limit(_BATCH)
        )
        return [(row.used_at, row.stored, _result(row)) for row in self._database.rows(some)]

    def stored_bytes(self) -> int:
        """Return how many bytes all segments take: results, requests, previews."""
        return int(self._database.scalar(select(func.sum(segments.c.stored))) or 0)

    def unnamed(self, files: Collection[str]) -> set[str]:
        """Return which of these files no segment has."""
        named = select(segments.c.file).where(segments.c.file.in_(files))
        return set(files) - {row.file for row in self._database.rows(named)}
