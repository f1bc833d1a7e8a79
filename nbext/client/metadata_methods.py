"""The client's methods about contracts: the metadata of tokens and NFT collections, and the search for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nbext.client import as_of, frames, lookups, validate
from nbext.client.downloads import Downloads
from nbext.client.error_boundary import public
from nbext.client.http.transport import Scope
from nbext.client.provenance import of_lookup
from nbext.client.remote import row_counts
from nbext.client.remote.reading import Want, read
from nbext.client.service import Caller
from nbext.core import operations as op
from nbext.errors import NbextError

if TYPE_CHECKING:
    import pandas as pd


class MetadataMethods(Caller):
    """Contracts: three of the eight operations."""

    @public
    def search_nfts(
        self,
        term: str,
        chain: str | None = None,
        *,
        type: str = "nft",  # noqa: A002  # the interface's own name
        limit: int = 20,
        offset: int = 0,
    ) -> pd.DataFrame:
        """Return the collections that fit a term, best first.

        Parameters
        ----------
        term
            1 to 256 characters, taken literally.
        chain
            None means the setting ``chain``.
        type
            ``nft`` (any collection), ``erc721``, ``erc1155`` or ``token``.
        limit, offset
            Which of the hits, on our own service; a remote sends as many as it does.

        Returns
        -------
        pandas.DataFrame
            Columns of `nbext.core.operations.SEARCH_FIELDS`, and any others that came. No hit: no rows.

        Source
        ------
        POST /v1/search
        """
        kind, text = validate.search_type_of(type), validate.search_term_of(term)
        validate.whole_number(limit, "/limit", 1, 100)
        validate.whole_number(offset, "/offset", 0, 2**31)
        body: dict[str, Any] = {"type": kind, "chain": self._chain(chain), "searchTerm": text}
        if (limit, offset) != (20, 0) and self.is_ours:
            body |= {"limit": int(limit), "offset": int(offset)}
        call = self._call("POST", op.SEARCH, body)
        reading = Downloads(self._transport, self._overrides).get(call)
        types = {**op.SEARCH_FIELDS, **reading.types} if _is_ours_search(reading.document) else reading.types
        row_counts.check(reading.rows or 0, reading.stated, None, is_page=True)
        if reading.table is not None:
            table = frames.arrow_frame(reading.table, types)
        else:
            table = frames.frame(reading.records or [], types or ({} if reading.records else op.SEARCH_FIELDS))
        of_lookup(table, "search_nfts", self.base_url, reading.warnings, term=text, matched=reading.stated.get("total"))
        return table

    @public
    def tokens(
        self, chain: str, addresses: str | Iterable[str], *, strict: bool = False, refresh: bool = False
    ) -> pd.DataFrame:
        """Return the metadata of ERC20 tokens, one row for each address, in the order asked.

        Parameters
        ----------
        chain
            Its name, alias or id.
        addresses
            One address or many. Our own service also takes symbols.
        strict
            Raise for the first address that cannot be answered. Otherwise its row holds what was asked for
            and an ``error``; the column is there only when some row has one.
        refresh
            Ask the service even where an earlier answer is still good.

        Returns
        -------
        pandas.DataFrame
            Columns of `nbext.core.operations.TOKEN_FIELDS`, and any others that came. Unknown is missing.
            ``asOf`` comes as ``asOfBlock`` Int64 and ``asOfTimestamp`` str, ISO-8601 in UTC.

        Raises
        ------
        ValidationError, NotFound, AmbiguousSymbol
            Where one address was asked for, or with ``strict``.

        Source
        ------
        GET /v1/tokens/{chain}/{address}, eight at a time
        """
        return self._look_up("tokens", chain, addresses, strict=strict, refresh=refresh)

    @public
    def nfts(
        self, chain: str, addresses: str | Iterable[str], *, strict: bool = False, refresh: bool = False
    ) -> pd.DataFrame:
        """Return the metadata of NFT collections, one row for each address, in the order asked.

        As `tokens`; columns of `nbext.core.operations.NFT_FIELDS`.

        Source
        ------
        GET /v1/nfts/{chain}/{address}, eight at a time
        """
        return self._look_up("nfts", chain, addresses, strict=strict, refresh=refresh)

    def _look_up(self, what: str, chain: Any, addresses: Any, *, strict: bool, refresh: bool) -> pd.DataFrame:
        path, types = {"tokens": (op.TOKEN, op.TOKEN_FIELDS), "nfts": (op.NFT, op.NFT_FIELDS)}[what]
        names, chain = lookups.wanted(addresses), self._chain(chain)
        headers = {"Cache-Control": "no-cache"} if refresh else {}
        warnings: dict[str, None] = {}

        def ask(name: Any, scope: Scope) -> dict[str, Any]:
            target = path.format(chain=quote(chain, safe=""), address=quote(self._address(name), safe=""))
            call = replace(self._call("GET", target), headers=headers, scope=scope)
            reading = read(self._transport.fetch(call), Want.RECORD, self._overrides, self._transport.key)
            warnings.update(dict.fromkeys(reading.warnings))
            return (reading.records or [{}])[0]

        found = lookups.many(ask, names, strict=strict or isinstance(addresses, str))
        rows = [
            {"chain": chain, "address": str(name), "error": f"{type(answer).__name__}: {answer}"}
            if isinstance(answer, NbextError) else answer
            for name, answer in zip(names, found, strict=True)
        ]
        # Our own service's records have all of our fields; a remote's names mean what it means by them.
        if self._ours or any(row.keys() >= types.keys() for row in rows):
            table = frames.frame([as_of.in_columns(row) for row in rows], as_of.columns_of(types))
        else:
            table = frames.frame(rows)
        of_lookup(table, what, self.base_url, list(warnings), chain=chain)
        return table

    def _address(self, name: Any) -> str:
        if validate.is_symbol(name) and self.is_ours:
            return str(name).strip()
        return validate.address_of(name)


def _is_ours_search(document: Any) -> bool:
    return isinstance(document, dict) and {"type", "chain", "searchTerm", "items"} <= document.keys()
