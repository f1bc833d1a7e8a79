"""Waits for a segment: until it has finished, the caller's time is over, or the caller has hung up."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from dataclasses import replace
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from nbext.service.limits import Limits
from nbext.service.segments.jobs import Job
from nbext.service.segments.service import SegmentService
from nbext.service.segments.store import Segment

_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,9})\"?(?:$|[,;\s])", re.IGNORECASE)
# How often a segment is looked at that runs in another service on the same folder (seconds).
_LOOK = 0.2


def patience(prefer: str | None, default: float, limits: Limits) -> float:
    """Return for how many seconds a caller waits (RFC 7240); any other preference is ignored, as the RFC says.

    >>> patience("respond-async, wait=5", 20, Limits())
    5.0
    """
    found = _WAIT.search(prefer or "")
    if found:
        return min(float(found[1]), limits.longest_wait)
    return 0.0 if "respond-async" in (prefer or "").lower() else default


async def finished(segments: SegmentService, segment: Segment, seconds: float, request: Request) -> Segment:
    """Return the segment when it has finished, or as it is when the time is over.

    A segment that nobody waits for any more, and whose id nobody has, is cancelled.

    Raises
    ------
    ClientDisconnect
        The caller hung up meanwhile.
    """
    if segment.finished:
        return segment
    until = time.monotonic() + seconds
    # A notebook whose cell was interrupted hangs up: its segment is not worth a worker for another half minute.
    gone = asyncio.ensure_future(_hung_up(request))
    try:
        while not segment.finished and (left := until - time.monotonic()) > 0 and not segments.jobs.stopping:
            job = segments.jobs.find(segment.id)
            if job:
                await _wait(segments, job, left, gone)
            else:
                # Another service on the same folder runs it: only the registry shows when it ends.
                await asyncio.wait({gone}, timeout=min(left, _LOOK))
            if gone.done():
                raise ClientDisconnect
            now = await run_in_threadpool(segments.read, segment.id)
            # The caller's own words, not those of whoever asked for the same segment first.
            segment = replace(now, request=segment.request)
    finally:
        # Left alone it would read the next request of a kept connection.
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone
    job = segments.jobs.find(segment.id)
    # Now the caller has the id with a 202, and may ask again at any time.
    if job:
        job.wanted = True
    return segment


async def _wait(segments: SegmentService, job: Job, seconds: float, gone: asyncio.Future[Any]) -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    job.waiters += 1
    # The job ends in a thread of its own, and only this call may be made from there.
    job.done.add_done_callback(lambda _: loop.call_soon_threadsafe(done.set))
    waiting: asyncio.Future[Any] = asyncio.ensure_future(done.wait())
    try:
        await asyncio.wait({waiting, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        job.waiters -= 1
        # Two callers may wait for one segment: the first who hangs up does not take it from the other.
        if gone.done() and job.waiters == 0 and not job.wanted:
            segments.jobs.cancel(job)


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
