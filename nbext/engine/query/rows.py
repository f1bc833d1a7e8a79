"""The rows of an answer: made of what was fetched, stored aside as they are made, and read row by row in batches.

Ten million rows of a few columns, or a few thousand of hundreds, are never in memory at once: beyond some megabytes
what is made of a column goes into a temporary file, and each batch of rows takes its part of every column from there.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nbext.core.addresses import WIDTH
from nbext.core.uint256 import amount_type, size_of
from nbext.engine.exact_columns import exact_amounts, quotients
from nbext.errors import DiskFull

# Letters of an address.
ADDRESS_LENGTH = 42
# Rows of one batch: small enough that the first bytes of an export go out at once; fewer where there are many columns,
# because each export under way holds a batch in memory, whether its caller reads on or not.
BATCH = 16_384
_BATCH_BYTES = 4 << 20
_ADDRESS_BYTES, _NUMBER_BYTES = 46, 16
# Fewer bytes than these need no file: those of 450,000 wallets and an amount. Two answers at once hold twice as many,
# beside 210 MB of an idle process: with 64 MB two of 1.5 million wallets had a peak of 631 MB, and 537 with these.
_IN_MEMORY = 32 << 20
# An amount of three limbs; a count, of which missing is 0; a time in seconds since 1970, or a number, that may be
# missing; whether a wallet is in a set. Not the engine's own timestamps: some are in its time zone.
ColumnKind = Literal["amount", "count", "time", "number", "match"]


@dataclass
class _Column:
    """A column's parts, or their places and types in the file; of exact amounts the size so far (`amount_type`)."""

    type: pa.DataType
    size: float = 0
    parts: list[pa.Array | tuple[int, int, pa.DataType]] = field(default_factory=list)


class Rows:
    """The rows of an answer. Its file, if it has come to one, is gone when it is closed."""

    def __init__(
        self, number: int, columns: int, floats: Mapping[str, tuple[str, int]], folder: str | None
    ) -> None:
        self.num_rows = number
        self.per_batch = min(BATCH, _BATCH_BYTES // (_ADDRESS_BYTES + _NUMBER_BYTES * columns))
        self._floats = floats
        self._columns: dict[str, _Column] = {}
        # Without a name: whatever ends this process, nothing is left of it.
        self._file = tempfile.SpooledTemporaryFile(1, dir=folder)  # noqa: SIM115 - `close` ends it
        # Also where nobody closes it: rows that are forgotten are no leak.
        self._closing = weakref.finalize(self, self._file.close)
        self._held = self._end = 0
        self._worker, self._adding = ThreadPoolExecutor(1), Future[Any]()
        self._adding.set_result(None)

    def close(self) -> None:
        """Give back the file."""
        self._worker.shutdown()
        self._closing()

    def chunks(self, most: int) -> Iterator[slice]:
        """Yield the ranges of rows to fetch one after the other, each of whole batches, about ``most`` rows."""
        step = self.per_batch * max(1, most // self.per_batch)
        # A column without rows has a type, too.
        return (slice(start, start + step) for start in range(0, max(1, self.num_rows), step))

    def add(
        self, name: str, fetched: pa.Array, kind: ColumnKind | Literal["address"], size: float = 0
    ) -> None:
        """Store the next rows of a column, as an engine fetched them; all but the last are whole batches.

        Of an amount, which is an `AMOUNT`, the exact number is stored, and before it the floats that are made of it.
        ``size`` is the size of the column at least (`amount_type`). What fails may be raised by what is done next.
        """
        self._adding.result()
        # Beside what the engine fetches next: of 700,000 wallets a sixth of all. Of a few, a thread takes longer.
        if len(fetched) > self.per_batch:
            self._adding = self._worker.submit(self._add, name, fetched, kind, size)
        else:
            self._add(name, fetched, kind, size)

    def _add(self, name: str, fetched: pa.Array, kind: str, size: float) -> None:
        if kind == "amount":
            fetched = exact_amounts(fetched)
        elif kind == "time":
            fetched = fetched.cast(pa.timestamp("s", "UTC"))
        elif kind in ("count", "match"):
            fetched = pc.fill_null(fetched, 0)
        # Of 16,384 rows at a time all steps of a division stay in the processor's cache: a third of the time.
        for start in range(0, max(1, len(fetched)), self.per_batch):
            part = fetched.slice(start, self.per_batch)
            for floats, (exact, divisor) in self._floats.items():
                if exact == name:
                    self._store(floats, quotients(part, [divisor]))
            column = self._store(name, part)
        if kind == "amount":
            # Of all that its token's holders have, so that a column has one type however many rows are asked for.
            column.size = max(column.size + size_of(fetched), size)
            column.type = amount_type(column.size)

    def _store(self, name: str, part: pa.Array) -> _Column:
        column = self._columns.setdefault(name, _Column(part.type))
        # Of what was fetched at once the last may go into the file, while the first hold all of it.
        self._held += part.nbytes
        if self._held > _IN_MEMORY:
            packed = pa.record_batch([part], [""]).serialize()
            place, kind = self._end, part.type
            try:
                self._end += self._file.write(packed)
            except OSError as error:
                raise DiskFull.where(
                    error, "the rows could not be stored while they were made"
                ) from None
            part = place, packed.size, kind
        column.parts.append(part)
        return column

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types, once all have been added."""
        self._adding.result()
        return pa.schema([(name, column.type) for name, column in self._columns.items()])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, `per_batch` at a time."""
        schema = self.schema
        for number in range(-(-self.num_rows // self.per_batch)):
            arrays = []
            for column in self._columns.values():
                part = column.parts[number]
                if isinstance(part, tuple):
                    place, size, stored = part
                    self._file.seek(place)
                    packed = pa.py_buffer(self._file.read(size))
                    part = pa.ipc.read_record_batch(packed, pa.schema([("", stored)])).column(0)
                arrays.append(part.cast(column.type))
            yield pa.record_batch(arrays, schema=schema)

    def table(self) -> pa.Table:
        """Return all rows at once."""
        return pa.Table.from_batches(self.batches(), self.schema)


def addresses_of_bytes(packed: bytes) -> pa.StringArray:
    """Return the addresses whose 20 bytes follow each other, as texts."""
    texts = "0x" + packed.hex(" ", WIDTH).replace(" ", "0x")
    return address_column(np.frombuffer(texts.encode(), np.uint8).reshape(-1, ADDRESS_LENGTH))


def address_column(texts: np.ndarray[Any, np.dtype[np.uint8]]) -> pa.StringArray:
    """Return the rows of a matrix of letters, each an address, as texts."""
    offsets = np.arange(len(texts) + 1, dtype=np.int32) * ADDRESS_LENGTH
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(texts))
