"""One place inside of a setting that is a table, such as ``remote.paths.rows``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def at(table: object, path: Sequence[str]) -> Any:
    """Return what stands at a path of names; None where nothing does."""
    for name in path:
        table = table.get(name) if isinstance(table, Mapping) else None
    return table


def with_value(table: object, path: Sequence[str], value: object) -> dict[str, Any]:
    """Return a copy of a table with a value at a path of names."""
    first, *rest = path
    copy = dict(table) if isinstance(table, Mapping) else {}
    copy[first] = with_value(copy.get(first), rest, value) if rest else value
    return copy


def without(table: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a copy of a table without what stands at a path, nor the tables that are empty then."""
    first, *rest = path
    left = {name: value for name, value in table.items() if name != first}
    if rest and (inner := without(table[first], rest)):
        left[first] = inner
    return left


def places(table: object, name: str) -> Iterator[str]:
    """Yield every place of a table that holds a value, as it is written: ``remote.paths.rows``."""
    if not isinstance(table, Mapping):
        yield name
        return
    for inner, value in table.items():
        yield from places(value, f"{name}.{inner}")
