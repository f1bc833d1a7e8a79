"""A segment's way: execute, wait until it is done, fetch its rows."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbext.client import frames
from nbext.client.downloads import Downloads
from nbext.client.http.deadline import Deadline
from nbext.client.http.redact import shown
from nbext.client.http.retry import Repeat
from nbext.client.http.transport import Call, Scope, Transport
from nbext.client.progress import Progress, Reporter, no_report
from nbext.client.provenance import of_query
from nbext.client.remote import row_counts
from nbext.client.remote.profile import Overrides
from nbext.client.remote.reading import Reading, Want
from nbext.client.remote.status import State
from nbext.core import operations as op
from nbext.errors import (
    ApiError,
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

if TYPE_CHECKING:
    import pandas as pd

FIRST_POLL, LONGEST_POLL = 0.2, 5.0
_FAILURES: dict[State, type[SegmentFailed]] = {
    State.FAILED: SegmentFailed,
    State.TIMED_OUT: QueryTimeout,
    State.EXPIRED: SegmentExpired,
}
ACCEPT = {"json": "application/json", "csv": "text/csv, application/json;q=0.5", "arrow": op.ARROW_TYPE}


@dataclass
class Run:
    """One segment on its way to the caller."""

    transport: Transport
    overrides: Overrides
    deadline: Deadline
    file_type: str = "json"
    limit: int | None = None
    ours: bool = False
    tell: Reporter = no_report
    id: str | None = None

    def __post_init__(self) -> None:
        self.scope = Scope()
        self._word = ""
        self._told = 0.0

    def execute(self, body: Mapping[str, Any]) -> pd.DataFrame:
        """Run the query; return its rows, with where they come from in ``attrs["nbext"]``."""
        headers = {
            op.IDEMPOTENCY_HEADER: str(uuid.uuid4()),
            # A short wait here: a long query is then known by its id, and can be cancelled.
            "Prefer": "wait=1",
            "Accept": f"application/json, {ACCEPT['csv']};q=0.9",
        }
        call = replace(
            self.call("POST", op.EXECUTE, headers),
            body=json.dumps(body).encode(),
            repeat=Repeat.ALWAYS if self.ours else Repeat.IF_REFUSED,
            patient=True,
        )
        reading = self.guarded(lambda: self._settled(self.downloads().get(call, Want.SEGMENT)))
        table: pd.DataFrame = self.guarded(lambda: self._rows(reading, call))
        of_query(table, reading, body, self)
        return table

    def guarded(self, step: Any) -> Any:
        """Do a step; interrupted, it ends at once, and our own service is told to stop."""
        try:
            return step()
        except (KeyboardInterrupt, QueryCancelled):
            self.scope.end()
        told = self._cancel()
        raise QueryCancelled(f"the query was interrupted{f'; segment {self.id}{told}' if self.id else ''}.")

    def _cancel(self) -> str:
        if not (self.ours and self.id):
            return " may still be running there" if self.id else ""
        try:
            self.transport.fetch(Call("DELETE", op.SEGMENT.format(id=self.id), Deadline(2.0)))
        except NbextError:
            return " may still be running there"
        return " was told to stop"

    def _settled(self, reading: Reading) -> Reading:
        """Ask until the segment is done, or the deadline ends the wait."""
        wait, asked = FIRST_POLL, False
        while True:
            self.id = reading.id or self.id
            self.raise_failure(reading)
            unclear = reading.state is None and reading.rows is None and self.id is not None and not asked
            if reading.state is not State.RUNNING and not unclear:
                return reading
            self._report("running", reading.word or "")
            if reading.state is State.RUNNING:
                self._sleep(wait if reading.retry_after is None else min(reading.retry_after, LONGEST_POLL))
            wait, asked = min(wait * 1.5, LONGEST_POLL), True
            reading = self._poll(reading)

    def _poll(self, last: Reading) -> Reading:
        if self.id is None:
            raise ProtocolError("the service says that the segment runs, and not under which id.")
        call = self.call("GET", op.SEGMENT.format(id=self.id), {"Prefer": "wait=10"})
        try:
            return self.downloads().get(call, Want.SEGMENT)
        except DeadlineExceeded:
            pass
        except NotFound:
            if last.state is not None:
                raise
            # Nobody said that it can be asked for by its id: what is left is to ask for its rows.
            return replace(last, state=State.COMPLETED)
        raise self._too_late()

    def _too_late(self) -> DeadlineExceeded:
        where = f" It was last seen as {shown(self._word, length=60)!r}." if self._word else ""
        return DeadlineExceeded(
            f"segment {self.id} was not done within {self.deadline.seconds:g} s.{where} "
            f"It may still finish: ask for it by its id.",
            segment_id=self.id,
        )

    def _sleep(self, seconds: float) -> None:
        if seconds >= self.deadline.remaining():
            # What is left would be slept through: wait for the end, and say so.
            self.scope.ended.wait(self.deadline.remaining())
            raise self._too_late()
        self.scope.ended.wait(seconds)

    def raise_failure(self, reading: Reading) -> None:
        """Raise what the segment ended with, where it ended without a result."""
        if reading.state is State.CANCELLED:
            raise QueryCancelled(f"segment {self.id} was cancelled.")
        kind = _FAILURES.get(reading.state) if reading.state else None
        if kind:
            word = shown(reading.word, self.transport.key, 60)
            reason = shown(reading.reason, self.transport.key) or "the service does not say why"
            raise kind(f"segment {self.id} {word}: {reason}" if self.id else reason, segment_id=self.id)

    def _rows(self, reading: Reading, call: Call) -> pd.DataFrame:
        counts = counts_of(reading)
        types = frames.types_of(_columns(reading))
        if self.limit == 0:
            return frames.frame([], types)
        if reading.rows is None and reading.url is None and self.id is not None:
            return self.fetch(types, counts, links=_links(reading))
        if reading.rows is None and reading.url is not None:
            call = self.call("GET", reading.url)
            reading = self.downloads(types).get(call)
        return self.table(reading, call, counts)

    def fetch(self, types: Mapping[str, str], counts: Mapping[str, int], links: Mapping[str, str]) -> pd.DataFrame:
        """Return the rows of the segment by its id: as Arrow where that is offered, else by file type."""
        kind = "arrow" if "arrow" in links else self.file_type
        path = {"arrow": links.get("arrow", ""), "csv": op.SEGMENT_CSV, "json": op.SEGMENT_JSON}[kind]
        call = self.call("GET", path.format(id=self.id) if kind != "arrow" else path, {"Accept": ACCEPT[kind]})
        reading = self._ready(call, types)
        return self.table(reading, call, counts, types)

    def _ready(self, call: Call, types: Mapping[str, str]) -> Reading:
        """Fetch, and again while the service says: not yet."""
        wait = FIRST_POLL
        while True:
            try:
                reading = self.downloads(types).get(call, Want.SEGMENT)
            except Conflict:
                pass
            except DeadlineExceeded:
                raise
            except ApiError as error:
                if error.status != 425:
                    raise
            else:
                if reading.rows is not None:
                    return reading
                if reading.state is not State.RUNNING:
                    self.raise_failure(reading)
                    raise ProtocolError("rows were asked for, and the answer holds none.")
            self._report("running", "not ready")
            self._sleep(wait)
            wait = min(wait * 1.5, LONGEST_POLL)

    def table(
        self, reading: Reading, call: Call, counts: Mapping[str, int], types: Mapping[str, str] | None = None
    ) -> pd.DataFrame:
        """Return what was read as a DataFrame, once its rows are counted."""
        types = {**reading.types, **(types or {})}
        told = {**reading.stated, **counts}
        if reading.table is not None:
            row_counts.check(reading.table.num_rows, told, self.limit)
            return frames.arrow_frame(reading.table, {**self.overrides.types, **types})
        records = self.downloads(types).all_pages(reading, call)
        row_counts.check(len(records), told, self.limit)
        # Read whole already: the rows are handed over, not kept beside the table.
        reading.records, reading.document = None, None if reading.id is None else reading.document
        return frames.frame(records, types, self.overrides.types)

    def downloads(self, types: Mapping[str, str] | None = None) -> Downloads:
        """Return what reads this segment's answers."""
        return Downloads(self.transport, self.overrides, types or {})

    def call(self, method: str, target: str, headers: Mapping[str, str] | None = None) -> Call:
        """Return a request within this segment's deadline."""
        return Call(method, target, self.deadline, headers=headers or {}, scope=self.scope, told=self._fetched)

    def _report(self, phase: Any, word: str) -> None:
        self._word = word
        self.tell(Progress(phase, word, self.id, self.deadline.spent()))

    def _fetched(self, done: int, total: int | None) -> None:
        # Ten reports a second are enough for any display.
        if time.monotonic() - self._told > 0.1:
            self._told = time.monotonic()
            self.tell(Progress("fetching", "", self.id, self.deadline.spent(), done, total))


def _columns(reading: Reading) -> list[Any]:
    document = reading.document
    columns = document.get("columns") if isinstance(document, dict) else None
    return columns if isinstance(columns, list) else []


def _links(reading: Reading) -> dict[str, str]:
    links = reading.document.get("links") if isinstance(reading.document, dict) else None
    return {k: v for k, v in links.items() if isinstance(v, str)} if isinstance(links, dict) else {}


def counts_of(reading: Reading) -> dict[str, int]:
    """Return how many rows the segment is said to have."""
    counts = reading.document.get("counts") if isinstance(reading.document, dict) else None
    returned = counts.get("returned") if isinstance(counts, dict) else None
    return {"returned": returned} if type(returned) is int else {}
