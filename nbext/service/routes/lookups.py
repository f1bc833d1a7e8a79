"""Operations 2, 4 and 5: search collections, read a token's and a collection's metadata."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from nbext.core.chains import Chain, chain_of
from nbext.core.operations import NFT, SEARCH, TOKEN
from nbext.errors import ValidationError
from nbext.service.container import FromHouse, Reader
from nbext.service.http.bodies import JsonBody
from nbext.service.http.problems import Problem
from nbext.service.http.responses import json_answer, kept_answer
from nbext.service.routes.parameters import ChainText, CollectionText, TokenText
from nbext.service.routes.searching import search_of

router = APIRouter(tags=["catalog"])


@router.post(SEARCH)
async def search_collections(key: Reader, body: JsonBody, house: FromHouse) -> Response:
    """Search NFT collections (or, with ``type`` token, ERC20 tokens) by name, symbol or address."""
    asked = search_of(body)
    return json_answer(await house.lanes.catalog(house.cards.search, asked))


@router.get(TOKEN)
async def read_token(
    request: Request, chain: ChainText, address: TokenText, house: FromHouse, key: Reader
) -> Response:
    """Metadata of one ERC20 token; 404 where the data knows none, 409 where a symbol has several."""
    return kept_answer(request, await house.lanes.catalog(house.cards.token, _chain(chain), address))


@router.get(NFT)
async def read_collection(
    request: Request, chain: ChainText, address: CollectionText, house: FromHouse, key: Reader
) -> Response:
    """Metadata of one NFT collection; 404 where the data knows none, 409 where a symbol has several."""
    return kept_answer(request, await house.lanes.catalog(house.cards.collection, _chain(chain), address))


def _chain(text: str) -> Chain:
    # In a path a chain that nobody knows is a place that does not exist; in a body it is a field not allowed.
    try:
        return chain_of(text)
    except ValidationError as error:
        raise Problem("not-found", error.errors[0]["detail"]) from None
