"""The body of a search, read with every error at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbext.core.chains import DEFAULT_CHAIN, Chain, chain_of
from nbext.core.operations import MAX_SEARCH_TERM, SEARCH_TYPES, SearchType
from nbext.errors import FieldError, ValidationError, did_you_mean

FIELDS = ("type", "chain", "searchTerm", "limit", "offset")
MAX_HITS = 100
DEFAULT_HITS = 20
MAX_OFFSET = 1_000_000


@dataclass(frozen=True)
class Search:
    """What is looked for, where, and which page of the hits is wanted."""

    type: SearchType
    chain: Chain
    term: str
    limit: int
    offset: int


def search_of(body: Mapping[str, Any]) -> Search:
    """Return the search that a body asks for; ValidationError names every field that is not allowed."""
    errors: list[FieldError] = [
        _error(f"/{name}", "unknown-key", f"unknown field {name[:80]!r}.{did_you_mean(name, FIELDS)}")
        for name in body
        if name not in FIELDS
    ]
    errors += _type_errors(body.get("type", "nft")) + _term_errors(body.get("searchTerm"))
    errors += _number_errors("limit", body.get("limit", DEFAULT_HITS), 1, MAX_HITS)
    errors += _number_errors("offset", body.get("offset", 0), 0, MAX_OFFSET)
    chain = DEFAULT_CHAIN
    try:
        chain = chain_of(body.get("chain", DEFAULT_CHAIN.name), "/chain")
    except ValidationError as error:
        errors += error.errors
    if errors:
        raise ValidationError(errors)
    return Search(
        body.get("type", "nft"), chain, body["searchTerm"].strip(), body.get("limit", DEFAULT_HITS),
        body.get("offset", 0),
    )


def _error(pointer: str, code: str, detail: str) -> FieldError:
    return {"pointer": pointer, "code": code, "detail": detail}


def _type_errors(given: Any) -> list[FieldError]:
    if given in SEARCH_TYPES:
        return []
    near = did_you_mean(str(given), SEARCH_TYPES)
    return [_error("/type", "type", f"{str(given)[:80]!r} is not a type.{near} Allowed: {', '.join(SEARCH_TYPES)}.")]


def _term_errors(given: Any) -> list[FieldError]:
    if not isinstance(given, str) or not given.strip():
        return [_error("/searchTerm", "required", "a search needs a term: a name, a symbol or an address")]
    if len(given) > MAX_SEARCH_TERM:
        return [_error("/searchTerm", "length", f"a term has at most {MAX_SEARCH_TERM} characters")]
    if "\x00" in given:
        return [_error("/searchTerm", "character", "a term holds no NUL character")]
    return []


def _number_errors(name: str, given: Any, low: int, high: int) -> list[FieldError]:
    if isinstance(given, int) and not isinstance(given, bool) and low <= given <= high:
        return []
    return [_error(f"/{name}", "range", f"{name} is a whole number from {low} to {high:,}")]
