"""What runs when: quotas and turns of requests, by key, and the threads that run segments.

`Quota` counts what a key may have of this process at once; `FairScheduler` also lends a few threads, key by key. Both
are for what is answered within its request and stored nowhere: large bodies, plans, explanations, exports, lists.
Python runs one thread at a time: forty that plan hold up the one that answers light requests. Here a few run at once,
and keys take turns, however many requests each of them sends.

Segments are `Jobs`. They outlive their request and this process, and any process of the registry may run them: their
turns and bounds are in the registry's queue (`nbext.service.segments.store`), so that its order holds for all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from nbext.engine.dataset import Cancel
from nbext.service.http.problems import Problem
from nbext.service.segments.store import RETRY_SOON, SegmentRecord

Result = TypeVar("Result")


class Quota:
    """How many of something a key, and all keys together, may have at once; ``what`` names them in the problems.

    Calls are made in the event loop and in threads.
    """

    def __init__(self, what: str, *, per_key: int, in_all: int) -> None:
        self._what, self._per_key, self._in_all = what, per_key, in_all
        self._taken: Counter[str] = Counter()
        self._changing = threading.Lock()

    @property
    def total(self) -> int:
        """How many all keys have now."""
        with self._changing:
            return self._taken.total()

    @contextlib.contextmanager
    def taken(self, key_id: str) -> Iterator[None]:
        """Hold one; the problem is 429 where the key has as many as it may, 503 where all keys have."""
        with self._changing:
            if self._taken[key_id] >= self._per_key:
                detail = f"This key has {self._per_key} {self._what} under way. Wait until one has ended."
                raise Problem("too-many-at-once", detail, headers=RETRY_SOON)
            if self._taken.total() >= self._in_all:
                detail = f"{self._in_all} {self._what} are under way. Try again soon."
                raise Problem("busy", detail, headers=RETRY_SOON)
            self._taken[key_id] += 1
        try:
            yield
        finally:
            with self._changing:
                self._taken[key_id] -= 1
                # A service has a hundred thousand keys, and few of them at once.
                if not self._taken[key_id]:
                    del self._taken[key_id]


class FairScheduler:
    """A few threads for the work of requests, to which keys take turns, each with one at a time."""

    def __init__(self, quota: Quota, *, threads: int) -> None:
        self._quota = quota
        self._limiter = CapacityLimiter(threads)
        self._free = threads
        self._running: set[str] = set()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def run(
        self, key_id: str, work: Callable[[Cancel], Result], cancel: Cancel, seconds: float
    ) -> Result:
        """Do work in a thread when it is the key's turn; it has ``seconds`` from then on, and heeds ``cancel``.

        The problem is 429 or 503 where too much waits already.
        """
        with self._quota.taken(key_id):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(key_id, deque()).append(turn)
            self._grant()
            try:
                await turn
                cancel.deadline = time.monotonic() + seconds
                return await to_thread.run_sync(work, cancel, limiter=self._limiter)
            finally:
                waiting = self._waiting.get(key_id, deque())
                # A caller that hung up while it waited has cancelled its turn, which nobody is given.
                if turn in waiting:
                    waiting.remove(turn)
                    if not waiting:
                        del self._waiting[key_id]
                else:
                    self._free += 1
                    self._running.remove(key_id)
                    self._grant()

    def _grant(self) -> None:
        """Give the free threads to the keys that waited longest for a turn."""
        for key_id in list(self._waiting):
            if self._free and key_id not in self._running:
                self._free -= 1
                self._running.add(key_id)
                self._waiting[key_id].popleft().set_result(None)
                self._waiting.move_to_end(key_id)
                if not self._waiting[key_id]:
                    del self._waiting[key_id]


@dataclass(eq=False)
class SegmentJob:
    """One segment to run; ``plan`` is what the segment language made of its request, None where another service did."""

    id: str
    plan: Any
    key_id: str
    # Of the data that it asks: the newest, where nothing is said.
    fingerprint: str | None = None
    request: dict[str, Any] = field(default_factory=dict)
    # It stops as soon as the engine looks where it runs, and before it begins where it waits.
    cancel: Cancel = field(default_factory=Cancel)
    done: Future[None] = field(default_factory=Future)
    # The segment as the registry has it now, where this job completed it.
    ended: SegmentRecord | None = None
    # Requests that wait for it now: when the last one hangs up, nobody is left to read the result.
    waiters: int = 0
    # Someone has its id and may come back: it is not cancelled when the last waiter leaves.
    wanted: bool = False


# Threads beside the ``workers``: a job that has its answer only waits for the disk, and the next may ask meanwhile.
_STORING = 6
# Seconds that all threads together have to end.
_END_SECONDS = 5.0
# Seconds between two looks at the queue where another service may have added to it.
_LOOK = 0.25


class Jobs:
    """Threads that run the jobs that ``take`` returns.

    ``workers`` jobs ask the engine at once, and one more of a key that has none among them: whoever asks for little
    does not wait for the long segments of another key. A job that is `release`d makes room. No thread ends before
    `close`: where ``run`` fails, the registry may have a segment as running that nobody runs, and ``in_doubt`` is set
    for whoever looks after the registry. ``take`` gets the keys whose jobs it may not take, and returns None where none
    is left. It and ``shared``, whether another service may add to the queue, raise nothing, and one thread calls them.
    """

    def __init__(
        self,
        run: Callable[[SegmentJob], None],
        take: Callable[[Collection[str]], SegmentJob | None],
        *,
        workers: int = 2,
        shared: Callable[[], bool] = lambda: False,
    ) -> None:
        self._run, self._take, self._shared = run, take, shared
        self._ready: deque[SegmentJob] = deque()
        # Those that run here, and those that were asked for here and wait in the registry.
        self._all: dict[str, SegmentJob] = {}
        self._waiting: dict[str, SegmentJob] = {}
        self._asking: set[SegmentJob] = set()
        # What the thread that fills waits for: a new job, one that only stores its result, one that ends. The others
        # wait for a job that is ready: woken by every change, ten threads would hold each other up for each segment.
        one = threading.Lock()
        self._changed, self._readied = threading.Condition(one), threading.Condition(one)
        self._news = True
        # Whether the last look left out what its key may not run now: only then does an end make it worth another.
        self._held = False
        self._workers = workers
        self.stopping = False
        self.in_doubt = threading.Event()
        # Held while a job is neither in the registry's queue nor among those that run here.
        self.taking = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, name=f"nbext-job-{number}", daemon=True)
            for number in range(workers + 1 + _STORING)
        ]
        self._threads.append(threading.Thread(target=self._fill, name="nbext-jobs", daemon=True))

    def start(self) -> None:
        """Begin to take jobs."""
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether all threads live."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._all)

    def register(self, job: SegmentJob) -> SegmentJob:
        """Note that a job will be in the registry's queue, and return it or the one that is registered already.

        Before it is entered: it may be taken at once.
        """
        with self._changed:
            if self.stopping:
                detail = "The service is stopping. Try again soon."
                raise Problem("stopping", detail, headers=RETRY_SOON)
            return self._all.get(job.id) or self._waiting.setdefault(job.id, job)

    def resolve(self, job: SegmentJob) -> None:
        """Note that a registered job will not run here: it has ended elsewhere, or was never entered."""
        with self._changed:
            resolved = self._waiting.pop(job.id, None)
        if resolved:
            resolved.done.set_result(None)

    def wake(self) -> None:
        """Look at the queue now: there is something new."""
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def find(self, segment_id: str) -> SegmentJob | None:
        """Return the job that runs that segment here, or was asked for here, or None."""
        with self._changed:
            return self._all.get(segment_id) or self._waiting.get(segment_id)

    def waiting(self) -> list[SegmentJob]:
        """Return the jobs that were asked for here and have not begun here."""
        with self._changed:
            return list(self._waiting.values())

    def running_ids(self) -> set[str]:
        """Return the ids of the jobs that run."""
        with self._changed:
            return set(self._all)

    def ids(self) -> list[str]:
        """Return the ids of all jobs that have not ended."""
        with self._changed:
            return [*self._all, *self._waiting]

    def release(self, job: SegmentJob) -> None:
        """Note that a job has its answer and only stores it: the next may ask the engine."""
        with self._changed:
            self._leave(job)

    def _leave(self, job: SegmentJob) -> None:
        self._asking.discard(job)
        self._news |= self._held
        if self._news or self.stopping:
            self._changed.notify_all()

    def _fill(self) -> None:
        while True:
            with self._changed:
                # An idle service that is alone on its registry reads nothing.
                pause = _LOOK if self._waiting or self._shared() else None
                self._changed.wait_for(
                    lambda: self.stopping or (self._news and self._has_room()), pause
                )
                if self.stopping:
                    return
                if not self._has_room():
                    continue
                self._news = False
                self._held = len(self._asking) >= self._workers
                busy = {job.key_id for job in self._asking} if self._held else ()
            # Outside of the condition: this waits for the disk.
            with self.taking:
                self._begin(busy)

    def _begin(self, busy: Collection[str]) -> None:
        taken = self._take(busy)
        if taken is None:
            return
        with self._changed:
            # The callers of this service wait for the job that was registered.
            job = self._waiting.pop(taken.id, taken)
            job.request = taken.request
            self._all[job.id] = job
            self._asking.add(job)
            self._ready.append(job)
            self._news = True
            self._readied.notify()

    def _has_room(self) -> bool:
        return len(self._asking) <= self._workers

    def _work(self) -> None:
        while True:
            with self._changed:
                self._readied.wait_for(lambda: self._ready or self.stopping)
                if not self._ready:
                    return
                job = self._ready.popleft()
            ended = False
            with contextlib.suppress(Exception):  # ``run`` has reported it
                self._run(job)
                ended = True
            with self._changed:
                del self._all[job.id]
                self._leave(job)
            if not ended:
                self.in_doubt.set()
            # Outside of the condition: what waits for it runs in this thread, and may ask for the condition itself.
            job.done.set_result(None)

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
            self.resolve(job)
        # A thread that hangs in the engine is a daemon: it does not keep the process alive.
        until = time.monotonic() + _END_SECONDS
        for thread in self._threads:
            if thread.ident:
                thread.join(timeout=max(0.0, until - time.monotonic()))
