"""Rows into a file: whole or not at all, and never over one that is there unless that was asked for."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from nbext.client import frames
from nbext.core.atomic_files import ORDINARY, whole_file
from nbext.errors import StorageError, ValidationError

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".csv", ".json", ".parquet")


def target_of(to: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the file to write.

    Raises
    ------
    ValidationError
        Another ending than .csv, .json or .parquet, a folder, no such folder, or a file that is there.
    """
    path = Path(to).expanduser()
    if path.suffix.lower() not in ENDINGS:
        raise ValidationError.of("to", "ending", f"{path.name!r} has no ending of: {', '.join(ENDINGS)}.")
    if path.is_dir():
        raise ValidationError.of("to", "folder", f"{path} is a folder.")
    if not path.parent.is_dir():
        raise ValidationError.of("to", "folder", f"there is no folder {path.parent}.")
    if not overwrite and os.path.lexists(path):
        raise _exists(path)
    return path


@contextlib.contextmanager
def written(path: Path, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """Open a file beside the target that takes its place, complete and on the disk, when all went well.

    Raises
    ------
    StorageError
        The file cannot be written.
    ValidationError
        The target exists meanwhile, and ``overwrite`` is false.
    """
    try:
        with whole_file(path, mode=ORDINARY, overwrite=overwrite) as part, part.open("wb") as file:
            yield file
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from None


def _exists(path: Path) -> ValidationError:
    return ValidationError.of("to", "exists", f"{path} exists. Use overwrite=True (--overwrite) to replace it.")


def save(table: pd.DataFrame, path: Path, *, overwrite: bool, raw: bool = False) -> None:
    """Write a table that is in memory: the same values, in the same form, as an export of its rows has.

    In .csv a text that a spreadsheet would run as a formula gets a leading ``'``; ``raw`` leaves it.

    Raises
    ------
    StorageError
        The file cannot be written.
    ValidationError
        The file is there, and ``overwrite`` is not given.
    """
    kind = path.suffix.lower()
    with written(path, overwrite=overwrite) as file:
        if kind == ".json":
            _write_records(frames.records_of(table), file)
        else:
            rows = frames.to_arrow(table, flat=True)
            write(kind, rows.schema, rows.to_batches(), file, raw=raw)


def copy(source: Any, file: IO[bytes]) -> int:
    """Copy a CSV byte for byte; return its rows."""
    counter = LineCounter()
    while piece := source.read(1 << 18):
        counter.feed(piece)
        file.write(piece)
    return counter.rows()


class LineCounter:
    """Counts a CSV's rows; a line break within quotes ends none."""

    def __init__(self) -> None:
        self._lines = 0
        self._quoted = False
        self._open = False

    def feed(self, piece: bytes) -> None:
        """Count on."""
        for i, part in enumerate(piece.split(b'"')):
            if i:
                self._quoted = not self._quoted
            if not self._quoted:
                self._lines += part.count(b"\n")
        self._open = not piece.endswith(b"\n")

    def rows(self) -> int:
        """Return the rows, without the header."""
        return max(0, self._lines + self._open - 1)


def write(kind: str, schema: Any, batches: Iterable[Any], file: IO[bytes], *, raw: bool) -> int:
    """Write batches as csv, json or parquet; return their rows."""
    writers = {".csv": _write_csv, ".json": _write_json, ".parquet": _write_parquet}
    return writers[kind](schema, batches, file, raw)


def _write_csv(schema: Any, batches: Iterable[Any], file: IO[bytes], raw: bool) -> int:
    from pyarrow import csv

    from nbext.client.files import spreadsheet

    rows = 0
    safe = schema if raw else spreadsheet.safe_names(schema)
    with csv.CSVWriter(file, safe) as writer:
        for batch in batches:
            rows += batch.num_rows
            writer.write_batch(batch if raw else spreadsheet.safe(batch, safe))
    return rows


def _write_json(schema: Any, batches: Iterable[Any], file: IO[bytes], raw: bool) -> int:
    return _write_records((record for batch in batches for record in batch.to_pylist()), file)


def _write_records(records: Iterable[Mapping[str, Any]], file: IO[bytes]) -> int:
    rows = 0
    file.write(b"[")
    for record in records:
        file.write(b",\n" if rows else b"\n")
        file.write(json.dumps(record, ensure_ascii=False, default=frames.plain).encode("utf-8"))
        rows += 1
    file.write(b"\n]\n")
    return rows


def _write_parquet(schema: Any, batches: Iterable[Any], file: IO[bytes], raw: bool) -> int:
    import pyarrow.parquet as pq

    rows = 0
    with pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            rows += batch.num_rows
            writer.write_batch(batch)
    return rows
