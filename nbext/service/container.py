"""The container: the parts of one running service, opened in order and closed in reverse; and who asks it."""

from __future__ import annotations

import contextlib
import ipaddress
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from anyio import CapacityLimiter, move_on_after, to_thread
from fastapi import Depends, Request

from nbext.core.addresses import ZERO_ADDRESS
from nbext.core.atomic_files import write_whole
from nbext.engine.query.answers import Dataset
from nbext.errors import NbextError
from nbext.service.accounts.audit import Audit
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key, KeyRing, Rates
from nbext.service.accounts.signups import SignUps
from nbext.service.contract import check_parameters
from nbext.service.generations import Generations, Newer
from nbext.service.limits import Limits, Policy
from nbext.service.middleware import Log, Metrics
from nbext.service.problems import Problem
from nbext.service.scheduling import Lane
from nbext.service.segments.maintenance import Maintenance
from nbext.service.segments.service import SegmentService
from nbext.settings import Secret

REGISTRY_FILE = "registry.sqlite"
# What `Container.unready` looks at.
CHECKS = ("disk", "registry", "results", "data", "queue", "threads")
# Below this the next result or registry page may not fit (bytes).
_LEAST_FREE = 64 << 20
# How long `Container.unready` looks (seconds).
_PROBE_SECONDS = 1.5
_RESERVE = 1 << 20
_RESERVED = "reserve"
Result = TypeVar("Result")


class Container:
    """The parts of one service over one dataset, which is closed with it, and one folder, which several may share.

    Parameters
    ----------
    dataset, newer
        ``newer`` returns a dataset to serve in place of the former from now on, or None; it is asked each second, and
        the former one is closed when what began on it has ended.
    state_dir
        The folder of the results.
    registry
        The path or URL of all else that is stored, by default a file in the folder.
    policy
        The fields of a new registry's `Policy` that are not the usual ones. A registry that is there has its own, which
        holds for all its services: the log names what differs.
    owner
        A key that is accepted beside those in the registry, with every scope and no rate.
    log
        Where events are written, as JSON lines.

    Raises
    ------
    StorageError
        The folder's registry cannot be used, or the folder is another registry's.
    """

    def __init__(
        self,
        dataset: Dataset,
        state_dir: Path,
        *,
        newer: Newer = lambda: None,
        registry: Path | str | None = None,
        owner: Secret | None = None,
        limits: Limits | None = None,
        policy: Mapping[str, Any] | None = None,
        log: Log,
    ) -> None:
        limits = self.limits = limits or Limits()
        self.log = log
        state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A registry and a lease need a few pages to be opened: without the reserve a service that starts on a full
        # disk could not even read.
        if free_reserve(state_dir):
            log.warning("the disk is full: opened with the room that was kept in reserve")
        _keep_reserve(state_dir)
        wanted = policy or {}
        self.database = Database(registry or state_dir / REGISTRY_FILE, policy=Policy(**wanted))
        for name, value in wanted.items():
            used = getattr(self.database.policy, name)
            if used != value:
                log.warning("the registry has another policy", setting=name, given=value, used=used)
        self.keys = KeyRing(self.database, owner)
        self.rates = Rates(self.database)
        self.signups = SignUps(self.database)
        self.generations = Generations(dataset, newer, log)
        try:
            self.segments = SegmentService(self.generations, self.database, state_dir, limits, log)
        except BaseException:  # the folder is another registry's
            self.database.close()
            raise
        self.audit = Audit(self.database)
        self.maintenance = Maintenance(
            self.segments, self.audit, log, lambda: _keep_reserve(state_dir)
        )
        self._threads = [
            *self.segments.scheduler.threads,
            self.maintenance.thread,
            self.generations.thread,
        ]
        self._waiting = CapacityLimiter(limits.waiting)
        self._looking, self._probing = CapacityLimiter(limits.reading), CapacityLimiter(2)
        self.exports, self.receiving = Lane(limits.exports), Lane(limits.receiving)
        self.large_bodies = Lane(limits.large_bodies)
        # What Python itself takes long for, as to read a megabyte of JSON or to plan; and what asks the engine.
        self.planning = Lane(limits.planning, limits.query_seconds)
        self.explaining = Lane(limits.explaining, limits.query_seconds)
        store = self.segments.store
        self.metrics = Metrics(
            (
                ("disk_free_bytes", "Bytes free for results", self._free_bytes),
                ("segments_queued", "Segments that wait", store.queued),
                ("queue_age_seconds", "Age of the oldest segment that waits", store.queue_age),
                (
                    "segments_running",
                    "Segments that run",
                    lambda: len(self.segments.scheduler.running),
                ),
                ("exports", "Exports that are being sent", lambda: self.exports.total),
            )
        )

    def open(self) -> None:
        """Begin to look after the folder, and after what the last service left."""
        for thread in self._threads:
            thread.start()

    async def wait_for(self, work: Callable[..., Result], *values: Any) -> Result:
        """Do what waits for the engine or the disk, in one of 40 threads that are only for that.

        All else is quick, and runs in FastAPI's own threads, which the application narrows to three. With 40 for all,
        p99 of 64 connections was 1,300 to 2,100 ms instead of 340 to 460, and 1,500 ms with look-ups among those that
        wait (paired runs of 10,000 requests): they queue behind writers, whose commits take turns. With two, all who
        read waited for those; with four and more, new segments for all who read.
        """
        return await to_thread.run_sync(work, *values, limiter=self._waiting)

    async def look_up(self, work: Callable[[Dataset], Result]) -> Result:
        """Look contracts up, in threads of their own: the first look-up on a chain fetches all of its contracts."""
        with self.generations.acquire() as dataset:
            return await to_thread.run_sync(work, dataset, limiter=self._looking)

    def _free_bytes(self) -> int:
        return shutil.disk_usage(self.segments.results.folder).free

    async def unready(self) -> dict[str, str]:
        """Return what keeps the service from running segments, in the operator's words, by the name of the check."""
        # A probe gets an answer though a registry gives none: its thread is left to wait.
        with move_on_after(_PROBE_SECONDS), self.generations.acquire() as dataset:
            return await to_thread.run_sync(
                self._wrong, dataset, limiter=self._probing, abandon_on_cancel=True
            )
        return {"registry": "The registry or the data does not answer."}

    def _wrong(self, dataset: Dataset) -> dict[str, str]:
        wrong: dict[str, str] = {}
        if not all(thread.is_alive() for thread in self._threads):
            wrong["threads"] = "A thread of the service has ended. Start the service again."
        if trouble := self.maintenance.trouble():
            wrong["results"] = trouble
        elif self._free_bytes() < _LEAST_FREE:
            wrong["disk"] = (
                f"The disk of the data folder has less than {_LEAST_FREE >> 20} MiB free."
            )

        @contextlib.contextmanager
        def reading(name: str, what: str) -> Iterator[None]:
            try:
                yield
            except NbextError as error:
                self.log.warning("not ready", cause=error, check=name)
                wrong[name] = f"{what} cannot be read."

        with reading("registry", "The registry"):
            if (queued := self.segments.store.queued()) >= self.limits.queue:
                wrong["queue"] = (
                    f"The queue is full: {queued} of {self.limits.queue} segments wait."
                )
        with reading("data", "The chain data"):
            for chain in dataset.about.chains:
                dataset.catalog.contract(chain.chain_id, ZERO_ADDRESS)
        return wrong

    def close(self) -> None:
        """Close everything, in the reverse order."""
        # The maintenance first, which uses all the others; the data last, which running segments read until they end.
        self.maintenance.stop()
        self.segments.scheduler.close(0)
        # A mark that cannot be taken away now is that of an ended service: nobody holds its lock.
        with self.log.once("lease left", OSError):
            self.segments.lease.release()
        self.database.close()
        self.generations.close()


def free_reserve(state_dir: Path) -> bool:
    """Give the room that is kept in reserve up where the disk is full; return whether it did."""
    reserve = state_dir / _RESERVED
    if not reserve.exists() or shutil.disk_usage(state_dir).free >= _RESERVE:
        return False
    reserve.unlink(missing_ok=True)  # another service was quicker
    return True


def _keep_reserve(state_dir: Path) -> None:
    """Keep the reserve, unless it is there, or would take the last of the disk."""
    reserve = state_dir / _RESERVED
    with contextlib.suppress(OSError):
        if not reserve.exists() and shutil.disk_usage(state_dir).free > 2 * _RESERVE:
            write_whole(reserve, "\0" * _RESERVE, mode=0o600)


class Caller:
    """Whoever sent a request, and the service that is asked; what is ``held`` is given back when the answer is sent."""

    # Whether its body is so short that it was read at once.
    is_brief = True

    def __init__(self, request: Request) -> None:
        self.request = request
        self.held: contextlib.ExitStack = request.scope["nbext.held"]
        self.key: Key = request.scope["nbext.key"]
        self.container: Container = request.app.state.container
        self.segments: SegmentService = self.container.segments

    def link(self, path: str) -> str:
        """Return a path of ours as the caller sees it: below the root path that a proxy serves us at."""
        return f"{self.request.scope['root_path']}{path}"

    def note(self, action: str, target: str | None) -> None:
        """Note in the audit log what the caller did, and with which segment or list."""
        if self.container.database.policy.audit_days:
            client, sent_from = None, self.request.client
            # A proxy may forward what a stranger wrote into X-Forwarded-For.
            with contextlib.suppress(ValueError):
                client = str(ipaddress.ip_address(sent_from.host if sent_from else ""))
            self.container.audit.note(action, key_id=self.key.id, target=target, client=client)


def _allowed(scope: str) -> Any:
    """Return a dependency that provides the caller, or 403 where its key does not allow ``scope``.

    Whoever may not ask, or not so, is refused before anything is read. Who has no key, as a browser or a load balancer,
    may add what parameters it likes.
    """

    # Asynchronous: FastAPI would call a plain function in a thread, once for each request.
    async def check(request: Request) -> Caller:
        caller = Caller(request)
        if scope not in caller.key.scopes:
            has = ", ".join(sorted(caller.key.scopes))
            raise Problem("scope", f"This needs the scope {scope}; the key has {has}.")
        check_parameters(request)
        return caller

    return Depends(check)


Reader = Annotated[Caller, _allowed("read")]
Executor = Annotated[Caller, _allowed("execute")]
Subscriber = Annotated[Caller, _allowed("signup")]
