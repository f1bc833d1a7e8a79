"""The block that an answer of our service is as of, as two columns: ``asOf.block`` is ``asOfBlock``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PARTS = {"block": "integer", "timestamp": "string"}


def in_columns(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the parts of its ``asOf`` in its place; any other record as it is."""
    if "asOf" not in record:
        return dict(record)
    told = record["asOf"] if isinstance(record["asOf"], Mapping) else {}
    return _replaced(record, {part: told.get(part) for part in _PARTS})


def columns_of(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the types of a record's columns, from those of its fields."""
    return _replaced(fields, _PARTS)


def _replaced(record: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in record.items():
        found |= {f"asOf{part.title()}": held for part, held in parts.items()} if name == "asOf" else {name: value}
    return found
