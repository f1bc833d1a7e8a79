"""What runs when: the one scheduler, of segments and of what is answered within its request.

What a request asks for and nobody stores (large bodies, plans, explanations, exports, lists) goes through a `Lane`: it
bounds what a key, and all keys, may have of this process at once, and may lend a few threads, to which keys take turns.

Segments outlive their request and this process, and any process of the registry may run them. Their turns, priorities
and bounds are in the registry's queue (`nbext.service.segments.store`), so that its order holds for all processes. The
`Scheduler` has the threads that take from it:

    entered   noted here, for whoever waits for it, and queued in the registry: `Scheduler.entering`
    taken     by the one thread that waits for all others, once there is room; the registry has it as this service's
    run       answered in its time; from `Scheduler.storing` on it only waits for the disk, and the next may ask
    ended     completed, failed or cancelled in the registry; `SegmentJob.done` is set
    back      queued again: its service ends in order, was killed, or could not note its beginning or its end
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from anyio import CapacityLimiter, to_thread

from nbext.core.locks import ProcessLock
from nbext.engine.dataset import Cancel
from nbext.errors import QueryCancelled
from nbext.service.accounts.database import Unreachable
from nbext.service.generations import not_open
from nbext.service.limits import Bound, Limits
from nbext.service.middleware import Log
from nbext.service.problems import Problem, problem_of, stopping
from nbext.service.segments.store import CANCELLED, SegmentRecord, SegmentStore

Result = TypeVar("Result")


class Lane:
    """Work of one kind within requests, by key, of the event loop and of threads; what `run` does has ``seconds``."""

    def __init__(self, bound: Bound, seconds: float = 0.0) -> None:
        self._bound, self._seconds = bound, seconds
        self._taken: Counter[str] = Counter()
        self._changing = threading.Lock()
        self._limiter = CapacityLimiter(bound.threads)
        # Of the keys that have one now: whoever holds a key's turn is the only one of it that waits for a thread.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def total(self) -> int:
        """How many all keys have now."""
        with self._changing:
            return self._taken.total()

    @contextlib.contextmanager
    def taken(self, key_id: str) -> Iterator[None]:
        """Hold one; the problem is 429 where the key has as many as it may, 503 where all keys have."""
        what, per_key, in_all = self._bound.what, self._bound.per_key, self._bound.in_all
        with self._changing:
            if self._taken[key_id] >= per_key:
                raise Problem(
                    "too-many-at-once",
                    f"This key has {per_key} {what} under way. Wait until one has ended.",
                )
            if self._taken.total() >= in_all:
                raise Problem("busy", f"{in_all} {what} are under way. Try again soon.")
            self._taken[key_id] += 1
        try:
            yield
        finally:
            with self._changing:
                self._taken[key_id] -= 1
                # A service has a hundred thousand keys, and few of them at once.
                if not self._taken[key_id]:
                    del self._taken[key_id]
                    self._turns.pop(key_id, None)

    async def run(self, key_id: str, work: Callable[[Cancel], Result]) -> Result:
        """Do work in a thread when it is the key's turn; it has its time from then on.

        A key has one thread at a time, however many requests it sends, and waits for it behind all keys that wait. The
        problem is that of `taken`. Where this task is cancelled, the work ends at its next step.
        """
        cancel = Cancel()

        def in_time() -> Result:
            cancel.deadline = time.monotonic() + self._seconds
            return work(cancel)

        with self.taken(key_id):
            async with self._turns[key_id]:
                try:
                    return await to_thread.run_sync(in_time, limiter=self._limiter)
                except asyncio.CancelledError:
                    cancel.asked.set()
                    raise


@dataclass(eq=False)
class SegmentJob:
    """One segment to run; ``plan`` is what the segment language made of its request, None where another service did."""

    id: str
    plan: Any = None
    # As the registry has it that began it: there is none while it waits.
    segment: SegmentRecord = field(init=False)
    # It waits in the registry, asks the engine, or has its answer and only waits for the disk.
    state: Literal["waits", "asks", "stores"] = "waits"
    # It stops as soon as the engine looks where it runs, and before it begins where it waits.
    cancel: Cancel = field(default_factory=Cancel)
    done: Future[None] = field(default_factory=Future)
    # The segment as the registry has it now, where this job completed it.
    ended: SegmentRecord | None = None
    # Requests that wait for it now: when the last one hangs up, nobody is left to read the result. And whoever has its
    # id, and may come back at any time.
    waiters: int = 0


# Threads beside the ``workers``: a job that has its answer only waits for the disk, and the next may ask meanwhile.
_STORING = 6
# Seconds that all threads together have to end.
_END_SECONDS = 5.0
# Seconds between two looks at the queue: another service may have added to it, or one may have failed.
_LOOK = 0.25
# For how long segments wait for data that this service does not serve, but others may (seconds).
_OTHER_DATA_SECONDS = 60.0
_TWICE = Problem(
    "resource-limit", "It crashed the service twice, and is not run again. Narrow it."
).summary


class Scheduler:
    """The threads that run the segments of a registry's queue; ``run`` answers a job and stores its rows.

    ``workers`` jobs ask the engine at once, and one more of a key that has none among them: whoever asks for little
    does not wait for the long segments of another key. No thread ends before `close`: whatever fails while a segment is
    taken, run or ended is tried again, or the segment goes back.
    """

    def __init__(
        self,
        store: SegmentStore,
        lease: ProcessLock,
        run: Callable[[SegmentJob], None],
        *,
        fingerprints: Callable[[], Sequence[str]],
        limits: Limits,
        log: Log,
    ) -> None:
        self._store, self._lease, self._limits, self._log = store, lease, limits, log
        self._answer, self._fingerprints = run, fingerprints
        # Those that were asked for here or run here, by their segments' ids.
        self.jobs: dict[str, SegmentJob] = {}
        # Held by the one thread that waits for the next segment: woken by every change, ten would hold each other up.
        self._taking = threading.Lock()
        # What that thread waits for: a new segment, one that only stores its result, one that ends.
        self._changed = threading.Condition()
        self._news = True
        # The keys that the last look left out, as they have all they may: only then does an end make it worth another.
        self._busy: Collection[str] = ()
        # Whether the registry may have segments as running here that nobody runs.
        self._in_doubt = False
        # Set when a segment has ended here; when nothing refers to its answer, or to that of a request, any more.
        self.ended, self.freed = threading.Event(), threading.Event()
        self.stopping = False
        self.threads = [
            threading.Thread(target=self._work, name=f"nbext-job-{number}", daemon=True)
            for number in range(limits.workers + 1 + _STORING)
        ]

    @property
    def running(self) -> set[str]:
        """The ids of the segments that run here."""
        with self._changed:
            return {job.id for job in self._in("asks", "stores")}

    def _in(self, *states: str) -> list[SegmentJob]:
        return [job for job in self.jobs.values() if job.state in states]

    def is_ending(self, segment: SegmentRecord) -> bool:
        """Whether a segment is being cancelled, here or elsewhere, and may still run."""
        job = self.jobs.get(segment.id)
        asked = job is not None and job.cancel.asked.is_set()
        return asked or (segment.cancel > 0 and not segment.finished)

    @contextlib.contextmanager
    def entering(self, job: SegmentJob) -> Iterator[SegmentJob]:
        """Note that a segment is about to be queued, and lend its job: this one, or that of a former caller.

        Before it is queued: it may be taken at once. The problem is 503 where the service is stopping.
        """
        with self._changed:
            if self.stopping:
                raise stopping()
            known = self.jobs.setdefault(job.id, job)
        try:
            yield known
        except BaseException:
            self._resolve(known)
            raise
        self._wake()

    def _wake(self) -> None:
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def _resolve(self, job: SegmentJob) -> None:
        """Note that a job that waits will not run here: it has ended elsewhere, or was never queued."""
        with self._changed:
            if job in self._in("waits"):
                del self.jobs[job.id]
                job.done.set_result(None)

    def storing(self, job: SegmentJob) -> None:
        """Note that a job has its answer and only stores it: the next may ask the engine."""
        with self._changed:
            job.state = "stores"
            self._news |= bool(self._busy) or self._in_doubt
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            job = None
            with self._taking:
                while job is None:
                    if not self._room():
                        return
                    job = self._look()
            self._run(job)

    def _room(self) -> bool:
        """Wait until a look is worth it; False where the service ends."""
        with self._changed:
            while not self.stopping:
                self._changed.wait_for(
                    lambda: self.stopping or (self._news and self._has_room()), _LOOK
                )
                if self._has_room() and not self.stopping:
                    self._news = False
                    asking = self._in("asks")
                    full = len(asking) >= self._limits.workers
                    self._busy = {job.segment.key_id for job in asking} if full else ()
                    return True
        return False

    def _has_room(self) -> bool:
        return len(self._in("asks")) <= self._limits.workers

    def _look(self) -> SegmentJob | None:
        """Take the next segment of the queue; None where there is none of no busy key, or it cannot be asked now."""
        segment = None
        with self._log.once("queue unread", Exception):
            try:
                if self._in_doubt:
                    self._in_doubt = False
                    self._put_back()
                segment = self._store.start(self._lease.name, self._fingerprints(), self._busy)
            except BaseException:
                # The registry may have it as begun.
                self._in_doubt = True
                raise
        if segment is None:
            return None
        with self._changed:
            # The callers of this service wait for the job that was entered. Of whoever asked another service nobody
            # here can make it be cancelled by hanging up.
            job = self.jobs.get(segment.id)
            # Or one that has just ended in the registry, and is about to end here: it was begun anew meanwhile.
            if job is None or job.state != "waits":
                job = SegmentJob(segment.id, waiters=1)
            job.segment, job.state = segment, "asks"
            self.jobs[job.id] = job
            self._news = True
        return job

    def _put_back(self) -> None:
        """Queue again what the registry has as running here and nobody runs: its beginning or its end was not noted."""
        # First those that run: one that ends meanwhile is not running in the registry any more.
        here, lease = self.running, self._lease.name
        for segment in self._store.running():
            if segment.lease == lease and segment.id not in here:
                self._store.requeue(segment.id, lease, killed=False)

    def _run(self, job: SegmentJob) -> None:
        noted = False
        # Any error: the thread goes on, and the segment goes back.
        with self._log.once("segment not ended", Exception, segment=job.id):
            self._run_to_end(job)
            noted = True
        with self._changed:
            # Both at once: a look in between would find it among those that run.
            if self.jobs.get(job.id) is job:
                del self.jobs[job.id]
            self._in_doubt |= not noted
            self.storing(job)
        # Outside of the condition: what waits for it runs in this thread, and may ask for the condition itself.
        job.done.set_result(None)
        self.ended.set()
        self.freed.set()

    def _run_to_end(self, job: SegmentJob) -> None:
        try:
            # From here and not from its submission: time in the queue is not the segment's fault.
            job.cancel.deadline = time.monotonic() + self._limits.query_seconds
            # Of one that waited it may have been asked.
            job.cancel.check()
            self._answer(job)
        except QueryCancelled:
            # A service that ends stops its jobs too: the next service runs these.
            if self.stopping:
                self._store.requeue(job.id, self._lease.name, killed=False)
            else:
                self._store.end(job.id, self._lease.name, "cancelled", CANCELLED)
        except Unreachable:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the segment's end
            problem = problem_of(error)
            self._log.warning("segment failed", error, segment=job.id, code=problem.code)
            self._store.end(job.id, self._lease.name, "failed", problem.summary)

    def cancel(self, segment_id: str) -> bool:
        """Cancel a segment, wherever it waits or runs; False where it has ended.

        One that runs here has a few seconds to stop: most callers then get the final status at once.
        """
        if not self._store.cancel(segment_id):
            return False
        if job := self.jobs.get(segment_id):
            job.cancel.asked.set()
            self.reconcile()
            wait([job.done], timeout=self._limits.cancel_seconds)
        return True

    def reconcile(self) -> None:
        """Cancel what runs here and was cancelled elsewhere; end the wait for what has ended elsewhere."""
        with self._changed:
            waiting, jobs = self._in("waits"), dict(self.jobs)
        # Nothing was asked for or runs here.
        if not jobs:
            return
        for job in waiting:
            if job.cancel.asked.is_set():
                self._store.cancel(job.id)
        for segment_id, unfinished in self._store.unsettled(list(jobs)):
            if unfinished:
                jobs[segment_id].cancel.asked.set()
            else:
                self._resolve(jobs[segment_id])

    def adopt(self) -> None:
        """Queue again what services ran that have ended; fail what waits for data that is not served any more.

        A segment whose service was killed twice fails, too.
        """
        # Also where there are no others: the lease of one that has ended may have been taken away before.
        for segment in self._store.running():
            lease = segment.lease
            if lease is None or self._lease.is_alive(lease):
                continue
            # One that was to be cancelled is, however often it was begun.
            if segment.attempts > 1 and not segment.cancel:
                # One more would take down whoever runs it next, and all that runs beside it.
                self._store.end(segment.id, lease, "failed", _TWICE)
            elif self._store.requeue(segment.id, lease, killed=True):
                self._log.info("segment adopted", segment=segment.id)
                self._wake()
        # Another service may be about to serve the newer data, or the older still.
        before = time.time() - (_OTHER_DATA_SECONDS if self._lease.others() else 0)
        self._store.fail_of_other_data(self._fingerprints(), before, not_open().summary)

    def close(self, grace: float) -> None:
        """Take no more segments; let the running ones go on for ``grace`` seconds, then stop all.

        The queue is not waited for: it is the registry's, and the next service runs it.
        """
        with self._changed:
            self.stopping = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._in("asks", "stores"), timeout=grace)
        for job in [*self.jobs.values()]:
            if job.state == "waits":
                self._resolve(job)
            else:
                job.cancel.asked.set()
        # A thread that hangs in the engine is a daemon: it does not keep the process alive.
        until = time.monotonic() + _END_SECONDS
        for thread in self.threads:
            if thread.ident:
                thread.join(timeout=max(0.0, until - time.monotonic()))
