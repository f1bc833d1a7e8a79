"""The client: one method per operation of the service, each of which returns a DataFrame."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeAlias

from nbext.client import frames, lookups, validate
from nbext.client.decode import Want
from nbext.client.filters import Filters, Wallets, as_sent, from_python, store
from nbext.client.segment_run import Reporter, SegmentRun
from nbext.client.service import Service, public
from nbext.client.writer import target_of
from nbext.core import wire as op
from nbext.core.chains import CHAIN_TEXT, chain_names, chain_of
from nbext.core.provenance import Provenance
from nbext.core.rules import MAX_LIMIT, one_of, rows_of
from nbext.core.uint256 import ungrouped, whole_of
from nbext.core.untrusted_text import quoted, shown
from nbext.errors import (
    BadRequest,
    ConfigError,
    InvalidSegment,
    NotFound,
    OutcomeUnknown,
    ProtocolError,
    ValidationError,
)
from nbext.http.transport import Repeat
from nbext.settings import Secret, Settings

if TYPE_CHECKING:
    import pandas as pd

    from nbext.client.service import LastAnswer

# How many rows of a segment: a number, "all" of them (and so does None), or by "default" the setting `limit`.
Limit: TypeAlias = int | Literal["all", "default"] | None


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
        Starts the embedded service again after it died; None for a service that is not ours to start.

    Raises
    ------
    ConfigError
        The address or the key cannot be used. No request was sent.

    Notes
    -----
    Many threads may use one client, and so may a forked child. Ctrl-C ends a call at once, as `QueryCancelled`; the
    client stays usable. ``http.client.HTTPConnection.debuglevel = 1`` prints the key: it prints every header, of every
    program.
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
        self._service = Service(base_url, api_key, self.settings, restart)
        self._transport = self._service.transport

    def __repr__(self) -> str:
        return f"<nbext.Client {self.base_url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a client holds a key and open connections: it is neither pickled nor copied"
        )

    def __enter__(self) -> Self:
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
    def key(self) -> Secret:
        """The key; it prints as stars."""
        return self._transport.key

    @property
    def data(self) -> str | None:
        """The fingerprint of the data that our own service served at its last answer; None of another's."""
        return self._transport.data

    @property
    @public
    def is_ours(self) -> bool:
        """Whether the service is nbext's own. A service that is not known yet is asked once (GET /about).

        Where it cannot be asked now, or does not know the key, its error is raised: nothing is known then.
        """
        return self._service.is_ours()

    @property
    def outline(self) -> LastAnswer | None:
        """What is remembered of the last answer, where the service is not nbext's own: ``outline.text()`` shows it."""
        return self._service.last_answer

    @property
    def profile(self) -> str:
        """The profile that reads the answers of a service that is not nbext's own; "none" where none does."""
        return self._service.stranger.profile if self._service.stranger else "none"

    @public
    def about(self) -> dict[str, Any]:
        """Return what the service says of itself: version, engine and data. Only ours is known to answer.

        Source
        ------
        GET /about
        """
        return self._service.about()

    @public
    def schema(self) -> dict[str, Any] | None:
        """Return the JSON Schema of filters, or None where the service has none.

        Source
        ------
        GET /schema
        """
        try:
            return self._service.document(self._service.call("GET", op.SCHEMA))
        except (NotFound, BadRequest, ProtocolError):
            return None

    def request_for(
        self,
        filters: Filters,
        operator: str = "AND",
        file_type: str = "json",
        limit: Limit = "default",
    ) -> dict[str, Any]:
        """Return the request that `execute_segment` would send: ``method``, ``url`` and ``body``. Nothing is sent.

        ``lists`` are the long lists of wallets in it, by id: our own service has to have them first.
        """
        body, named = self._asked(filters, operator, file_type, limit, is_sent=False)
        url = self.base_url + op.EXECUTE
        return {"method": "POST", "url": url, "body": body, "lists": named}

    @public
    def execute_segment(
        self,
        filters: Filters,
        operator: str = "AND",
        file_type: str = "json",
        limit: Limit = "default",
        *,
        to: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        raw: bool = False,
        progress: Reporter | None = None,
    ) -> pd.DataFrame:
        """Run a segment and return its wallets, or write them to a file.

        Parameters
        ----------
        filters
            The conditions. They go out as they are: a remote's grammar is its own. ``{"wallet": {"in": ...}}`` takes
            a list, column, set, a frame with an ``address`` column, or a file as text, ``"@allow.csv"`` (.csv, .txt,
            .json, .parquet, .arrow); so do ``exclude`` and ``counterparty``. Our own service is sent a list of more
            than 1,000 wallets once, and asked by its hash.
        operator
            AND or OR, between the direct children of ``filters``.
        file_type
            ``json`` or ``csv``: how the rows are fetched. Where the service offers Arrow, that is taken.
        limit
            1 to 10,000,000; ``"all"`` and None are the most, ``"default"`` the setting ``limit``. What it cuts off is
            said in an `AnswerWarning`. Our own service also takes 0: it only counts, and the table has no rows; the
            count is ``df.attrs["nbext"]["matched"]``.
        to, overwrite, raw
            A file, as `export_csv` writes it; our own service's rows go there while they come, in little memory.
        progress
            Called with a `Progress` while the service works and while rows come.

        Returns
        -------
        pandas.DataFrame
            One row per wallet, as the service orders them (ours: by ``address``). ``address`` str, 0x and 40
            lower-case hex digits; another service's in the case that it sends: `nbext.addresses` returns them in lower
            case. An amount comes twice: ``<SYMBOL>_balance``, float64 in the token's unit, and
            ``<SYMBOL>_balance_raw``, exact in its smallest unit: ArrowDtype(decimal128(38, 0)); where a value or
            their sum has more digits decimal256(76, 0), then str, with a warning. Arithmetic with it is exact; a mean
            is a float; what pandas refuses (``nlargest``), and what to write, is in magics.md, "Exact amounts".
            Decimals unknown: the second alone. ``<SYMBOL>_count`` of NFTs: int64. No match: no rows, same columns.
            With ``to``, one row: ``file`` str, ``rows`` int64, ``bytes`` int64.
            ``df.attrs["nbext"]`` says where its rows are from: segment_id, filters, as_of, matched, returned,
            truncated, columns, warnings, ...

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
            Interrupted; our own service has stopped the segment.

        Source
        ------
        POST /v1/segment/execute, then GET /v1/segment/{id}, and its export.
        """
        # A file that cannot be written is refused before anything is asked for.
        target = None if to is None else target_of(to, overwrite=overwrite, raw=raw)
        body, named = self._asked(filters, operator, file_type, limit)
        if body["limit"] == 0 and target:
            detail = "A limit of 0 only counts: there are no rows to write to a file."
            raise ValidationError.of("/limit", "exclusive", detail)
        run = SegmentRun(self._service, "execute_deadline", body["fileType"], progress)
        table = run.execute(body, target)
        if named:
            about = Provenance.of(table)
            about.lists = {name: str(one) for name, one in named.items()}
            about.attach(table)
        return table

    @public
    def segment(self, segment_id: str) -> pd.DataFrame:
        """Return what the service knows of a segment.

        Returns
        -------
        pandas.DataFrame
            One row: id, status, operator, filters, limit, chain, asOfBlock, matched, returned, truncated, ...
            A remote may answer with its rows instead: then these.

        Raises
        ------
        NotFound
            The service knows no segment of that id.

        Source
        ------
        GET /v1/segment/{id}
        """
        run = SegmentRun(self._service, "deadline", "json", None, self._segment_id(segment_id))
        call = run.call(run.path(op.SEGMENT))
        reading = self._service.read(call, Want.SEGMENT)
        if reading.rows is not None:
            table = run.table(reading, call)
        elif self._service.ours:
            known = reading.said | reading.counts
            row = {name: known.get(name) for name in op.SEGMENT_FIELDS}
            table = frames.frame_as_of([row], op.SEGMENT_FIELDS)
        else:
            # A stranger's may be a bare address, and has the columns that it has.
            one = reading.document
            table = frames.frame([one if isinstance(one, dict) else {"id": one}])
        said: Any = reading.said
        return Provenance(
            operation="segment",
            service=self.base_url,
            warnings=reading.warnings,
            segment_id=run.id,
            matched=reading.counts.get("matched"),
            # Of an unfinished one it is not known.
            truncated=said.get("truncated") is True,
            **{
                name: said.get(name)
                for name in ("operator", "filters", "limit", "since", "fingerprint")
            },
        ).attach(table)

    @public
    def export_json(
        self,
        segment_id: str,
        to: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        *,
        raw: bool = False,
        progress: Reporter | None = None,
    ) -> pd.DataFrame:
        """Return a segment's rows, asked for as JSON; or write them to a file.

        See `export_csv`, which is faster for many rows. Our own service is asked for Arrow either way.

        Source
        ------
        GET /v1/segment/{id}/json, page by page
        """
        return self._export("json", segment_id, progress, to, overwrite=overwrite, raw=raw)

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
            A file ending in .csv, .json, .parquet or .arrow. It appears when it is whole, or not at all.
        overwrite
            Replace a file that is there.
        raw
            A .csv with its texts as they came; our own service's byte for byte. Otherwise texts that a
            spreadsheet would run as formulas (= + - @ ...) get a ``'`` in front.
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
        return self._export("csv", segment_id, progress, to, overwrite=overwrite, raw=raw)

    @public
    def explain(
        self,
        filters: Filters,
        operator: str = "AND",
        limit: Limit = "default",
        *,
        parts: bool = False,
    ) -> dict[str, Any]:
        """Return how our own service would run a segment: id, words, canonical, asOf, sql, plan.

        With ``parts`` it also counts all that match, and under that name each condition alone: words, matched.

        Source
        ------
        POST /explain
        """
        body, _ = self._asked(filters, operator, limit=limit)
        return self._answer(op.EXPLAIN, {**body, "parts": parts})

    @public
    def counts(
        self,
        segments: Sequence[tuple[Filters, str]],
        together: Sequence[Sequence[int]],
        *,
        amounts: bool | str = False,
    ) -> dict[str, Any]:
        """Return how many wallets segments have in common, from our own service in one request.

        Parameters
        ----------
        segments
            Filters and operator of each.
        together
            For each count the places of some of the segments, from 0; after the first, ``~place`` leaves the wallets
            of that one out.
        amounts
            What each segment's wallets hold together, too: of the contract of this symbol or address, or of the first
            of its rows.

        Returns
        -------
        dict
            ``counts``, in the order asked; ``segments``: words, canonical, asOf, warnings of each, and ``held``.

        Source
        ------
        POST /counts
        """
        body: dict[str, Any] = {
            "segments": [self._query(*one) for one in segments],
            "counts": [*map(list, together)],
            "amounts": amounts,
        }
        return self._answer(op.COUNTS, body)

    @public
    def funnel(self, filters: Filters, operator: str = "AND", *, sample: int = 0) -> dict[str, Any]:
        """Return each condition of a segment counted alone, and with those before it, by our own service.

        ``sample`` is how many of its wallets come with them, under that name: 0 to 10.

        Source
        ------
        POST /funnel
        """
        limit = validate.whole_number(sample, "/sample", 0, 10)
        return self._answer(op.FUNNEL, self._asked(filters, operator, limit=limit)[0])

    @public
    def holdings(
        self, wallets: Any, chain: str | None = None, as_of: str | int | date | None = None
    ) -> pd.DataFrame:
        """Return what wallets hold, as our own service knows it: the rows of `nbext.wallet`.

        ``wallets`` is an address, or many: a list, a column, a table, ``@FILE``.

        Source
        ------
        POST /holdings, after POST /lists where more than 1,000 wallets are named
        """
        one = isinstance(wallets, str) and not wallets.startswith("@")
        asked = Wallets([wallets] if one else wallets, "wallets")
        try:
            query = self._query({"wallet": {"in": asked}}, "AND")
        except InvalidSegment as error:
            raise error.below("/wallets", "/filters/wallet/in") from None
        named = query["filters"]["wallet"]
        request = {
            "wallets": named.get("in", [named.get("list")]),
            "chain": chain,
            "asOf": self._pinned() if as_of is None else from_python(as_of, "/asOf"),
        }
        body = {name: value for name, value in request.items() if value is not None}
        call = self._service.call("POST", op.HOLDINGS, body, "execute_deadline")
        rows = self._service.read(call).table
        if rows is None or not (said := (rows.schema.metadata or {}).get(b"nbext")):
            raise ProtocolError("The service was asked what wallets hold, and sent no rows.")
        said = json.loads(said)
        table = frames.arrow_frame(rows, op.HELD_FIELDS)
        return Provenance(
            operation="wallet",
            service=self.base_url,
            as_of=said["asOf"],
            chains=said["chains"],
            warnings=[*said["warnings"], *frames.wide_columns(op.HELD_FIELDS, table.dtypes)],
            wallets=request["wallets"],
        ).attach(table)

    @public
    def segment_profile(
        self,
        filters: Filters,
        operator: str = "AND",
        base: tuple[Filters, str] | None = None,
        least: int | None = None,
        *,
        progress: Reporter | None = None,
    ) -> dict[str, Any]:
        """Return what our own service says of a segment, with its ``profile`` beside ``base``: filters and operator.

        Source
        ------
        POST /profile, then GET /v1/segment/{id}
        """
        body = self._query(filters, operator)
        body |= {"base": self._query(*base)} if base else {}
        body |= {} if least is None else {"least": least}
        run = SegmentRun(self._service, "execute_deadline", "json", progress)
        document = run.begin(op.PROFILE, body).document
        assert isinstance(document, dict), "our decoder has read it as a segment"
        return document

    @public
    def segment_changes(
        self, filters: Filters, operator: str = "AND", since: str | int | date = "30d"
    ) -> pd.DataFrame:
        """Return the wallets that match a segment now or did at a time, from our own service.

        Beside ``address`` each row has ``then_matches`` and ``now_matches``, 1 or 0, and each balance as ``then_...``
        and ``now_...``. ``attrs["nbext"]["since"]`` is the block and the time of then.

        Source
        ------
        POST /changes, then GET /v1/segment/{id}, and its export
        """
        run = SegmentRun(self._service, "execute_deadline", "json", None)
        body = {**self._query(filters, operator), "since": from_python(since, "/since")}
        return run.execute(body, target=op.CHANGES)

    @public
    def cancel(self, segment_id: str) -> None:
        """Tell our own service to stop a segment.

        Source
        ------
        DELETE /v1/segment/{id}
        """
        path = op.SEGMENT.format(id=validate.segment_id_of(segment_id))
        self._transport.fetch(self._service.call("DELETE", path))

    @public
    def search_nfts(
        self,
        term: str,
        chain: str | None = None,
        *,
        type: str = "nft",  # noqa: A002  # the interface's own name
        limit: int = op.DEFAULT_HITS,
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
            Which of the hits: at most 100, after so many. A remote that was given neither sends as many as it does;
            of what it sends, it is these.

        Returns
        -------
        pandas.DataFrame
            Columns of `nbext.core.wire.SEARCH_FIELDS`, and any others that came. No hit: no rows.

        Source
        ------
        POST /v1/search
        """
        return lookups.search(
            self._service, term, self._chain(chain), type, limit=limit, offset=offset
        )

    @public
    def tokens(
        self,
        chain: str,
        addresses: str | Iterable[str],
        *,
        strict: bool = False,
        refresh: bool = False,
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
            Columns of `nbext.core.wire.TOKEN_FIELDS`, and any others that came. Unknown is missing.
            Of our own service, ``supply`` float64 is ``totalSupply`` in the token's unit.
            ``asOf`` becomes ``asOfBlock`` Int64 and ``asOfTimestamp`` str, ISO-8601 in UTC.

        Raises
        ------
        ValidationError, NotFound, AmbiguousSymbol
            Where one address was asked for, or with ``strict``.

        Source
        ------
        GET /v1/tokens/{chain}/{address}, eight at a time
        """
        return lookups.metadata(
            self._service, "tokens", self._chain(chain), addresses, strict=strict, refresh=refresh
        )

    @public
    def nfts(
        self,
        chain: str,
        addresses: str | Iterable[str],
        *,
        strict: bool = False,
        refresh: bool = False,
    ) -> pd.DataFrame:
        """Return the metadata of NFT collections, one row for each address, in the order asked.

        As `tokens`; columns of `nbext.core.wire.NFT_FIELDS`.

        Source
        ------
        GET /v1/nfts/{chain}/{address}, eight at a time
        """
        return lookups.metadata(
            self._service, "nfts", self._chain(chain), addresses, strict=strict, refresh=refresh
        )

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
            The connection broke after the address was sent, or the service took another one.

        Source
        ------
        POST /v1/signup/newsletter
        """
        address = op.email_of(email)
        call = replace(
            self._service.call("POST", op.SIGN_UP, {"email": address}, operation="signup"),
            headers={op.IDEMPOTENCY_HEADER: str(uuid.uuid4())},
            repeat=Repeat.NEVER_TWICE,
        )
        reading = self._service.read(call, Want.RECEIPT)
        said = reading.said
        other = said.get("email") or address
        if str(other).lower() != address.lower():
            raise OutcomeUnknown(
                f"The service signed up {quoted(other)} instead of {quoted(address)}. nbext did not send it again.",
                idempotency_key=call.headers[op.IDEMPOTENCY_HEADER],
            )
        row = {"email": address, "status": said.get("status"), "delivered": said.get("delivered")}
        table = frames.frame([row], op.SIGN_UP_FIELDS)
        return Provenance(
            operation="sign_up", service=self.base_url, warnings=reading.warnings
        ).attach(table)

    def _pinned(self) -> str | int | None:
        """Return the time of the setting ``as_of``; of digits, a block."""
        given: str | None = self.settings["as_of"]
        block = whole_of(ungrouped(given or ""))
        return given if block is None else block

    def _segment_id(self, given: Any) -> str:
        about = Provenance.of(given)
        # A segment's table stands for it.
        if about.segment_id:
            about.check_whole(given, "id")
        elif hasattr(given, "columns"):
            unknown = "The table does not say which segment it is from. Give the segment's id."
            raise ValidationError.of("id", "id", unknown)
        return validate.segment_id_of(about.segment_id or given, ours=self._service.ours is True)

    def _export(
        self, file_type: str, segment_id: str, progress: Reporter | None, to: Any, **ways: Any
    ) -> pd.DataFrame:
        target = None if to is None else target_of(to, **ways)
        known = self._segment_id(segment_id)
        run = SegmentRun(self._service, "download_deadline", file_type, progress, known)
        return run.export(target)

    def _answer(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what our own service answers to a body."""
        return self._service.document(self._service.call("POST", path, body, "execute_deadline"))

    def _query(self, filters: Filters, operator: str) -> dict[str, Any]:
        """Return a segment as the operations of our own service take it that return no rows of it."""
        body, _ = self._asked(filters, operator, limit=0)
        return {"operator": body["operator"], "filters": body["filters"]}

    def _asked(
        self,
        filters: Filters,
        operator: str,
        file_type: str = "json",
        limit: Limit = "default",
        *,
        is_sent: bool = True,
    ) -> tuple[dict[str, Any], dict[str, Wallets]]:
        """Return the body of a request, and the lists that it names, which the service has where it is to be sent."""
        # A service that nobody has asked yet may be ours, and then a limit of 0 is allowed.
        ours = self._service.is_ours if is_sent else lambda: self._service.ours is not False
        settled, named = as_sent(filters, ours)
        pinned = None if "asOf" in settled else self._pinned()
        if pinned is not None and not ours():
            # One that passes over what it does not know would answer as of another time.
            raise ConfigError(
                f"The setting as_of is {quoted(pinned)}, and {self.base_url} is not nbext's own service, the only one "
                "that is known to take it. Unset it, and write the time in the filters as this service does."
            )
        body = {
            "operator": one_of(operator, op.OPERATORS, "/operator"),
            "filters": settled if pinned is None else {"asOf": pinned, **settled},
            "fileType": one_of(file_type, op.FILE_TYPES, "/fileType"),
            "limit": rows_of(self.settings["limit"] if limit == "default" else limit),
        }
        if body["limit"] == 0 and not ours():
            detail = (
                "A limit of 0 only counts, which this service is not known to do. "
                f'Write a whole number from 1 to {MAX_LIMIT:,}, or "all".'
            )
            raise ValidationError.of("/limit", "range", detail)
        if is_sent:
            store(self._service, named)
        return body, named

    def _chain(self, chain: Any) -> str:
        """Return the chain as it goes out: our own service's name for it, or what was written to a remote."""
        given = self.settings["chain"] if chain is None else chain
        text = str(given) if type(given) is int else given
        if not isinstance(text, str) or not CHAIN_TEXT.match(text):
            allowed = f"{', '.join(chain_names())}, or a chain id"
            detail = f"{shown(text)} is not a chain. Allowed: {allowed}."
            raise ValidationError.of("chain", "chain", detail)
        # A remote may know chains that we do not.
        return chain_of(text).name if self._service.ours else text
