"""Numbers about segments and wallets, each answered when it is the key's turn: counts, funnels, holdings."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from nbext.core import wire
from nbext.service.container import Executor, FromContainer
from nbext.service.http.bodies import JsonBody, compared, holders
from nbext.service.http.openapi import RUN, Counted, Funnel, Holdings, json_body, problems
from nbext.service.routes.segments import in_turn
from nbext.service.segments import analysis

router = APIRouter(tags=["analysis"])


@router.post(
    wire.COUNTS,
    response_model=Counted,
    responses=problems(*RUN),
    openapi_extra=json_body("CountsRequest"),
)
async def count_segments(
    request: Request, key: Executor, body: JsonBody, container: FromContainer
) -> Response:
    """Count the wallets that segments have in common, in one go: ``counts`` names the places of some of ``segments``.

    Nothing is stored. What the segments share is read once.
    """
    return await in_turn(
        request, key, container, partial(analysis.count, container.segments, compared(body), key)
    )


@router.post(
    wire.FUNNEL,
    response_model=Funnel,
    responses=problems(*RUN),
    openapi_extra=json_body("ExecuteRequest"),
)
async def count_conditions(
    request: Request, key: Executor, body: JsonBody, container: FromContainer
) -> Response:
    """Count each condition of a segment alone, and together with those before it."""
    return await in_turn(
        request, key, container, partial(analysis.funnel, container.segments, body, key)
    )


@router.post(
    wire.HOLDINGS,
    response_model=Holdings,
    responses=problems(*RUN),
    openapi_extra=json_body("HoldingsRequest"),
)
async def read_holdings(
    request: Request, key: Executor, body: JsonBody, container: FromContainer
) -> Response:
    """List what wallets hold, on one chain or on all of the data, now or at ``asOf``; at most 10,000 holdings."""
    return await in_turn(
        request, key, container, partial(analysis.holdings, container.segments, holders(body), key)
    )
