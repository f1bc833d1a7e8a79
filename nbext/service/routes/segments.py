"""Operations 1, 6, 7 and 8: run a segment, read it, export its rows. And cancel, Arrow, lists, numbers about segments.

A caller of execute or of reading waits here, for as long as it asked to (long polling), until the segment has finished.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, BeforeValidator, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from nbext.core import wire
from nbext.core.addresses import LIST_ID_PATTERN, WIDTH
from nbext.core.rules import MAX_LIMIT, SEGMENT_ID_PATTERN
from nbext.core.strict_json import canonical_json
from nbext.core.uint256 import whole_of
from nbext.engine.dataset import Cancel
from nbext.engine.query.set_tree import WalletList
from nbext.errors import ValidationError
from nbext.service.bodies import json_answer, read_body, receive, segment_answer, version_of
from nbext.service.container import Caller, Executor, Reader
from nbext.service.limits import Limits
from nbext.service.problems import Problem
from nbext.service.scheduling import SegmentJob
from nbext.service.segments import analysis, results
from nbext.service.segments.analysis import Planner
from nbext.service.segments.store import SegmentRecord

router = APIRouter()

_SegmentId = Annotated[
    str,
    Path(
        alias="id",
        pattern=f"^{SEGMENT_ID_PATTERN}$",
        description="A segment's id, as execute returned it.",
    ),
]
_ListId = Annotated[
    str, Path(alias="id", pattern=f"^{LIST_ID_PATTERN}$", description="A list's id: its hash.")
]


# Pydantic would take 1_0 and 10.0 for 10. An older FastAPI has the defaults validated, too, which are no texts. It
# stands behind the bounds, which the OpenAPI document would lose otherwise.
_DIGITS = BeforeValidator(lambda given: whole_of(str(given)))


class _Page(BaseModel):
    limit: Annotated[
        int, Field(ge=1, le=results.MAX_PAGE, description="Rows of this page."), _DIGITS
    ] = results.DEFAULT_PAGE
    offset: Annotated[int, Field(ge=0, le=2**53, description="Rows before this page."), _DIGITS] = 0


_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,9})\"?(?:$|[,;\s])", re.IGNORECASE)
# How often a segment is looked at that runs in another service on the same folder (seconds).
_LOOK = 0.2


@router.post(wire.EXECUTE)
async def execute_segment(caller: Executor) -> Response:
    """Run a segment query; 200 when it has finished within the caller's wait, else 202 with where to ask.

    A call that may have been carried out can be sent again with its Idempotency-Key: it finds the segment of the first.
    """
    return await _executed(caller, await read_body(caller, wire.ExecuteRequest), Planner.plan)


@router.post(wire.PROFILE)
async def profile_segment(caller: Executor) -> Response:
    """Say what the wallets of a segment hold more than others do, and how old and active they are, in ``profile``.

    It is a segment that only counts, with an id of its own: 202 while it runs, and then read by its id. A call may be
    sent again with its Idempotency-Key, as of execute.
    """
    body = await read_body(caller, wire.ProfileRequest)
    base, least = body.pop("base", None), body.pop("least", wire.LEAST)
    profile = {"base": base and {**base, "limit": 0}, "least": least}
    return await _executed(caller, {**body, "limit": 0, "profile": profile})


@router.post(wire.CHANGES)
async def change_segment(caller: Executor) -> Response:
    """List the wallets that match a segment now or did at ``since``, with what they held then and hold now.

    It is a segment with an id and rows of its own: 202 while it runs, and then read and exported by its id. Its columns
    are ``then_...`` and ``now_...``; ``then_matches`` and ``now_matches`` are 1 where the wallet is in the segment.
    A call may be sent again with its Idempotency-Key, as of execute.
    """
    body = await read_body(caller, wire.ChangesRequest)
    for name in ("asOf", "columns", "orderBy"):
        if isinstance(body.get("filters"), dict) and name in body["filters"]:
            raise ValidationError.of(
                f"/filters/{name}", "exclusive", f"Changes set {name} themselves. Leave it out."
            )
    return await _executed(caller, {**body, "limit": MAX_LIMIT})


async def _executed(
    caller: Caller,
    asked: Mapping[str, Any],
    # Of execute's own body the language refuses what it does not know; that of the others has more.
    plan_of: Callable[[Planner, Mapping[str, Any]], Any] = Planner.requested,
) -> Response:
    """Run what is asked as a segment; with the Idempotency-Key and body of a call before it is the segment of that."""
    key, container, segments = caller.key, caller.container, caller.segments
    claim, found, known = None, None, None
    if (name := caller.request.headers.get(wire.IDEMPOTENCY_HEADER)) is not None:
        claim, found = await container.wait_for(segments.repeated, name, key, asked)
    if found is None:
        with container.generations.acquire() as data:
            # One that is planned already takes no turn: half of the time of a segment that is stored. A private key's
            # answers are its own, and others' plans are not looked at for it.
            if caller.is_brief and not key.private:
                known = segments.planned.get(data, {}).get(canonical_json(asked))
            if (
                known
                and (kept := known.segment)
                and not claim
                and await container.wait_for(segments.is_current, kept.result)
            ):
                caller.note("segment.execute", kept.id)
                return json_answer(known.answer)
            plan = (
                known.plan
                if known
                else await container.planning.run(
                    key.id, lambda cancel: plan_of(segments.planner(data, key, cancel), asked)
                )
            )
            found = await container.wait_for(segments.execute, data, plan, asked, key, claim)
    # Its result was there, and not only made by a call before this one.
    cached = found.segment.status == "completed" and not found.replayed
    # From here on it only waits: the memory that its body took to be read is free again.
    caller.held.close()
    caller.note("segment.execute", found.segment.id)
    segment = await _finished(caller, found.segment, container.limits.wait_seconds, found.job)
    if not segment.finished or (claim and cached):
        # What was entered in haste, and by no result since, is to outlive a power cut: its id, or the claim on it.
        await container.wait_for(segments.store.touch, segment.id)
    # The caller's own words, not those of whoever asked for the same segment first.
    segment = found.in_words(segment)
    answer = segment_answer(caller, segment, cached=cached, replayed=found.replayed, strict=True)
    if known and cached:
        known.answer, known.segment = bytes(answer.body), segment
    return answer


@router.post(wire.EXPLAIN)
async def explain_segment(caller: Executor) -> Response:
    """Show what a segment would do, without running it; ``"parts": true`` counts each condition alone."""
    return json_answer(await _in_turn(caller, analysis.explanation_of, wire.ExplainRequest))


@router.post(wire.COUNTS)
async def count_segments(caller: Executor) -> Response:
    """Count the wallets that segments have in common, in one go: ``counts`` names the places of some of ``segments``.

    A place below zero leaves wallets out: ``[2, -1]`` are those of place 2 and not of place 0.

    Nothing is stored. What the segments share is read once.
    """
    return json_answer(await _in_turn(caller, analysis.counts_of, wire.CountsRequest))


@router.post(wire.FUNNEL)
async def count_conditions(caller: Executor) -> Response:
    """Count each condition of a segment alone, and together with those before it."""
    return json_answer(await _in_turn(caller, analysis.funnel_of, wire.ExecuteRequest))


@router.post(wire.HOLDINGS)
async def read_holdings(caller: Executor) -> Response:
    """List what wallets hold, on one chain or on all of the data, now or at ``asOf``, as an Arrow IPC stream.

    At most 500,000 holdings. The metadata of the schema has ``asOf``, ``chains`` and ``warnings``, as JSON under
    ``nbext``. More wallets than a request can name are a stored list (``/lists``), whose id takes their place.
    """
    holdings = await _in_turn(caller, analysis.wallet_holdings, wire.HoldingsRequest)
    return Response(holdings, media_type=wire.ARROW_TYPE)


async def _in_turn(caller: Caller, work: Callable[[Planner, Any], Any], shape: Any) -> Any:
    """Return what work makes of a body of a shape, when it is the key's turn; it ends when the caller hangs up."""
    body, key, container = await read_body(caller, shape), caller.key, caller.container
    caller.held.callback(caller.segments.scheduler.freed.set)

    def on_data(cancel: Cancel) -> Any:
        with container.generations.acquire() as dataset:
            return work(caller.segments.planner(dataset, key, cancel), body)

    async with _while_there(caller):
        return await container.explaining.run(key.id, on_data)


@router.get(wire.SEGMENT)
async def read_segment(caller: Reader, segment_id: _SegmentId) -> Response:
    """Get a segment by its id; 202 while it runs, ``expired`` where its result has been deleted."""
    segment = await run_in_threadpool(caller.segments.read, segment_id, caller.key)
    segment = await _finished(caller, segment, 0)
    # Its preview shows rows. A key that reads its own leaves no note of each look.
    if segment.preview and segment.key_id != caller.key.id:
        caller.note("segment.read", segment.id)
    return segment_answer(caller, segment)


@router.delete(wire.SEGMENT)
async def cancel_segment(
    caller: Executor,
    segment_id: _SegmentId,
    result: Annotated[
        Literal["delete"] | None, Query(description="``delete``: its result, when it has one.")
    ] = None,
) -> Response:
    """Cancel a segment that has not finished; 202 where it runs in another service and will stop soon.

    With ``?result=delete`` the result of a finished one is deleted. Only the key that made the segment may do either,
    or one with the scope admin.
    """
    action = "segment.delete" if result else "segment.cancel"
    try:
        segment = await caller.container.wait_for(
            caller.segments.end, segment_id, caller.key, result is not None
        )
    except Problem as problem:
        if problem.code == "not-yours":
            caller.note(f"{action}.refused", segment_id)
        raise
    caller.note(action, segment.id)
    return segment_answer(caller, segment)


@router.get(wire.SEGMENT_JSON)
def export_segment_as_json(
    caller: Reader, segment_id: _SegmentId, page: Annotated[_Page, Query()]
) -> Response:
    """Export a segment's rows as JSON, page by page: ``page.next`` is the path of the next, null on the last."""
    path = caller.link(wire.SEGMENT_JSON.format(id=segment_id))
    asked = dict(page)
    write = partial(results.json_page, path=path, **asked)
    form = f"json-{page.limit}-{page.offset}"
    return _export(caller, segment_id, write, form, "application/json", **asked)


@router.get(wire.SEGMENT_CSV)
def export_segment_as_csv(caller: Reader, segment_id: _SegmentId) -> Response:
    """Export a segment's rows as CSV, UTF-8, always with a header line."""
    return _export(caller, segment_id, results.csv, "csv", wire.CSV_TYPE)


@router.get(wire.SEGMENT_ARROW)
def export_segment_as_arrow(caller: Reader, segment_id: _SegmentId) -> Response:
    """Export a segment's rows as an Arrow IPC stream; exact amounts as decimals."""
    return _export(caller, segment_id, results.arrow, "arrow", wire.ARROW_TYPE)


@router.post(wire.LISTS)
async def store_list(caller: Executor) -> Response:
    """Store a list of wallets, for ``{"wallet": {"list": ID}}``: the 20 bytes of each address, in any order.

    The id is the hash of the addresses, so that sending them again changes nothing. A list is stored for as long as
    results are, after its last use.
    """
    container = caller.container
    with container.receiving.taken(caller.key.id), container.segments.lists.room() as part:
        with part.open("wb") as file:
            # Into the system's cache: a write waits for the disk less long than a turn of another thread takes.
            most = container.limits.list_wallets * WIDTH
            await receive(caller, file.write, wire.ADDRESSES_TYPE, most, container.limits.slowest)
        stored = await container.wait_for(container.segments.lists.store, part, caller.key)
    caller.note("list.store", stored.id)
    there = {"Location": caller.link(wire.LIST.format(id=stored.id))}
    return json_answer(_said_of(stored), 201, there)


@router.get(wire.LIST)
async def read_list(caller: Reader, list_id: _ListId) -> Response:
    """Say whether a list of wallets is stored, and how many are in it; this counts as using it."""
    found = await caller.container.wait_for(caller.segments.lists.find, list_id, caller.key)
    if found is None:
        raise Problem("not-found", "There is no list with that id.")
    return json_answer(_said_of(found))


def _said_of(stored: WalletList) -> wire.StoredList:
    return {"id": stored.id, "wallets": stored.wallets}


def _export(
    caller: Caller,
    segment_id: str,
    write: Callable[[SegmentRecord, Any], Iterator[bytes]],
    form: str,
    media_type: str,
    *,
    limit: int = MAX_LIMIT,
    offset: int = 0,
) -> Response:
    """Answer with a result's rows, as they are written in a form; all of them, or of one page."""
    segment, reader = caller.segments.result(segment_id, caller.key)
    caller.note("segment.export", segment.id)
    assert segment.result is not None, "the segment's result is open"
    pieces = write(segment, reader)
    rows = max(0, min(limit, (segment.returned or 0) - offset))
    # The bytes of a result never change, so its hash names every form of it.
    headers, unchanged = version_of(caller, f"{segment.result.sha256[:32]}-{form}")
    if unchanged:
        return unchanged
    caller.request.scope["nbext.rows"] = rows
    if rows * len(segment.facts["columns"]) <= results.SMALL:
        # Each piece of a stream costs a turn of a thread and a write: a small result goes out at once.
        return Response(b"".join(pieces), media_type=media_type, headers=headers)
    # There a body ends where its connection does, and a part of one looks whole.
    if caller.request.scope["http_version"] == "1.0":
        detail = "HTTP/1.0 does not say where an export ends. Use HTTP/1.1; for nginx, write proxy_http_version 1.1."
        raise Problem("not-http", detail)
    # Until its last byte is sent; a small one needs no counting.
    caller.held.enter_context(caller.container.exports.taken(caller.key.id))
    return StreamingResponse(pieces, media_type=media_type, headers=headers)


def _patience(prefer: str, default: float, limits: Limits) -> float:
    """Return for how many seconds a caller waits (RFC 7240); any other preference is ignored, as the RFC says.

    >>> _patience("respond-async, wait=5", 20, Limits())
    5.0
    """
    found = _WAIT.search(prefer)
    if found:
        return min(float(found[1]), limits.longest_wait)
    return 0.0 if "respond-async" in prefer.lower() else default


async def _finished(
    caller: Caller, segment: SegmentRecord, seconds: float, job: SegmentJob | None = None
) -> SegmentRecord:
    """Return the segment when it has finished, or as it is when the caller has waited: by its Prefer, or ``seconds``.

    ``job`` runs it, if known. A segment that nobody waits for any more, and whose id nobody has, is cancelled.

    Raises
    ------
    ClientDisconnect
        The caller hung up meanwhile.
    """
    if segment.finished:
        return segment
    segments = caller.segments
    prefer = caller.request.headers.get("prefer", "")
    until = time.monotonic() + _patience(prefer, seconds, caller.container.limits)
    # A notebook whose cell was interrupted hangs up: its segment is not worth a worker for another half minute.
    async with _while_there(caller):
        while (
            not segment.finished
            and (left := until - time.monotonic()) > 0
            and not segments.scheduler.stopping
        ):
            job = job or segments.scheduler.jobs.get(segment.id)
            if job:
                await _wait(job, left)
            else:
                # Another service on the same folder runs it: only the registry shows when it ends.
                await asyncio.sleep(min(left, _LOOK))
            # A job that completed it knows; others look, in line with all who only read.
            now = job.ended if job else None
            # A run of before, which was deleted since, is not this one.
            if now is None or now.created_at < segment.created_at:
                now = await run_in_threadpool(segments.read, segment.id, None)
            job = None
            segment = now
    # Now the caller has the id with a 202, and may ask again at any time.
    if job := segments.scheduler.jobs.get(segment.id):
        job.waiters += 1
    return segment


async def _wait(job: SegmentJob, seconds: float) -> None:
    job.waiters += 1
    try:
        # Where this wait is cancelled, the job's own future is not.
        await asyncio.wait({asyncio.wrap_future(job.done)}, timeout=seconds)
    except asyncio.CancelledError:
        # Two callers may wait for one segment: the first who hangs up does not take it from the other.
        if job.waiters == 1:
            job.cancel.asked.set()
        raise
    finally:
        job.waiters -= 1


@contextlib.asynccontextmanager
async def _while_there(caller: Caller) -> AsyncIterator[None]:
    """Cancel what is awaited when the caller hangs up; then this raises ClientDisconnect."""
    try:
        async with asyncio.timeout(None) as patience:
            watch = asyncio.ensure_future(_hung_up(caller.request, patience))
            try:
                yield
            finally:
                # Left alone it would read the next request of a kept connection.
                watch.cancel()
    except TimeoutError:
        if patience.expired():
            raise ClientDisconnect from None
        raise


async def _hung_up(request: Request, patience: asyncio.Timeout) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    patience.reschedule(0)
