"""Tables in a JSON document: every list or object that can be read as rows, with its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbext.client.frames import types_of
from nbext.client.remote.field_names import COLUMNS, NOT_ROWS, ROWS, bare, joined
from nbext.core.addresses import looks_like_address
from nbext.errors import ProtocolError

MAX_DEPTH = 3
# JSON:API hides a record's fields in ``attributes``: an object of these keys alone is such a record.
_RESOURCE = {"id", "type", "attributes", "links", "relationships", "meta"}


@dataclass(frozen=True)
class Found:
    """One table: its path, its records, and the types of its columns where the answer says them."""

    path: str
    records: list[dict[str, Any]] = field(repr=False)
    types: dict[str, str] = field(default_factory=dict)


def tables(document: Any) -> list[Found]:
    """Return every table of the document; a preview is not one, nor is a list about the answer."""
    if isinstance(document, list):
        found = rows_of(document, "", None)
        return [found] if found else []
    return list(_below(document, "", 0)) if isinstance(document, Mapping) else []


def _below(holder: Mapping[str, Any], path: str, depth: int) -> list[Found]:
    columnar = _columnar(holder, path)
    if columnar:
        return [columnar]
    found = []
    for name, value in holder.items():
        here, plain = joined(path, name), bare(name)
        if plain in NOT_ROWS:
            continue
        if isinstance(value, list):
            table = rows_of(value, here, holder) if plain in ROWS or _is_records(value) else None
            found += [table] if table else []
        elif isinstance(value, Mapping) and depth < MAX_DEPTH:
            found += _below(value, here, depth + 1)
    return found


def rows_of(value: Sequence[Any], path: str, holder: Mapping[str, Any] | None) -> Found | None:
    """Return a list of objects, of lists or of texts as a table; None for any other list."""
    columns = _columns_beside(holder) if holder else []
    if not value:
        return Found(path, [], _types(columns))
    if _is_records(value):
        return Found(path, [_flat(record) for record in value], _types(columns))
    if all(isinstance(item, list) for item in value):
        return _of_lists(value, path, columns)
    if all(isinstance(item, str) for item in value):
        name = "address" if all(looks_like_address(item) for item in value) else "value"
        return Found(path, [{name: item} for item in value])
    return None


def _is_records(value: Sequence[Any]) -> bool:
    return bool(value) and all(isinstance(item, Mapping) for item in value)


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of JSON:API with its attributes as its own fields; any other as it is."""
    attributes = record.get("attributes")
    if isinstance(attributes, Mapping) and record.keys() <= _RESOURCE:
        return {**({"id": record["id"]} if "id" in record else {}), **attributes}
    return dict(record)


def _of_lists(value: Sequence[list[Any]], path: str, columns: list[Any]) -> Found:
    widths = {len(row) for row in value}
    names = [_name(column) for column in columns] or [f"column_{i + 1}" for i in range(max(widths))]
    if widths != {len(names)}:
        raise ProtocolError(f"The rows at {path or 'the top'} have {sorted(widths)} values for {len(names)} columns.")
    if len(set(names)) != len(names):
        raise ProtocolError("The answer has two columns of the same name.")
    return Found(path, [dict(zip(names, row, strict=True)) for row in value], _types(columns))


def _columns_beside(holder: Mapping[str, Any]) -> list[Any]:
    for name, value in holder.items():
        if bare(name) in COLUMNS and isinstance(value, list) and all(_name(column) for column in value):
            return value
    return []


def _name(column: Any) -> str:
    if isinstance(column, Mapping):
        column = next((column[key] for key in ("name", "field", "key", "label", "id") if key in column), "")
    return column if isinstance(column, str) else ""


def _types(columns: list[Any]) -> dict[str, str]:
    if columns and all(isinstance(column, str) for column in columns):
        # Names without types still say which columns an empty table has.
        return dict.fromkeys(columns, "")
    return types_of(columns)


def _columnar(holder: Mapping[str, Any], path: str) -> Found | None:
    """Return an object of equally long lists of values as a table; several lists of rows are not one."""
    lists = {name: value for name, value in holder.items() if isinstance(value, list)}
    if len(lists) < 2 or len(lists) < len(holder) or any(bare(name) in ROWS | NOT_ROWS for name in lists):
        return None
    if len({len(value) for value in lists.values()}) != 1 or any(_nested(value) for value in lists.values()):
        return None
    rows = zip(*lists.values(), strict=True)
    return Found(path, [dict(zip(lists, row, strict=True)) for row in rows], dict.fromkeys(lists, ""))


def _nested(value: list[Any]) -> bool:
    return any(isinstance(item, list | Mapping) for item in value)
