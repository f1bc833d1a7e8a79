"""Numbers about segments and wallets, each answered when it is the key's turn: counts, funnels, holdings."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from nbext.core import wire
from nbext.service.container import Executor
from nbext.service.http.openapi import RUN, route
from nbext.service.routes.segments import in_turn
from nbext.service.segments import analysis

router = APIRouter(tags=["analysis"])


@route(router.post, wire.COUNTS, wire.Counted, *RUN)
async def count_segments(caller: Executor, body: wire.CountsRequest) -> Response:
    """Count the wallets that segments have in common, in one go: ``counts`` names the places of some of ``segments``.

    A place below zero leaves wallets out: ``[2, -1]`` are those of place 2 and not of place 0.

    Nothing is stored. What the segments share is read once.
    """
    wire.check_places(body)
    return await in_turn(caller, analysis.counts_of, body)


@route(router.post, wire.FUNNEL, wire.Funnel, *RUN)
async def count_conditions(caller: Executor, body: wire.ExecuteRequest) -> Response:
    """Count each condition of a segment alone, and together with those before it."""
    return await in_turn(caller, analysis.funnel_of, body)


@route(router.post, wire.HOLDINGS, wire.Holdings, *RUN)
async def read_holdings(caller: Executor, body: wire.HoldingsRequest) -> Response:
    """List what wallets hold, on one chain or on all of the data, now or at ``asOf``; at most 10,000 holdings."""
    return await in_turn(caller, analysis.wallet_holdings, body)
