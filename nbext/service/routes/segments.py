"""Operations 1, 6, 7 and 8: run a segment, read it, export its rows. And explain, cancel and Arrow.

A caller of execute or of reading waits here, for as long as it asked to (long polling), until the segment has finished.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from nbext.core import operations
from nbext.core.constants import SEGMENT_ID_PATTERN
from nbext.core.operations import SegmentAnswer, SegmentRows
from nbext.errors import ValidationError
from nbext.service.container import Executor, FromContainer, Reader
from nbext.service.http.bodies import JsonBody, describe, has_version, json_answer, segment_answer
from nbext.service.http.openapi import RESULT, RUN, UNFINISHED, Explained, json_body, links_to, problems, text
from nbext.service.limits import Limits
from nbext.service.segments import results
from nbext.service.segments.jobs import Job
from nbext.service.segments.service import SegmentService
from nbext.service.segments.store import Segment, claim_of

router = APIRouter(tags=["segments"])

_SegmentId = Annotated[
    str, Path(alias="id", pattern=f"^{SEGMENT_ID_PATTERN}$", description="A segment's id, as execute returned it.")
]
_PageLimit = Annotated[int, Query(ge=1, le=results.MAX_PAGE, description="Rows of this page.")]
_PageOffset = Annotated[int, Query(ge=0, le=2**53, description="Rows before this page.")]
_Prefer = Annotated[
    str | None, Header(description="``wait=N`` (RFC 7240): seconds that the caller waits for the segment to finish.")
]
_IdempotencyKey = Annotated[
    str | None,
    # Execute's description says it in words: no schema can say that a key goes with one body.
    Header(alias=operations.IDEMPOTENCY_HEADER, include_in_schema=False),
]
_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,9})\"?(?:$|[,;\s])", re.IGNORECASE)
# How often a segment is looked at that runs in another service on the same folder (seconds).
_LOOK = 0.2
_READING = (
    "read_segment", "cancel_segment", "export_segment_as_json", "export_segment_as_csv", "export_segment_as_arrow",
)


@router.post(
    operations.EXECUTE, response_model=SegmentAnswer,
    responses={**links_to(*_READING), **problems(*RUN, "idempotency-key-reused")},
    openapi_extra=json_body("ExecuteRequest"),
)
async def execute_segment(
    request: Request, *, key: Executor, body: JsonBody, container: FromContainer,
    idempotency_key: _IdempotencyKey = None, prefer: _Prefer = None,
) -> Response:
    """Run a segment query; 200 when it has finished within the caller's wait, else 202 with where to ask.

    With an Idempotency-Key header (1 to 255 printable characters), the same key with the same body is one
    segment for 24 hours, and the answer to a repeat says Idempotency-Replayed: true; another body is 422.
    """
    claim = claim_of(idempotency_key, key, body)
    found = await container.wait_for(container.segments.execute, body, key, claim)
    wait = _patience(prefer, container.limits.wait_seconds, container.limits)
    segment = await _finished(container.segments, found.segment, wait, request)
    return segment_answer(segment, cached=found.cached, replayed=found.replayed, strict=True)


@router.post(
    operations.EXPLAIN, response_model=Explained, responses=problems(*RUN), openapi_extra=json_body("ExplainRequest"),
)
async def explain_segment(key: Executor, body: JsonBody, container: FromContainer) -> Response:
    """Show what a segment would do, without running it; ``"parts": true`` counts each condition alone."""
    parts = body.pop("parts", False)
    if not isinstance(parts, bool):
        raise ValidationError.of("/parts", "type", "parts is true or false.")
    return json_answer(await container.wait_for(container.segments.explain, body, parts))


@router.get(
    operations.SEGMENT, response_model=SegmentAnswer, responses={**UNFINISHED, **problems("not-found", "invalid")}
)
async def read_segment(
    request: Request, *, segment_id: _SegmentId, container: FromContainer, key: Reader, prefer: _Prefer = None
) -> Response:
    """Get a segment by its id; 202 while it runs, ``expired`` where its result has been deleted."""
    segment = await run_in_threadpool(container.segments.read, segment_id)
    segment = await _finished(container.segments, segment, _patience(prefer, 0, container.limits), request)
    return segment_answer(segment)


@router.delete(
    operations.SEGMENT, response_model=SegmentAnswer,
    responses={**UNFINISHED, **problems("not-found", "invalid", "finished")},
)
async def cancel_segment(segment_id: _SegmentId, container: FromContainer, key: Executor) -> Response:
    """Cancel a segment that has not finished; 202 where it runs in another service and will stop soon."""
    segment = await container.wait_for(container.segments.cancel, segment_id)
    return json_answer(describe(segment), 200 if segment.finished else 202)


@router.get(operations.SEGMENT_JSON, response_model=SegmentRows, responses=RESULT)
def export_segment_as_json(
    request: Request, *, segment_id: _SegmentId, container: FromContainer, key: Reader,
    limit: _PageLimit = results.DEFAULT_PAGE, offset: _PageOffset = 0,
) -> Response:
    """Export a segment's rows as JSON, page by page: ``page.next`` is the path of the next, null on the last."""
    segment, reader = container.segments.result(segment_id)
    page = results.page_of(segment, limit, offset)
    return _export(
        request, segment, f"json-{limit}-{offset}", "application/json", results.json_page(segment, reader, page),
        small=limit <= results.BATCH,
    )


@router.get(operations.SEGMENT_CSV, response_class=Response, responses={**text(operations.CSV_TYPE), **RESULT})
def export_segment_as_csv(request: Request, segment_id: _SegmentId, container: FromContainer, key: Reader) -> Response:
    """Export a segment's rows as CSV, UTF-8, always with a header line."""
    segment, reader = container.segments.result(segment_id)
    return _export(request, segment, "csv", operations.CSV_TYPE, results.csv(segment, reader))


@router.get(operations.SEGMENT_ARROW, response_class=Response, responses={**text(operations.ARROW_TYPE), **RESULT})
def export_segment_as_arrow(
    request: Request, segment_id: _SegmentId, container: FromContainer, key: Reader
) -> Response:
    """Export a segment's rows as an Arrow IPC stream; uint256 as text."""
    segment, reader = container.segments.result(segment_id)
    return _export(request, segment, "arrow", operations.ARROW_TYPE, results.arrow(segment, reader))


def _export(
    request: Request, segment: Segment, form: str, media_type: str, pieces: Iterator[bytes], *, small: bool = False
) -> Response:
    assert segment.result is not None, "the segment's result is open"
    # The bytes of a result never change, so its hash names every form of it.
    headers: dict[str, Any] = {"ETag": f'"{segment.result.sha256[:32]}-{form}"', "Cache-Control": "private, no-cache"}
    if has_version(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    if small or (segment.returned or 0) <= results.BATCH:
        # Each piece of a stream costs a turn of a thread and a write: a small result goes out at once.
        return Response(b"".join(pieces), media_type=media_type, headers=headers)
    return StreamingResponse(pieces, media_type=media_type, headers=headers)


def _patience(prefer: str | None, default: float, limits: Limits) -> float:
    """Return for how many seconds a caller waits (RFC 7240); any other preference is ignored, as the RFC says.

    >>> _patience("respond-async, wait=5", 20, Limits())
    5.0
    """
    found = _WAIT.search(prefer or "")
    if found:
        return min(float(found[1]), limits.longest_wait)
    return 0.0 if "respond-async" in (prefer or "").lower() else default


async def _finished(segments: SegmentService, segment: Segment, seconds: float, request: Request) -> Segment:
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
