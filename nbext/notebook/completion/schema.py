"""The JSON Schema of a request, read for its names: which keys a place may hold, and which values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nbext.errors import UsageError, did_you_mean

Schema = Mapping[str, Any]
# A schema that refers to itself is followed this far and no further.
_DEPTH = 12
# A table's cell lists this many names; completion knows all.
_LISTED = 12


def variants(root: Schema, schema: Any, depth: int = 0) -> Iterator[Schema]:
    """Yield a schema and all that it refers to or offers instead of itself."""
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return
    yield schema
    if isinstance(reference := schema.get("$ref"), str):
        yield from variants(root, _referred(root, reference), depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        for other in schema.get(word) or ():
            yield from variants(root, other, depth + 1)


def at_path(root: Schema, path: Sequence[str]) -> list[Schema]:
    """Return every schema that a place may follow; lists on the way to it are looked through."""
    # A key that stands once and a list under the key lead to the same fields.
    found = _with_items(root, list(variants(root, root)))
    for name in path:
        inner: list[Schema] = []
        for schema in found:
            inner += variants(root, (schema.get("properties") or {}).get(name))
        found = _with_items(root, inner)
    return found


def keys(root: Schema, path: Sequence[str]) -> dict[str, Schema]:
    """Return the keys that the object at a path may hold."""
    found: dict[str, Schema] = {}
    for schema in at_path(root, path):
        found.update(schema.get("properties") or {})
    return found


def values(root: Schema, path: Sequence[str]) -> list[str]:
    """Return the values that a schema lists for a place, as JSON would have them."""
    found: dict[str, None] = {}
    for schema in at_path(root, path):
        for value in [*(schema.get("enum") or ()), *([schema["const"]] if "const" in schema else [])]:
            if isinstance(value, str):
                found[value] = None
    return list(found)


def rows(root: Schema, condition: str | None) -> list[dict[str, str]]:
    """Return the conditions and what they mean, or the fields of one.

    Raises
    ------
    UsageError
        There is no condition of that name.
    """
    top = keys(root, ["filters"])
    if condition is None:
        return [
            {
                "condition": name,
                "fields": ", ".join(_inside(root, ["filters", name])[:_LISTED]),
                "meaning": _meaning(root, schema),
            }
            for name, schema in top.items()
        ]
    if condition not in top:
        raise UsageError(
            f"%nbext schema: unknown condition {condition!r}.{did_you_mean(condition, top)} Allowed: {', '.join(top)}."
        )
    return [
        {
            "field": name,
            "allowed": ", ".join(_inside(root, ["filters", condition, name])[:_LISTED]) or _types(root, schema),
            "meaning": _meaning(root, schema),
        }
        for name, schema in keys(root, ["filters", condition]).items()
    ]


def _inside(root: Schema, path: Sequence[str]) -> list[str]:
    return values(root, path) or list(keys(root, path))


def _with_items(root: Schema, found: list[Schema]) -> list[Schema]:
    items = [inner for schema in found for inner in variants(root, schema.get("items"))]
    return found + items


def _referred(root: Schema, reference: str) -> Any:
    here: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        here = here.get(part) if isinstance(here, Mapping) else None
    return here


def _meaning(root: Schema, schema: Schema) -> str:
    for variant in variants(root, schema):
        if variant.get("description"):
            return str(variant["description"])
    return ""


def _types(root: Schema, schema: Schema) -> str:
    found: dict[str, None] = {}
    for variant in variants(root, schema):
        kinds = variant.get("type") or []
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            found[str(kind)] = None
    return " or ".join(found)
