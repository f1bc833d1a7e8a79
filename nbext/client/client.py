"""The client: one method per operation of the service, each of which returns a DataFrame."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from nbext.client import content, frames, inputs, lookups, totals
from nbext.client.deadline import Deadline
from nbext.client.downloads import Downloads
from nbext.client.exports import Export
from nbext.client.filters import encoded
from nbext.client.overrides import Overrides
from nbext.client.progress import Reporter, no_report
from nbext.client.provenance import of_lookup
from nbext.client.public import public
from nbext.client.reading import Want, read
from nbext.client.retry import Repeat
from nbext.client.segments import Run
from nbext.client.transport import Call, Scope, Transport
from nbext.errors import ApiError, BadRequest, NbextError, NotFound, ProtocolError
from nbext.settings import Secret, Settings
from nbext.wire import operations as op

if TYPE_CHECKING:
    import pandas as pd


class Client:
    """One service, by its base_url and key.

    Parameters
    ----------
    base_url
        Where the service is: http(s)://host[:port][/prefix]. http:// only to this machine, unless the
        setting ``insecure`` allows it.
    api_key
        Sent as ``x-api-key`` to that host only. It is in no repr, log, error or pickle of ours.
    settings
        Deadlines, attempts, bounds, and under ``remote`` how to read a remote's answers.
    restart
        Starts the embedded service again when it has died; none for a service that is not ours to start.

    Raises
    ------
    ConfigError
        The address or the key cannot be used. No request was sent.

    Notes
    -----
    A client may be used by many threads, and by a forked child. Ctrl-C ends a call at once, as
    `QueryCancelled`; the client stays usable. ``http.client.HTTPConnection.debuglevel = 1`` prints the key:
    it prints every header, of every program.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | Secret,
        *,
        settings: Settings | None = None,
        restart: Callable[[], Any] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._overrides = Overrides(self.settings["remote"])
        self._transport = Transport(base_url, api_key, self.settings, restart)
        self._ours: bool | None = True if restart else None

    def __repr__(self) -> str:
        return f"<nbext.Client {self.base_url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client holds a key and open connections: it is neither pickled nor copied")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The client can be used again."""
        self._transport.close()

    @property
    def base_url(self) -> str:
        """The service's address."""
        return self._transport.origin.url

    @property
    def is_ours(self) -> bool:
        """Whether the service is nbext's own. A service that is not known yet is asked once (GET /about)."""
        if self._ours is None:
            try:
                self.about()
            except (ApiError, ProtocolError):
                self._ours = False
            except NbextError:
                # It could not be asked now: nothing is known, and nothing is remembered.
                return False
        return bool(self._ours)

    # ------------------------------------------------------------------ the eight operations

    @public
    def execute_segment(
        self,
        filters: Mapping[str, Any],
        operator: str = "AND",
        file_type: str = "json",
        limit: int | None = None,
        *,
        progress: Reporter | None = None,
    ) -> pd.DataFrame:
        """Run a segment and return its wallets.

        Parameters
        ----------
        filters
            The conditions. They go out as they are: a remote's grammar is its own.
        operator
            AND or OR, between the direct children of ``filters``.
        file_type
            ``json`` or ``csv``: how the rows are fetched. Where the service offers Arrow, that is taken.
        limit
            1 to 1,000,000; none means the setting ``limit``. Our own service also takes 0: it only counts,
            and the table has no rows; the count is ``df.attrs["nbext"]["matched"]``.
        progress
            Called with a `Progress` while the service works and while rows come.

        Returns
        -------
        pandas.DataFrame
            One row per wallet, as the service orders them (ours: by ``address``). ``address`` str, 0x and 40
            lower-case hex digits; ``<SYMBOL>_balance`` in the token's smallest unit, exact: int64 where every
            value fits, else str of digits. No match: no rows, same columns. ``df.attrs["nbext"]`` says where
            it comes from: segment_id, filters, as_of, matched, returned, truncated, columns, warnings, ...

        Raises
        ------
        InvalidSegment, ValidationError
            An argument is not allowed; most are refused before any request.
        SegmentFailed, QueryTimeout, ResourceLimit, SegmentExpired
            The segment ended without a result.
        DeadlineExceeded
            It was not done in time; ``segment_id`` where the service had named one.
        OutcomeUnknown
            The connection broke after the request was sent, and the service may not know our repeat for one.
        QueryCancelled
            Interrupted; our own service was told to stop.

        Source
        ------
        POST /v1/segment/execute, then GET /v1/segment/{id}, and its export.
        """
        body = self.request_for(filters, operator, file_type, limit)["body"]
        run = self._run(body["fileType"], "execute_deadline", progress)
        run.limit = body["limit"]
        if run.limit == 0 and not self.is_ours:
            inputs.limit_of(0)
        run.ours = self._ours is True
        return run.execute(body)

    @public
    def segment(self, segment_id: str) -> pd.DataFrame:
        """Return what the service knows of a segment.

        Returns
        -------
        pandas.DataFrame
            One row: id, status, operator, filters, limit, chain, asOf, matched, returned, truncated, ...
            A remote may answer with its rows instead: then these.

        Raises
        ------
        NotFound
            The service knows no segment of that id.

        Source
        ------
        GET /v1/segment/{id}
        """
        run = self._run("json", "deadline", None, inputs.segment_id_of(segment_id))
        call = run.call("GET", op.SEGMENT.format(id=run.id))
        reading = run.guarded(lambda: run.downloads().get(call, Want.SEGMENT))
        if reading.rows is not None:
            table: pd.DataFrame = run.guarded(lambda: run.table(reading, call, {}))
        else:
            table = frames.frame([_described(reading.document)], _types_for(reading.document))
        of_lookup(table, "segment", self.base_url, reading.warnings, segment_id=run.id)
        return table

    @public
    def export_json(
        self,
        segment_id: str,
        to: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        *,
        progress: Reporter | None = None,
    ) -> pd.DataFrame:
        """Return a segment's rows, asked for as JSON; or write them to a file.

        See `export_csv`, which is faster for many rows.

        Source
        ------
        GET /v1/segment/{id}/json, page by page
        """
        return self._export("json", segment_id, to, progress, overwrite=overwrite, raw=False)

    @public
    def export_csv(
        self,
        segment_id: str,
        to: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        *,
        raw: bool = False,
        progress: Reporter | None = None,
    ) -> pd.DataFrame:
        """Return a segment's rows, asked for as CSV; or write them to a file.

        Parameters
        ----------
        segment_id
            The segment.
        to
            A file ending in .csv, .json or .parquet. It appears when it is whole, or not at all.
        overwrite
            Replace a file that is there.
        raw
            A .csv byte for byte as it came. Otherwise texts that a spreadsheet would run as formulas
            (= + - @ ...) get a ``'`` in front.
        progress
            Called with a `Progress` while rows come.

        Returns
        -------
        pandas.DataFrame
            The rows, as `execute_segment` returns them. Where the service does not say the columns' types,
            all are str: nothing is guessed (the setting ``remote.types`` can say them). With ``to``, one row:
            ``file`` str, ``rows`` int64, ``bytes`` int64.

        Raises
        ------
        Conflict, DeadlineExceeded
            The segment is not ready, or was not within the deadline.
        ProtocolError, TruncatedResponse
            Fewer rows came than there are, or none that can be read.
        StorageError
            The file cannot be written.

        Source
        ------
        GET /v1/segment/{id}/csv
        """
        return self._export("csv", segment_id, to, progress, overwrite=overwrite, raw=raw)

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
            Columns of `nbext.wire.operations.SEARCH_FIELDS`, and any others that came. No hit: no rows.

        Source
        ------
        POST /v1/search
        """
        kind, text = inputs.search_type_of(type), inputs.search_term_of(term)
        inputs.whole_number(limit, "/limit", 1, 100)
        inputs.whole_number(offset, "/offset", 0, 2**31)
        body: dict[str, Any] = {"type": kind, "chain": self._chain(chain), "searchTerm": text}
        if (limit, offset) != (20, 0) and self.is_ours:
            body |= {"limit": int(limit), "offset": int(offset)}
        call = self._call("POST", op.SEARCH, body)
        reading = Downloads(self._transport, self._overrides).get(call)
        types = {**op.SEARCH_FIELDS, **reading.types} if _is_ours_search(reading.document) else reading.types
        totals.check(reading.rows or 0, reading.stated, None, is_page=True)
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
            Columns of `nbext.wire.operations.TOKEN_FIELDS`, and any others that came. Unknown is missing.

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

        As `tokens`; columns of `nbext.wire.operations.NFT_FIELDS`.

        Source
        ------
        GET /v1/nfts/{chain}/{address}, eight at a time
        """
        return self._look_up("nfts", chain, addresses, strict=strict, refresh=refresh)

    @public
    def sign_up(self, email: str) -> pd.DataFrame:
        """Sign an address up for the newsletter. It is never sent twice when it may have arrived.

        Returns
        -------
        pandas.DataFrame
            One row: ``email`` str, ``status`` str, ``delivered`` boolean; the latter two missing where the
            service does not say.

        Raises
        ------
        ValidationError
            Not an e-mail address.
        OutcomeUnknown
            The connection broke after the address was sent.

        Source
        ------
        POST /v1/signup/newsletter
        """
        address = inputs.email_of(email)
        headers = {op.IDEMPOTENCY_HEADER: str(uuid.uuid4())}
        call = replace(self._call("POST", op.SIGN_UP, {"email": address}), headers=headers, repeat=Repeat.NEVER_TWICE)
        reading = read(self._transport.fetch(call), Want.RECEIPT, self._overrides, self._transport.key)
        told = reading.document if isinstance(reading.document, dict) else {}
        row = {"email": address, **{name: told.get(name) for name in ("status", "delivered")}}
        table = frames.frame([row], op.SIGN_UP_FIELDS)
        of_lookup(table, "sign_up", self.base_url, reading.warnings)
        return table

    # ------------------------------------------------------------------ beside them

    @public
    def about(self) -> dict[str, Any]:
        """Return what the service says of itself: version, engine and data. Only ours is known to answer.

        Source
        ------
        GET /about
        """
        found = self._document(self._call("GET", op.ABOUT))
        self._ours = found.get("service") == "nbext"
        return found

    @public
    def schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of filters, or None where the service has none.

        Source
        ------
        GET /schema
        """
        try:
            return self._document(self._call("GET", op.SCHEMA))
        except (NotFound, BadRequest, ProtocolError):
            return None

    @public
    def explain(self, filters: Mapping[str, Any], operator: str = "AND", limit: int | None = None) -> dict[str, Any]:
        """Return how our own service would run a segment: id, canonical, words, sql, plan, parts.

        Source
        ------
        POST /explain
        """
        body = self.request_for(filters, operator, limit=limit)["body"]
        return self._document(self._call("POST", op.EXPLAIN, {**body, "parts": True}, "execute_deadline"))

    @public
    def cancel(self, segment_id: str) -> None:
        """Tell our own service to stop a segment.

        Source
        ------
        DELETE /v1/segment/{id}
        """
        self._transport.fetch(self._call("DELETE", op.SEGMENT.format(id=inputs.segment_id_of(segment_id))))

    @public
    def request_for(
        self, filters: Mapping[str, Any], operator: str = "AND", file_type: str = "json", limit: int | None = None
    ) -> dict[str, Any]:
        """Return the request that `execute_segment` would send: ``method``, ``url`` and ``body``. Nothing is sent."""
        kept = self.settings["limit"] if limit is None else limit
        body = {
            "operator": inputs.operator_of(operator),
            "filters": encoded(filters),
            "fileType": inputs.file_type_of(file_type),
            "limit": inputs.limit_of(kept, counting=self._ours is not False),
        }
        return {"method": "POST", "url": self.base_url + op.EXECUTE, "body": body}

    # ------------------------------------------------------------------ within

    @property
    def key(self) -> Secret:
        """The key; it prints as stars."""
        return self._transport.key

    def _run(self, file_type: str, deadline: str, progress: Reporter | None, segment_id: str | None = None) -> Run:
        return Run(
            self._transport,
            self._overrides,
            Deadline(self.settings[deadline]),
            file_type,
            ours=self._ours is True,
            tell=progress or no_report,
            id=segment_id,
        )

    def _export(
        self, kind: str, segment_id: str, to: Any, progress: Reporter | None, *, overwrite: bool, raw: bool
    ) -> pd.DataFrame:
        run = self._run(kind, "download_deadline", progress, inputs.segment_id_of(segment_id))
        export = Export(run, self._ours)
        if to is not None:
            # A file that cannot be written is refused before anything is asked for.
            export.check(to, overwrite=overwrite)
        self._ours = export.describe()
        return export.table() if to is None else export.file(to, overwrite=overwrite, raw=raw)

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
        table = frames.frame(rows, types if self._ours or any(row.keys() >= types.keys() for row in rows) else {})
        of_lookup(table, what, self.base_url, list(warnings), chain=chain)
        return table

    def _address(self, name: Any) -> str:
        if inputs.is_symbol(name) and self.is_ours:
            return str(name).strip()
        return inputs.address_of(name)

    def _chain(self, chain: Any) -> str:
        return inputs.chain_of(self.settings["chain"] if chain is None else chain, ours=self._ours is True)

    def _call(self, method: str, target: str, body: Any = None, deadline: str = "deadline") -> Call:
        data = None if body is None else json.dumps(body).encode()
        return Call(method, target, Deadline(self.settings[deadline]), data)

    def _document(self, call: Call) -> dict[str, Any]:
        found = content.opened(self._transport.fetch(call)).document
        if not isinstance(found, dict):
            raise ProtocolError(f"{self.base_url}{call.target} did not answer with a JSON object.")
        return found


def _described(document: Any) -> dict[str, Any]:
    """Return a segment's description as one flat row."""
    if not isinstance(document, dict):
        return {"id": document}
    counts = document.get("counts")
    if not isinstance(counts, dict):
        return dict(document)
    row = {**document, "matched": counts.get("matched"), "returned": counts.get("returned")}
    return {name: row.get(name) for name in op.SEGMENT_FIELDS}


def _types_for(document: Any) -> dict[str, str]:
    is_ours = isinstance(document, dict) and {"counts", "columns", "links"} <= document.keys()
    return op.SEGMENT_FIELDS if is_ours else {}


def _is_ours_search(document: Any) -> bool:
    return isinstance(document, dict) and {"type", "chain", "searchTerm", "items"} <= document.keys()
