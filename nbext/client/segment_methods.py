"""The client's methods about segments: run one, read one, export its rows, and see beforehand how it would run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nbext.client import as_of, frames, validate
from nbext.client.error_boundary import public
from nbext.client.exports import Export
from nbext.client.filters import encoded
from nbext.client.http.deadline import Deadline
from nbext.client.progress import Reporter, no_report
from nbext.client.provenance import of_lookup
from nbext.client.remote.reading import Want
from nbext.client.segment_run import Run
from nbext.client.service import Caller
from nbext.core import operations as op

if TYPE_CHECKING:
    import pandas as pd


class SegmentMethods(Caller):
    """Segments: four of the eight operations, and what our own service answers beside them."""

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
            validate.limit_of(0)
        run.ours = self._ours is True
        return run.execute(body)

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
        run = self._run("json", "deadline", None, validate.segment_id_of(segment_id))
        call = run.call("GET", op.SEGMENT.format(id=run.id))
        reading = run.guarded(lambda: run.downloads().get(call, Want.SEGMENT))
        if reading.rows is not None:
            table: pd.DataFrame = run.guarded(lambda: run.table(reading, call, {}))
        else:
            table = _description(reading.document)
        of_lookup(table, "segment", self.base_url, reading.warnings, segment_id=run.id)
        return table

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

        See `export_csv`, which is faster for many rows.

        Source
        ------
        GET /v1/segment/{id}/json, page by page
        """
        return self._export("json", segment_id, to, progress, overwrite=overwrite, raw=raw)

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
        self._transport.fetch(self._call("DELETE", op.SEGMENT.format(id=validate.segment_id_of(segment_id))))

    @public
    def request_for(
        self, filters: Mapping[str, Any], operator: str = "AND", file_type: str = "json", limit: int | None = None
    ) -> dict[str, Any]:
        """Return the request that `execute_segment` would send: ``method``, ``url`` and ``body``. Nothing is sent."""
        kept = self.settings["limit"] if limit is None else limit
        body = {
            "operator": validate.operator_of(operator),
            "filters": encoded(filters),
            "fileType": validate.file_type_of(file_type),
            "limit": validate.limit_of(kept, counting=self._ours is not False),
        }
        return {"method": "POST", "url": self.base_url + op.EXECUTE, "body": body}

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
        run = self._run(kind, "download_deadline", progress, validate.segment_id_of(segment_id))
        export = Export(run, self._ours)
        if to is not None:
            # A file that cannot be written is refused before anything is asked for.
            export.check(to, overwrite=overwrite)
        self._ours = export.describe()
        return export.table() if to is None else export.file(to, overwrite=overwrite, raw=raw)


def _description(document: Any) -> pd.DataFrame:
    """Return a segment's description as one flat row."""
    if not isinstance(document, dict):
        return frames.frame([{"id": document}])
    counts = document.get("counts")
    if not isinstance(counts, dict):
        return frames.frame([document])
    told = {**document, "matched": counts.get("matched"), "returned": counts.get("returned")}
    row = {name: told.get(name) for name in op.SEGMENT_FIELDS}
    if not {"columns", "links"} <= document.keys():
        return frames.frame([row])
    return frames.frame([as_of.in_columns(row)], as_of.columns_of(op.SEGMENT_FIELDS))
