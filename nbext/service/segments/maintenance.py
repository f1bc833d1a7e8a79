"""Looks after a data folder: repairs at the start, results past their keeping, wishes to cancel."""

from __future__ import annotations

import contextlib
import threading
import time

from nbext.service.middleware.observe import Log
from nbext.service.segments.idempotency import Claims
from nbext.service.segments.service import SegmentService
from nbext.service.segments.store import UNFINISHED

# Seconds between two looks for wishes to cancel, and between two rounds through the results.
_LOOK = 0.5
_ROUND = 600.0
# A file that no segment names may be one that another service is about to name: it is left this long.
_STRAY_SECONDS = 3600.0


class Maintenance:
    """One thread beside the service's own."""

    def __init__(self, segments: SegmentService, claims: Claims, log: Log) -> None:
        self._segments, self._claims, self._log = segments, claims, log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, name="nbext-maintenance", daemon=True)

    def repair(self) -> None:
        """Make good what a former service left, however it ended; what is intact is served at once."""
        segments = self._segments
        damaged = 0
        for segment in segments.store.with_status("completed"):
            if segment.kept and not segments.results.present(segment.kept):
                segments.set_aside(segment, segment.kept)
                damaged += 1
        self._log.info("looked through the results", damaged=damaged)

    def _adopt(self) -> None:
        segments = self._segments
        for segment in segments.store.with_status(*UNFINISHED):
            if not (segment.owner and segments.lease.is_alive(segment.owner)):
                segments.adopt(segment)

    def _tidy(self) -> None:
        segments = self._segments
        for name in segments.lease.others():
            segments.lease.is_alive(name)
        old = time.time() - _STRAY_SECONDS
        for path in segments.results.strays(segments.store.files(), older_than=old):
            path.unlink(missing_ok=True)

    def start(self) -> None:
        """Begin the rounds."""
        self._thread.start()

    def stop(self) -> None:
        """End them."""
        self._stop.set()
        with contextlib.suppress(RuntimeError):  # never started: the service failed before
            self._thread.join(timeout=5)

    def _live(self) -> None:
        # Not in `repair`: all this may take a while, and the service is ready without.
        self._adopt()
        self._tidy()
        if not self._stop.wait(self._segments.limits.warm_up_seconds):
            self._segments.warm_up()
        next_round = time.monotonic() + _ROUND
        while not self._stop.wait(_LOOK):
            if self._segments.jobs.ids():
                self._pass_wishes_on()
            if time.monotonic() >= next_round:
                self.expire()
                next_round = time.monotonic() + _ROUND

    def _pass_wishes_on(self) -> None:
        for segment_id in self._segments.store.to_cancel(self._segments.lease.name):
            job = self._segments.jobs.find(segment_id)
            if job:
                self._segments.jobs.cancel(job)

    def expire(self) -> None:
        """Let results go that are past their keeping, then the least recently used until all fit."""
        segments, limits = self._segments, self._segments.limits
        kept = [(segment, segment.kept) for segment in segments.store.with_status("completed") if segment.kept]
        total = sum(result.size for _, result in kept)
        for segment, result in kept:
            if limits.is_over(segment) or total > limits.keep_bytes:
                segments.expire(segment, result)
                total -= result.size
        self._claims.forget_old()
        self._tidy()
