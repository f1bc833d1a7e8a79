"""Operations 2, 4 and 5: search collections, read a token's and a collection's metadata."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from nbext.core.chains import Chain, chain_of
from nbext.core.operations import NFT, SEARCH, TOKEN
from nbext.errors import ValidationError
from nbext.service.container import FromContainer, Reader
from nbext.service.http.bodies import JsonBody
from nbext.service.http.problems import Problem
from nbext.service.http.responses import json_answer, kept_answer
from nbext.service.routes.parameters import ChainText, CollectionText, TokenText
from nbext.service.routes.searching import search_of

router = APIRouter(tags=["catalog"])


@router.post(SEARCH)
async def search_collections(key: Reader, body: JsonBody, container: FromContainer) -> Response:
    """Search NFT collections (or, with ``type`` token, ERC20 tokens) by name, symbol or address."""
    asked = search_of(body)
    return json_answer(await container.threadpools.catalog(container.metadata.search, asked))


@router.get(TOKEN)
async def read_token(
    request: Request, chain: ChainText, address: TokenText, container: FromContainer, key: Reader
) -> Response:
    """Metadata of one ERC20 token; 404 where the data knows none, 409 where a symbol has several."""
    return kept_answer(request, await container.threadpools.catalog(container.metadata.token, _chain(chain), address))


@router.get(NFT)
async def read_collection(
    request: Request, chain: ChainText, address: CollectionText, container: FromContainer, key: Reader
) -> Response:
    """Metadata of one NFT collection; 404 where the data knows none, 409 where a symbol has several."""
    found = await container.threadpools.catalog(container.metadata.collection, _chain(chain), address)
    return kept_answer(request, found)


def _chain(text: str) -> Chain:
    # In a path a chain that nobody knows is a place that does not exist; in a body it is a field not allowed.
    try:
        return chain_of(text)
    except ValidationError as error:
        raise Problem("not-found", error.errors[0]["detail"]) from None
