"""Addresses as people have them: columns, texts and files, read in bulk; each is an address, or has a fault.

Padding, quotes, blanks, comments and repeats are no faults, and CAIP-10 (``eip155:1:0x...``) is read as its address.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from binascii import unhexlify
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from nbext.client import frames
from nbext.core import strict_json
from nbext.core.addresses import ADDRESS_PATTERN, WIDTH, looks_like_address, normalised
from nbext.core.provenance import Provenance, warned
from nbext.core.rules import LIST_FILES
from nbext.core.untrusted_text import shown, visible
from nbext.errors import ValidationError

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
# Texts that are hashed at a time: what is computed of so many stays in a core's cache.
_STEP = 1_024
# Enough to find the mistake by; a file of something else has a million.
_MOST_FAULTS = 20
# What stands around an address that was copied from a list, a page or a program; a comment; the chain in CAIP-10.
_AROUND = " \t\r\n\v\f\u00a0\u200b\ufeff\"'`,;"
# Arrow's \s and Python's are not the same.
_BESIDE = r"(^|[ \t\n\v\f\r])#.*$|^eip155:[0-9]{1,20}:"
_BETWEEN = re.compile(r"[\s,;]+")
# Where an object ends, and the next line begins another.
_ENDS = r"\}(?=[^\S\n]*\n\s*\{)"
_NO_ROWS = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*")
# How people head the column of wallets' addresses; and that of a token's, which stands beside it.
_NAMES = ("address", "wallet", "account", "holder", "owner")
_OF_TOKENS = re.compile("contract|(token|collection|nft)[ _]?address", re.IGNORECASE)


class NotAddresses(Exception):
    """What a list has instead of addresses."""


@dataclass(frozen=True)
class AddressColumn:
    """Values that should be addresses, as texts; ``place`` names a row as who gave the values would."""

    texts: pa.Array
    place: Callable[[int], str] = "row {}".format

    @classmethod
    def of(cls, given: Any) -> AddressColumn:
        """Read a column, a list, a set, or a frame with addresses; of a text, the file that it names: ``@FILE``."""
        return _file(Path(given[1:])) if isinstance(given, str) else _column(given)

    def packed(self) -> tuple[Bytes, Mask, Mask]:
        """Return the 20 bytes of each address, in order; which rows have one; and which rows are blank."""
        rows = pc.fill_null(self.texts, "")
        good = _mask(pc.match_substring_regex(rows, ADDRESS_PATTERN))
        if not good.all():
            around = pc.utf8_trim(rows, _AROUND)
            rows = pc.utf8_trim(pc.replace_substring_regex(around, _BESIDE, ""), _AROUND)
            good = _mask(pc.match_substring_regex(rows, ADDRESS_PATTERN))
        whole = rows if good.all() else rows.filter(pa.array(good))
        whole = pc.utf8_slice_codeunits(whole, 2)
        chars = np.frombuffer(whole.buffers()[2] or b"", np.uint8)
        digits = chars[: len(whole) * 2 * WIDTH].reshape(-1, 2 * WIDTH)
        packed = np.frombuffer(unhexlify(digits.data), np.uint8).reshape(-1, WIDTH)
        # One case throughout has no checksum: explorers, files and SQL write addresses so.
        valid = _mask(pc.or_(pc.ascii_is_lower(whole), pc.ascii_is_upper(whole)))
        valid[~valid] = checksums_match(digits[~valid])
        good[good] = valid
        return packed[valid], good, _mask(pc.equal(rows, ""))

    def all(self, source: str, *, blanks: bool) -> Bytes:
        """Return the 20 bytes of each address; NotAddresses where a row has none, unless it is blank and may be."""
        packed, good, blank = self.packed()
        if wrong := np.flatnonzero(~(good | blank & blanks)).tolist():
            raise NotAddresses(self._faults(wrong, source))
        return packed

    def fault(self, row: int) -> str:
        """Return what is wrong with a row that has no address."""
        text = str(self.texts[row].as_py() or "").strip(_AROUND)
        bare = re.sub(_BESIDE, "", text).strip(_AROUND)
        if not bare:
            return "a comment" if text else "blank"
        try:
            normalised(bare)
        except ValidationError as error:
            return error.errors[0]["detail"]
        raise AssertionError(f"{text} is an address")

    def _faults(self, rows: Sequence[int], source: str) -> str:
        """Return a message that names the first rows that have a fault."""
        lines = [f"  {self.place(row)}: {self.fault(row)}" for row in rows[:_MOST_FAULTS]]
        lines += [f"  and {len(rows) - _MOST_FAULTS:,} more"] if len(rows) > _MOST_FAULTS else []
        are = "is not an address" if len(rows) == 1 else "are not addresses"
        counted = "" if lines[0].startswith("  line") else " Rows are counted from 0."
        of = f"{len(rows):,} of {len(self.texts):,} values of {visible(source, 80)}"
        return "\n".join([f"{of} {are}. Nothing was sent.{counted}", *lines])


@warned
def addresses(values: Any, *, left_out: bool = False) -> pd.Series[str] | pd.DataFrame:
    """Return the addresses among some values; or, with ``left_out``, the other values and why they are none.

    Parameters
    ----------
    values
        A column, list or set; a frame with a column of addresses; a path (.csv, .txt, .json, .parquet, .arrow), also
        as ``"@allow.csv"``; a text that was pasted, such as cells of a spreadsheet; JSON, also with addresses as its
        keys.
    left_out
        Return what is left out.

    Returns
    -------
    pandas.Series
        ``address`` str, 0x and 40 lower-case hex digits: each once, in the order in which they come. Padding, quotes,
        comments (#) and the chain of CAIP-10 are taken off.
    pandas.DataFrame
        With ``left_out``, a row for each other value: ``row`` str, its place (``line 3`` of a text, ``row 2`` of a
        column); ``text`` str; ``reason`` str: an ENS name, a wrong checksum, ``blank``, ``repeats line 1``, ...

    Raises
    ------
    ValidationError
        A file or a table of which nobody can say what in it are addresses.

    Examples
    --------
    >>> addresses(" 0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045, 0x00, ", left_out=True)["text"].tolist()
    ['0x00']
    """
    try:
        column = _anything(values)
    except (NotAddresses, ValueError, csv.Error) as error:
        raise ValidationError.of("/values", "address", str(error)) from None
    packed, good, blank = column.packed()
    _, first, of_each = np.unique(
        packed.view(f"S{WIDTH}").ravel(), return_index=True, return_inverse=True
    )
    rows, firsts = np.flatnonzero(good), np.sort(first)
    if left_out:
        others = {row: column.fault(row) for row in np.flatnonzero(~good).tolist()}
        repeats = np.setdiff1d(np.arange(len(rows)), firsts)
        others |= {
            int(rows[one]): f"repeats {column.place(int(rows[first[of_each[one]]]))}"
            for one in repeats
        }
        records = [
            {"row": column.place(row), "text": column.texts[row].as_py(), "reason": others[row]}
            for row in sorted(others)
        ]
        return frames.frame(records, dict.fromkeys(("row", "text", "reason"), "string"))
    found: pd.Series[str] = pd.Series(
        texts_of(packed[firsts].tobytes()), dtype=frames.TEXT, name="address"
    )
    notes = []
    if wrong := np.flatnonzero(~good & ~blank).tolist():
        notes = [
            f"{len(wrong):,} of {len(good):,} values are left out, such as {column.place(wrong[0])}: "
            f"{column.fault(wrong[0])} nbext.addresses(..., left_out=True) lists them."
        ]
    return Provenance(operation="addresses", warnings=notes).attach(found)


def texts_of(packed: bytes) -> list[str]:
    """Return addresses as texts, in lower case, of the 20 bytes of each."""
    digits, width = packed.hex(), 2 * WIDTH
    return ["0x" + digits[at : at + width] for at in range(0, len(digits), width)]


def _anything(given: Any) -> AddressColumn:
    if isinstance(given, str) and "\n" not in given.strip():
        is_file = given.startswith("@") or given.strip().lower().endswith(LIST_FILES)
        given = Path(given.removeprefix("@").strip()) if is_file else given
    if isinstance(given, os.PathLike):
        return _file(Path(given))
    if isinstance(given, str):
        return _text(given)
    if isinstance(given, Mapping):
        return _column(_of_json(given))
    if isinstance(given, list | tuple) and any(isinstance(one, list | tuple) for one in given):
        # A range of cells: rows of cells, as a spreadsheet's library has them.
        cells = (one for row in given for one in (row if isinstance(row, list | tuple) else [row]))
        return _column([getattr(one, "value", one) for one in cells])
    return _column(given)


def _mask(truths: pa.Array) -> Any:
    return truths.to_numpy(zero_copy_only=False)


def _column(value: Any) -> AddressColumn:
    """Return the values of a column as texts."""
    if hasattr(value, "columns"):
        names = {str(name): name for name in getattr(value, "column_names", value.columns)}
        value = value[names[_address_column(list(names))]]
    labels = getattr(value, "index", None)
    rows: Any = value.to_arrow() if hasattr(value, "to_arrow") else value
    if isinstance(rows, pa.Array | pa.ChunkedArray):
        return AddressColumn(_as_texts(rows))
    # Of a dict, what stands beside its keys would be lost.
    if not isinstance(rows, Iterable) or isinstance(rows, Mapping):
        raise NotAddresses(f"Expected addresses, got {type(rows).__name__}.")
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
            "large_string",
        )

    def place(row: int) -> str:
        label = row if labels is None or callable(labels) else labels[row]
        return f"row {row}" if label == row else f"row {row} (index {visible(repr(label), 60)})"

    return AddressColumn(_as_texts(texts), place)


def _written(value: Any) -> str | None:
    try:
        text = repr(value)
    except ValueError:
        # Python writes no integer of more than 4,300 digits.
        text = f"{type(value).__name__} of too many digits"
    return None if text in ("None", "nan", "<NA>", "NaT") else text


def _as_texts(rows: Any) -> pa.Array:
    rows = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
    if "binary" in str(rows.type) and not pa.types.is_nested(rows.type):
        # As chain data in Parquet has it.
        return pa.array([one and "0x" + one.hex() for one in rows.to_pylist()], "large_string")
    try:
        return rows.cast("large_string")
    except pa.ArrowException:
        # Lists and structs have no cast to text.
        return pa.array([_written(one) for one in rows.to_pylist()], "large_string")


def _file(path: Path) -> AddressColumn:
    """Return the addresses of a file."""
    from pyarrow import parquet

    path = path.expanduser()
    ending = path.suffix.lower()
    if ending not in LIST_FILES:
        raise NotAddresses(
            f"{shown('@' + str(path))} is not a list. Write {', '.join('@FILE' + one for one in LIST_FILES)}."
        )
    try:
        if ending == ".parquet":
            name = _address_column(parquet.read_schema(path).names)
            return _column(parquet.read_table(path, columns=[name]))
        if ending == ".arrow":
            return _column(pa.ipc.open_file(pa.memory_map(str(path))).read_all())
        content = path.read_bytes()
        # As spreadsheets on Windows write "Unicode text".
        wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = content.decode("utf-16" if wide else "utf-8-sig")
        if ending == ".json":
            return _document(text)
        return _text(text, visible(str(path)), is_csv=ending == ".csv")
    except (OSError, ValueError, csv.Error, pa.ArrowException) as error:
        missing = isinstance(error, FileNotFoundError)
        why = f"there is no such file in {Path.cwd()}" if missing else str(error).splitlines()[0]
        raise NotAddresses(f"@{visible(str(path))} cannot be read: {visible(why, 200)}.") from None


def _text(text: str, source: str = "The text", *, is_csv: bool = False) -> AddressColumn:
    """Return the addresses of a text: one a line, in a column of CSV, or many on a line."""
    from pyarrow import csv as arrow_csv

    above = next(_NO_ROWS.finditer(text))[0]
    body = text[len(above) :].rstrip("\r\n")
    head = body.partition("\n")[0]
    if not head.strip():
        raise NotAddresses(f"{source} is empty. Write one address a line.")
    pieces = [one for one in _BETWEEN.split(head) if one.strip(_AROUND)]
    if head.lstrip().startswith(("[", "{")) or (len(pieces) > 1 and all(map(_is_begun, pieces))):
        return _pieces(text)
    separator = next((mark for mark in ",;\t" if mark in head), ",")
    first = next(csv.reader([head], delimiter=separator))
    # A first row that sets out to be an address is one: a digit short, it must not be skipped as a header.
    begun = [_is_begun(one) for one in first]
    named = any(name in one.lower() for one in first for name in _NAMES)
    headed = not any(begun) and (is_csv or named)
    names = first if headed else ["address" * one for one in begun]
    wanted = names.index(_address_column(names))
    own = [str(number) for number in range(len(first))]
    # A list as programs write it, without its brackets: nothing follows the last one.
    if not first[-1] and separator not in body.rpartition("\n")[2]:
        body += separator
    table = arrow_csv.read_csv(
        pa.BufferReader(body.encode()),
        arrow_csv.ReadOptions(column_names=own),
        arrow_csv.ParseOptions(
            delimiter=separator,
            newlines_in_values=True,
            invalid_row_handler=lambda row: "skip" if _is_no_row(row.text) else "error",
        ),
        arrow_csv.ConvertOptions(
            include_columns=[own[wanted]], column_types={own[wanted]: "large_string"}
        ),
    )

    @cache
    def lines() -> list[int]:
        # A quoted text may have several lines; an empty line is no row. Arrow ends a line at a CR alone, too.
        plain, found = io.StringIO(body, newline=None), list[int]()
        reader = csv.reader(plain, delimiter=separator)
        before = above.count("\n")
        begins = before + 1
        for cells in reader:
            if cells and (len(cells) == len(first) or not _is_no_row(separator.join(cells))):
                found.append(begins)
            begins = before + reader.line_num + 1
        return found

    texts = table[own[wanted]].slice(int(headed)).combine_chunks()
    return AddressColumn(texts, lambda row: f"line {lines()[row + headed]}")


def _is_begun(text: str) -> bool:
    bare = text.strip(_AROUND).lower()
    return bare.startswith(("0x", "eip155:")) or bare.endswith(".eth")


def _is_no_row(line: str) -> bool:
    return line.strip()[:1] in ("", "#")


def _pieces(text: str) -> AddressColumn:
    """Return the addresses of a text that has several on a line: a row, a list as a program writes it, or JSON."""
    if text.lstrip().startswith(("[", "{")):
        try:
            return _document(text)
        except strict_json.NotJson:
            pass
    lines = enumerate((re.sub(_BESIDE, "", line) for line in text.splitlines()), 1)
    found = [
        (number, one)
        for number, line in lines
        for one in (piece.strip("[](){}<>") for piece in _BETWEEN.split(line))
        if one.strip(_AROUND)
    ]
    return AddressColumn(
        pa.array([one for _, one in found], "large_string"), lambda row: f"line {found[row][0]}"
    )


def _document(text: str) -> AddressColumn:
    """Return the addresses of JSON, or of JSON lines."""
    try:
        return _column(_of_json(strict_json.parse(text)))
    except strict_json.NotJson as error:
        listed, lines = re.subn(_ENDS, "},", text)
        if not lines or "Extra data" not in str(error):
            raise
    # As one list, in which a fault is in its own line.
    return _column(_of_json(strict_json.parse(f"[{listed}]")))


def _of_json(value: Any) -> list[Any]:
    """Return the addresses of a document: a list of them or of objects, or an object with addresses as its keys."""
    if isinstance(value, list):
        if value and isinstance(value[0], Mapping):
            name = _address_column(list(value[0]))
            return [one.get(name) if isinstance(one, Mapping) else one for one in value]
        return value
    if isinstance(value, Mapping):
        if any(map(looks_like_address, value)):
            return list(value)
        inside = [one for one in value.values() if isinstance(one, list | Mapping)]
        if len(inside) == 1:
            return _of_json(inside[0])
    raise NotAddresses(
        "The JSON has no list of addresses: write a list, or an object whose keys are addresses."
    )


def _address_column(names: Sequence[str]) -> str:
    """Return the column that holds addresses: the one named so, or the only one."""
    own = [name for name in names if not _OF_TOKENS.search(name)]
    for is_named in (str.__eq__, str.__contains__):
        for wanted in _NAMES:
            found = [name for name in own if is_named(name.strip().lower(), wanted)]
            if len(found) == 1:
                return found[0]
    if len(names) == 1:
        return names[0]
    raise NotAddresses(
        f"Its columns are {', '.join(map(shown, names[:8])) or 'none'}: which has the addresses? "
        'Name one of them "address", or give that column alone.'
    )


# Keccak-f[1600], as FIPS 202 numbers it: lane x, y is lane x + 5y, of 64 bits. By how much each is rotated, and what
# is left of 64; then which lane comes to each place. Each five of those have the first two again at their end: the
# neighbours of all are slices then.
_TURNS = np.array(
    [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14],
    np.uint64,
)[:, None]
_LEFT = 64 - _TURNS
_FROM = [(x + 3 * y) % 5 + 5 * x for y in range(5) for x in (0, 1, 2, 3, 4, 0, 1)]
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


def checksums_match(digits: Bytes) -> Mask:
    """Say of each row of 40 hex digits whether the case of its letters is its EIP-55 checksum.

    Many at a time: two million take 5 s; one call of a hash for each takes 40 s.
    """
    lower = np.ascontiguousarray(digits | 32)
    digest = keccak(lower)[:, :WIDTH]
    high = np.empty(digits.shape, bool)
    high[:, ::2], high[:, 1::2] = digest >= 128, digest & 15 >= 8
    matches: Mask = (((lower >= ord("a")) & high) == (digits != lower)).all(axis=1)
    return matches


def keccak(texts: Bytes) -> Bytes:
    """Return the Keccak-256, 32 bytes, of each row of at most 135 bytes."""
    digests = np.empty((len(texts), 32), np.uint8)
    # On one core: two threads take turns at numpy's short calls, and are slower than one.
    for at in range(0, len(texts), _STEP):
        digests[at : at + _STEP] = _keccak(texts[at : at + _STEP])
    return digests


def _keccak(texts: Bytes) -> Bytes:
    count, width = texts.shape
    # A text takes 17 of the 25 lanes, with its padding: a bit after it, and one at the end.
    padded = np.zeros((count, 17 * 8), np.uint8)
    padded[:, :width] = texts
    padded[:, width] = 1
    padded[:, -1] |= 128
    lanes = np.zeros((25, count), np.uint64)
    lanes[:17] = padded.view("<u8").T
    planes = lanes.reshape(5, 5, -1)
    # The sums of five lanes each, between the last one and the first.
    sums = np.empty((7, count), np.uint64)
    wide, spare = np.empty((35, count), np.uint64), np.empty_like(lanes)
    rows, others = wide.reshape(5, 7, -1), spare.reshape(5, 5, -1)
    for added in _ROUNDS:
        np.bitwise_xor.reduce(planes, axis=0, out=sums[1:6])
        sums[0], sums[6] = sums[5], sums[1]
        planes ^= sums[:5] ^ sums[2:] << 1 ^ sums[2:] >> 63
        np.right_shift(lanes, _LEFT, out=spare)
        lanes <<= _TURNS
        lanes |= spare
        np.take(lanes, _FROM, axis=0, out=wide, mode="clip")
        np.invert(rows[:, 1:6], out=others)
        others &= rows[:, 2:]
        np.bitwise_xor(rows[:, :5], others, out=planes)
        lanes[0] ^= added
    return np.ascontiguousarray(lanes[:4].T).view(np.uint8)
