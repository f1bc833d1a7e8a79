"""A finished segment's rows, into a table or straight into a file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from nbext.client import frames
from nbext.client.files import csv_text, records, writer
from nbext.client.http.transport import NO_CAP, Call, Incoming
from nbext.client.provenance import of_query
from nbext.client.remote import row_counts
from nbext.client.remote.content import CSV_TYPES, VAGUE_TYPES
from nbext.client.remote.reading import Reading, Want
from nbext.client.remote.status import State
from nbext.client.segment_run import ACCEPT, Run, counts_of
from nbext.core import operations as op
from nbext.errors import ApiError, NotFound, ProtocolError, SegmentExpired

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Export:
    """One export: what the service says of the segment, and then its rows."""

    run: Run
    # Whether the service describes segments as ours does; None where that is not known yet.
    ours: bool | None
    described: Reading = field(default_factory=Reading)

    def check(self, to: str | os.PathLike[str], *, overwrite: bool) -> None:
        """Refuse a file that cannot be written, before anything is asked for."""
        writer.target_of(to, overwrite=overwrite)

    def describe(self) -> bool | None:
        """Ask for columns and counts, without which integers would stay text; return whether it is our service."""
        if self.ours is False:
            return False
        path = op.SEGMENT.format(id=self.run.id)
        try:
            found = self.run.guarded(lambda: self.run.downloads().get(self.run.call("GET", path), Want.SEGMENT))
        except (NotFound, SegmentExpired):
            if self.ours:
                raise
            return None
        except (ApiError, ProtocolError) as error:
            if isinstance(error, ApiError) and error.status in (401, 402, 403):
                raise
            return None
        if not isinstance(found.document, dict) or not {"columns", "links", "counts"} <= found.document.keys():
            return False
        self.described = found
        self.run.raise_failure(found)
        return True

    @property
    def types(self) -> dict[str, str]:
        """The types of the columns, where they are known."""
        document = self.described.document
        return frames.types_of((document or {}).get("columns") or []) if isinstance(document, dict) else {}

    def table(self) -> pd.DataFrame:
        """Return the rows as a DataFrame."""
        links = {} if self.described.document is None else self.described.document.get("links") or {}
        # The caller named the format: Arrow is only taken where rows come as a stream of the same values.
        offered = {"arrow": links["arrow"]} if self.run.file_type == "csv" and "arrow" in links else {}
        counts = counts_of(self.described)
        table: pd.DataFrame = self.run.guarded(lambda: self.run.fetch(self.types, counts, links=offered))
        of_query(table, self.described, {}, self.run)
        return table

    def file(self, to: str | os.PathLike[str], *, overwrite: bool, raw: bool) -> pd.DataFrame:
        """Write the rows to a file; return where, and how many."""
        path = writer.target_of(to, overwrite=overwrite)
        target = {"csv": op.SEGMENT_CSV, "json": op.SEGMENT_JSON}[self.run.file_type].format(id=self.run.id)
        headers = {"Accept": ACCEPT[self.run.file_type]}
        call = replace(self.run.call("GET", target, headers), cap=NO_CAP)

        def save(came: Incoming) -> int:
            # Each attempt starts its own file: what a broken one left is no part of the next.
            with writer.written(path, overwrite=overwrite) as file:
                rows = self._save(came, path, file, call, raw=raw)
                row_counts.check(rows, counts_of(self.described), None)
            return rows

        rows = self.run.guarded(lambda: self.run.transport.run(call, save))
        table = frames.frame([{"file": str(path), "rows": rows, "bytes": path.stat().st_size}])
        of_query(table, self.described, {}, self.run)
        table.attrs["nbext"]["returned"] = rows
        return table

    def _save(self, came: Incoming, path: Path, file: IO[bytes], call: Call, *, raw: bool) -> int:
        kind = came.headers.get("Content-Type", "").split(";")[0].strip().lower()
        if kind in CSV_TYPES or (kind in VAGUE_TYPES and self.run.file_type == "csv"):
            return self._save_csv(came, path, file, raw=raw)
        reading = self.run.downloads(self.types).open(came, Want.SEGMENT)
        if reading.rows is None:
            waiting = reading.state is State.RUNNING
            raise ProtocolError(f"the segment has {'not finished yet' if waiting else 'no rows in this answer'}.")
        if reading.table is not None:
            return writer.write(path.suffix.lower(), reading.table.schema, reading.table.to_batches(), file, raw=raw)
        pages = self.run.downloads(self.types).pages(reading, call)
        rows = records.save(pages, {**reading.types, **self.types}, path, file, raw=raw)
        row_counts.check(rows, reading.stated, None)
        return rows

    def _save_csv(self, came: Incoming, path: Path, file: IO[bytes], *, raw: bool) -> int:
        if raw and path.suffix.lower() == ".csv":
            csv_text.refuse_other_kinds(came.stream.peek(4096))
            return writer.copy(came.stream, file)
        schema, batches = csv_text.batches(came.stream, {**self.run.overrides.types, **self.types})
        return writer.write(path.suffix.lower(), schema, batches, file, raw=raw)
