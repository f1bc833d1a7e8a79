"""Segments from request to result: parse, enter, run, store, read, cancel; and the thread that looks after the folder.

Knows the segment language and the engine only through their contracts; the language itself is imported when the
first segment comes, which keeps the start of a service quick.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from concurrent.futures import wait
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

from nbext.engine.dataset import Cancel, Dataset
from nbext.engine.storage import ProcessLock
from nbext.errors import NbextError, QueryCancelled, SegmentExpired, StorageError
from nbext.service.accounts.keys import Key
from nbext.service.http.problems import Problem, problem_of
from nbext.service.limits import Limits
from nbext.service.middleware import Log, place_of
from nbext.service.segments.jobs import Job, Jobs
from nbext.service.segments.results import Results
from nbext.service.segments.store import UNFINISHED, Claim, ResultFile, Segment, SegmentStore

PREVIEW_ROWS = 10
# Reading a result notes its use at most once an hour: else each read would wait for the disk.
_TOUCH_SECONDS = 3600.0
# Seconds between two looks for segments to cancel: a caller of another service waits up to five for an answer.
_LOOK = 0.5
# Seconds between two looks for old results: these are stored for days, so that minutes more matter to nobody.
_ROUND = 600.0
# A file that no segment names may be one that another service is about to name: it stays this long (seconds).
_STRAY_SECONDS = 3600.0


@dataclass(frozen=True)
class Executed:
    """What execute found or began: the segment, whether its result was there, whether the call was a repeat."""

    segment: Segment
    cached: bool = False
    replayed: bool = False


class SegmentService:
    """All segments of a data folder, and those that run in this process."""

    def __init__(
        self, dataset: Dataset, *, store: SegmentStore, results: Results, lease: ProcessLock, limits: Limits, log: Log
    ) -> None:
        self.dataset, self.store = dataset, store
        self.results, self.lease, self.limits = results, lease, limits
        self._log = log
        self.jobs = Jobs(self._run, workers=limits.workers, queue=limits.queue, per_key=limits.per_key)

    @cached_property
    def language(self) -> ModuleType:
        """The segment language; it loads Ibis, so it is imported when it is first needed."""
        from nbext.language import language

        return language

    def plan(self, body: Mapping[str, Any]) -> Any:
        """Return the plan of an execute's body; InvalidSegment or AmbiguousSymbol where it has none."""
        query = self.language.parse(body)
        return self.language.resolve(query, self.dataset, saved=self._saved)

    def _saved(self, segment_id: str) -> dict[str, Any] | None:
        segment = self.store.get(segment_id)
        return segment.request if segment else None

    def execute(self, body: Mapping[str, Any], key: Key, claim: Claim | None) -> Executed:
        """Find the segment of a body, or begin it."""
        claimed = self.store.claimed(claim) if claim else None
        former = self._current(claimed) if claimed else None
        # A call that was cut off left no result: its repeat runs anew.
        if former and former.status not in ("cancelled", "expired"):
            return Executed(former, replayed=True)
        plan, fingerprint = self.plan(body), self.dataset.about.fingerprint
        # Two ways to write one segment have one id: each caller gets its own words back.
        request = {
            "operator": plan.operator, "filters": body["filters"], "fileType": plan.file_type, "limit": plan.limit
        }
        segment_id = self.language.segment_id(plan, fingerprint)
        segment = self._current(segment_id)
        if segment is None or segment.status in ("failed", "cancelled", "expired"):
            self.jobs.make_room(key.id)
        elif claim is None:
            return Executed(replace(segment, request=request), cached=segment.status == "completed")
        facts = {
            "chain": plan.chain.name, "chainId": plan.chain.id, "asOf": plan.as_of, "columns": list(plan.columns),
            "warnings": list(plan.warnings),
        }
        entered = self.store.enter(segment_id, request, facts, fingerprint, self.lease.name, claim=claim)
        if entered:
            self.jobs.submit(Job(segment_id, plan, key.id))
        now = self.read(segment_id)
        return Executed(replace(now, request=request), cached=not entered and now.status == "completed")

    def read(self, segment_id: str) -> Segment:
        """Return the segment as it is now, or the problem 404."""
        segment = self._current(segment_id)
        if segment is None:
            raise Problem("not-found", "There is no segment with that id.")
        return segment

    def _current(self, segment_id: str) -> Segment | None:
        """Return the segment after what time did to it: a result too old, lost or damaged; a service that ended."""
        segment = self.store.get(segment_id)
        if segment is None:
            return None
        if segment.result and self.is_too_old(segment):
            self.expire_result(segment, segment.result)
        elif segment.result and not self.results.present(segment.result):
            self.set_aside(segment, segment.result)
        elif not segment.finished and not (segment.owner and self.lease.is_alive(segment.owner)):
            self.adopt(segment)
        else:
            return segment
        return self.store.get(segment_id)

    def result(self, segment_id: str) -> tuple[Segment, Any]:
        """Return a completed segment and a reader of its rows.

        The problem is 404; 409 while it runs or where it ended without a result; 410 where that has been deleted.
        """
        segment = self.read(segment_id)
        error = segment.error or {}
        if segment.status == "expired":
            raise Problem("expired", error.get("detail", "The result has been deleted."), segment_id=segment.id)
        if not segment.finished:
            detail = f"The segment is {segment.status}. Try again soon."
            raise Problem("not-ready", detail, headers={"Retry-After": "1"}, segment_id=segment.id)
        if segment.status != "completed":
            detail = f"The segment is {segment.status}: {error.get('detail', 'it has no result.')}"
            raise Problem("not-completed", detail, segment_id=segment.id)
        assert segment.result is not None, "a completed segment has its file"
        try:
            reader = self.results.open(segment.result)
        # It was there a moment ago, so that its bytes have changed: `read` says 410 now.
        except StorageError:
            self.set_aside(segment, segment.result)
            return self.result(segment_id)
        if time.time() - segment.used_at > _TOUCH_SECONDS:
            self.store.touch(segment_id, every=_TOUCH_SECONDS)
        return segment, reader

    def cancel(self, segment_id: str) -> Segment:
        """Stop a segment that has not finished, wherever it runs; 409 where it has finished."""
        if not self.store.ask_to_cancel(segment_id):
            finished = self.read(segment_id)
            raise Problem("finished", f"The segment has ended ({finished.status}): there is nothing to cancel.")
        job = self.jobs.find(segment_id)
        if job:
            self.jobs.cancel(job)
            # The engine looks for cancellation between steps: most callers get the final status at once.
            wait([job.done], timeout=self.limits.cancel_seconds)
        return self.read(segment_id)

    def explain(self, body: Mapping[str, Any], parts: bool) -> dict[str, Any]:
        """Return what a segment would do: its id, words, canonical form, statement and plan of the engine."""
        plan = self.plan(body)
        how = self.dataset.explain(self.language.compile(plan), limit=plan.limit)
        explained = {
            "id": self.language.segment_id(plan, self.dataset.about.fingerprint), "canonical": plan.canonical,
            "words": plan.words, "sql": how.get("sql"), "plan": how.get("plan"),
        }
        if parts:
            cancel = Cancel(deadline=time.monotonic() + self.limits.query_seconds)
            explained["parts"] = [
                {"words": words, "matched": self.dataset.ask(question, limit=0, cancel=cancel).matched}
                for words, question in self.language.parts(plan)
            ]
        return explained

    def _run(self, job: Job) -> None:
        try:
            self._answer(job)
        except QueryCancelled:
            self._stopped(job)
        except Exception as error:  # noqa: BLE001 - the outermost handler of a job's thread
            self._failed(job, error)

    def _answer(self, job: Job) -> None:
        if job.cancel.asked.is_set() or not self.store.start(job.id, self.lease.name):
            raise QueryCancelled("cancelled before it began")
        # From here and not from its submission: time in the queue is not the segment's fault.
        job.cancel.deadline = time.monotonic() + self.limits.query_seconds
        answer = self.dataset.ask(self.language.compile(job.plan), limit=job.plan.limit, cancel=job.cancel)
        # Storing needs the disk and not the engine: see jobs.
        self.jobs.answered(job)
        result = self.results.write(answer.rows)
        completed = self.store.complete(
            job.id, self.lease.name, matched=answer.matched, returned=answer.rows.num_rows,
            preview=answer.rows.slice(0, PREVIEW_ROWS).to_pylist(), result=result,
        )
        # It was cancelled, or taken over by another service that took this one for ended.
        if not completed:
            self.results.remove(result.file)

    def _stopped(self, job: Job) -> None:
        # A service that ends stops its jobs too: the next service runs these, but not what a caller cancelled.
        segment = self.store.get(job.id) if self.jobs.stopping else None
        if segment is not None and not segment.cancel:
            self.store.release(job.id, self.lease.name)
        else:
            self.store.end(job.id, self.lease.name, "cancelled", _as_error(Problem("cancelled", "It was cancelled.")))

    def _failed(self, job: Job, error: Exception) -> None:
        problem = problem_of(error)
        self._log.warning(
            "segment failed", segment=job.id, code=problem.code, error=type(error).__name__, where=place_of(error)
        )
        self.store.end(job.id, self.lease.name, "failed", _as_error(problem))

    def adopt(self, segment: Segment) -> None:
        """Run a segment again whose service ended before it was finished; fail it where the data is another."""
        if self.jobs.stopping or not self.store.adopt(segment.id, segment.owner, self.lease.name):
            return
        self._log.info("segment adopted", segment=segment.id)
        try:
            # Its id names the data that it was asked of: other data must not answer under it.
            if segment.fingerprint != self.dataset.about.fingerprint:
                raise SegmentExpired("The service ended, and its data has changed since. Execute the segment again.")
            # No key: it counts against nobody, and no caller can make it be cancelled by hanging up.
            self.jobs.submit(Job(segment.id, self.plan(segment.request), "", wanted=True))
        except NbextError as error:
            self.store.end(segment.id, self.lease.name, "failed", _as_error(problem_of(error)))

    def is_too_old(self, segment: Segment) -> bool:
        """Return whether a result was last used longer ago than results are stored for."""
        return time.time() - segment.used_at > self.limits.keep_days * 86400

    def expire_result(self, segment: Segment, result: ResultFile) -> None:
        """Delete a result that is too old, or for which there is no room."""
        if self.is_too_old(segment):
            why = f"Results are stored for {self.limits.keep_days:g} days."
        else:
            why = "The result was deleted to make room for newer ones."
        detail = f"{why} Execute the segment again for a new one."
        if self.store.expire(segment.id, result, _as_error(Problem("expired", detail))):
            self.results.remove(result.file)

    def set_aside(self, segment: Segment, result: ResultFile) -> None:
        """Take a damaged result out of service."""
        self._log.warning("damaged result set aside", segment=segment.id)
        detail = "The result was damaged and has been set aside. Execute the segment again for a new one."
        if self.store.expire(segment.id, result, _as_error(Problem("expired", detail))):
            self.results.set_aside(result)


def _as_error(problem: Problem) -> dict[str, Any]:
    return {"code": problem.code, "status": problem.status, "title": problem.title, "detail": problem.detail}


class Maintenance:
    """A thread that cancels as asked, takes over what ended services left, and deletes old results and stray files."""

    def __init__(self, segments: SegmentService, log: Log) -> None:
        self._segments, self._log = segments, log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nbext-maintenance", daemon=True)

    def repair(self) -> None:
        """Set damaged results aside, however the last service ended; intact ones are served at once."""
        segments = self._segments
        damaged = 0
        for segment in segments.store.with_status("completed"):
            if segment.result and not segments.results.present(segment.result):
                segments.set_aside(segment, segment.result)
                damaged += 1
        self._log.info("looked through the results", damaged=damaged)

    def start(self) -> None:
        """Begin the rounds."""
        self._thread.start()

    def stop(self) -> None:
        """End the rounds."""
        self._stop.set()
        with contextlib.suppress(RuntimeError):  # never started: the service failed before
            self._thread.join(timeout=5)

    def _run(self) -> None:
        # Not in `repair`: running segments again may take a while, and the service is ready without.
        self._adopt()
        self._tidy()
        # A notebook's first segment comes seconds after the start: by then the language is imported.
        if not self._stop.wait(self._segments.limits.warm_up_seconds):
            _ = self._segments.language
        next_round = time.monotonic() + _ROUND
        while not self._stop.wait(_LOOK):
            # An idle service reads nothing.
            if self._segments.jobs.ids():
                self._cancel_as_asked()
            if time.monotonic() >= next_round:
                self.trim_results()
                next_round = time.monotonic() + _ROUND

    def _adopt(self) -> None:
        segments = self._segments
        for segment in segments.store.with_status(*UNFINISHED):
            if not (segment.owner and segments.lease.is_alive(segment.owner)):
                segments.adopt(segment)

    def _tidy(self) -> None:
        segments = self._segments
        for name in segments.lease.others():
            segments.lease.is_alive(name)  # deletes the lease of a service that has ended
        old = time.time() - _STRAY_SECONDS
        for path in segments.results.strays(segments.store.files(), older_than=old):
            path.unlink(missing_ok=True)

    def _cancel_as_asked(self) -> None:
        for segment_id in self._segments.store.to_cancel(self._segments.lease.name):
            job = self._segments.jobs.find(segment_id)
            if job:
                self._segments.jobs.cancel(job)

    def trim_results(self) -> None:
        """Delete the results that are too old, then the least recently used until the rest fits ``keep_bytes``."""
        segments = self._segments
        stored = [(segment, segment.result) for segment in segments.store.with_status("completed") if segment.result]
        total = sum(result.size for _, result in stored)
        for segment, result in stored:
            if segments.is_too_old(segment) or total > segments.limits.keep_bytes:
                segments.expire_result(segment, result)
                total -= result.size
        segments.store.forget_old_claims()
        self._tidy()
