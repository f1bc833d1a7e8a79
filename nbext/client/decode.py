"""What an answer says, and how the answers of our own service are decoded.

`Reading` is what every decoder makes of an answer. `of_ours` decodes the shapes of `nbext.core.wire`, and refuses
any other. What guesses at a stranger's answers is `nbext.client.remote`, which loads when a stranger is asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nbext.core import wire
from nbext.core.rules import unlike
from nbext.core.strict_json import NotJson, read_answer
from nbext.errors import AmbiguousAnswer, ProtocolError
from nbext.http.body import NO_CAP, retry_after

if TYPE_CHECKING:
    from nbext.http.body import Answer, Incoming


class Want(Enum):
    """What the caller asked for: a segment (its rows or its state), a table, one record, or just a receipt."""

    SEGMENT = "a segment"
    TABLE = "a table"
    RECORD = "one record"
    RECEIPT = "a receipt"


class State(Enum):
    """The state of a segment, as far as it matters to who waits for it."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


@dataclass
class Reading:
    """What one answer says."""

    document: Any = field(default=None, repr=False)
    records: list[dict[str, Any]] | None = field(default=None, repr=False)
    table: pa.Table | None = field(default=None, repr=False)
    # Types of columns by name: what the answer itself says of them.
    types: dict[str, str] = field(default_factory=dict)
    # And what the settings say of those of a stranger, by our names.
    configured: dict[str, str] = field(default_factory=dict)
    id: str | None = None
    # Where the rows are, in place of the rows.
    url: str | None = None
    # The address that answered, where an answer before it named that.
    source: str | None = None
    # Where its state can be asked for, in place of by its id.
    poll: str | None = None
    # The service's own word for the state.
    word: str | None = None
    state: State | None = None
    reason: str = ""
    retry_after: float | None = None
    # Numbers of rows that the answer states: ``returned``, ``total``, ``count``.
    stated: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    # The addresses of files that hold its rows.
    parts: list[str] = field(default_factory=list)
    # The error to raise once it is clear that its status word must be asked about; and the one that names what may be
    # its rows, for when there are none anywhere else.
    doubt: AmbiguousAnswer | None = None
    instead: AmbiguousAnswer | None = None
    # The service's own time of its data.
    as_of: Mapping[str, Any] | None = None

    @property
    def said(self) -> dict[str, Any]:
        """The fields of the answer, none where it is no object: a stranger's may be anything."""
        return self.document if isinstance(self.document, dict) else {}

    @property
    def counts(self) -> dict[str, Any]:
        """The numbers of rows that our own service names ``counts``; a stranger's may be anything."""
        counts = self.said.get("counts")
        return counts if isinstance(counts, dict) else {}

    @property
    def rows(self) -> int | None:
        """How many rows came, or None where the answer holds no table."""
        if self.records is not None:
            return len(self.records)
        return None if self.table is None else int(self.table.num_rows)


# Ends every error about a stranger's answer.
HINT = "`%nbext last-answer` shows the answer's fields and the lines of settings that read them."


def of_ours(came: Incoming, want: Want, operation: str) -> Reading:
    """Return what an answer of our own service says."""
    if came.content_type == wire.ARROW_TYPE:
        came.cap = NO_CAP
        schema, batches = arrow_batches(came)
        return Reading(table=pa.Table.from_batches(batches, schema))
    document, warnings = json_object(came.whole())
    reading = Reading(document, warnings=warnings)
    if want is Want.RECEIPT:
        return reading
    if want is Want.RECORD:
        shape = wire.CollectionAnswer if operation == "nft" else wire.TokenAnswer
        _check(shape, document, "address")
        reading.records = [document]
        reading.warnings += document.pop("warnings", ())
    elif "items" in document:
        _check(wire.SearchAnswer, document, "items", "total")
        reading.records, reading.types = document["items"], wire.SEARCH_FIELDS
        reading.stated = {"total": document["total"]}
        reading.warnings += document.get("warnings", ())
    else:
        _check(wire.SegmentAnswer, document, "id", "status", "counts", "columns")
        status, error = document["status"], document.get("error")
        reading.id, reading.word = document["id"], status
        reading.state = State.RUNNING if status == "queued" else State(status)
        reading.retry_after = retry_after(came.headers)
        if isinstance(error, dict):
            reading.reason = str(error.get("detail") or "")
    return reading


def _check(shape: Any, document: dict[str, Any], *needed: str) -> None:
    if wrong := unlike(shape, document, needed):
        name = wrong.rpartition("/")[2]
        raise ProtocolError(
            f'The answer of nbext\'s own service has no valid "{name}". '
            "Client and service may be of different versions."
        )


def json_object(answer: Answer) -> tuple[dict[str, Any], list[str]]:
    """Return the JSON object that an answer holds, and warnings about what had to be replaced in it."""
    try:
        document, warnings = read_answer(answer.body)
    except NotJson as error:
        raise ProtocolError(f"{answer.url} did not answer with JSON: {error}.") from None
    if not isinstance(document, dict):
        raise ProtocolError(f"{answer.url} did not answer with a JSON object.")
    return document, warnings


def arrow_batches(source: Incoming) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema of an Arrow IPC stream, and its batches while they arrive: they may be more than memory."""
    with _not_arrow():
        reader = pa.ipc.open_stream(source)

    def batches() -> Iterator[pa.RecordBatch]:
        with _not_arrow():
            yield from reader
        # A reader takes the body's end for the mark that ends a stream, and leaves what follows that mark unread.
        if source.ended or source.peek(1):
            raise ProtocolError(
                "The answer is not one whole Arrow stream: it has no mark of its end there, and rows may be missing."
            )

    return reader.schema, batches()


def refuse_other_kinds(head: bytes) -> None:
    """Refuse a body that is declared as CSV and plainly is something else."""
    start = head.lstrip()[:1]
    if start == b"<":
        raise ProtocolError("The answer is declared as CSV, but is HTML or other markup (line 1).")
    if start in (b"{", b"["):
        raise ProtocolError("The answer is declared as CSV, but is JSON (line 1).")
    if b"\r" in head.rstrip(b"\r") and b"\n" not in head:
        raise ProtocolError(
            "The answer's lines end in CR (line 1); CSV ends them with LF or CR LF."
        )


@contextlib.contextmanager
def _not_arrow() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        # That a stream is cut is a plain OSError; one of the network has a number, or a type of its own.
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno is not None):
            raise
        raise ProtocolError(f"The answer is not a valid Arrow stream: {str(error)[:200]}") from None


def check_count(
    came: int, stated: Mapping[str, int], limit: int | None, *, is_page: bool = False
) -> None:
    """Refuse fewer or more rows than the service states, or than the limit; a page (``is_page``) may have fewer."""
    if limit and came > limit:
        raise ProtocolError(f"The limit was {limit:,} rows, but {came:,} came.")
    for expected in miscounted(came, stated, limit).values():
        if not is_page or came > expected:
            raise ProtocolError(f"The service states {expected:,} rows, but {came:,} came.")


def miscounted(came: int, stated: Mapping[str, int], limit: int | None) -> dict[str, int]:
    """Return those numbers of rows that a service states and that did not come.

    A limit keeps fewer rows than match; of what is ``returned`` none may be missing.
    """
    return {
        name: expected
        for name, expected in stated.items()
        if came != expected
        and (name == "returned" or limit is None or came != min(limit, expected))
    }
