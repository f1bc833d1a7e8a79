"""The threads that run segments, the queue before them, and a way to cancel each segment."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from nbext.engine.dataset import Cancel
from nbext.service.http.problems import Problem


@dataclass(eq=False)
class Job:
    """One segment to run; ``plan`` is what the segment language made of its request."""

    id: str
    plan: Any
    key_id: str
    cancel: Cancel = field(default_factory=Cancel)
    done: Future[None] = field(default_factory=Future)
    # Requests that wait for it now: when the last one hangs up, nobody is left to read the result.
    waiters: int = 0
    # Someone has its id and may come back: it is not cancelled when the last waiter leaves.
    wanted: bool = False


# Threads beside the ``workers``: a job that has its answer only waits for the disk, and the next may ask meanwhile.
_STORING = 6


class Jobs:
    """Threads that run jobs in the order in which they were submitted; ``queue`` limits those that wait.

    Of the running ones ``workers`` ask the engine at once; a job that says it is `answered` makes room.
    """

    def __init__(self, run: Callable[[Job], None], *, workers: int = 2, queue: int = 256, per_key: int = 128) -> None:
        self._run = run
        self._queue: deque[Job] = deque()
        self._all: dict[str, Job] = {}
        self._asking: set[Job] = set()
        # One condition for every change: a new job, one that only stores its result, one that ends.
        self._changed = threading.Condition()
        self._workers, self._bound, self._per_key = workers, queue, per_key
        self.stopping = False
        self._threads = [
            threading.Thread(target=self._work, name=f"nbext-job-{number}", daemon=True)
            for number in range(workers + _STORING)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def queued(self) -> int:
        """How many jobs wait."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._all) - len(self._queue)

    def make_room(self, key_id: str) -> None:
        """Raise the problem 503 or 429 where there is no room for one more job."""
        with self._changed:
            if self.stopping:
                raise Problem("stopping", "The service is stopping. Try again soon.", headers={"Retry-After": "2"})
            if len(self._queue) >= self._bound:
                raise Problem(
                    "busy", f"{len(self._queue)} segments are waiting. Try again soon.", headers={"Retry-After": "2"}
                )
            # A loop around execute fills the share of its own key, and not the queue of all.
            if sum(job.key_id == key_id for job in self._all.values()) >= self._per_key:
                raise Problem(
                    "too-many-segments",
                    f"This key has {self._per_key} unfinished segments. Wait for one to finish, or cancel one.",
                    headers={"Retry-After": "2"},
                )

    def submit(self, job: Job) -> None:
        """Queue a job."""
        with self._changed:
            self._all[job.id] = job
            self._queue.append(job)
            self._changed.notify()

    def find(self, segment_id: str) -> Job | None:
        """Return the job that runs or will run that segment here, or None."""
        with self._changed:
            return self._all.get(segment_id)

    def ids(self) -> list[str]:
        """Return the ids of all jobs that have not ended."""
        with self._changed:
            return list(self._all)

    def cancel(self, job: Job) -> None:
        """Stop a job: at once where it waits, as soon as the engine looks where it runs."""
        job.cancel.asked.set()
        with self._changed:
            waiting = job in self._queue
            if waiting:
                self._queue.remove(job)
        # No thread will take it from the queue any more: it is ended here, in the thread of the caller.
        if waiting:
            self._end(job)

    def answered(self, job: Job) -> None:
        """Note that a job has its answer and only stores it: the next may ask the engine."""
        with self._changed:
            self._asking.discard(job)
            self._changed.notify_all()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._end(job)

    def _end(self, job: Job) -> None:
        """Run a job to its end; one that was cancelled ends at once."""
        try:
            self._run(job)
        finally:
            with self._changed:
                self._asking.discard(job)
                del self._all[job.id]
                self._changed.notify_all()
            # Outside of the condition: what waits for it runs in this thread, and may ask for the condition itself.
            job.done.set_result(None)

    def _next(self) -> Job | None:
        with self._changed:
            # Where the service stops, the queue is still emptied: each of its cancelled jobs puts its segment back.
            self._changed.wait_for(lambda: len(self._asking) < self._workers if self._queue else self.stopping)
            if not self._queue:
                return None
            job = self._queue.popleft()
            self._asking.add(job)
            return job

    def close(self, grace: float) -> None:
        """Accept no more jobs; let the running ones go on for ``grace`` seconds, then stop all."""
        with self._changed:
            self.stopping = True
            waiting = list(self._queue)
            self._changed.notify_all()
        # The queue is not waited for: two workers would need minutes for 256 segments, and the next service runs them.
        for job in waiting:
            job.cancel.asked.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._all, timeout=grace)
            rest = list(self._all.values())
        for job in rest:
            job.cancel.asked.set()
        # A thread that hangs in the engine is a daemon: it does not keep the process alive.
        for thread in self._threads:
            thread.join(timeout=5)
