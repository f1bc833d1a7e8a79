"""Looks after a data folder: damaged results at the start, deletion of expired ones, cancellations from elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time

from nbext.service.middleware import Log
from nbext.service.segments.service import SegmentService
from nbext.service.segments.store import UNFINISHED

# Seconds between two looks for segments to cancel: a caller of another service waits up to five for an answer.
_LOOK = 0.5
# Seconds between two rounds through the results.
_ROUND = 600.0
# A file that no segment names may be one that another service is about to name: it stays this long (seconds).
_STRAY_SECONDS = 3600.0


class Maintenance:
    """One thread beside the service's own."""

    def __init__(self, segments: SegmentService, log: Log) -> None:
        self._segments, self._log = segments, log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nbext-maintenance", daemon=True)

    def repair(self) -> None:
        """Set damaged results aside, however the last service ended; intact ones are served at once."""
        segments = self._segments
        damaged = 0
        for segment in segments.store.with_status("completed"):
            if segment.result and not segments.results.present(segment.result):
                segments.set_aside(segment, segment.result)
                damaged += 1
        self._log.info("looked through the results", damaged=damaged)

    def start(self) -> None:
        """Begin the rounds."""
        self._thread.start()

    def stop(self) -> None:
        """End the rounds."""
        self._stop.set()
        with contextlib.suppress(RuntimeError):  # never started: the service failed before
            self._thread.join(timeout=5)

    def _run(self) -> None:
        # Not in `repair`: running segments again may take a while, and the service is ready without.
        self._adopt()
        self._tidy()
        # A notebook's first segment comes seconds after the start: by then the language is imported.
        if not self._stop.wait(self._segments.limits.warm_up_seconds):
            _ = self._segments.language
        next_round = time.monotonic() + _ROUND
        while not self._stop.wait(_LOOK):
            # An idle service reads nothing.
            if self._segments.jobs.ids():
                self._cancel_as_asked()
            if time.monotonic() >= next_round:
                self.expire()
                next_round = time.monotonic() + _ROUND

    def _adopt(self) -> None:
        segments = self._segments
        for segment in segments.store.with_status(*UNFINISHED):
            if not (segment.owner and segments.lease.is_alive(segment.owner)):
                segments.adopt(segment)

    def _tidy(self) -> None:
        segments = self._segments
        for name in segments.lease.others():
            segments.lease.is_alive(name)  # deletes the lease of a service that has ended
        old = time.time() - _STRAY_SECONDS
        for path in segments.results.strays(segments.store.files(), older_than=old):
            path.unlink(missing_ok=True)

    def _cancel_as_asked(self) -> None:
        for segment_id in self._segments.store.to_cancel(self._segments.lease.name):
            job = self._segments.jobs.find(segment_id)
            if job:
                self._segments.jobs.cancel(job)

    def expire(self) -> None:
        """Delete the results that are too old, then the least recently used until the rest fits ``keep_bytes``."""
        segments = self._segments
        stored = [(segment, segment.result) for segment in segments.store.with_status("completed") if segment.result]
        total = sum(result.size for _, result in stored)
        for segment, result in stored:
            if segments.is_too_old(segment) or total > segments.limits.keep_bytes:
                segments.expire(segment, result)
                total -= result.size
        segments.store.forget_old_claims()
        self._tidy()
