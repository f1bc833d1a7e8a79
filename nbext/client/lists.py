"""Lists of wallets in filters: columns, sets and files, checked in bulk, and stored with our own service once.

``{"wallet": {"in": ...}}`` takes any of them. Our own service gets a long one as the 20 bytes of each address, under
the hash of these bytes, and is then asked by that. A stranger's service gets its values, as they are written.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nbext.client.service import Service
from nbext.client.validate import MAX_LEVELS, address_of
from nbext.core import wire as op
from nbext.core.addresses import WIDTH, list_id
from nbext.core.strict_json import NotJson
from nbext.core.untrusted_text import shown, visible
from nbext.errors import InvalidSegment, NotFound, ProtocolError, ValidationError

if TYPE_CHECKING:
    import pyarrow as pa

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
# Filters travel with every table as ``df.attrs``, which pandas copies at each step.
# Up to here they stay where people can read them; a longer list is its hash.
INLINE = 1_000
ENDINGS = (".csv", ".txt", ".parquet")
# Addresses that are read at a time: what is computed of so many stays in a core's cache.
_STEP = 4_096
_TEXT = 42
# Enough to find the mistake by; a file of something else has a million.
_MOST_FAULTS = 20
_HALVES = np.full(256, 255, np.uint8)
_HALVES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_HALVES[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


class Wallets:
    """Many wallets given as one value, read when they are first needed.

    Parameters
    ----------
    value
        A column, a set, any iterable of addresses; a frame with an ``address`` column; or ``@FILE``.
    source
        How it was written, for messages: ``{{allow.address}}``, ``@allow.csv``.
    as_json
        Makes the value JSON for a service that is not ours; without it, its values are listed.
    """

    def __init__(
        self, value: Any, source: str, as_json: Callable[[Any], Any] | None = None
    ) -> None:
        self.source = source
        self._value, self._as_json = value, as_json or _values
        self._packed: bytes | None = None
        self._id, self._count = "", 0

    def __str__(self) -> str:
        return (
            f"{self._count:,} wallets of {self.source} ({self._id})"
            if self._id
            else f"wallets of {self.source}"
        )

    @property
    def id(self) -> str:
        """The list's id; `InvalidSegment` where a value is no address."""
        self._read()
        return self._id

    @property
    def count(self) -> int:
        """How many different wallets there are."""
        self._read()
        return self._count

    @property
    def packed(self) -> bytes | None:
        """The 20 bytes of each address, in order and each once; None of what `without_addresses` returned."""
        self._read()
        return self._packed

    def texts(self) -> Any:
        """Return the values as JSON: as they were written, or once they were read as addresses, in order."""
        if self._packed is None:
            return self._as_json(
                _file(self._value)[0].to_pylist() if self._is_file else self._value
            )
        return [
            "0x" + self._packed[at : at + WIDTH].hex() for at in range(0, len(self._packed), WIDTH)
        ]

    def without_addresses(self) -> Any:
        """Return what a history remembers of it: the list by its id, or a short list itself."""
        if not self._id or self._is_file or self._count <= INLINE:
            return self.source if self._is_file else self.texts()
        light = Wallets(None, self.source)
        light._id, light._count = self._id, self._count
        return light

    @property
    def _is_file(self) -> bool:
        return isinstance(self._value, str)

    def _read(self) -> None:
        if self._id:
            return
        rows, place = _file(self._value) if self._is_file else _column(self._value)
        addresses = np.sort(_packed(rows, place, self.source).view(f"S{WIDTH}").ravel())
        self._packed = addresses[
            np.append(True, addresses[1:] != addresses[:-1])[: len(addresses)]
        ].tobytes()
        self._count = len(self._packed) // WIDTH
        # A column's text takes three times as much memory, and its owner may change it.
        self._value = self._value if self._is_file else None
        self._id = list_id([self._packed])


Rows = tuple["pa.Array", Callable[[int], str]]


def as_sent(filters: Any, *, ours: bool) -> tuple[Any, dict[str, Wallets]]:
    """Return filters as a service gets them, and the lists that they name by an id."""
    lists: dict[str, Wallets] = {}

    def change(given: Any, alone: bool) -> dict[str, Any]:
        # Of another service's grammar, a text that begins with @ may be anything.
        if isinstance(given, str) and not (ours or given.lower().endswith(ENDINGS)):
            return {"in": given}
        one = _wallets(given)
        if not ours or not alone or one.count <= INLINE:
            return {"in": one.texts()}
        lists[one.id] = one
        return {"list": one.id}

    return _changed(filters, change, "/filters"), lists


def are_in(filters: Any) -> bool:
    """Say whether filters have lists, which our own service and others get in different ways."""
    found: list[Any] = []

    def change(given: Any, alone: bool) -> dict[str, Any]:
        found.append(given)
        return {"in": given}

    _changed(filters, change, "/filters")
    return bool(found)


def remembered(filters: Any, *, by_id: bool = False) -> Any:
    """Return filters without the addresses of their long lists: with a summary of each, or with its id."""

    def change(given: Any, alone: bool) -> dict[str, Any]:
        light = _wallets(given).without_addresses()
        return {"list": light.id} if by_id and isinstance(light, Wallets) else {"in": light}

    return _changed(filters, change, "/filters")


def store(service: Service, lists: Mapping[str, Wallets]) -> None:
    """Send our own service the lists that it does not have."""
    for name, wallets in lists.items():
        try:
            service.document(service.call("GET", op.LIST.format(id=name)))
        except NotFound:
            if wallets.packed is None:
                raise _refused(
                    "/filters", f"The service deleted the list {wallets}. Run its cell again."
                ) from None
            call = service.call("POST", op.LISTS, deadline="download_deadline")
            headers = {"Content-Type": op.ADDRESSES_TYPE}
            said = service.document(
                replace(call, body=wallets.packed, headers=headers, patient=True)
            ).get("id")
            if said != name:
                raise ProtocolError(
                    f"The service stored the list {name} under another id, {shown(said)}."
                ) from None


def _changed(
    value: Any,
    change: Callable[[Any, bool], dict[str, Any]],
    here: str,
    of: str = "",
    level: int = 0,
) -> Any:
    """Return filters with the value of each list changed; ``change`` also gets whether no stored list is beside it."""
    # An object that contains itself ends here; that it is nested too deeply is said by who writes it as JSON.
    if level > MAX_LEVELS:
        return value
    if isinstance(value, Wallets):
        return _change(change, value, False, here)["in"]
    if isinstance(value, list | tuple):
        return [
            _changed(one, change, f"{here}/{at}", of, level + 1) for at, one in enumerate(value)
        ]
    if not isinstance(value, Mapping):
        return value
    made: dict[Any, Any] = {}
    for key, one in value.items():
        pointer = f"{here}/{visible(str(key)).replace('~', '~0').replace('/', '~1')}"
        if key == "in" and of == "wallet" and _is_list(one):
            made |= _change(change, one, "list" not in value, pointer)
        else:
            made[key] = _changed(one, change, pointer, str(key), level + 1)
    return made


def _change(
    change: Callable[[Any, bool], dict[str, Any]], given: Any, alone: bool, here: str
) -> dict[str, Any]:
    try:
        return change(given, alone)
    except (_NotAddresses, NotJson) as error:
        raise _refused(here, str(error)) from None


def _is_list(value: Any) -> bool:
    if isinstance(value, str):
        return value.startswith("@")
    if isinstance(value, list | tuple):
        # A short list stays as it is: the service points at each mistake in it.
        return len(value) > INLINE
    many = isinstance(value, Iterable) or hasattr(value, "columns")
    return isinstance(value, Wallets) or (many and not isinstance(value, Mapping | bytes))


def _wallets(given: Any) -> Wallets:
    if isinstance(given, Wallets):
        return given
    return Wallets(given, given if isinstance(given, str) else "the list")


class _NotAddresses(Exception):
    """What a list has instead of addresses."""


def _refused(pointer: str, detail: str) -> InvalidSegment:
    return InvalidSegment([{"pointer": pointer, "code": "address", "detail": detail}])


def _column(value: Any) -> Rows:
    """Return a column of texts, and what names each of its rows."""
    import pyarrow as pa

    if hasattr(value, "columns"):
        names = {str(name): name for name in getattr(value, "column_names", value.columns)}
        value = value[names[_address_column(list(names))]]
    labels = getattr(value, "index", None)
    rows: Any = value.to_arrow() if hasattr(value, "to_arrow") else value
    if isinstance(rows, pa.Array | pa.ChunkedArray):
        return _as_texts(rows), lambda row: f"row {row}"
    items = (
        np.atleast_1d(rows)
        if isinstance(rows, np.ndarray)
        else rows
        if hasattr(rows, "dtype")
        else list(rows)
    )
    try:
        # Arrow ends the process at a list that contains itself.
        if getattr(items, "dtype", None) in (None, object) and list in map(type, items):
            raise pa.ArrowInvalid("lists")
        texts = pa.array(items, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        # Of several types, with half a character, or an integer beyond 64 bits: what is no plain text is shown as
        # Python writes it.
        texts = pa.array(
            [one if isinstance(one, str) and one.isascii() else _written(one) for one in items],
            pa.large_string(),
        )

    def place(row: int) -> str:
        label = row if labels is None or callable(labels) else labels[row]
        return f"row {row}" if label == row else f"row {row} (index {visible(repr(label), 60)})"

    return _as_texts(texts), place


def _values(value: Any) -> list[Any]:
    # Iterating a frame gives its columns' names, and Arrow's columns give scalars, which are no JSON.
    if hasattr(value, "columns") or hasattr(value, "to_pylist"):
        return list(_column(value)[0].to_pylist())
    return list(value)


def _written(value: Any) -> str | None:
    try:
        text = repr(value)
    except ValueError:
        # Python writes no integer of more than 4,300 digits.
        text = f"{type(value).__name__} of too many digits"
    return None if text in ("None", "nan", "<NA>", "NaT") else text


def _as_texts(rows: Any) -> pa.Array:
    import pyarrow as pa

    rows = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
    if (
        pa.types.is_binary(rows.type)
        or pa.types.is_fixed_size_binary(rows.type)
        or pa.types.is_large_binary(rows.type)
    ):
        # As chain data in Parquet has it.
        return pa.array([one and "0x" + one.hex() for one in rows.to_pylist()], pa.large_string())
    try:
        return rows.cast(pa.large_string())
    except pa.ArrowException:
        # Lists and structs have no cast to text.
        return pa.array([_written(one) for one in rows.to_pylist()], pa.large_string())


def _file(source: str) -> Rows:
    """Return the addresses of a file, and what names each of its rows."""
    import pyarrow as pa

    path = Path(source[1:]).expanduser()
    if path.suffix.lower() not in ENDINGS:
        raise _NotAddresses(
            f"{shown(source)} is not a list. Write {', '.join('@FILE' + one for one in ENDINGS)}."
        )
    try:
        return _parquet(path) if path.suffix.lower() == ".parquet" else _csv(path)
    except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException) as error:
        missing = isinstance(error, FileNotFoundError)
        why = f"there is no such file in {Path.cwd()}" if missing else str(error).splitlines()[0]
        raise _NotAddresses(f"{visible(source)} cannot be read: {visible(why, 200)}.") from None


def _parquet(path: Path) -> Rows:
    from pyarrow import parquet

    column = _address_column(parquet.read_schema(path).names)
    return _as_texts(parquet.read_table(path, columns=[column])[column]), lambda row: f"row {row}"


def _csv(path: Path) -> Rows:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow_csv

    with path.open(encoding="utf-8-sig", newline="") as file:
        head = next((line for line in file if line.strip()), "")
        separator = next((mark for mark in ",;\t" if mark in head), ",")
        first = next(csv.reader([head], delimiter=separator), [])
    if not first:
        raise _NotAddresses(f"{visible(str(path))} is empty. Write one address a line.")
    # A first row that sets out to be an address is one: a digit short, it must not be skipped as a header.
    begun = [
        cell.strip().lower().startswith("0x") or cell.strip().endswith(".eth") for cell in first
    ]
    headed = path.suffix.lower() == ".csv" and not any(begun)
    names = first if headed else ["address" * one for one in begun]
    place = names.index(_address_column(names))
    own = [str(number) for number in range(len(first))]
    table = arrow_csv.read_csv(
        path,
        arrow_csv.ReadOptions(column_names=own),
        arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        arrow_csv.ConvertOptions(
            include_columns=[own[place]], column_types={own[place]: pa.large_string()}
        ),
    )
    rows = pc.utf8_trim_whitespace(table[own[place]].slice(int(headed)).combine_chunks())
    return rows, lambda row: f"line {_line(path, separator, row + headed)}"


def _line(path: Path, separator: str, row: int) -> int:
    """Return the line in which a row of CSV begins: a quoted text may have several, and an empty line is no row."""
    begins = 1
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator)
        for cells in reader:
            if cells and (row := row - 1) < 0:
                break
            begins = reader.line_num + 1
    return begins


def _address_column(names: Sequence[str]) -> str:
    """Return the column that holds addresses: the one named so, or the only one."""
    found = [name for name in names if name.strip().lower() == "address"]
    found = found or [name for name in names if "address" in name.lower()] or list(names)
    if len(found) == 1:
        return found[0]
    raise _NotAddresses(
        f"Its columns are {', '.join(map(shown, names[:8])) or 'none'}: which has the addresses? "
        'Name one of them "address", or give that column alone.'
    )


def _packed(rows: pa.Array, place: Callable[[int], str], source: str) -> Bytes:
    """Return the 20 bytes of each address of a column; `_NotAddresses` names each row that is none."""
    import pyarrow as pa

    if not len(rows):
        return np.empty((0, WIDTH), np.uint8)
    lengths = np.diff(
        np.frombuffer(rows.buffers()[1], np.int64)[rows.offset : rows.offset + len(rows) + 1]
    )
    good = lengths == _TEXT
    whole = rows if good.all() else rows.filter(pa.array(good))
    start = int(np.frombuffer(whole.buffers()[1], np.int64)[whole.offset]) if len(whole) else 0
    chars = np.frombuffer(whole.buffers()[2] or b"", np.uint8)[
        start : start + len(whole) * _TEXT
    ].reshape(-1, _TEXT)
    packed, valid = np.empty((len(chars), WIDTH), np.uint8), np.empty(len(chars), bool)

    def read(step: slice) -> None:
        packed[step], valid[step] = _read_step(chars[step])

    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        list(pool.map(read, (slice(at, at + _STEP) for at in range(0, len(chars), _STEP))))
    finally:
        # Ctrl-C does not wait for a million checksums.
        pool.shutdown(cancel_futures=True)
    good[good] = valid
    if not good.all():
        raise _NotAddresses(_faults(rows, np.flatnonzero(~good), place, source))
    return packed


def _read_step(chars: Bytes) -> tuple[Bytes, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return the bytes of some addresses, and which of them are addresses."""
    digits = chars[:, 2:]
    halves = _HALVES[digits]
    valid = (chars[:, 0] == ord("0")) & (chars[:, 1] == ord("x")) & (halves < 16).all(axis=1)
    # One case throughout has no checksum: explorers, files and SQL write addresses so.
    mixed = (
        valid
        & (digits >= ord("a")).any(axis=1)
        & ((digits >= ord("A")) & (digits < ord("a"))).any(axis=1)
    )
    if mixed.any():
        valid[mixed] = checksums_match(digits[mixed])
    return np.bitwise_or(halves[:, ::2] << np.uint8(4), halves[:, 1::2]), valid


def _faults(rows: pa.Array, faults: Any, place: Callable[[int], str], source: str) -> str:
    lines = [
        f"  {place(int(row))}: {_fault(rows[int(row)].as_py())}" for row in faults[:_MOST_FAULTS]
    ]
    lines += [f"  and {len(faults) - _MOST_FAULTS:,} more"] if len(faults) > _MOST_FAULTS else []
    are = "is not an address" if len(faults) == 1 else "are not addresses"
    counted = "" if lines[0].startswith("  line") else " Rows are counted from 0."
    head = f"{len(faults):,} of {len(rows):,} values of {visible(source, 80)} {are}. Nothing was sent.{counted}"
    return "\n".join([head, *lines])


def _fault(value: str | None) -> str:
    if value is None:
        return "the value is missing"
    try:
        address_of(value)
    except ValidationError as error:
        return error.errors[0]["detail"]
    raise AssertionError(f"{value} is an address")


# Keccak-f[1600], as FIPS 202 numbers it: lane x, y is row x + 5y. How far each lane is rotated, where it then goes, and
# what is added to the first lane in each round.
_X, _Y = np.tile(np.arange(5), 5), np.repeat(np.arange(5), 5)
_LEFT = np.array(
    [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14],
    np.uint64,
)[:, None]
_RIGHT = 64 - _LEFT
_FROM = np.argsort(_Y + 5 * ((2 * _X + 3 * _Y) % 5))
_NEXT, _AFTER = (_X + 1) % 5 + 5 * _Y, (_X + 2) % 5 + 5 * _Y
_ROUNDS = np.array(
    [
        0x1,
        0x8082,
        0x800000000000808A,
        0x8000000080008000,
        0x808B,
        0x80000001,
        0x8000000080008081,
        0x8000000000008009,
        0x8A,
        0x88,
        0x80008009,
        0x8000000A,
        0x8000808B,
        0x800000000000008B,
        0x8000000000008089,
        0x8000000000008003,
        0x8000000000008002,
        0x8000000000000080,
        0x800A,
        0x800000008000000A,
        0x8000000080008081,
        0x8000000000008080,
        0x80000001,
        0x8000000080008008,
    ],
    np.uint64,
)


def checksums_match(digits: Bytes) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Say of each row of 40 hex digits whether the case of its letters is its EIP-55 checksum.

    Many at a time: two million take 5 s on two cores; one call of a hash for each takes 40 s.
    """
    lower = np.ascontiguousarray(digits | 32)
    digest = _keccak(lower)[:, :WIDTH]
    high = np.empty(digits.shape, bool)
    high[:, ::2], high[:, 1::2] = digest >= 128, digest & 15 >= 8
    matches: np.ndarray[Any, np.dtype[np.bool_]] = (
        ((lower >= ord("a")) & high) == (digits != lower)
    ).all(axis=1)
    return matches


def _keccak(texts: Bytes) -> Bytes:
    """Return the Keccak-256 of each row of 40 bytes, which fill five of the 25 lanes."""
    lanes = np.zeros((25, len(texts)), np.uint64)
    lanes[:5] = texts.view("<u8").T
    # The padding: a bit after the text, and one at the end of the 17 lanes that take a text.
    lanes[5], lanes[16] = 1, 1 << 63
    moved, other = np.empty_like(lanes), np.empty_like(lanes)
    planes = lanes.reshape(5, 5, -1)
    for constant in _ROUNDS:
        column = np.bitwise_xor.reduce(planes, axis=0)
        turned = column << np.uint64(1) | column >> np.uint64(63)
        planes ^= np.roll(column, 1, axis=0) ^ np.roll(turned, -1, axis=0)
        # Shifted by 64, a lane is 0: the one that stays where it is comes out as it was.
        np.left_shift(lanes, _LEFT, out=other)
        other |= lanes >> _RIGHT
        np.take(other, _FROM, axis=0, out=moved, mode="clip")
        np.take(moved, _NEXT, axis=0, out=other, mode="clip")
        np.invert(other, out=other)
        other &= moved[_AFTER]
        np.bitwise_xor(moved, other, out=lanes)
        lanes[0] ^= constant
    return np.ascontiguousarray(lanes[:4].T).view(np.uint8)
