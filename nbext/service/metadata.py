"""Tokens, collections and search hits, out of the engine's catalog. What the data does not know is null."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from typing import Any

from nbext.core.addresses import checksummed, normalised
from nbext.core.chains import DEFAULT_CHAIN, Chain, chain_of
from nbext.core.rules import ERC20, NFT_STANDARDS
from nbext.core.times import iso
from nbext.core.untrusted_text import quoted
from nbext.core.wire import (
    DEFAULT_HITS,
    MAX_HITS,
    NFT_FIELDS,
    SEARCH_FIELDS,
    TOKEN_FIELDS,
    SearchRequest,
)
from nbext.engine.dataset import ChainExtent, Contract
from nbext.engine.query.answers import Dataset
from nbext.language.describe import find_contract, unknown_contract
from nbext.language.lookup import notes_on
from nbext.service.problems import Problem

STANDARDS_OF = {
    "nft": NFT_STANDARDS,
    "erc721": ("ERC721",),
    "erc1155": ("ERC1155",),
    "token": (ERC20,),
}

# Whether NFTs are asked for -> the standards of what is none of these, and what it is and how it is asked for.
_ELSEWHERE = {
    False: (NFT_STANDARDS, "an NFT collection. Use: /v1/nfts/{0}/{1}, or %nft {0} {1}"),
    True: ((ERC20,), "a token. Use: /v1/tokens/{0}/{1}, or %token {0} {1}"),
}


def contract(dataset: Dataset, chain: Chain, given: str, *, nft: bool) -> dict[str, Any]:
    """Return the metadata of an ERC20 token, or of an NFT collection, named by address or symbol.

    Raises
    ------
    Problem
        404: there is no such contract; the detail says where to look instead.
    AmbiguousSymbol
        Several contracts have the symbol.
    """
    extent, catalog = _extent(dataset, chain), dataset.catalog
    # A symbol may be any text, so that only what begins like an address is one.
    text = normalised(given) if given.lower().startswith("0x") else given
    found = find_contract(catalog, chain, text, "address", nft=nft)
    if found is None:
        chains = [extent.chain_id for extent in dataset.about.chains]
        raise Problem("not-found", unknown_contract(catalog, chains, chain, text, nft=nft))
    others, place = _ELSEWHERE[nft]
    if found.standard in others:
        here = place.format(chain.name, found.address)
        raise Problem("not-found", f"{found.address} on {chain.name} is {here}")
    warnings = notes_on(found, chain, extent) if extent else []
    if found.burned > 0:
        # The same words for all: of many contracts they are printed once.
        warnings.append(
            f"{'ownerCount' if nft else 'holders'} counts the burn address 0x...dEaD, too; segments leave it out."
        )
    fields = NFT_FIELDS if nft else TOKEN_FIELDS
    return {**_known(fields, extent, chain, found), "warnings": warnings}


def search_page(dataset: Dataset, body: SearchRequest) -> dict[str, Any]:
    """Return one page of the contracts that fit a body's term, best first."""
    chain, kind = chain_of(body.get("chain", DEFAULT_CHAIN.name)), body.get("type", "nft")
    extent = _extent(dataset, chain)
    term = body["searchTerm"].strip()
    page = {"limit": body.get("limit", DEFAULT_HITS), "offset": body.get("offset", 0)}
    total, hits = dataset.catalog.search(chain.id, term, standards=STANDARDS_OF[kind], **page)
    items = [_known(SEARCH_FIELDS, extent, chain, contract, score) for contract, score in hits]
    return {
        "type": kind,
        "chain": chain.name,
        "searchTerm": term,
        "total": total,
        **page,
        "items": items,
        "warnings": [] if total or not term else [_instead(dataset, chain, term, kind)],
    }


def _instead(dataset: Dataset, chain: Chain, term: str, kind: str) -> str:
    """Return what there is where a search found nothing: names that are near, and hits of the other kind."""
    search = partial(dataset.catalog.search, chain.id, offset=0)
    bare, names = "".join(term.lower().split()), dict[str, str]()
    for contract, _ in search("", standards=STANDARDS_OF[kind], limit=MAX_HITS)[1]:
        for name in filter(None, (contract.symbol, contract.name)):
            # As much of a name as was typed: nobody types all of BoredApeYachtClub.
            names.setdefault("".join(name.lower().split())[: len(bare)], name)
    near = [names[one] for one in get_close_matches(bare, names, n=3, cutoff=0.7)]
    other, them = ("nft", "collections") if kind == "token" else ("token", "tokens")
    said = f"No hit for {quoted(term)} of the type {kind} on {chain.name}."
    if near:
        said += f" Near: {', '.join(map(quoted, near))}."
    if search(term, standards=STANDARDS_OF[other], limit=1)[0]:
        said += f' There are {them}: search with "type": "{other}" (%{other} search).'
    return said


def _extent(dataset: Dataset, chain: Chain) -> ChainExtent | None:
    """Return what the data has of a chain, None where that is metadata alone; 404 where it has nothing."""
    found = next((one for one in dataset.about.chains if one.chain_id == chain.id), None)
    if not found and not any(dataset.catalog.symbols(chain.id, nft=nft) for nft in (False, True)):
        names = ", ".join(chain_of(each.chain_id).name for each in dataset.about.chains)
        covered = f"It covers: {names or 'no chain'}."
        raise Problem("not-found", f"The data does not cover {chain.name}. {covered}")
    return found


def _known(
    fields: Iterable[str],
    extent: ChainExtent | None,
    chain: Chain,
    found: Contract,
    score: float | None = None,
) -> dict[str, Any]:
    """Return what is known of a contract, of all that operations answer with these fields."""
    supply = found.total_supply
    known = {
        "score": score,
        "chain": chain.name,
        "chainId": chain.id,
        "address": found.address,
        "checksumAddress": checksummed(found.address),
        "name": found.name,
        "symbol": found.symbol,
        "decimals": found.decimals,
        "tokenType": found.standard,
        # Text: 256 bits do not fit a JSON number.
        "totalSupply": None if supply is None else str(supply),
        "holders": found.holders,
        "ownerCount": found.holders,
        "contractDeployer": found.deployer,
        # A price is not in chain data. The remote service has the field: null says that it is unknown.
        "floorPrice": None,
        "imageUrl": found.logo,
        "logo": found.logo,
        "verified": found.verified,
        "possibleSpam": found.spam,
        "deployedBlockNumber": found.deployed_block,
        "transfers": found.transfers,
        "asOf": extent and {"block": extent.last_block, "timestamp": iso(extent.last_timestamp)},
    }
    return {name: known[name] for name in fields}
