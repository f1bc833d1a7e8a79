"""The thread that looks after a service's folder and registry."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

from nbext.service.accounts.audit import Audit
from nbext.service.middleware import Log
from nbext.service.segments.results import give_back_memory
from nbext.service.segments.service import SegmentService
from nbext.service.segments.store import ResultFile

# Seconds between two looks for segments to cancel: a caller of another service waits up to five for an answer.
_LOOK = 0.25
# Seconds between two looks at the other services of the registry: what one of them ran that was killed is run again.
_VISIT = 5.0
# Seconds between two looks for old results: these are stored for days, so that minutes more matter to nobody.
_ROUND = 600.0
_FIRST_ROUND = 10.0
_BATCH = 500
# A file that no segment names may be one that another service is about to name: it stays this long (seconds).
_STRAY_SECONDS = 3600.0
# Results whose files may be missing before the folder itself is in doubt.
_HANDFUL = 5
# How far the clock may be off from what a timer counts before nothing is taken for old (seconds).
_JUMP = 60.0


class Maintenance:
    """Cancels as asked, takes over what ended services left, deletes old results and stray files, writes the audit log.

    A registry or folder that cannot be read now is reported in the log, and read again in the next round.
    """

    def __init__(
        self, segments: SegmentService, audit: Audit, log: Log, keep_reserve: Callable[[], None]
    ) -> None:
        self._segments, self._audit = segments, audit
        self._log = log
        self._stop = threading.Event()
        self._missing = 0
        # What the clock showed when the timer began, as the last round saw it.
        self._epoch: float | None = None
        scheduler = segments.scheduler
        # Seconds between two rounds -> what is done in each.
        self._work: dict[float, dict[str, Callable[[], object]]] = {
            0.0: {"audit": audit.flush, "cancel": scheduler.reconcile, "room": self._make_room},
            _VISIT: {"policy": segments.database.learn, "adopt": scheduler.adopt},
            # A command, or a start on a full disk, may have given the reserve up; what was just deleted made room.
            _ROUND: {"clean": self._clean, "reserve": keep_reserve},
        }
        self.thread = threading.Thread(target=self._run, name="nbext-maintenance", daemon=True)

    def stop(self) -> None:
        """End the rounds."""
        self._stop.set()
        self.thread.join(timeout=5)
        self._do("audit", self._audit.flush)

    def _do(self, name: str, work: Callable[[], object]) -> None:
        # Any error: the thread has to go on.
        with self._log.once("maintenance failed", Exception, work=name):
            work()

    def _run(self) -> None:
        # The service is ready without: of a million results, to look at each takes a minute.
        due = {period: time.monotonic() for period in self._work}
        due[_ROUND] += _FIRST_ROUND
        while not self._stop.wait(_LOOK):
            for period, works in self._work.items():
                if time.monotonic() >= due[period]:
                    for name, work in works.items():
                        self._do(name, work)
                    due[period] = time.monotonic() + period

    def trouble(self) -> str | None:
        """Return what is wrong with the folder of results, in the operator's words, or None."""
        folder = self._segments.results.folder
        if not self._segments.results.is_own():
            return "The folder of results is missing, cannot be read, or is another registry's."
        if self._missing > _HANDFUL:
            missing = f"{self._missing} results are missing from their folder, {folder.name}."
            return f"{missing} Bring them back, or run nbext check --give-up."
        return None

    def _clean(self) -> None:
        segments, lease = self._segments, self._segments.lease
        # What one service does for all: the deletions of several would be in each other's way.
        if not segments.store.lead(lease.name, lease.is_alive):
            return
        # Those of another size; bytes that changed are found when they are read. One that is missing may come back.
        damaged, missing = list[ResultFile](), 0
        for _, result in segments.store.results():
            found = segments.results.check(result, read=False)
            missing += found == "absent"
            if found == "damaged":
                damaged.append(result)
            if self._stop.is_set():
                return
        self._missing = missing
        # A folder that is in doubt is left alone.
        if self.trouble():
            return
        segments.expire(damaged)
        # Only where the clock has gone on since the last round as it should, anything is too old.
        before, self._epoch = self._epoch, time.time() - time.monotonic()
        aged = before is not None and abs(self._epoch - before) < _JUMP
        self.trim_results(aged=aged)
        for name in lease.others():
            lease.is_alive(name)  # deletes the lease of a service that has ended
        if not aged:
            return
        since = time.time() - _STRAY_SECONDS
        old = itertools.chain(segments.results.strays(since), segments.lists.strays(since))
        while files := {path.name: path for path in itertools.islice(old, _BATCH)}:
            for name in segments.store.unnamed(files):
                files[name].unlink(missing_ok=True)

    def _make_room(self) -> None:
        """Give back what answers took that nobody refers to: memory, and where results are too much, older ones."""
        scheduler = self._segments.scheduler
        if not scheduler.freed.is_set():
            return
        scheduler.freed.clear()
        # Not after each segment: to have the system make the same pages again is a tenth of the work of a large one.
        give_back_memory()
        if not scheduler.ended.is_set():
            return
        scheduler.ended.clear()
        most = self._segments.database.policy.keep_bytes
        # A folder that is in doubt is left alone.
        if not self.trouble() and self._segments.store.stored_bytes() > most:
            self.trim_results(aged=False)

    def trim_results(self, *, aged: bool = True) -> None:
        """Delete the results that are too old, then the least recently used until the rest fits ``keep_bytes``.

        Without ``aged`` nothing is too old: the clock may be wrong.
        """
        segments, policy = self._segments, self._segments.database.policy
        kept = policy.keep_days * 86400
        oldest = time.time() - kept if aged else 0.0
        excess = 0
        while not self._stop.is_set():
            why = f"Results are stored for {policy.keep_days:g} days."
            old = segments.store.least_used(oldest, 0)
            if not old:
                excess = segments.store.stored_bytes() - policy.keep_bytes
                old = segments.store.least_used(0.0, excess)
                why = "The result was deleted to make room for newer ones."
            if not old:
                break
            segments.expire(old, why)
        # Requests stay for as long again, so that they can be run again. Where they alone are too much, those go that
        # have no result any more.
        segments.store.forget(oldest - kept, excess)
        segments.lists.trim(aged=aged)
        if aged:
            segments.store.forget_old_claims()
            self._audit.prune(time.time() - policy.audit_days * 86400)
