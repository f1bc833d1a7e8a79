"""The container: the parts of one running service, opened in order and closed in reverse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from nbext.engine.dataset import Dataset
from nbext.engine.storage import ProcessLock
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key, KeyRing, Rates
from nbext.service.accounts.signups import SignUps
from nbext.service.http.problems import Problem
from nbext.service.limits import Limits
from nbext.service.metadata import Metadata
from nbext.service.middleware import Log, Metrics
from nbext.service.segments.results import Results
from nbext.service.segments.service import Maintenance, SegmentService
from nbext.service.segments.store import SegmentStore
from nbext.settings import Secret

REGISTRY_FILE = "registry.sqlite"
Result = TypeVar("Result")


class Container:
    """The parts of one service over one dataset and one folder of its own (``state_dir``)."""

    def __init__(self, dataset: Dataset, state_dir: Path, *, owner: Secret | None, limits: Limits, log: Log) -> None:
        self.dataset, self.limits, self.log = dataset, limits, log
        self.database = Database(state_dir / REGISTRY_FILE)
        self.keys = KeyRing(self.database, owner)
        self.rates = Rates()
        self.signups = SignUps(self.database)
        self.store = SegmentStore(self.database)
        self.results = Results(state_dir)
        # Marks this service as alive, so that another on the same folder leaves its segments alone.
        self.lease = ProcessLock(state_dir / "leases")
        self.metadata = Metadata(dataset)
        self.metrics = Metrics()
        self.segments = SegmentService(
            dataset, store=self.store, results=self.results, lease=self.lease, limits=limits, log=log
        )
        self.maintenance = Maintenance(self.segments, log)
        self._waiting = CapacityLimiter(limits.waiting)
        self._has_contracts = False
        self.metrics.watch("nbext_segments_queued", "Segments that wait", lambda: self.segments.jobs.queued)
        self.metrics.watch("nbext_segments_running", "Segments that run", lambda: self.segments.jobs.running)

    def open(self) -> None:
        """Repair what the last service left, and begin to look after the folder."""
        self.maintenance.repair()
        self.maintenance.start()

    async def wait_for(self, work: Callable[..., Result], *values: Any) -> Result:
        """Do what waits for the engine or the disk, in one of 40 threads that are only for that.

        All else is quick, and runs in FastAPI's own threads, which the application narrows to two. With 40 for all,
        p99 of 64 connections was 1,300 to 2,100 ms instead of 340 to 460, and 1,500 ms with look-ups among those that
        wait (paired runs of 10,000 requests): they queue behind writers, whose commits take turns.
        """
        return await to_thread.run_sync(work, *values, limiter=self._waiting)

    async def look_up(self, work: Callable[..., Result], *values: Any) -> Result:
        """Look contracts up, which is quick once the first look-up has fetched them from a remote engine."""
        if self._has_contracts:
            return await run_in_threadpool(work, *values)
        found = await self.wait_for(work, *values)
        self._has_contracts = True
        return found

    def wind_down(self, grace: float) -> None:
        """Accept no more segments; finish those that run, or put them back for the next service."""
        self.segments.jobs.close(grace)

    def close(self) -> None:
        """Close everything, in the reverse order."""
        # The maintenance first, which uses all the others; the data last, which running segments read until they end.
        self.maintenance.stop()
        self.wind_down(0)
        self.lease.release()
        self.database.close()
        self.dataset.close()


# A coroutine: FastAPI would call a plain function in a thread, once for each request.
async def _container(request: Request) -> Container:
    container: Container = request.app.state.container
    return container


FromContainer = Annotated[Container, Depends(_container)]


def allowed(scope: str) -> Any:
    """Return a dependency that provides the caller's key, or 403 where the key does not allow ``scope``.

    Routes name it before the body: whoever may not ask is refused before anything is read.
    """

    async def check(request: Request) -> Key:
        key: Key = request.scope["nbext.key"]
        if scope not in key.scopes:
            raise Problem("scope", f"This needs the scope {scope}; the key has {', '.join(sorted(key.scopes))}.")
        return key

    return Depends(check)


Reader = Annotated[Key, allowed("read")]
Executor = Annotated[Key, allowed("execute")]
Subscriber = Annotated[Key, allowed("signup")]
