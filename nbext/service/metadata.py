"""Tokens, collections and search hits, out of the engine's catalog. What the data does not know is null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbext.core.addresses import checksummed, normalised
from nbext.core.chains import DEFAULT_CHAIN, Chain, chain_of
from nbext.core.constants import ERC20, MAX_SEARCH_TERM, NFT_STANDARDS, is_whole
from nbext.core.times import iso
from nbext.core.untrusted_text import quoted, shown, visible
from nbext.core.wire import NFT_FIELDS, SEARCH_KEYS, SEARCH_TYPES, TOKEN_FIELDS, AsOf
from nbext.engine.dataset import Contract, Dataset, Found
from nbext.errors import MOST_ERRORS, FieldError, ValidationError, did_you_mean
from nbext.language.describe import find_contract, near_symbol
from nbext.service.http.problems import Problem

MAX_HITS = 100
DEFAULT_HITS = 20
MAX_OFFSET = 1_000_000
STANDARDS_OF = {
    "nft": NFT_STANDARDS,
    "erc721": ("ERC721",),
    "erc1155": ("ERC1155",),
    "token": (ERC20,),
}


class Metadata:
    """Looks contracts up in the data and describes them as the operations do."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def token(self, chain: Chain, given: str) -> dict[str, Any]:
        """Return the metadata of an ERC20 token, named by address or symbol.

        Raises
        ------
        Problem
            404: there is no such token; the detail says where to look instead.
        AmbiguousSymbol
            Several tokens have the symbol.
        """
        found = self._find(chain, given, nft=False)
        if found.standard in NFT_STANDARDS:
            raise Problem(
                "not-found",
                f"{found.address} on {chain.name} is an NFT collection. Read it under /v1/nfts.",
            )
        values = {**self._base(chain, found), "decimals": found.decimals, "holders": found.holders}
        return {name: values[name] for name in TOKEN_FIELDS}

    def collection(self, chain: Chain, given: str) -> dict[str, Any]:
        """Return the metadata of an NFT collection, named by address or symbol; errors as `token`."""
        found = self._find(chain, given, nft=True)
        if found.standard == ERC20:
            raise Problem(
                "not-found",
                f"{found.address} on {chain.name} is an ERC20 token. Read it under /v1/tokens.",
            )
        values = {
            **self._base(chain, found),
            "tokenType": found.standard,
            "ownerCount": found.holders,
            "contractDeployer": found.deployer,
            # A price is not in chain data. The remote service has the field: null says that it is unknown.
            "floorPrice": None,
        }
        return {name: values[name] for name in NFT_FIELDS}

    def search(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return one page of the contracts that fit a body's term, best first.

        Raises
        ------
        ValidationError
            The body is not a search; it names every field that is not valid.
        """
        wanted = {"type": "nft", "limit": DEFAULT_HITS, "offset": 0, **body}
        chain = _checked(wanted)
        self._check_chain(chain)
        term, page = (
            wanted["searchTerm"].strip(),
            {"limit": wanted["limit"], "offset": wanted["offset"]},
        )
        total, hits = self._dataset.catalog.search(
            chain.id, term, standards=STANDARDS_OF[wanted["type"]], **page
        )
        items = [_hit(chain, hit) for hit in hits]
        return {
            "type": wanted["type"],
            "chain": chain.name,
            "searchTerm": term,
            "total": total,
            **page,
            "items": items,
        }

    def as_of(self, chain: Chain) -> AsOf | None:
        """Return the last block of a chain's data, or None where the chain is not covered."""
        for extent in self._dataset.about.chains:
            if extent.chain_id == chain.id:
                return {"block": extent.last_block, "timestamp": iso(extent.last_timestamp)}
        return None

    def _find(self, chain: Chain, given: str, *, nft: bool) -> Contract:
        self._check_chain(chain)
        catalog = self._dataset.catalog
        # A symbol may be any text, so that only what begins like an address is one.
        is_address = given.lower().startswith("0x")
        text = normalised(given) if is_address else given
        found = find_contract(catalog, chain, text, "address", nft=nft)
        if found is None and is_address:
            raise Problem("not-found", f"The data has no contract {text} on {chain.name}.")
        if found is None:
            near = near_symbol(catalog, chain, text, nft=nft)
            raise Problem(
                "not-found", f"The data has no symbol {quoted(text)} on {chain.name}.{near}"
            )
        return found

    def _check_chain(self, chain: Chain) -> None:
        known = [extent.chain_id for extent in self._dataset.about.chains]
        # Metadata may be all that was ingested of a chain: look-ups need no transfers.
        if chain.id not in known and not any(
            self._dataset.catalog.symbols(chain.id, nft=nft) for nft in (False, True)
        ):
            names = ", ".join(chain_of(chain_id).name for chain_id in known) or "no chain"
            raise Problem("not-found", f"The data does not cover {chain.name}. It covers: {names}.")

    def _base(self, chain: Chain, found: Contract) -> dict[str, Any]:
        return {
            "chain": chain.name,
            "chainId": chain.id,
            "address": found.address,
            "checksumAddress": checksummed(found.address),
            "name": found.name,
            "symbol": found.symbol,
            # Text: 256 bits do not fit a JSON number.
            "totalSupply": _digits(found.total_supply),
            "logo": found.logo,
            "verified": found.verified,
            "possibleSpam": found.spam,
            "deployedBlockNumber": found.deployed_block,
            "transfers": found.transfers,
            "asOf": self.as_of(chain),
        }


def _digits(number: int | None) -> str | None:
    return None if number is None else str(number)


def _hit(chain: Chain, hit: Found) -> dict[str, Any]:
    found = hit.contract
    return {
        "chain": chain.name,
        "chainId": chain.id,
        "address": found.address,
        "name": found.name,
        "symbol": found.symbol,
        "tokenType": found.standard,
        "totalSupply": _digits(found.total_supply),
        "ownerCount": found.holders,
        "verified": found.verified,
        "possibleSpam": found.spam,
        "imageUrl": found.logo,
        "score": hit.score,
    }


def _checked(body: Mapping[str, Any]) -> Chain:
    """Return the chain of a search whose fields are all valid."""
    unknown = [name for name in body if name not in SEARCH_KEYS]
    # The first are shown and the others counted: a body may have a hundred thousand, of any length.
    errors: list[FieldError] = [
        _error(
            f"/{visible(name, 80)}",
            "unknown-key",
            f"Unknown field {quoted(name)}.{did_you_mean(name[:80], SEARCH_KEYS)}",
        )
        for name in unknown[:MOST_ERRORS]
    ]
    # All faults at once: a caller corrects them in one round.
    errors += _type_errors(body["type"]) + _term_errors(body.get("searchTerm"))
    errors += _number_errors("limit", body["limit"], 1, MAX_HITS)
    errors += _number_errors("offset", body["offset"], 0, MAX_OFFSET)
    chain = DEFAULT_CHAIN
    try:
        chain = chain_of(body.get("chain", DEFAULT_CHAIN.name), "/chain")
    except ValidationError as error:
        errors += error.errors
    if errors:
        raise ValidationError(errors, len(unknown[MOST_ERRORS:]))
    return chain


def _error(pointer: str, code: str, detail: str) -> FieldError:
    return {"pointer": pointer, "code": code, "detail": detail}


def _type_errors(given: Any) -> list[FieldError]:
    if given in SEARCH_TYPES:
        return []
    hint = did_you_mean(given[:80], SEARCH_TYPES) if isinstance(given, str) else ""
    detail = f"{shown(given)} is not a type of contract.{hint} Allowed: {', '.join(SEARCH_TYPES)}."
    return [_error("/type", "type", detail)]


def _term_errors(given: Any) -> list[FieldError]:
    if not isinstance(given, str):
        detail = 'A search needs a term: a name, a symbol or an address, or "" for all by holders.'
        return [_error("/searchTerm", "required", detail)]
    if len(given) > MAX_SEARCH_TERM:
        detail = (
            f"A search term has at most {MAX_SEARCH_TERM} characters; this one has {len(given):,}."
        )
        return [_error("/searchTerm", "length", detail)]
    if "\x00" in given:
        return [_error("/searchTerm", "character", "A search term cannot have a NUL character.")]
    return []


def _number_errors(name: str, given: Any, low: int, high: int) -> list[FieldError]:
    if is_whole(given) and low <= given <= high:
        return []
    return [_error(f"/{name}", "range", f"{name} is a whole number from {low} to {high:,}.")]
