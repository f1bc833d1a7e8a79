"""One segment from request to rows: execute, wait until it is done, fetch; or export the rows of one that is done.

The caller hears of it through `Progress` reports.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from nbext.client import frames
from nbext.client.decode import Reading, State, Want, check_count
from nbext.client.files import csv_text, writer
from nbext.client.http.body import Incoming
from nbext.client.http.deadline import SCOPE, Deadline, Scope
from nbext.client.http.errors import shown
from nbext.client.http.transport import NO_CAP, Call, Repeat
from nbext.client.service import Service
from nbext.core import operations as op
from nbext.errors import (
    ApiError,
    AuthError,
    Conflict,
    DeadlineExceeded,
    NotFound,
    ProtocolError,
    QueryCancelled,
    QueryTimeout,
    SegmentExpired,
    SegmentFailed,
)

if TYPE_CHECKING:
    import pandas as pd

# Seconds between two questions for a segment that says nothing of when to come again.
FIRST_POLL, LONGEST_POLL = 0.2, 5.0
_FAILURES: dict[State | None, type[SegmentFailed]] = {
    State.FAILED: SegmentFailed, State.TIMED_OUT: QueryTimeout, State.EXPIRED: SegmentExpired
}
_ACCEPT = {"json": "application/json", "csv": "text/csv, application/json;q=0.5", "arrow": op.ARROW_TYPE}
_PATHS = {"csv": op.SEGMENT_CSV, "json": op.SEGMENT_JSON}


@dataclass(frozen=True)
class Progress:
    """One report of a call that takes its time.

    Attributes
    ----------
    phase
        ``running``: the service works; ``fetching``: the answer is on its way.
    status
        The service's own word for the segment's state, or ``""``.
    segment_id
        The segment, where it is known already.
    seconds
        Since the call began.
    done, total
        Bytes that came and, where the service said, how many will; ``total`` is None otherwise.
    """

    phase: Literal["running", "fetching"]
    status: str = ""
    segment_id: str | None = None
    seconds: float = 0.0
    done: int = 0
    total: int | None = None


Reporter = Callable[[Progress], None]


class Run:
    """One segment on its way to the caller; ``deadline`` names the setting with the seconds it may take."""

    def __init__(
        self, service: Service, deadline: str, file_type: str, progress: Reporter | None, segment_id: str | None = None
    ) -> None:
        self.service, self.file_type, self.id = service, file_type, segment_id
        self.deadline = Deadline(service.settings[deadline])
        self._progress, self._scope = progress, SCOPE.get() or Scope()
        self._word, self._reported = "", 0.0
        # What the service says of the segment: its columns, without which integers would stay text, and its counts.
        self._described, self._types, self._counts = Reading(), dict[str, str](), dict[str, int]()

    def execute(self, body: Mapping[str, Any]) -> pd.DataFrame:
        """Run the query; return its rows, with where they come from in ``attrs["nbext"]``."""
        headers = {
            op.IDEMPOTENCY_HEADER: str(uuid.uuid4()),
            # A short wait here: a long query is then known by its id, and can be stopped.
            "Prefer": "wait=1",
            "Accept": f"application/json, {_ACCEPT['csv']};q=0.9",
        }
        call = replace(
            self.call("POST", op.EXECUTE, headers),
            body=json.dumps(body).encode(),
            # Only our own service is known to honour the Idempotency-Key.
            repeat=Repeat.ALWAYS if self.service.ours else Repeat.IF_REFUSED,
            patient=True,
        )
        reading = self._settled(self.service.read(call, Want.SEGMENT))
        self._learn(reading)
        limit, counts = body["limit"], self._counts
        if limit == 0:
            table = frames.frame([], self._types)
        elif reading.rows is not None:
            table = self.table(reading, call, counts, {}, limit)
        elif reading.url is not None:
            call = self.call("GET", reading.url)
            table = self.table(self.service.read(call, types=self._types), call, counts, {}, limit)
        else:
            links = reading.document.get("links") if isinstance(reading.document, dict) else None
            table = self.fetch(self._types, counts, links if isinstance(links, dict) else {}, limit)
        return self._with_provenance(table, reading, body)

    def _settled(self, reading: Reading) -> Reading:
        """Ask until the segment is done, or the deadline ends the wait."""
        wait, asked = FIRST_POLL, False
        while True:
            self.id = reading.id or self.id
            self.raise_failure(reading)
            # A stranger may name a segment and say nothing of its state; it is asked once, whether it is there.
            unclear = reading.state is None and reading.rows is None and self.id is not None and not asked
            if reading.state is not State.RUNNING and not unclear:
                self._scope.segment_id = None
                return reading
            self._report_running(reading.word or "")
            if reading.state is State.RUNNING:
                self._scope.segment_id = self.id
                self._sleep(wait if reading.retry_after is None else min(reading.retry_after, LONGEST_POLL))
            wait, asked = min(wait * 1.5, LONGEST_POLL), True
            reading = self._poll(reading)

    def _poll(self, last: Reading) -> Reading:
        if self.id is None:
            raise ProtocolError("The service says that the segment is running, but gives no id to ask for it by.")
        # A longer wait than at first: the segment can be stopped by now.
        call = self.call("GET", op.SEGMENT.format(id=self.id), {"Prefer": "wait=10"})
        try:
            return self.service.read(call, Want.SEGMENT)
        except DeadlineExceeded:
            raise self._too_late() from None
        except NotFound:
            if last.state is not None:
                raise
            # Nobody said that it can be asked for by its id: what is left is to ask for its rows.
            return replace(last, state=State.COMPLETED)

    def _too_late(self) -> DeadlineExceeded:
        last = f" Its last status was {shown(self._word, length=60)!r}." if self._word else ""
        return DeadlineExceeded(
            f"Segment {self.id} was not done within {self.deadline.seconds:g} s.{last} It may still finish: "
            f"read it by its id later, or raise the setting execute_deadline.",
            segment_id=self.id,
        )

    def _sleep(self, seconds: float) -> None:
        # An event and not time.sleep: an interrupt on the main thread ends the waits of all others through it.
        left = self.deadline.remaining()
        self._scope.ended.wait(min(seconds, left))
        if seconds >= left:
            raise self._too_late()

    def raise_failure(self, reading: Reading) -> None:
        """Raise the error that the segment ended with, if it ended without a result."""
        if reading.state is State.CANCELLED:
            self._scope.segment_id = None
            raise QueryCancelled(f"Segment {self.id} was cancelled.")
        kind = _FAILURES.get(reading.state)
        if kind:
            key = self.service.transport.key
            reason = shown(reading.reason, key) or "the service gives no reason"
            message = f"Segment {self.id} {shown(reading.word, key, 60)}: {reason}" if self.id else reason
            raise kind(message, segment_id=self.id)

    def fetch(
        self, types: Mapping[str, str], counts: Mapping[str, int], links: Mapping[str, Any], limit: int | None = None
    ) -> pd.DataFrame:
        """Return the rows of the segment by its id: as Arrow where that is offered, else by file type."""
        offered = links.get("arrow")
        kind, path = ("arrow", offered) if isinstance(offered, str) else (self.file_type, _PATHS[self.file_type])
        call = self.call("GET", path if kind == "arrow" else path.format(id=self.id), {"Accept": _ACCEPT[kind]})
        wait = FIRST_POLL
        while True:
            try:
                reading = self.service.read(call, Want.SEGMENT, types)
            except ApiError as error:
                # Not ready, and too early: the two ways to say that the rows come later.
                if not isinstance(error, Conflict) and error.status != 425:
                    raise
            else:
                if reading.rows is not None:
                    return self.table(reading, call, counts, types, limit)
                if reading.state is not State.RUNNING:
                    self.raise_failure(reading)
                    raise ProtocolError("The service was asked for rows, and its answer has none.")
            self._report_running("not ready")
            self._sleep(wait)
            wait = min(wait * 1.5, LONGEST_POLL)

    def table(
        self, reading: Reading, call: Call, counts: Mapping[str, int], types: Mapping[str, str], limit: int | None
    ) -> pd.DataFrame:
        """Return what was read, and the pages that follow it, as a DataFrame, once its rows are counted."""
        types = {**reading.types, **types}
        stated, settled = {**reading.stated, **counts}, self.service.decoder.types
        if reading.table is not None:
            check_count(reading.table.num_rows, stated, limit)
            return frames.arrow_frame(reading.table, {**settled, **types})
        records: list[dict[str, Any]] = []
        for page in self.service.pages(reading, call, types):
            records += page
        check_count(len(records), stated, limit)
        # A table of a million rows and their records at once would take twice the memory.
        reading.records, reading.document = None, None if reading.id is None else reading.document
        return frames.frame(records, types, settled)

    def describe(self) -> None:
        """Ask what the service says of the segment, before its rows; learn from that whose service it is."""
        if self.service.ours is False:
            return
        try:
            found = self.service.read(self.call("GET", op.SEGMENT.format(id=self.id)), Want.SEGMENT)
        except AuthError:
            raise
        except (ApiError, SegmentExpired, ProtocolError) as error:
            # A stranger may have rows and no description. Our own service knows each of its segments.
            if self.service.ours and isinstance(error, NotFound | SegmentExpired):
                raise
            return
        if not isinstance(found.document, dict) or not {"columns", "links", "counts"} <= found.document.keys():
            self.service.ours = False
            return
        # All fields of our answer, which no stranger has by chance.
        if self.service.ours is None and op.SegmentAnswer.__required_keys__ <= found.document.keys():
            self.service.ours = True
        self._learn(found)
        self.raise_failure(found)

    def exported(self) -> pd.DataFrame:
        """Return the rows of a segment that is done as a DataFrame."""
        self.describe()
        document = self._described.document or {}
        # The caller named the format: Arrow is only taken where rows come as a stream of the same values.
        links = document.get("links") or {} if self.file_type == "csv" else {}
        table = self.fetch(self._types, self._counts, links)
        return self._with_provenance(table, self._described, {})

    def exported_to(self, to: str | os.PathLike[str], *, overwrite: bool, raw: bool) -> pd.DataFrame:
        """Write the rows of a segment that is done to a file; return where, and how many."""
        # A file that cannot be written is refused before anything is asked for.
        path = writer.target_of(to, overwrite=overwrite)
        self.describe()
        target, accept = _PATHS[self.file_type].format(id=self.id), {"Accept": _ACCEPT[self.file_type]}
        call = replace(self.call("GET", target, accept), cap=NO_CAP)
        for attempt in self.service.transport.exchange(call):
            with attempt as exchange:
                came = exchange.open()
                # Each attempt starts its own file: what a broken one left is no part of the next.
                with writer.written(path, overwrite=overwrite) as file:
                    rows = self._save(came, path, file, call, raw=raw)
                    came.finish()
                    check_count(rows, self._counts, None)
        table = frames.frame([{"file": str(path), "rows": rows, "bytes": path.stat().st_size}])
        self._with_provenance(table, self._described, {})
        table.attrs["nbext"]["returned"] = rows
        return table

    def _save(self, came: Incoming, path: Path, file: IO[bytes], call: Call, *, raw: bool) -> int:
        ending, types, decoder = path.suffix.lower(), self._types, self.service.decoder
        vague = came.content_type in csv_text.VAGUE_TYPES and self.file_type == "csv"
        if came.content_type in csv_text.MEDIA_TYPES or vague:
            if raw and ending == ".csv":
                csv_text.refuse_other_kinds(came.peek(4096))
                return writer.copy(came, file)
            # Batch by batch: a file may hold more rows than the memory does.
            schema, batches = csv_text.batches(came, {**decoder.types, **types})
            return writer.write(ending, schema, batches, file, raw=raw)
        reading = decoder.read(came, Want.SEGMENT, types)
        if reading.rows is None:
            running = reading.state is State.RUNNING
            raise ProtocolError(
                "The segment has not finished yet." if running else "The service was asked for rows, and sent none."
            )
        if reading.table is not None:
            return writer.write(ending, reading.table.schema, reading.table.to_batches(), file, raw=raw)
        pages = self.service.pages(reading, call, types)
        rows = writer.write_pages(pages, {**reading.types, **types}, path, file, raw=raw)
        check_count(rows, reading.stated, None)
        return rows

    def call(self, method: str, target: str, headers: Mapping[str, str] | None = None) -> Call:
        """Return a request within this segment's deadline."""
        return Call(method, target, self.deadline, headers=headers or {}, report=self._report_fetching)

    def _report_running(self, word: str) -> None:
        self._word = word
        if self._progress:
            self._progress(Progress("running", word, self.id, time.monotonic() - self.deadline.began))

    def _report_fetching(self, done: int, total: int | None) -> None:
        # Ten reports a second are enough for any display; a body of a million rows comes in thousands of pieces.
        if self._progress and time.monotonic() - self._reported > 0.1:
            self._reported = time.monotonic()
            self._progress(Progress("fetching", "", self.id, time.monotonic() - self.deadline.began, done, total))

    def _learn(self, described: Reading) -> None:
        """Remember the columns' types and the count of rows that the service states of the segment."""
        self._described = described
        document = described.document if isinstance(described.document, dict) else {}
        columns, counts = document.get("columns"), document.get("counts")
        self._types = frames.types_of(columns) if isinstance(columns, list) else {}
        returned = counts.get("returned") if isinstance(counts, dict) else None
        self._counts = {"returned": returned} if type(returned) is int else {}

    def _with_provenance(self, table: pd.DataFrame, reading: Reading, body: Mapping[str, Any]) -> pd.DataFrame:
        """Write where the table comes from into ``attrs``: what the answer says of it, else what was asked for."""
        said: Mapping[str, Any] = reading.document if isinstance(reading.document, dict) else {}
        counts = said["counts"] if isinstance(said.get("counts"), dict) else {}
        matched = counts.get("matched", reading.stated.get("total"))
        # Plain values only: pandas compares and copies attrs.
        table.attrs["nbext"] = {
            "segment_id": self.id, "operation": "execute_segment" if body else "export",
            "service": self.service.transport.origin.url, "status": reading.word,
            "operator": said.get("operator", body.get("operator")), "filters": said.get("filters", body.get("filters")),
            "limit": said.get("limit", body.get("limit")), "as_of": said.get("asOf"),
            "chain": said.get("chain", (body.get("filters") or {}).get("chain")),
            "matched": matched, "returned": len(table),
            "truncated": bool(said.get("truncated", matched is not None and matched > len(table))),
            "columns": said.get("columns") or frames.columns_of(table),
            "seconds": round(time.monotonic() - self.deadline.began, 3), "cached": bool(said.get("cached", False)),
            "warnings": [*(said.get("warnings") or []), *reading.warnings],
        }  # fmt: skip
        return table
