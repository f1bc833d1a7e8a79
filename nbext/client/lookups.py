"""Metadata of contracts: many at once, a few at a time, in the order asked; and the search for them.

One bad address spoils one row, not the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nbext.client import frames, validate
from nbext.client.decode import Reading, Want, check_count
from nbext.client.service import Service
from nbext.core import wire as op
from nbext.core.addresses import normalised
from nbext.core.provenance import Provenance
from nbext.core.rules import one_of
from nbext.core.untrusted_text import shown, visible
from nbext.errors import (
    AmbiguousSymbol,
    ApiError,
    AuthError,
    NbextError,
    ProtocolError,
    RateLimited,
    ServerError,
    ValidationError,
)

if TYPE_CHECKING:
    import pandas as pd

POOL = 8
# Errors that concern one address. Anything else (the key, the network) would fail for the others as well.
_OF_ONE = (ValidationError, AmbiguousSymbol, ApiError, ProtocolError)
_OF_ALL = (AuthError, RateLimited, ServerError)
# More failed rows are only counted in the note.
_NAMED = 3
_STATUS = re.compile(r"\AThe service answered [0-9]+: ")
_KINDS = {"tokens": ("token", op.TOKEN, op.TOKEN_FIELDS), "nfts": ("nft", op.NFT, op.NFT_FIELDS)}


def _looked_up(
    service: Service, kind: str, path: str, chain: str, name: Any, *, strict: bool, refresh: bool
) -> Reading | NbextError:
    """Return the reading of an address's record; where only this address has none, its error."""
    try:
        address = (
            str(name).strip()
            if validate.is_symbol(name) and service.is_ours()
            else normalised(name)
        )
        target = path.format(chain=quote(chain, safe=""), address=quote(address, safe=""))
        call = service.call("GET", target, operation=kind, chain=chain, address=address)
        reading = service.read(
            replace(call, headers={"Cache-Control": "no-cache"} if refresh else {}), Want.RECORD
        )
        if not reading.records:
            raise ProtocolError(f"Expected {Want.RECORD.value}, but the answer is a table.")
    except _OF_ONE as error:
        if strict or isinstance(error, _OF_ALL):
            raise
        return error
    return reading


def metadata(
    service: Service,
    operation: str,
    chain: str,
    addresses: str | Iterable[Any],
    *,
    strict: bool,
    refresh: bool,
) -> pd.DataFrame:
    """Return the metadata of contracts, one row for each address; one that appears twice is asked for once."""
    names = _as_list(addresses)
    kind, path, types = _KINDS[operation]
    strict = strict or isinstance(addresses, str)
    look_up = partial(_looked_up, service, kind, path, chain, strict=strict, refresh=refresh)
    pool = ThreadPoolExecutor(POOL, thread_name_prefix="nbext-lookup")
    try:
        # Each in a copy of this context: the scope of the user's call ends them all when it is interrupted.
        futures = {
            name: pool.submit(copy_context().run, look_up, name) for name in dict.fromkeys(names)
        }
        found = {name: future.result() for name, future in futures.items()}
    finally:
        # Not waited for: an interrupt, or the first error, ends those under way through the scope.
        pool.shutdown(wait=False, cancel_futures=True)
    rows, known, configured = list[dict[str, Any]](), dict[str, str](), dict[str, str]()
    notes, failed = list[str](), list[str]()
    for name in names:
        one = found[name]
        if isinstance(one, Reading):
            rows += one.records or []
            known |= one.types
            configured |= one.types | one.configured
            notes += one.warnings
        else:
            error = f"{type(one).__name__}: {one}"
            rows.append({"chain": chain, "address": str(name), "error": error})
            failed.append(f"{visible(name)}: {visible(_STATUS.sub('', str(one)))}")
    # Our own service's records have all of our fields; a stranger's names mean what it means by them.
    if service.ours or any(row.keys() >= types.keys() for row in rows):
        table = frames.frame_as_of(rows, types)
        if service.ours and kind == "token":
            units = frames.typed_column([_in_units(row) for row in rows], "float64")
            table.insert(list(types).index("totalSupply"), "supply", units)
    else:
        table = frames.frame(rows, configured=configured)
    # Each look-up may bring the same warning: the reader wants it once.
    warnings = [*dict.fromkeys(notes), *frames.wide_columns(known, table.dtypes)]
    if failed:
        reasons = list(dict.fromkeys(failed))
        if len(reasons) > _NAMED:
            reasons[_NAMED:] = [f"and {len(reasons) - _NAMED:,} more; see the column error"]
        warnings.insert(0, f"{len(failed):,} of {len(names):,} rows failed: {' | '.join(reasons)}")
    return Provenance(
        operation=operation, service=service.transport.origin.url, chain=chain, warnings=warnings
    ).attach(table)


def _in_units(token: Mapping[str, Any]) -> float | None:
    """Return the supply of a token in its unit, where both are known."""
    supply, decimals = token.get("totalSupply"), token.get("decimals")
    return None if supply is None or decimals is None else int(supply) / 10**decimals


def _as_list(addresses: str | Iterable[Any]) -> list[Any]:
    """Return the addresses as a list: one, a list, a Series, anything that can be gone through."""
    if isinstance(addresses, str):
        return [addresses]
    try:
        found = list(addresses)
        # Each is looked up once, by itself as the key.
        hash(tuple(found))
    except TypeError:
        detail = f"Expected an address or a flat list of texts, got {shown(addresses)}."
        raise ValidationError.of("address", "type", detail) from None
    if not found:
        raise ValidationError.of("address", "length", "No address was given.")
    return found


def search(
    service: Service, term: str, chain: str, kind: str, *, limit: int, offset: int
) -> pd.DataFrame:
    """Return the collections that match a term, best first."""
    # Only ours is known to list what it has: a stranger is asked whose it is before an empty term is refused.
    text = validate.search_term_of(term, service.is_ours)
    body: dict[str, Any] = {
        "type": one_of(kind, op.SEARCH_TYPES, "/type"),
        "chain": chain,
        "searchTerm": text,
    }
    limit = validate.whole_number(limit, "/limit", 1, op.MAX_HITS)
    offset = validate.whole_number(offset, "/offset", 0, op.MAX_OFFSET)
    is_chosen = (limit, offset) != (op.DEFAULT_HITS, 0)
    # A stranger may refuse a body with fields that its interface does not have.
    if is_chosen and service.is_ours():
        body |= {"limit": limit, "offset": offset}
    call = service.call("POST", op.SEARCH, body, operation="search", chain=chain, term=text)
    reading = service.read(call)
    types = op.SEARCH_FIELDS if service.ours or not reading.rows else {}
    if service.ours:
        check_count(reading.rows or 0, reading.stated, None, is_page=True)
        table = frames.frame(reading.records or [], types)
    else:
        # A stranger's columns stay in its own order.
        call = replace(call, types=types)
        table = service.table(reading, call, limit=offset + limit, counts={})
        # Only a limit that somebody chose: a stranger does not know of ours.
        sent = len(table)
        if is_chosen and (offset or sent > limit):
            table = table.iloc[offset : offset + limit].reset_index(drop=True)
            after = f", after the first {offset:,}" if offset else ""
            reading.warnings.append(
                f"The service sent {sent:,} hits: {f'{len(table):,} are' if len(table) else 'none is'} here{after}."
            )
    matched = reading.stated.get("total")
    return Provenance(
        operation="search_nfts",
        service=service.transport.origin.url,
        warnings=reading.warnings,
        as_of=reading.as_of,
        term=text,
        matched=matched,
        returned=len(table),
        truncated=matched is not None and offset + len(table) < matched,
    ).attach(table)
