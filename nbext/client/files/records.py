"""Pages of records into a file, with no more than one page in memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from nbext.client.files import writer
from nbext.client.frames import INT64, as_text, plain

Record = dict[str, Any]
BATCH = 2_000


def save(pages: Iterable[list[Record]], types: Mapping[str, str], path: Path, file: IO[bytes], *, raw: bool) -> int:
    """Write records as csv, json or parquet; return how many.

    Columns are those of ``types``, then others in order of appearance.
    """
    kind = path.suffix.lower()
    if kind == ".json":
        return writer.write(kind, None, map(_Page, pages), file, raw=raw)
    # A column's type is known when its last value is: until then the records wait on the disk.
    with tempfile.TemporaryFile("w+", encoding="utf-8", dir=path.parent) as waiting:
        schema = _put_down(pages, types, waiting)
        waiting.seek(0)
        return writer.write(kind, schema, _batches(waiting, schema), file, raw=raw)


@dataclass(frozen=True)
class _Page:
    """Plain records, in the form in which files are written."""

    records: list[Record]

    def to_pylist(self) -> list[Record]:
        return self.records


def _put_down(pages: Iterable[list[Record]], types: Mapping[str, str], waiting: IO[str]) -> Any:
    """Write records one a line; return the Arrow schema that holds them all."""
    import pyarrow as pa

    seen: dict[str, set[str]] = {name: set() for name in types}
    for page in pages:
        for record in page:
            for name, value in record.items():
                seen.setdefault(name, set()).add(_kind(value))
            waiting.write(json.dumps(record, default=plain) + "\n")
    return pa.schema([(name, _arrow_type(kinds - {"null"}, types.get(name, ""))) for name, kinds in seen.items()])


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "integer" if isinstance(value, int) and value in INT64 else "text"


def _arrow_type(kinds: set[str], stated: str) -> Any:
    import pyarrow as pa

    # Without a value the service's word is all there is; a uint256 is text, however small it happens to be.
    kind = kinds.pop() if len(kinds) == 1 else "text" if kinds else stated
    return {"integer": pa.int64(), "boolean": pa.bool_()}.get("text" if stated == "uint256" else kind, pa.string())


def _batches(lines: Iterable[str], schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    rest = iter(lines)
    while records := [json.loads(line) for line in islice(rest, BATCH)]:
        columns = [[record.get(field.name) for record in records] for field in schema]
        arrays = [pa.array(map(as_text, column) if pa.types.is_string(field.type) else column, field.type)
                  for field, column in zip(schema, columns, strict=True)]  # fmt: skip
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
