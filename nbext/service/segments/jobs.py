"""The threads that run segments, and a way to cancel each segment; the queue before them is the registry's.

Every service on one registry takes from one queue, so that its order holds for all of them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from nbext.engine.dataset import Cancel
from nbext.service.http.problems import Problem
from nbext.service.segments.store import Segment


@dataclass(eq=False)
class Job:
    """One segment to run; ``plan`` is what the segment language made of its request, None where another service did."""

    id: str
    plan: Any
    key_id: str
    # Of the data that it asks: the newest, where nothing is said.
    fingerprint: str | None = None
    request: dict[str, Any] = field(default_factory=dict)
    cancel: Cancel = field(default_factory=Cancel)
    done: Future[None] = field(default_factory=Future)
    # The segment as the registry has it now, where this job completed it.
    ended: Segment | None = None
    # Requests that wait for it now: when the last one hangs up, nobody is left to read the result.
    waiters: int = 0
    # Someone has its id and may come back: it is not cancelled when the last waiter leaves.
    wanted: bool = False


# Threads beside the ``workers``: a job that has its answer only waits for the disk, and the next may ask meanwhile.
_STORING = 6
# Seconds between two looks at the queue where another service may have added to it.
_LOOK = 0.25


class Jobs:
    """Threads that run the jobs that ``take`` returns.

    ``workers`` jobs ask the engine at once, and one more of a key that has none among them: whoever asks for little
    does not wait for the long segments of another key. A job that says it is `answered` makes room. ``take`` gets the
    keys whose jobs it may not take, and returns None where none is left; it is called by one thread.
    """

    def __init__(
        self,
        run: Callable[[Job], None],
        take: Callable[[Collection[str]], Job | None],
        *,
        workers: int = 2,
        shared: Callable[[], bool] = lambda: False,
    ) -> None:
        self._run, self._take, self._shared = run, take, shared
        self._ready: deque[Job] = deque()
        # Those that run here, and those that were asked for here and wait in the registry.
        self._all: dict[str, Job] = {}
        self._waiting: dict[str, Job] = {}
        self._asking: set[Job] = set()
        # What the thread that fills waits for: a new job, one that only stores its result, one that ends. The others
        # wait for a job that is ready: woken by every change, ten threads would hold each other up for each segment.
        one = threading.Lock()
        self._changed, self._readied = threading.Condition(one), threading.Condition(one)
        self._news = True
        # Whether the last look left out what its key may not run now: only then does an end make it worth another.
        self._held = False
        self._workers = workers
        self.stopping = False
        self._threads = [
            threading.Thread(target=self._work, name=f"nbext-job-{number}", daemon=True)
            for number in range(workers + 1 + _STORING)
        ]
        self._threads.append(threading.Thread(target=self._fill, name="nbext-jobs", daemon=True))
        for thread in self._threads:
            thread.start()

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._all)

    def expect(self, job: Job) -> Job:
        """Note that a job will be in the registry's queue, and return it or the one that is expected already.

        Before it is entered: it may be taken at once.
        """
        with self._changed:
            if self.stopping:
                raise Problem(
                    "stopping",
                    "The service is stopping. Try again soon.",
                    headers={"Retry-After": "2"},
                )
            return self._all.get(job.id) or self._waiting.setdefault(job.id, job)

    def settle(self, job: Job) -> None:
        """Note that an expected job will not run here: it has ended elsewhere, or was never entered."""
        with self._changed:
            settled = self._waiting.pop(job.id, None)
        if settled:
            settled.done.set_result(None)

    def look(self) -> None:
        """Look at the queue now: there is something new."""
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def find(self, segment_id: str) -> Job | None:
        """Return the job that runs that segment here, or was asked for here, or None."""
        with self._changed:
            return self._all.get(segment_id) or self._waiting.get(segment_id)

    def waiting(self) -> list[Job]:
        """Return the jobs that were asked for here and have not begun here."""
        with self._changed:
            return list(self._waiting.values())

    def ids(self) -> list[str]:
        """Return the ids of all jobs that have not ended."""
        with self._changed:
            return [*self._all, *self._waiting]

    def cancel(self, job: Job) -> None:
        """Stop a job: as soon as the engine looks where it runs, and before it begins where it waits."""
        job.cancel.asked.set()

    def answered(self, job: Job) -> None:
        """Note that a job has its answer and only stores it: the next may ask the engine."""
        with self._changed:
            self._leave(job)

    def _leave(self, job: Job) -> None:
        self._asking.discard(job)
        self._news |= self._held
        if self._news or self.stopping:
            self._changed.notify_all()

    def _fill(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self.stopping or (self._news and self._has_room()), self._pause()
                )
                if self.stopping:
                    return
                if not self._has_room():
                    continue
                self._news = False
                full = len(self._asking) >= self._workers
                busy = {job.key_id for job in self._asking} if full else ()
                self._held = full
            # Outside of the condition: this waits for the disk.
            taken = self._take(busy)
            if taken is not None:
                self._begin(taken)

    def _has_room(self) -> bool:
        return len(self._asking) <= self._workers

    def _pause(self) -> float | None:
        # An idle service that is alone on its registry reads nothing.
        return _LOOK if self._waiting or self._shared() else None

    def _begin(self, taken: Job) -> None:
        with self._changed:
            # The callers of this service wait for the job that was expected.
            job = self._waiting.pop(taken.id, taken)
            job.request = taken.request
            self._all[job.id] = job
            self._asking.add(job)
            self._ready.append(job)
            self._news = True
            self._readied.notify()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                self._run(job)
            finally:
                with self._changed:
                    del self._all[job.id]
                    self._leave(job)
                # Outside of the condition: what waits for it runs in this thread, and may ask for the condition itself.
                job.done.set_result(None)

    def _next(self) -> Job | None:
        with self._changed:
            self._readied.wait_for(lambda: self._ready or self.stopping)
            return self._ready.popleft() if self._ready else None

    def close(self, grace: float) -> None:
        """Take no more jobs; let the running ones go on for ``grace`` seconds, then stop all.

        The queue is not waited for: it is the registry's, and the next service runs it.
        """
        with self._changed:
            self.stopping = True
            self._changed.notify_all()
            self._readied.notify_all()
            self._changed.wait_for(lambda: not self._all, timeout=grace)
            rest = list(self._all.values())
        for job in rest:
            job.cancel.asked.set()
        for job in self.waiting():
            self.settle(job)
        # A thread that hangs in the engine is a daemon: it does not keep the process alive.
        for thread in self._threads:
            thread.join(timeout=5)
