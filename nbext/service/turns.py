"""What one key may have of this process at once: `Share` counts it; `Turns` also lends a few threads, key by key.

Both are for what is answered within its request and stored nowhere: large bodies, plans, explanations, exports, lists.
Python runs one thread at a time: forty that plan hold up the one that answers light requests. Here a few run at once,
and keys take turns, however many requests each of them sends.

Segments are jobs. They outlive their request and this process, and any process of the registry may run them: their
turns and bounds are in the registry's queue (`nbext.service.segments.store`), and `nbext.service.segments.jobs` takes
from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from nbext.engine.dataset import Cancel
from nbext.service.http.problems import Problem

Result = TypeVar("Result")
_RETRY = {"Retry-After": "2"}


class Share:
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
                raise Problem("too-many-at-once", detail, headers=_RETRY)
            if self._taken.total() >= self._in_all:
                raise Problem(
                    "busy",
                    f"{self._in_all} {self._what} are under way. Try again soon.",
                    headers=_RETRY,
                )
            self._taken[key_id] += 1
        try:
            yield
        finally:
            with self._changing:
                self._taken[key_id] -= 1
                # A service has a hundred thousand keys, and few of them at once.
                if not self._taken[key_id]:
                    del self._taken[key_id]


class Turns:
    """A few threads for the work of requests, to which keys take turns; ``each`` is how many a key may have at once."""

    def __init__(self, what: str, *, threads: int, each: int, per_key: int, in_all: int) -> None:
        self._share = Share(what, per_key=per_key, in_all=in_all)
        self._limiter = CapacityLimiter(threads)
        self._free, self._each = threads, each
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def run(
        self, key_id: str, work: Callable[[Cancel], Result], cancel: Cancel, seconds: float
    ) -> Result:
        """Do work in a thread when it is the key's turn; it has ``seconds`` from then on, and heeds ``cancel``.

        The problem is 429 or 503 where too much waits already.
        """
        with self._share.taken(key_id):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(key_id, deque()).append(turn)
            self._grant()
            try:
                await turn
                cancel.deadline = time.monotonic() + seconds
                return await to_thread.run_sync(work, cancel, limiter=self._limiter)
            finally:
                self._end(key_id, turn)

    def _grant(self) -> None:
        """Give the free threads to the keys that waited longest for a turn."""
        for key_id in list(self._waiting):
            if self._free and self._running[key_id] < self._each:
                self._free -= 1
                self._running[key_id] += 1
                self._waiting[key_id].popleft().set_result(None)
                self._waiting.move_to_end(key_id)
                if not self._waiting[key_id]:
                    del self._waiting[key_id]

    def _end(self, key_id: str, turn: asyncio.Future[None]) -> None:
        # A caller that hung up while it waited has cancelled its turn, which nobody is given.
        if turn in self._waiting.get(key_id, ()):
            self._waiting[key_id].remove(turn)
            if not self._waiting[key_id]:
                del self._waiting[key_id]
            return
        self._free += 1
        self._running[key_id] -= 1
        if not self._running[key_id]:
            del self._running[key_id]
        self._grant()
