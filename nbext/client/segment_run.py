"""One segment from request to rows: execute, wait until it is done, fetch; or export the rows of one that is done.

The caller hears of it through `Progress` reports.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from nbext.client import frames
from nbext.client.decode import Reading, State, Want, arrow_batches, check_count, refuse_other_kinds
from nbext.client.service import Service
from nbext.client.writer import Target, copy, named_file
from nbext.core import wire as op
from nbext.core.provenance import Provenance
from nbext.errors import (
    ApiError,
    AuthError,
    BadRequest,
    Conflict,
    DeadlineExceeded,
    NbextError,
    NotFound,
    ProtocolError,
    QueryCancelled,
    QueryTimeout,
    SegmentExpired,
    SegmentFailed,
)
from nbext.http.body import NO_CAP, Headers
from nbext.http.deadline import SCOPE, Deadline, Scope
from nbext.http.errors import one_line
from nbext.http.transport import Call, Repeat

if TYPE_CHECKING:
    import pandas as pd

# Seconds between two questions for a segment that says nothing of when to come again.
FIRST_POLL, LONGEST_POLL = 0.2, 5.0
_FAILURES: dict[State | None, type[SegmentFailed]] = {
    State.FAILED: SegmentFailed,
    State.TIMED_OUT: QueryTimeout,
    State.EXPIRED: SegmentExpired,
}
_ACCEPT = {
    "json": "application/json",
    "csv": "text/csv, application/json;q=0.5",
    "arrow": op.ARROW_TYPE,
}
_PATHS = {"csv": op.SEGMENT_CSV, "json": op.SEGMENT_JSON, "arrow": op.SEGMENT_ARROW}


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


class SegmentRun:
    """One segment on its way to the caller; ``deadline`` names the setting with the seconds it may take."""

    def __init__(
        self,
        service: Service,
        deadline: str,
        file_type: str,
        progress: Reporter | None,
        segment_id: str | None = None,
    ) -> None:
        self.service, self.file_type, self.id = service, file_type, segment_id
        self.deadline = Deadline(service.settings[deadline])
        self._progress, self._scope = progress, SCOPE.get() or Scope()
        self._word, self._reported, self._wait = "", 0.0, FIRST_POLL
        # What the service says of the segment: its columns, without which integers would stay text, and its counts.
        self._described, self._types, self._counts = Reading(), dict[str, str](), dict[str, int]()
        # The limit that the segment was run with, and what is to be known of the rows beside them.
        self._limit: int | None = None
        # Where a stranger has the segment's state asked for, if not under its id.
        self._monitor: str | None = None
        # Where its rows will be, if the service has said that.
        self._rows_at: str | None = None
        self._notes: list[str] = []
        # The chain that was asked for.
        self._of: dict[str, str] = {}
        # What was asked for the description: pages of rows in it follow from there.
        self._asked: Call

    def execute(
        self, body: Mapping[str, Any], to: Target | None = None, *, target: str = op.EXECUTE
    ) -> pd.DataFrame:
        """Run the query; return its rows, with where they come from in ``attrs["nbext"]``, or write them to a file."""
        reading = self.begin(target, body)
        self.learn(reading)
        self._limit = body.get("limit")
        if self._limit == 0:
            table = frames.frame([], self._types)
        elif to is not None and self.service.ours:
            # The time for running a query is not meant for ten million rows.
            self.deadline = Deadline(self.service.settings["download_deadline"])
            return self._written(to, body)
        elif reading.rows is not None:
            table = self._beside_id(reading)
        elif self._rows_at is not None:
            call = self.call(self.service.follow(self._rows_at))
            table = self.table(self.service.read(call), call)
        elif self.id is None:
            text = "The service says that the segment is done, but not where its rows are."
            raise self.service.advise(ProtocolError(text), "id", "rows", "url")
        else:
            try:
                table = self.table(*self._rows(arrow=True))
            except NotFound:
                # What may be rows in the first answer is asked about only where there are none under the id.
                if reading.instead is None:
                    raise
                raise reading.instead from None
        about = self._provenance(table, body)
        if to is None:
            return about.attach(table)
        to.save(table)
        return _file_of(to.path, len(table), about)

    def begin(self, target: str, body: Mapping[str, Any]) -> Reading:
        """Send what begins a segment, wait until it is done, and return what the service says of it."""
        headers = {
            op.IDEMPOTENCY_HEADER: str(uuid.uuid4()),
            # A short wait here: a long query is then known by its id, and can be stopped.
            "Prefer": "wait=1",
            "Accept": "application/json, text/csv;q=0.9",
        }
        stranger, chain = self.service.stranger, body["filters"].get("chain")
        self._of = {"chain": str(chain)} if chain else {}
        self._asked = replace(
            self.call(target, headers),
            method="POST",
            body=json.dumps(body).encode(),
            # Our own service honours the Idempotency-Key; of another one the settings may say so.
            repeat=Repeat.IF_REFUSED if stranger and not stranger.idempotent else Repeat.ALWAYS,
            patient=True,
        )
        return self._until_done(self.service.read(self._asked, Want.SEGMENT))

    def _beside_id(self, reading: Reading) -> pd.DataFrame:
        """Return the rows of the first answer; where they are not all, or none, those under the segment's id."""
        failure: NbextError | None = None
        alone = self.id is None or bool(self.service.ours)
        if reading.rows or reading.parts or alone:
            try:
                return self.table(reading, self._asked)
            except ProtocolError as error:
                if alone:
                    raise
                failure = error
                # More than came here is how many there are, wherever they are.
                stated = {name: n for name, n in reading.stated.items() if n > (reading.rows or 0)}
                self._counts = self._counts or stated
        try:
            return self.table(*self._rows())
        except (BadRequest, NotFound, ProtocolError):
            if failure is not None:
                raise failure from None
        # Nowhere else are any rows: that there are none is the answer.
        return self.table(reading, self._asked)

    def _until_done(self, reading: Reading) -> Reading:
        """Ask until the segment is done, or the deadline ends the wait."""
        asked = False
        while True:
            self.id, self._monitor = reading.id or self.id, reading.poll or self._monitor
            self._rows_at = reading.url or self._rows_at
            self._raise_failure(reading)
            runs = reading.state is State.RUNNING or reading.doubt is not None
            # A stranger may name a segment and say nothing of its state; it is asked once, whether it is there.
            unclear = (
                reading.state is None and not reading.rows and self.id is not None and not asked
            )
            if not runs and not unclear:
                self._scope.segment_id = None
                return reading
            # Before anybody hears of it, and may want it to end.
            self._scope.segment_id = self.id if runs else None
            before, self._word = self._word, reading.word or ""
            self._report("running")
            # A word that nobody knows, and that another look does not change, is asked about at once.
            if asked and reading.doubt is not None and reading.word == before:
                raise reading.doubt
            if runs:
                # Also where the service says that it may be asked again at once: it means no thousand times a second.
                self._sleep(reading.retry_after)
            asked = True
            reading = self._poll(reading)

    def _poll(self, last: Reading) -> Reading:
        if self.id is None and self._monitor is None:
            text = "The service says that the segment is running, but gives no id to ask for it by."
            raise self.service.advise(ProtocolError(text), "id", "poll")
        monitor = self._monitor
        target = self.service.follow(monitor) if monitor else self.path(op.SEGMENT)
        # A longer wait than at first: the segment can be stopped by now.
        call = self.call(target, {"Prefer": "wait=10"})
        # Elsewhere a job answers, which may have an id of its own.
        self._asked = call = replace(call, asked={}) if monitor else call
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
        last = f" Its last status was {one_line(self._word, length=60)!r}." if self._word else ""
        return DeadlineExceeded(
            f"Segment {one_line(self.id, length=80)} was not done within {self.deadline.seconds:g} s.{last} "
            "It may still finish: read it by its id later, or raise the setting execute_deadline.",
            segment_id=self.id,
        )

    def _sleep(self, asks: float | None = None) -> None:
        """Wait for as long as the service asks, else longer each time."""
        seconds = max(self._wait if asks is None else asks, FIRST_POLL)
        self._wait = min(self._wait * 1.5, LONGEST_POLL)
        # An event and not time.sleep: an interrupt on the main thread ends the waits of all others through it.
        left = self.deadline.remaining()
        self._scope.ended.wait(min(seconds, left))
        if seconds >= left:
            raise self._too_late()

    def _raise_failure(self, reading: Reading) -> None:
        """Raise the error that the segment ended with, if it ended without a result."""
        if reading.state is State.CANCELLED:
            self._scope.segment_id = None
            raise QueryCancelled(f"Segment {one_line(self.id, length=80)} was cancelled.")
        kind = _FAILURES.get(reading.state)
        if kind:
            key = self.service.transport.key
            reason = one_line(reading.reason, key) or "the service gives no reason"
            named = (
                f"Segment {one_line(self.id, key, 80)} {one_line(reading.word, key, 60)}: "
                if self.id
                else ""
            )
            raise kind(f"{named}{reason}", segment_id=self.id)

    def _rows(self, *, arrow: bool = False, folder: Path | None = None) -> tuple[Reading, Call]:
        """Return an answer with the segment's rows by its id, or the first of them, and what was asked for it.

        Our own service is asked for Arrow; another one by file type, or with ``arrow`` for Arrow where it offers that.
        """
        kind = self.file_type
        links = self._described.said.get("links")
        offered = links.get("arrow") if isinstance(links, dict) else None
        if self.service.ours:
            # By its path: a link has what a proxy put before it, and so has base_url; and there is none where our
            # service could not describe the segment just then.
            kind, target = "arrow", self.path(op.SEGMENT_ARROW)
        elif arrow and isinstance(offered, str):
            kind, target = "arrow", self.service.follow(offered)
        else:
            target = self.path(_PATHS[kind])
        call = self.call(target, {"Accept": _ACCEPT[kind]}, operation="export", folder=folder)
        self._wait = FIRST_POLL
        while True:
            try:
                reading = self.service.read(call, Want.SEGMENT)
            except ApiError as error:
                # Not ready, and too early: the two ways to say that the rows come later.
                if not isinstance(error, Conflict) and error.status != 425:
                    raise
            else:
                if reading.rows is not None:
                    return reading, call
                if reading.state is not State.RUNNING:
                    self._raise_failure(reading)
                    if reading.instead:
                        raise reading.instead
                    text = "The service was asked for rows, and its answer has none."
                    raise self.service.advise(ProtocolError(text), "rows", "url")
            self._word = "not ready"
            self._report("running")
            self._sleep()

    def table(self, reading: Reading, call: Call) -> pd.DataFrame:
        """Return what was read, and the pages that follow it, as a DataFrame, once its rows are counted."""
        # Arrow of our own service says itself what its columns are: exact amounts are decimals, and texts stay so.
        is_typed = self.service.ours and reading.table is not None
        call = replace(call, types={} if is_typed else reading.types | self._types)
        found = self.service.table(reading, call, limit=self._limit, counts=self._counts)
        self._took(reading, len(found))
        return found

    def _took(self, reading: Reading, rows: int) -> None:
        """Hold the rows against the limit, and remember what is to be known of them."""
        check_count(rows, {}, self._limit)
        self._notes += reading.warnings
        self._described.as_of = reading.as_of or self._described.as_of

    def _describe(self) -> None:
        """Ask what the service says of the segment, before its rows: now it is known whose service it is."""
        try:
            found = self.service.read(self.call(self.path(op.SEGMENT)), Want.SEGMENT)
        except AuthError:
            raise
        except (ApiError, SegmentExpired, ProtocolError) as error:
            # A stranger may have rows and no description. Our own service knows each of its segments.
            if self.service.ours and isinstance(error, NotFound | SegmentExpired):
                raise
            if not isinstance(error, NotFound):
                said = one_line(error, self.service.transport.key, 200)
                self._notes.append(
                    f"What the service says of the segment could not be read: {said}"
                )
            return
        if not self.service.ours:
            self.service.ours = False
            found = self._until_done(found)
        self.learn(found)
        self._raise_failure(found)

    def export(self, to: Target | None) -> pd.DataFrame:
        """Return the rows of a segment that is done, or write them to a file; then return where, and how many."""
        self._describe()
        if to is not None:
            return self._written(to, {})
        # The caller named the format: a stranger's Arrow is only taken where rows come as a stream of the same values.
        table = self.table(*self._rows(arrow=self.file_type == "csv"))
        return self._provenance(table, {}).attach(table)

    def _written(self, to: Target, body: Mapping[str, Any]) -> pd.DataFrame:
        """Write the rows of the segment to a file, page by page, or while they arrive."""
        if self.service.ours:
            rows = self._streamed(to)
        else:
            found = self._rows(folder=to.path.parent)
            with to.opened() as file:
                rows = self._save(*found, to, file)
        return _file_of(to.path, rows, self._provenance(frames.frame([]), body, rows))

    def _streamed(self, to: Target) -> int:
        """Write our own service's rows while they arrive; return how many there are."""
        # Its Arrow has the columns' types; its CSV is for a file that has it byte for byte.
        kind = "csv" if to.raw and to.kind == ".csv" else "arrow"
        call = self.call(self.path(_PATHS[kind]), {"Accept": _ACCEPT[kind]}, operation="export")
        for attempt in self.service.transport.exchange(call):
            with attempt as exchange:
                came = exchange.open()
                came.cap = NO_CAP
                # Each attempt starts its own file: what a broken one left is no part of the next.
                with to.opened() as file:
                    if kind == "csv":
                        refuse_other_kinds(came.peek(4096))
                        rows = copy(came, file)
                    else:
                        schema, batches = arrow_batches(came)
                        arrow_types = {field.name: field.type for field in schema}
                        self._notes += frames.wide_columns(self._types, arrow_types)
                        rows = to.write(schema, batches, file)
                    came.finish()
                    check_count(rows, self._counts, None)
        return rows

    def _save(self, reading: Reading, call: Call, to: Target, file: IO[bytes]) -> int:
        """Write what was read of another service, and the pages that follow it; return the number of rows."""
        pages = self.service.pages(reading, call, limit=self._limit, counts=self._counts)
        # The first page with rows says what they are: an answer may list the files that hold them.
        first = next((page for page in pages if page.rows), reading)
        every = chain([first], pages)
        if first.table is None:
            lists = (page.records or [] for page in every)
            rows = to.write_pages(lists, first.types | self._types, file)
        else:
            tables = frames.alike(page.table for page in every)
            batches = (batch for table in tables for batch in table.to_batches())
            rows = to.write(first.table.schema, batches, file)
        self._took(reading, rows)
        return rows

    def path(self, template: str) -> str:
        """Return an operation's path for this segment: a stranger's id may have any characters."""
        return template.format(id=quote(self.id or "", safe=""))

    def call(self, target: str, headers: Headers | None = None, **read: Any) -> Call:
        """Return a GET within this segment's deadline, whose answer is to be ``read`` so."""
        return Call(
            "GET",
            target,
            self.deadline,
            headers=headers or {},
            report=self._report_fetching,
            asked=self._of | ({"segment": self.id} if self.id else {}),
            types=self._types,
            **read,
        )

    def _report_fetching(self, done: int, total: int | None) -> None:
        # Ten reports a second are enough for any display; a body of a million rows comes in thousands of pieces.
        if time.monotonic() - self._reported > 0.1:
            self._reported = time.monotonic()
            self._report("fetching", done, total)

    def _report(
        self, phase: Literal["running", "fetching"], done: int = 0, total: int | None = None
    ) -> None:
        if self._progress:
            seconds = time.monotonic() - self.deadline.began
            word = self._word if phase == "running" else ""
            self._progress(Progress(phase, word, self.id, seconds, done, total))

    def learn(self, described: Reading) -> None:
        """Remember what the service states of the segment: its columns' types, the count of its rows."""
        self._described = described
        document = described.said
        columns, returned = document.get("columns"), described.counts.get("returned")
        self._types = frames.types_of(columns) if isinstance(columns, list) else {}
        self._counts = {"returned": returned} if type(returned) is int else {}
        if self.service.ours or described.rows is not None:
            return
        limit = document.get("limit")
        self._limit = limit if type(limit) is int and limit > 0 else None
        self._counts = self._counts or dict(described.stated)

    def _provenance(
        self, table: pd.DataFrame, body: Mapping[str, Any], rows: int | None = None
    ) -> Provenance:
        """Return where the table, or ``rows`` of a file, come from: as the answer says it, else as was asked."""
        reading, rows = self._described, len(table) if rows is None else rows
        said = reading.said
        matched = reading.counts.get("matched", reading.stated.get("total"))
        served = self.service.transport.data
        warnings = [
            # Those of a stranger are among the signs of its answer.
            *(said.get("warnings", ()) if self.service.ours else ()),
            *reading.warnings,
            *self._notes,
            *frames.wide_columns(reading.types | self._types, table.dtypes),
        ]
        if self.service.ours and not body and said.get("fingerprint", served) != served:
            warnings.append(
                "These rows were stored before the data changed. "
                "Run the segment again for those of today."
            )
        # Those of an answer may be another's: of whoever asked for the same first, or what a stranger makes of them.
        words: Any = {**said, **body}
        return Provenance(
            segment_id=self.id,
            operation="execute_segment" if body else "export",
            service=self.service.transport.origin.url,
            status=reading.word,
            **{name: words.get(name) for name in ("operator", "filters", "limit")},
            as_of=reading.as_of or said.get("asOf"),
            chain=said.get("chain", self._of.get("chain")),
            matched=matched,
            returned=rows,
            truncated=bool(said.get("truncated", matched is not None and matched > rows)),
            columns=said.get("columns") or frames.described_columns(table),
            seconds=round(time.monotonic() - self.deadline.began, 3),
            cached=bool(said.get("cached")),
            warnings=list(dict.fromkeys(warnings)),
            since=said.get("since"),
            fingerprint=said.get("fingerprint"),
        )


def _file_of(path: Path, rows: int, about: Provenance) -> pd.DataFrame:
    with named_file(path):
        file = {"file": str(path), "rows": rows, "bytes": path.stat().st_size}
    return about.attach(frames.frame([file]))
