"""Segments from request to result: parse, enter, run, keep, read, cancel.

Knows the segment language and the engine only through their contracts; the modules themselves are
imported when the first segment comes, which keeps the start of a service quick.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import wait
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from nbext.engine.dataset import Cancel, Dataset
from nbext.engine.storage.process_lock import Lease
from nbext.errors import NbextError, QueryCancelled, SegmentExpired, StorageError
from nbext.service.accounts.keys import Key
from nbext.service.http.problems import Problem, problem_of
from nbext.service.limits import Limits
from nbext.service.middleware.observe import Log, place_of
from nbext.service.segments.idempotency import Claim, Claims
from nbext.service.segments.jobs import Job, Jobs
from nbext.service.segments.results import ResultFile, Results
from nbext.service.segments.store import Segment, SegmentStore

PREVIEW_ROWS = 10


@dataclass(frozen=True)
class Executed:
    """What execute found or began: the segment, whether it was kept already, whether the call was a repeat."""

    segment: Segment
    cached: bool = False
    replayed: bool = False


class SegmentService:
    """All segments of a data folder, and those that run in this process."""

    def __init__(
        self, dataset: Dataset, *, store: SegmentStore, claims: Claims, results: Results, lease: Lease,
        limits: Limits, log: Log,
    ) -> None:
        self.dataset, self.store, self.claims = dataset, store, claims
        self.results, self.lease, self.limits = results, lease, limits
        self._log = log
        self.jobs = Jobs(self._run, workers=limits.workers, queue=limits.queue, per_key=limits.per_key)

    @property
    def language(self) -> ModuleType:
        """The segment language; it loads Ibis, so it is imported when it is first needed."""
        from nbext.language import language

        module: ModuleType = language
        return module

    def warm_up(self) -> None:
        """Import the segment language before the first segment comes."""
        _ = self.language

    def plan(self, body: Mapping[str, Any]) -> Any:
        """Return the plan of an execute's body; InvalidSegment or AmbiguousSymbol where there is none."""
        query = self.language.parse(body)
        return self.language.resolve(query, self.dataset, saved=self._saved)

    def _saved(self, segment_id: str) -> dict[str, Any] | None:
        segment = self.store.get(segment_id)
        return segment.request if segment else None

    def execute(self, body: Mapping[str, Any], key: Key, claim: Claim | None) -> Executed:
        """Find the segment of a body, or begin it."""
        former = self._replay(claim)
        if former:
            return Executed(former, replayed=True)
        plan = self.plan(body)
        segment_id = self.language.segment_id(plan, self.dataset.about.fingerprint)
        segment = self._standing(segment_id)
        if segment and claim is None:
            return Executed(_as_asked(segment, _request(plan, body)), cached=segment.status == "completed")
        if segment is None:
            self.jobs.make_room(key.id)
        request = _request(plan, body)
        entered = self.store.enter(
            segment_id, request, _facts(plan), self.dataset.about.fingerprint, self.lease.name,
            claim=claim,
        )
        if entered:
            self.jobs.submit(Job(segment_id, plan, key.id))
        now = self.read(segment_id)
        return Executed(_as_asked(now, request), cached=not entered and now.status == "completed")

    def _replay(self, claim: Claim | None) -> Segment | None:
        """Return the segment that an earlier call with this claim made, where it still stands."""
        segment_id = self.claims.segment_of(claim) if claim else None
        segment = self._tended(segment_id) if segment_id else None
        # Of a call that was cut off nothing stands: its repeat runs anew.
        return None if segment is None or segment.status in ("cancelled", "expired") else segment

    def _standing(self, segment_id: str) -> Segment | None:
        """Return the segment where it runs or is completed with its result at hand."""
        segment = self._tended(segment_id)
        return segment if segment and segment.status in ("queued", "running", "completed") else None

    def read(self, segment_id: str) -> Segment:
        """Return the segment as it stands, or the problem 404."""
        segment = self._tended(segment_id)
        if segment is None:
            raise Problem("not-found", "There is no segment of that id.")
        return segment

    def _tended(self, segment_id: str) -> Segment | None:
        """Return the segment after what time did to it: a result past its keeping, a service that ended."""
        segment = self.store.get(segment_id)
        if segment is None:
            return None
        if segment.kept and self.limits.is_over(segment):
            self.expire(segment, segment.kept)
        elif segment.kept and not self.results.present(segment.kept):
            self.set_aside(segment, segment.kept)
        elif not segment.finished and not (segment.owner and self.lease.is_alive(segment.owner)):
            self.adopt(segment)
        else:
            return segment
        return self.store.get(segment_id)

    def result(self, segment_id: str) -> tuple[Segment, Any]:
        """Return a completed segment and a reader of its rows.

        Raises
        ------
        Problem
            404, 409 while it runs or where it has no result, 410 where it is no longer kept.
        """
        segment = self.read(segment_id)
        _raise_unless_completed(segment)
        assert segment.kept is not None, "a completed segment has its file"
        try:
            reader = self.results.open(segment.kept)
        except StorageError:
            self.set_aside(segment, segment.kept)
            return self.result(segment_id)
        if time.time() - segment.used_at > 3600:  # reading is not to write each time
            self.store.touch(segment_id)
        return segment, reader

    def cancel(self, segment_id: str) -> Segment:
        """Stop a segment that has not finished, wherever it runs; 409 where it has finished."""
        if not self.store.ask_to_cancel(segment_id):
            finished = self.read(segment_id)
            raise Problem("finished", f"The segment is {finished.status} already: there is nothing to cancel.")
        job = self.jobs.find(segment_id)
        if job:
            self.jobs.cancel(job)
            wait([job.done], timeout=self.limits.cancel_seconds)
        return self.read(segment_id)

    def explain(self, body: Mapping[str, Any], parts: bool) -> dict[str, Any]:
        """Return what a segment would do: its id, words, canonical form, statement and plan of the engine."""
        plan = self.plan(body)
        how = self.dataset.explain(self.language.compile(plan), limit=plan.limit)
        told = {
            "id": self.language.segment_id(plan, self.dataset.about.fingerprint),
            "canonical": plan.canonical,
            "words": plan.words,
            "sql": how.get("sql"),
            "plan": how.get("plan"),
        }
        if parts:
            cancel = Cancel(deadline=time.monotonic() + self.limits.query_seconds)
            told["parts"] = [
                {"words": words, "matched": self.dataset.ask(question, limit=0, cancel=cancel).matched}
                for words, question in self.language.parts(plan)
            ]
        return told

    def _run(self, job: Job) -> None:
        try:
            self._begin(job)
            self._answer(job)
        except QueryCancelled:
            self._stopped(job)
        except NbextError as error:
            self._failed(job, error)
        except Exception as error:  # noqa: BLE001 - the outermost handler of a job's thread
            self._failed(job, error)

    def _begin(self, job: Job) -> None:
        if job.cancel.asked.is_set() or not self.store.start(job.id, self.lease.name):
            raise QueryCancelled("cancelled before it began")

    def _answer(self, job: Job) -> None:
        job.cancel.deadline = time.monotonic() + self.limits.query_seconds
        answer = self.dataset.ask(self.language.compile(job.plan), limit=job.plan.limit, cancel=job.cancel)
        self.jobs.answered(job)
        kept = self.results.write(answer.rows)
        completed = self.store.complete(
            job.id, self.lease.name, matched=answer.matched, returned=answer.rows.num_rows,
            preview=answer.rows.slice(0, PREVIEW_ROWS).to_pylist(), kept=kept,
        )
        if not completed:
            self.results.remove(kept.file)

    def _stopped(self, job: Job) -> None:
        if self.jobs.stopping and not self._cancel_asked(job):
            self.store.release(job.id, self.lease.name)
        else:
            self.store.end(job.id, self.lease.name, "cancelled", _told(Problem("cancelled", "It was cancelled.")))

    def _cancel_asked(self, job: Job) -> bool:
        segment = self.store.get(job.id)
        return segment is not None and segment.cancel

    def _failed(self, job: Job, error: Exception) -> None:
        problem = problem_of(error)
        self._log.warning(
            "segment failed", segment=job.id, code=problem.code, error=type(error).__name__, where=place_of(error)
        )
        self.store.end(job.id, self.lease.name, "failed", _told(problem))

    def adopt(self, segment: Segment) -> None:
        """Run a segment again whose service ended before it was finished; fail it where the data is another."""
        if self.jobs.stopping or not self.store.adopt(segment.id, segment.owner, self.lease.name):
            return
        self._log.info("segment adopted", segment=segment.id)
        try:
            if segment.fingerprint != self.dataset.about.fingerprint:
                raise SegmentExpired("The service ended while it ran, and has other data now. Execute it again.")
            self.jobs.submit(Job(segment.id, self.plan(segment.request), "", wanted=True))
        except NbextError as error:
            self.store.end(segment.id, self.lease.name, "failed", _told(problem_of(error)))

    def expire(self, segment: Segment, kept: ResultFile) -> None:
        """Let a result go that is past its keeping."""
        detail = f"Results are kept for {self.limits.keep_days:g} days. Execute the segment again to have it anew."
        if self.store.expire(segment.id, kept, _told(Problem("expired", detail))):
            self.results.remove(kept.file)

    def set_aside(self, segment: Segment, kept: ResultFile) -> None:
        """Take a damaged result out of service."""
        self._log.warning("damaged result set aside", segment=segment.id)
        detail = "The kept result was damaged and has been set aside. Execute the segment again to have it anew."
        if self.store.expire(segment.id, kept, _told(Problem("expired", detail))):
            self.results.set_aside(kept)

    def close(self, grace: float) -> None:
        """Finish or put back what runs."""
        self.jobs.close(grace)


def _request(plan: Any, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operator": plan.operator, "filters": body["filters"], "fileType": plan.file_type, "limit": plan.limit
    }


def _as_asked(segment: Segment, request: dict[str, Any]) -> Segment:
    # Two ways to write one segment have one id: each caller gets its own words back.
    return replace(segment, request=request)


def _facts(plan: Any) -> dict[str, Any]:
    return {
        "chain": plan.chain.name,
        "chainId": plan.chain.id,
        "asOf": plan.as_of,
        "columns": list(plan.columns),
        "warnings": list(plan.warnings),
    }


def _told(problem: Problem) -> dict[str, Any]:
    return {"code": problem.code, "status": problem.status, "title": problem.title, "detail": problem.detail}


def _raise_unless_completed(segment: Segment) -> None:
    error = segment.error or {}
    if segment.status == "expired":
        raise Problem("expired", error.get("detail", "The result is no longer kept."), segment_id=segment.id)
    if not segment.finished:
        raise Problem(
            "not-ready", f"The segment is {segment.status}. Try again soon.", headers={"Retry-After": "1"},
            segment_id=segment.id,
        )
    if segment.status != "completed":
        raise Problem(
            "not-completed", f"The segment is {segment.status}: {error.get('detail', 'it has no result.')}",
            segment_id=segment.id,
        )
