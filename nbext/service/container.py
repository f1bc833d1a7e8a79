"""Everything that one running service holds, made in order and given back in reverse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request

from nbext.engine.dataset import Dataset
from nbext.engine.storage.process_lock import Lease
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key, KeyRing
from nbext.service.accounts.signups import SignUps
from nbext.service.http.problems import Problem
from nbext.service.limits import Limits
from nbext.service.metadata import Metadata
from nbext.service.middleware.observe import Log, Metrics
from nbext.service.middleware.rate_limit import Rates
from nbext.service.segments.idempotency import Claims
from nbext.service.segments.maintenance import Maintenance
from nbext.service.segments.results import Results
from nbext.service.segments.service import SegmentService
from nbext.service.segments.store import SegmentStore
from nbext.service.threadpools import ThreadPools
from nbext.settings import Secret

REGISTRY_FILE = "registry.sqlite"


class Container:
    """The parts of one service over one dataset and one folder of its own (``state_dir``)."""

    def __init__(self, dataset: Dataset, state_dir: Path, *, owner: Secret | None, limits: Limits, log: Log) -> None:
        self.dataset, self.limits, self.log = dataset, limits, log
        self.database = Database(state_dir / REGISTRY_FILE)
        self.keys = KeyRing(self.database, owner)
        self.rates = Rates()
        self.signups = SignUps(self.database)
        self.claims = Claims(self.database)
        self.store = SegmentStore(self.database)
        self.results = Results(state_dir)
        self.lease = Lease(state_dir / "leases")
        self.metadata = Metadata(dataset)
        self.metrics = Metrics()
        self.threadpools = ThreadPools()
        self.segments = SegmentService(
            dataset, store=self.store, claims=self.claims, results=self.results, lease=self.lease,
            limits=limits, log=log,
        )
        self.maintenance = Maintenance(self.segments, self.claims, log)
        self.metrics.watch("nbext_segments_queued", "Segments that wait", lambda: self.segments.jobs.queued)
        self.metrics.watch("nbext_segments_running", "Segments that run", lambda: self.segments.jobs.running)

    def open(self) -> None:
        """Repair what a former service left, and begin to look after the folder."""
        self.maintenance.repair()
        self.maintenance.start()

    def wind_down(self, grace: float) -> None:
        """Take no more segments; finish those that run, or put them back for the next service."""
        self.segments.close(grace)

    def close(self) -> None:
        """Give everything back."""
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
    """Return a dependency that gives the caller's key, or 403 where the key does not allow ``scope``.

    Routes name it before the body: whoever may not ask is told so before anything is read.
    """

    async def check(request: Request) -> Key:
        key: Key = request.scope["nbext.key"]
        if scope not in key.scopes:
            raise Problem("scope", f"This key allows {', '.join(sorted(key.scopes))}; this needs {scope}.")
        return key

    return Depends(check)


Reader = Annotated[Key, allowed("read")]
Executor = Annotated[Key, allowed("execute")]
Subscriber = Annotated[Key, allowed("signup")]
