"""The rows of an answer: made column after column, stored aside as they are made, and read row by row in batches.

Ten million rows of a few columns, or a few thousand of hundreds, are never in memory at once: what is made of a column
goes into a temporary file, and each batch of rows takes its part of every column from there.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nbext.engine.query.exact import answered, is_amount, size_of, type_of
from nbext.errors import DiskFull

if TYPE_CHECKING:
    import pyarrow as pa

# Rows of one batch: small enough that the first bytes of an export go out at once; fewer where there are many columns,
# because each export under way holds a batch in memory, whether its caller reads on or not.
BATCH = 16_384
_BATCH_BYTES = 4 << 20
_ADDRESS_BYTES, _NUMBER_BYTES = 46, 16
# Fewer bytes than these need no file.
_IN_MEMORY = 8 << 20
# Rows of which exact amounts are made at once: on the way there each takes up to 400 bytes.
_MADE_AT_ONCE = 4 * BATCH


@dataclass
class _Column:
    """A column's parts, by their places and types in the file; of exact amounts the size so far (`type_of`)."""

    type: pa.DataType
    size: float = 0
    parts: list[tuple[int, int, pa.DataType]] = field(default_factory=list)


class Rows:
    """The rows of an answer. Its file, if it has come to one, is gone when it is closed."""

    def __init__(
        self,
        number: int,
        columns: int,
        floats: Mapping[str, tuple[str, int]] | None = None,
        sizes: Mapping[str, float] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.num_rows = number
        self.per_batch = max(
            1, min(BATCH, _BATCH_BYTES // (_ADDRESS_BYTES + _NUMBER_BYTES * columns))
        )
        self._floats, self._sizes = floats or {}, sizes or {}
        self._columns: dict[str, _Column] = {}
        # Without a name: whatever ends this process, nothing is left of it.
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(folder) if folder else None)  # noqa: SIM115 - `close` ends it
        # Also where nobody closes it: rows that are forgotten are no leak.
        self._closing = weakref.finalize(self, self._file.close)
        self._end = 0

    def close(self) -> None:
        """Give back the file."""
        self._closing()

    def chunks(self, most: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges of rows to fetch one after the other, each of whole batches, about ``most`` rows."""
        step = self.per_batch * max(1, most // self.per_batch)
        return (
            (start, min(start + step, self.num_rows)) for start in range(0, self.num_rows, step)
        )

    def add(self, fetched: pa.Table) -> None:
        """Store the next rows of some columns, as an engine fetched them; all but the last are whole batches."""
        step = self.per_batch * max(1, _MADE_AT_ONCE // self.per_batch)
        # A table without rows has columns, too.
        for start in range(0, max(1, fetched.num_rows), step):
            part = fetched.slice(start, step)
            made = answered(part, self._floats)
            exact = {field.name for field in part.schema if is_amount(field.type)}
            for name in made.column_names:
                self._store(name, made[name].combine_chunks(), exact=name in exact)

    def _store(self, name: str, values: pa.Array, *, exact: bool) -> None:
        import pyarrow as pa

        column = self._columns.setdefault(name, _Column(values.type))
        if exact:
            # Of all that its token's holders have, so that a column has one type however many rows are asked for.
            column.size = max(column.size + size_of(values), self._sizes.get(name, 0))
            column.type = type_of(column.size)
        try:
            for start in range(0, len(values), self.per_batch):
                part = pa.record_batch([values.slice(start, self.per_batch)], [name]).serialize()
                column.parts.append((self._end, part.size, values.type))
                self._end += self._file.write(part)
        except OSError as error:
            raise DiskFull.where(
                error, "the rows could not be stored while they were made"
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and bool(self.table() == other.table())

    __hash__ = None  # type: ignore[assignment]  # as lists have none

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types, once all have been added."""
        import pyarrow as pa

        return pa.schema([(name, column.type) for name, column in self._columns.items()])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, `per_batch` at a time."""
        import pyarrow as pa

        schema = self.schema
        for number in range(-(-self.num_rows // self.per_batch)):
            arrays = [self._read(name, column, number) for name, column in self._columns.items()]
            yield pa.record_batch(arrays, schema=schema)

    def _read(self, name: str, column: _Column, number: int) -> pa.Array:
        import pyarrow as pa

        place, size, kind = column.parts[number]
        self._file.seek(place)
        part = pa.ipc.read_record_batch(
            pa.py_buffer(self._file.read(size)), pa.schema([(name, kind)])
        )
        return part.column(0).cast(column.type)

    def table(self) -> pa.Table:
        """Return all rows at once."""
        import pyarrow as pa

        return pa.Table.from_batches(self.batches(), self.schema)
