"""Numbers about segments and wallets, each answered when it is the key's turn: counts, funnels, holdings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from nbext.core import wire
from nbext.engine.dataset import Cancel
from nbext.service.container import Executor, FromContainer
from nbext.service.http.bodies import body_of
from nbext.service.http.openapi import RUN, route
from nbext.service.routes.segments import in_turn
from nbext.service.segments import analysis

if TYPE_CHECKING:
    from nbext.engine.query.answers import Dataset

router = APIRouter(tags=["analysis"])


@route(router.post, wire.COUNTS, wire.Counted, *RUN)
async def count_segments(
    request: Request,
    key: Executor,
    body: Annotated[wire.CountsRequest, body_of(wire.CountsRequest)],
    container: FromContainer,
) -> Response:
    """Count the wallets that segments have in common, in one go: ``counts`` names the places of some of ``segments``.

    A place below zero leaves wallets out: ``[2, -1]`` are those of place 2 and not of place 0.

    Nothing is stored. What the segments share is read once.
    """
    wire.check_places(body)
    segments = container.segments

    def work(dataset: Dataset, cancel: Cancel) -> dict[str, Any]:
        bodies = [{**segment, "limit": 0} for segment in body["segments"]]
        plans = segments.plans(dataset, bodies, key, cancel)
        return analysis.counts_of(segments.language, plans, body, dataset=dataset, cancel=cancel)

    return await in_turn(request, key, container, work)


@route(router.post, wire.FUNNEL, wire.Funnel, *RUN)
async def count_conditions(
    request: Request,
    key: Executor,
    body: Annotated[wire.ExecuteRequest, body_of(wire.ExecuteRequest)],
    container: FromContainer,
) -> Response:
    """Count each condition of a segment alone, and together with those before it."""
    segments = container.segments

    def work(dataset: Dataset, cancel: Cancel) -> dict[str, Any]:
        plan = segments.plan(dataset, body, key, cancel)
        return analysis.funnel_of(segments.language, plan, dataset, cancel)

    return await in_turn(request, key, container, work)


@route(router.post, wire.HOLDINGS, wire.Holdings, *RUN)
async def read_holdings(
    request: Request,
    key: Executor,
    body: Annotated[wire.HoldingsRequest, body_of(wire.HoldingsRequest)],
    container: FromContainer,
) -> Response:
    """List what wallets hold, on one chain or on all of the data, now or at ``asOf``; at most 10,000 holdings."""

    def work(dataset: Dataset, cancel: Cancel) -> dict[str, Any]:
        plan_of = partial(container.segments.plan, dataset, key=key, cancel=cancel)
        return analysis.wallet_holdings(plan_of, body, dataset, cancel)

    return await in_turn(request, key, container, work)
