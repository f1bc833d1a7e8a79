"""Operations 2 to 5: search contracts, sign up for the newsletter, read a token's and a collection's metadata."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from nbext.core import wire
from nbext.core.chains import chain_of
from nbext.errors import ValidationError
from nbext.service import metadata
from nbext.service.bodies import cacheable_answer, json_answer, read_body
from nbext.service.container import Caller, Reader, Subscriber
from nbext.service.problems import Problem

router = APIRouter()

_Chain = Annotated[str, Path(pattern="^[A-Za-z0-9][A-Za-z0-9:_-]{0,63}$")]
_Contract = Annotated[str, Path(min_length=1, max_length=256)]


@router.post(wire.SEARCH)
async def search_collections(caller: Reader) -> Response:
    """Search NFT collections (or, with ``type`` token, ERC20 tokens) by name, symbol or address."""
    body = await read_body(caller, wire.SearchRequest)
    return json_answer(await caller.container.look_up(partial(metadata.search_page, body=body)))


@router.get(wire.TOKEN)
async def read_token(caller: Reader, chain: _Chain, address: _Contract) -> Response:
    """Metadata of one ERC20 token; 404 where the data has no such token, 409 where several have the symbol."""
    return await _looked_up(caller, chain, address, nft=False)


@router.get(wire.NFT)
async def read_collection(caller: Reader, chain: _Chain, address: _Contract) -> Response:
    """Metadata of one NFT collection; 404 where the data has no such collection, 409 where several have the symbol."""
    return await _looked_up(caller, chain, address, nft=True)


async def _looked_up(caller: Caller, chain: str, given: str, *, nft: bool) -> Response:
    # In a path an unknown chain is a place that does not exist (404); in a body it is a field that is wrong (422).
    try:
        on = chain_of(chain)
    except ValidationError as error:
        raise Problem("not-found", error.errors[0]["detail"]) from None
    work = partial(metadata.contract, chain=on, given=given, nft=nft)
    return cacheable_answer(caller, await caller.container.look_up(work))


@router.post(wire.SIGN_UP)
async def sign_up(caller: Subscriber) -> Response:
    """Record an address for the newsletter, once; a repeat gets the same answer. Nothing is sent from here."""
    body = await read_body(caller, wire.SignUpRequest)
    container = caller.container
    email = await container.wait_for(container.signups.record, body["email"], caller.key.id)
    caller.note("signup.record", None)
    return json_answer({"email": email, "status": "recorded", "delivered": False}, 202)
