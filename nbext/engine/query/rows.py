"""The rows of an answer: made of what was fetched, stored aside as they are made, and read row by row in batches.

Ten million rows of a few columns, or a few thousand of hundreds, are never in memory at once: what is made of a column
goes into a temporary file, and each batch of rows takes its part of every column from there.
"""

from __future__ import annotations

import math
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from nbext.core.addresses import WIDTH
from nbext.core.uint256 import LIMB_BASE, LIMB_DIGITS, digits_of_column
from nbext.engine.schema import LIMBS
from nbext.errors import DiskFull

# Letters of an address.
ADDRESS_LENGTH = 42
# Rows of one batch: small enough that the first bytes of an export go out at once; fewer where there are many columns,
# because each export under way holds a batch in memory, whether its caller reads on or not.
BATCH = 16_384
_BATCH_BYTES = 4 << 20
_ADDRESS_BYTES, _NUMBER_BYTES = 46, 16
# Fewer bytes than these need no file.
_IN_MEMORY = 8 << 20
# Rows of which exact amounts are made at once: on the way there each takes up to 400 bytes.
_MADE_AT_ONCE = 4 * BATCH
# The field of a time's struct, by which it is told from a number's.
_SECONDS = "seconds"
_LIMB = pa.decimal128(38, 0)
# An amount of three limbs; a count, of which missing is 0; a time in seconds since 1970, or a number, that may be
# missing; whether a wallet is in a set.
ColumnKind = Literal["amount", "count", "time", "number", "match"]
# The type of a fetched column, by its kind; `answered` makes exact numbers and times of it. A struct of one field is a
# number that a wallet may be without: there null is not 0. Not the engine's own timestamps: some are in its time zone.
FETCHED: dict[ColumnKind, Any] = {
    "amount": pa.struct([(limb, _LIMB) for limb in LIMBS]),
    "count": pa.int64(),
    "time": pa.struct([(_SECONDS, pa.int64())]),
    "number": pa.struct([("number", pa.int64())]),
    "match": pa.int64(),
}


@dataclass
class _Column:
    """A column's parts, by their places and types in the file; of exact amounts the size so far (`amount_type`)."""

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
            exact = {one.name for one in part.schema if has_amounts(one.type)}
            for name in made.column_names:
                self._store(name, made[name].combine_chunks(), exact=name in exact)

    def _store(self, name: str, values: pa.Array, *, exact: bool) -> None:
        column = self._columns.setdefault(name, _Column(values.type))
        if exact:
            # Of all that its token's holders have, so that a column has one type however many rows are asked for.
            column.size = max(column.size + size_of(values), self._sizes.get(name, 0))
            column.type = amount_type(column.size)
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
        return pa.schema([(name, column.type) for name, column in self._columns.items()])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, `per_batch` at a time."""
        schema = self.schema
        for number in range(-(-self.num_rows // self.per_batch)):
            arrays = [self._read(name, column, number) for name, column in self._columns.items()]
            yield pa.record_batch(arrays, schema=schema)

    def _read(self, name: str, column: _Column, number: int) -> pa.Array:
        place, size, kind = column.parts[number]
        self._file.seek(place)
        part = pa.ipc.read_record_batch(
            pa.py_buffer(self._file.read(size)), pa.schema([(name, kind)])
        )
        return part.column(0).cast(column.type)

    def table(self) -> pa.Table:
        """Return all rows at once."""
        return pa.Table.from_batches(self.batches(), self.schema)


def answered(rows: pa.Table, floats: Mapping[str, tuple[str, int]]) -> pa.Table:
    """Return fetched rows as an answer's: amounts as exact numbers, with floats before them, times as timestamps.

    Null, a wallet without it, is 0 of amounts and counts.

    The type of exact numbers is `amount_type` their size. ``floats`` is that of `nbext.engine.dataset.Question`.
    """
    import pyarrow.compute as pc

    columns: dict[str, Any] = {}
    for one in rows.schema:
        values = rows[one.name]
        if has_amounts(one.type):
            amounts = _amounts(values.combine_chunks())
            amounts = amounts.cast(amount_type(size_of(amounts)))
            if one.name in floats:
                name, decimals = floats[one.name]
                columns[name] = _in_units(amounts, decimals)
            columns[one.name] = amounts
        elif pa.types.is_struct(one.type):
            columns[one.name] = _value(values.combine_chunks())
        else:
            columns[one.name] = pc.fill_null(values, 0) if pa.types.is_integer(one.type) else values
    return pa.table(columns)


def has_amounts(fetched: pa.DataType) -> bool:
    """Say whether a fetched column has amounts: a time, or a number that may be missing, is a struct of one field."""
    return bool(pa.types.is_struct(fetched) and fetched.num_fields > 1)


def size_of(amounts: pa.Array) -> float:
    """Return the sum of exact amounts without their signs, by which `amount_type` chooses: a number, or infinity."""
    import pyarrow.compute as pc

    if pa.types.is_string(amounts.type):
        return math.inf
    least, most = (bound.as_py() or 0 for bound in pc.min_max(amounts).values())
    if least >= 0 and most * len(amounts) < 10**38:
        return int(pc.sum(amounts).as_py() or 0)
    amounts = pc.abs(amounts.cast(pa.decimal256(76, 0)))
    near = pc.sum(amounts.cast(pa.float64())).as_py() or 0
    # Near enough where an exact sum might not fit; exact where it decides.
    return near if near > 1e70 else int(pc.sum(amounts).as_py() or 0)


def amount_type(size: float) -> pa.DataType:
    """Return the type of a column of exact amounts of that size, in which their sum fits too."""
    return {38: pa.decimal128(38, 0), 76: pa.decimal256(76, 0), None: pa.string()}[
        digits_of_column(size)
    ]


def addresses_of_bytes(packed: bytes) -> pa.StringArray:
    """Return the addresses whose 20 bytes follow each other, as texts."""
    halves = np.frombuffer(packed, np.uint8).reshape(-1, WIDTH)
    texts = np.empty((len(halves), ADDRESS_LENGTH), np.uint8)
    texts[:, :2] = np.frombuffer(b"0x", np.uint8)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    texts[:, 2::2], texts[:, 3::2] = digits[halves >> 4], digits[halves & 15]
    return address_column(texts)


def address_column(texts: np.ndarray[Any, np.dtype[np.uint8]]) -> pa.StringArray:
    """Return the rows of a matrix of letters, each an address, as texts."""
    offsets = np.arange(len(texts) + 1, dtype=np.int32) * ADDRESS_LENGTH
    return pa.StringArray.from_buffers(
        len(texts), pa.py_buffer(offsets), pa.py_buffer(texts.tobytes())
    )


def in_exact_order(rows: pa.Table, column: str, ties: str, *, descending: bool) -> pa.Table:
    """Return rows, before `answered`, ordered by one of their columns exactly; missing last, ties by another column."""
    import pyarrow.compute as pc

    values = rows[column].combine_chunks()
    parts = values.flatten() if pa.types.is_struct(values.type) else [values]
    # Of an amount or a count, missing is 0; a time, or a number that may be missing, is last.
    if len(parts) > 1 or pa.types.is_integer(values.type):
        parts = [pc.fill_null(part, pa.scalar(0).cast(part.type)) for part in parts]
    keys = {str(number): part for number, part in enumerate(parts)}
    direction: Any = "descending" if descending else "ascending"
    by: Any = [*((name, direction) for name in keys), ("ties", "ascending")]
    table = pa.table({**keys, "ties": rows[ties].combine_chunks()})
    # Nulls come last by default, in either direction.
    return rows.take(pc.sort_indices(table, sort_keys=by))


def _in_units(amounts: pa.Array, decimals: int) -> pa.Array:
    """Return exact amounts in a token's unit, each as the float that is nearest to it."""
    import pyarrow.compute as pc

    # Reading a text rounds once. Dividing floats rounds the amount first and the quotient after it.
    return pc.binary_join_element_wise(amounts.cast(pa.string()), f"e-{decimals}", "").cast(
        pa.float64()
    )


def _value(column: pa.StructArray) -> pa.Array:
    (value,) = column.flatten()
    return (
        value.cast(pa.int64()).cast(pa.timestamp("s", "UTC"))
        if column.type[0].name == _SECONDS
        else value
    )


def _amounts(limbs: pa.StructArray) -> pa.Array:
    """Return the integers of limbs, without a Python loop: two of 26 digits by arithmetic, three as text."""
    import pyarrow.compute as pc

    # Not in SQL: padding and signs of three limbs make a query that nobody can read, and slow to plan.
    hi, mid, lo = (pc.fill_null(limb, Decimal(0)) for limb in limbs.flatten())
    if _any(hi):
        texts = _texts(hi, mid, lo)
        # Measured, because a cast of more digits than 76 returns another number without a word.
        longest = pc.max(pc.utf8_length(pc.utf8_ltrim(texts, "-"))).as_py()
        return texts.cast(pa.decimal256(76, 0)) if longest <= 76 else texts
    if not _any(mid):
        return lo
    limb = pa.decimal256(LIMB_DIGITS, 0)
    whole = pc.add(pc.multiply(mid.cast(limb), pa.scalar(Decimal(LIMB_BASE))), lo.cast(limb))
    return whole.cast(
        pa.decimal128(38, 0) if pc.max(whole).as_py() < 10**38 else pa.decimal256(76, 0)
    )


def _texts(hi: pa.Array, mid: pa.Array, lo: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    zero, base = Decimal(0), Decimal(LIMB_BASE)
    below = pc.less(hi, zero)
    # The size of a negative number: its limbs subtracted from nothing, each borrowing from the next.
    size, borrowed = list[pa.Array](), zero
    # Sums have a digit more than their terms, so that the terms must not claim all that the type has.
    hi, mid, lo = (limb.cast(pa.decimal256(38, 0)) for limb in (hi, mid, lo))
    for limb in (lo, mid):
        taken = pc.add(limb, borrowed)
        rest = pc.if_else(pc.equal(taken, zero), taken, pc.subtract(base, taken))
        size.insert(0, pc.if_else(below, rest, limb))
        borrowed = pc.if_else(pc.equal(taken, zero), zero, Decimal(1))
    first = pc.if_else(below, pc.subtract(pc.negate(hi), borrowed), hi)
    texts = (
        first.cast(pa.string()),
        *(pc.utf8_lpad(limb.cast(pa.string()), LIMB_DIGITS, "0") for limb in size),
    )
    digits = pc.utf8_ltrim(pc.binary_join_element_wise(*texts, ""), "0")
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    return pc.if_else(below, pc.binary_join_element_wise("-", digits, ""), digits)


def _any(limb: pa.Array) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.not_equal(limb, Decimal(0))).as_py())
