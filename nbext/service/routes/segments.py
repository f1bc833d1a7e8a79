"""Operations 1, 6, 7 and 8: run a segment, read it, export its rows. And explain, cancel and Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from nbext.core.constants import SEGMENT_ID_PATTERN
from nbext.core.operations import (
    ARROW_TYPE,
    CSV_TYPE,
    EXECUTE,
    EXPLAIN,
    IDEMPOTENCY_HEADER,
    SEGMENT,
    SEGMENT_ARROW,
    SEGMENT_CSV,
    SEGMENT_JSON,
    SegmentAnswer,
    SegmentRows,
)
from nbext.errors import ValidationError
from nbext.service.container import Executor, FromContainer, Reader
from nbext.service.http.bodies import JsonBody
from nbext.service.http.models import Explained
from nbext.service.http.openapi import (
    BODY,
    EXECUTE_EXAMPLE,
    LANGUAGE,
    NOT_MODIFIED,
    RESULT,
    RUN,
    UNFINISHED,
    json_body,
    links_to,
    problems,
    text,
)
from nbext.service.http.responses import describe, has_version, json_answer, segment_answer
from nbext.service.segments import exports
from nbext.service.segments.long_poll import finished, patience
from nbext.service.segments.results import BATCH
from nbext.service.segments.store import Segment, claim_of

router = APIRouter(tags=["segments"])

_SegmentId = Annotated[
    str, Path(alias="id", pattern=f"^{SEGMENT_ID_PATTERN}$", description="A segment's id, as execute returned it.")
]
_PageLimit = Annotated[int, Query(ge=1, le=exports.MAX_PAGE, description="Rows of this page.")]
_PageOffset = Annotated[int, Query(ge=0, le=2**53, description="Rows before this page.")]
_Prefer = Annotated[
    str | None, Header(description="``wait=N`` (RFC 7240): seconds that the caller waits for the segment to finish.")
]
_IdempotencyKey = Annotated[
    str | None,
    # Execute's description says it in words: no schema can say that a key goes with one body.
    Header(alias=IDEMPOTENCY_HEADER, include_in_schema=False),
]
_READING = (
    "read_segment", "cancel_segment", "export_segment_as_json", "export_segment_as_csv", "export_segment_as_arrow",
)


@router.post(
    EXECUTE, response_model=SegmentAnswer,
    responses={**links_to(*_READING), **problems(*BODY, *LANGUAGE, *RUN, "idempotency-key-reused")},
    openapi_extra=json_body("ExecuteRequest", EXECUTE_EXAMPLE),
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
    wait = patience(prefer, container.limits.wait_seconds, container.limits)
    segment = await finished(container.segments, found.segment, wait, request)
    return segment_answer(segment, cached=found.cached, replayed=found.replayed, strict=True)


@router.post(
    EXPLAIN, response_model=Explained, responses=problems(*BODY, *LANGUAGE, *RUN),
    openapi_extra=json_body("ExplainRequest", {**EXECUTE_EXAMPLE, "parts": True}),
)
async def explain_segment(key: Executor, body: JsonBody, container: FromContainer) -> Response:
    """Show what a segment would do, without running it; ``"parts": true`` counts each condition alone."""
    parts = body.pop("parts", False)
    if not isinstance(parts, bool):
        raise ValidationError.of("/parts", "type", "parts is true or false.")
    return json_answer(await container.wait_for(container.segments.explain, body, parts))


@router.get(
    SEGMENT, response_model=SegmentAnswer,
    responses={**UNFINISHED, **problems("not-found", "invalid")},
)
async def read_segment(
    request: Request, *, segment_id: _SegmentId, container: FromContainer, key: Reader, prefer: _Prefer = None
) -> Response:
    """Get a segment by its id; 202 while it runs, ``expired`` where its result has been deleted."""
    segment = await run_in_threadpool(container.segments.read, segment_id)
    segment = await finished(container.segments, segment, patience(prefer, 0, container.limits), request)
    return segment_answer(segment)


@router.delete(
    SEGMENT, response_model=SegmentAnswer, responses={**UNFINISHED, **problems("not-found", "invalid", "finished")}
)
async def cancel_segment(segment_id: _SegmentId, container: FromContainer, key: Executor) -> Response:
    """Cancel a segment that has not finished; 202 where it runs in another service and will stop soon."""
    segment = await container.wait_for(container.segments.cancel, segment_id)
    return json_answer(describe(segment), 200 if segment.finished else 202)


@router.get(
    SEGMENT_JSON, response_model=SegmentRows, responses={**NOT_MODIFIED, **problems(*RESULT)}
)
def export_segment_as_json(
    request: Request, *, segment_id: _SegmentId, container: FromContainer, key: Reader,
    limit: _PageLimit = exports.DEFAULT_PAGE, offset: _PageOffset = 0,
) -> Response:
    """Export a segment's rows as JSON, page by page: ``page.next`` is the path of the next, null on the last."""
    segment, reader = container.segments.result(segment_id)
    page = exports.page_of(segment, limit, offset)
    return _export(
        request, segment, f"json-{limit}-{offset}", "application/json", exports.json_page(segment, reader, page),
        small=limit <= BATCH,
    )


@router.get(SEGMENT_CSV, response_class=Response, responses={**text(CSV_TYPE), **NOT_MODIFIED, **problems(*RESULT)})
def export_segment_as_csv(request: Request, segment_id: _SegmentId, container: FromContainer, key: Reader) -> Response:
    """Export a segment's rows as CSV, UTF-8, always with a header line."""
    segment, reader = container.segments.result(segment_id)
    return _export(request, segment, "csv", CSV_TYPE, exports.csv(segment, reader))


@router.get(SEGMENT_ARROW, response_class=Response, responses={**text(ARROW_TYPE), **NOT_MODIFIED, **problems(*RESULT)})
def export_segment_as_arrow(
    request: Request, segment_id: _SegmentId, container: FromContainer, key: Reader
) -> Response:
    """Export a segment's rows as an Arrow IPC stream; uint256 as text."""
    segment, reader = container.segments.result(segment_id)
    return _export(request, segment, "arrow", ARROW_TYPE, exports.arrow(segment, reader))


def _export(
    request: Request, segment: Segment, form: str, media_type: str, pieces: Iterator[bytes], *, small: bool = False
) -> Response:
    assert segment.result is not None, "the segment's result is open"
    # The bytes of a result never change, so its hash names every form of it.
    headers: dict[str, Any] = {"ETag": f'"{segment.result.sha256[:32]}-{form}"', "Cache-Control": "private, no-cache"}
    if has_version(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    if small or (segment.returned or 0) <= BATCH:
        # Each piece of a stream costs a turn of a thread and a write: a small result goes out at once.
        return Response(b"".join(pieces), media_type=media_type, headers=headers)
    return StreamingResponse(pieces, media_type=media_type, headers=headers)
