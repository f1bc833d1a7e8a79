"""Rows into a CSV, JSON, Parquet or Arrow file: whole or absent, and never over one that exists, unless asked to."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from nbext.client import frames
from nbext.core.atomic_files import ORDINARY, whole_file
from nbext.core.rules import FILES
from nbext.core.times import in_iso
from nbext.core.uint256 import as_texts
from nbext.core.untrusted_text import shown, visible
from nbext.errors import StorageError, ValidationError

if TYPE_CHECKING:
    import pandas as pd

# Rows of a batch: enough to write fast, few enough for any memory.
BATCH = 2_000
# Bytes of a row group of Parquet, about: smaller ones take readers longer, and the file more room.
_GROUP_BYTES = 32 << 20
Record = dict[str, Any]
# A name on chain is anybody's text, and a spreadsheet runs a text that begins as a formula: in ASCII or full width, or
# hidden behind a tab, a line break or a NUL. Plain numbers are harmless.
_FORMULA = r"^[=+\-@\t\r\n\x00＝＋－＠]"
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?$"


@dataclass(frozen=True)
class Target:
    """A file that rows go to: ``overwrite`` replaces one that is there, ``raw`` leaves a CSV's texts as they came."""

    path: Path
    overwrite: bool = False
    raw: bool = False

    @property
    def kind(self) -> str:
        """The file's ending, which says what is in it."""
        return self.path.suffix.lower()

    @contextlib.contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Open a file beside the target that takes its place, complete and on the disk, when all went well."""
        with (
            named_file(self.path),
            whole_file(self.path, mode=ORDINARY, overwrite=self.overwrite) as part,
            part.open("wb") as file,
        ):
            yield file

    def save(self, table: pd.DataFrame) -> None:
        """Write a table that is in memory, as an export of its rows has it."""
        with self.opened() as file:
            if self.kind == ".json":
                _write_records(frames.records_of(table), file)
            else:
                rows = frames.to_arrow(table, flat=True)
                self.write(rows.schema, rows.to_batches(), file)

    def write(self, schema: Any, batches: Iterable[Any], file: IO[bytes]) -> int:
        """Write batches as csv, json, parquet or arrow; return their rows."""
        from pyarrow import csv, parquet

        kind = self.kind
        # A time is written as the service writes it; Parquet and Arrow have a type for it.
        changes: dict[str, list[Any]] = {
            ".json": [in_iso, as_texts],
            # Only a spreadsheet runs formulas, and it opens neither Parquet nor Arrow.
            ".csv": [in_iso] if self.raw else [in_iso, safe],
            # DuckDB reads decimals of more than 38 digits as floats, without a word.
            ".parquet": [partial(as_texts, wide=True)],
        }
        for change in changes.get(kind, ()):
            schema, batches = change(schema.empty_table()).schema, map(change, batches)
        if kind == ".json":
            return _write_records((one for batch in batches for one in batch.to_pylist()), file)
        if kind == ".parquet":
            batches = _grouped(batches, schema)
        rows = 0
        writers = {".parquet": parquet.ParquetWriter, ".arrow": pa.ipc.new_file}
        with writers.get(kind, csv.CSVWriter)(file, schema) as writer:
            for batch in batches:
                rows += batch.num_rows
                writer.write(batch)
        return rows

    def write_pages(
        self, pages: Iterable[list[Record]], types: frames.Types, file: IO[bytes]
    ) -> int:
        """Write pages of records as csv, json, parquet or arrow, with one page in memory; return how many records.

        Columns are those of ``types``, then others in order of appearance.
        """
        if self.kind == ".json":
            return _write_records((record for page in pages for record in page), file)
        # A column's type is known when its last value is: until then the records wait on the disk.
        with tempfile.TemporaryFile("w+", encoding="utf-8", dir=self.path.parent) as waiting:
            schema = _put_down(pages, types, waiting)
            waiting.seek(0)
            return self.write(schema, _batches(waiting, schema), file)


def target_of(
    to: str | os.PathLike[str],
    *,
    overwrite: bool,
    raw: bool = False,
    endings: Sequence[str] = FILES,
    option: str = "to",
) -> Target:
    """Return the file to write, else a ValidationError, or a StorageError, that names it by the caller's ``option``."""
    # A number would be taken for an open file.
    if not isinstance(to, str | os.PathLike):
        raise ValidationError.of(option, "type", f"{shown(to)} is not a path. Write a text.")
    target = Target(Path(to).expanduser(), overwrite, raw)
    with named_file(target.path, option):
        if why := _why_not(target, endings):
            raise ValidationError.of(option, "file", f"{visible(target.path)}: {why}")
    return target


def _why_not(target: Target, endings: Sequence[str]) -> str:
    path = target.path
    if target.kind not in endings:
        return f"unknown file format. Allowed: {', '.join(endings)}."
    if not path.parent.is_dir():
        return f"there is no folder {visible(path.parent)}."
    try:
        # Not `is_dir`, which in newer versions of Python says nothing of a name that is too long.
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return ""
    # A link could lead the result out of the folder that the user sees.
    if kind := {stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}.get(stat.S_IFMT(mode)):
        return f"it is a {kind}. Give a file name."
    if not target.overwrite:
        raise FileExistsError
    return ""


@contextlib.contextmanager
def named_file(path: Path, option: str = "to") -> Iterator[None]:
    """Name the file in errors of the file system."""
    try:
        yield
    except FileExistsError:
        detail = (
            f"{visible(path)}: the file exists. Add --overwrite (overwrite=True) to replace it."
        )
        raise ValidationError.of(option, "exists", detail) from None
    except OSError as error:
        why = error.strerror or error
        raise StorageError(f"{visible(path)} cannot be written: {why}.") from None


def copy(source: Any, file: IO[bytes]) -> int:
    """Copy a CSV byte for byte, never parsed; return its rows."""
    lines, quoted, piece = 0, False, b"\n"
    while more := source.read(1 << 18):
        piece = more
        file.write(piece)
        # A line break within quotes ends no row; a doubled quote leaves and enters again, which changes nothing.
        for i, part in enumerate(piece.split(b'"')):
            quoted ^= i > 0
            lines += 0 if quoted else part.count(b"\n")
    # The header is not a row; the last row may lack its line's end.
    return max(0, lines + (not piece.endswith(b"\n")) - 1)


def _grouped(batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Yield tables of some batches each: a row group of Parquet."""
    group: list[Any] = []
    for batch in batches:
        group.append(batch)
        if sum(each.nbytes for each in group) >= _GROUP_BYTES:
            yield pa.Table.from_batches(group, schema)
            group = []
    if group:
        yield pa.Table.from_batches(group, schema)


def _write_records(records: Iterable[Mapping[str, Any]], file: IO[bytes]) -> int:
    rows = 0
    file.write(b"[")
    for record in records:
        file.write(b",\n" if rows else b"\n")
        file.write(
            json.dumps(record, ensure_ascii=False, default=frames.json_number).encode("utf-8")
        )
        rows += 1
    file.write(b"\n]\n")
    return rows


def _put_down(pages: Iterable[list[Record]], types: frames.Types, waiting: IO[str]) -> Any:
    """Write records one a line; return the Arrow schema that holds them all."""
    seen: dict[str, set[Any]] = {name: set() for name in types}
    for page in pages:
        for record in page:
            for name, value in record.items():
                is_wide = isinstance(value, int) and value not in frames.INT64
                seen.setdefault(name, set()).add(str if is_wide else type(value))
            waiting.write(json.dumps(record, default=frames.json_number) + "\n")
    arrow = {"integer": "int64", int: "int64", "boolean": "bool", bool: "bool"}
    fields = []
    for name, kinds in seen.items():
        stated = types.get(name, "")
        # Without a value the service's word is all there is; a uint256 is text, however small it happens to be.
        first, *more = kinds - {type(None)} or {stated}
        kind = str if more or stated == "uint256" else first
        fields.append((name, arrow.get(kind, "string")))
    return pa.schema(fields)


def _batches(lines: Iterable[str], schema: Any) -> Iterator[Any]:
    rest, texts = iter(lines), [field.name for field in schema if pa.types.is_string(field.type)]
    while records := [json.loads(line) for line in islice(rest, BATCH)]:
        plain = [
            record | {name: frames.text_or_json(record.get(name)) for name in texts}
            for record in records
        ]
        yield pa.RecordBatch.from_pylist(plain, schema)


def safe(rows: Any) -> Any:
    """Return a table or a batch as a spreadsheet shows it: with ``'`` before each text and name that it would run."""
    for place, field in enumerate(rows.schema):
        if frames.is_text(field.type):
            rows = rows.set_column(place, field.name, _safe(rows.column(place)))
    return rows.rename_columns(_safe(pa.array(rows.schema.names, "string")).to_pylist())


def _safe(texts: Any) -> Any:
    runs = pc.and_(
        pc.match_substring_regex(texts, _FORMULA),
        pc.invert(pc.match_substring_regex(texts, _NUMBER)),
    )
    quote, nothing = (pa.scalar(text, texts.type) for text in ("'", ""))
    return pc.if_else(runs, pc.binary_join_element_wise(quote, texts, nothing), texts)
