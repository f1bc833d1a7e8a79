"""Operations 2 to 5: search contracts, sign up for the newsletter, read a token's and a collection's metadata."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from nbext.core import wire
from nbext.core.chains import chain_of
from nbext.errors import ValidationError
from nbext.service.container import Caller, Reader, Subscriber
from nbext.service.http.bodies import cacheable_answer, json_answer
from nbext.service.http.openapi import NOT_MODIFIED, route
from nbext.service.http.problems import Problem
from nbext.service.metadata import Metadata

router = APIRouter(tags=["catalog"])

_Chain = Annotated[
    str,
    Path(
        pattern="^[A-Za-z0-9][A-Za-z0-9:_-]{0,63}$",
        examples=["ethereum"],
        description="A chain: its name, an alias, its EIP-155 id, or a CAIP-2 identifier such as eip155:1.",
    ),
]


def _contract(example: str) -> Any:
    return Path(
        min_length=1,
        max_length=256,
        examples=[example],
        description="A contract's address (0x and 40 hex digits; mixed case carries its EIP-55 checksum), or a symbol.",
        # What every caller may send without a 422: a mixed-case address has to have its checksum.
        json_schema_extra={
            "anyOf": [
                {"pattern": "^0x[0-9a-f]{40}$"},
                {"pattern": "^0x[0-9A-F]{40}$"},
                {"pattern": "^[^0].*$"},
            ]
        },
    )


_TokenName = Annotated[str, _contract("USDC")]
_CollectionName = Annotated[str, _contract("BAYC")]


@route(router.post, wire.SEARCH, wire.SearchAnswer, "not-found")
async def search_collections(caller: Reader, body: wire.SearchRequest) -> Response:
    """Search NFT collections (or, with ``type`` token, ERC20 tokens) by name, symbol or address."""
    found = await caller.container.look_up(lambda dataset: Metadata(dataset).search(body))
    return json_answer(found)


@route(
    router.get,
    wire.TOKEN,
    wire.TokenAnswer,
    "not-found",
    "ambiguous-symbol",
    responses=NOT_MODIFIED,
)
async def read_token(caller: Reader, chain: _Chain, address: _TokenName) -> Response:
    """Metadata of one ERC20 token; 404 where the data has no such token, 409 where several have the symbol."""
    return await _looked_up(caller, chain, address, nft=False)


@route(
    router.get,
    wire.NFT,
    wire.CollectionAnswer,
    "not-found",
    "ambiguous-symbol",
    responses=NOT_MODIFIED,
)
async def read_collection(caller: Reader, chain: _Chain, address: _CollectionName) -> Response:
    """Metadata of one NFT collection; 404 where the data has no such collection, 409 where several have the symbol."""
    return await _looked_up(caller, chain, address, nft=True)


async def _looked_up(caller: Caller, chain: str, given: str, *, nft: bool) -> Response:
    # In a path an unknown chain is a place that does not exist (404); in a body it is a field that is wrong (422).
    try:
        on = chain_of(chain)
    except ValidationError as error:
        raise Problem("not-found", error.errors[0]["detail"]) from None
    return cacheable_answer(
        caller,
        await caller.container.look_up(
            lambda dataset: Metadata(dataset).contract(on, given, nft=nft)
        ),
    )


@route(
    router.post,
    wire.SIGN_UP,
    wire.SignUpAnswer,
    "storage",
    "disk-full",
    "quota",
    status_code=202,
    tags=["newsletter"],
)
async def sign_up(caller: Subscriber, body: wire.SignUpRequest) -> Response:
    """Record an address for the newsletter, once; a repeat gets the same answer. Nothing is sent from here."""
    container = caller.container
    email = await container.wait_for(container.signups.record, body["email"], caller.key.id)
    caller.note("signup.record", None)
    return json_answer({"email": email, "status": "recorded", "delivered": False}, 202)
