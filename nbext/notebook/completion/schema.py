"""The JSON Schema of a request, read for its names: which keys a place may hold, and which values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from nbext.errors import ConfigError, UsageError, did_you_mean

Schema = Mapping[str, Any]
# A schema that refers to itself is followed this far and no further.
_DEPTH = 12
# A table's cell lists this many names; completion knows all.
_LISTED = 12
Shape = Literal["choice", "flag", "pair", "list", "text"]
GROUP_KEYS = ("all", "any", "not")
_ACRONYMS = {"nft": "NFT", "id": "ID", "ids": "IDs"}


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


@dataclass(frozen=True)
class FieldSpec:
    """One field: what kind of input it takes, its words, and the schema of its value (of one member of a list)."""

    name: str
    shape: Shape
    help: str
    schema: Mapping[str, Any]
    examples: tuple[Any, ...] = ()
    choices: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    default: Any = None
    required: bool = False

    @property
    def label(self) -> str:
        """The field's name in words."""
        return words(self.name)


@dataclass(frozen=True)
class ConditionSpec:
    """One condition: what it asks of a wallet, and its fields."""

    name: str
    help: str
    fields: tuple[FieldSpec, ...]

    @property
    def label(self) -> str:
        """The condition's name in words."""
        return words(self.name)


@dataclass(frozen=True)
class Vocabulary:
    """All that can be asked."""

    conditions: Mapping[str, ConditionSpec]
    groups: Mapping[str, str] = field(default_factory=dict)
    scope: tuple[FieldSpec, ...] = ()
    limit: int = 1000
    most: int = 1_000_000


def vocabulary(schema: Mapping[str, Any] | None) -> Vocabulary:
    """Read a served schema.

    Raises
    ------
    ConfigError
        The service publishes none, or one without conditions.
    """
    definitions = (schema or {}).get("$defs", {})
    request = (schema or {}).get("properties", {})
    filters = request.get("filters", {}).get("properties", {})
    conditions = {name: _condition(name, definitions[name]) for name in filters if name in definitions}
    if not conditions:
        raise ConfigError(
            "the service publishes no schema of its filters, so no form can be made of it. "
            "Write the filters in a %%segment_query cell, as the service's own documentation tells them."
        )
    groups = {name: str(filters[name].get("description", "")) for name in GROUP_KEYS if name in filters}
    scope = tuple(
        _field(name, part, required=False)
        for name, part in filters.items()
        if name not in conditions and name not in groups
    )
    limit = request.get("limit", {})
    return Vocabulary(conditions, groups, scope, limit.get("default", 1000), limit.get("maximum", 1_000_000))


def words(name: str) -> str:
    """Return a camel-case name in words.

    >>> words("heldSince"), words("nft"), words("tokenIds")
    ('Held since', 'NFT', 'Token IDs')
    """
    # Labels may be set as maths by front ends, and a name comes from the service: letters and digits only.
    parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name[:60])]
    text = " ".join(_ACRONYMS.get(part, part) for part in parts)
    return text[:1].upper() + text[1:]


def _condition(name: str, schema: Mapping[str, Any]) -> ConditionSpec:
    required = schema.get("required", [])
    fields = tuple(_field(key, part, required=key in required) for key, part in schema.get("properties", {}).items())
    return ConditionSpec(name, str(schema.get("description", "")), fields)


def _field(name: str, schema: Mapping[str, Any], *, required: bool) -> FieldSpec:
    shape, inner, choices, keys = _shape(schema)
    return FieldSpec(
        name, shape, str(schema.get("description", "")), inner, tuple(schema.get("examples", ())), choices, keys,
        schema.get("default"), required,
    )  # fmt: skip


def _shape(schema: Mapping[str, Any]) -> tuple[Shape, Mapping[str, Any], tuple[str, ...], tuple[str, ...]]:
    options = [schema, *schema.get("anyOf", [])]
    choices = next((tuple(option["enum"]) for option in options if "enum" in option), ())
    if choices:
        return "choice", schema, choices, ()
    if schema.get("type") == "boolean":
        return "flag", schema, (), ()
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        return "pair", next(iter(properties.values()), {}), (), tuple(properties)
    members = next((option["items"] for option in options if option.get("type") == "array"), None)
    return ("text", schema, (), ()) if members is None else ("list", members, (), ())


def encoded(text: str, schema: Mapping[str, Any]) -> Any:
    """Return a typed text as the JSON value that the schema wants; one that fits nothing stays text, to be refused.

    >>> encoded("90d", {"anyOf": [{"type": "string", "pattern": "^[0-9]+d$"}, {"type": "integer"}]})
    '90d'
    >>> encoded("19000000", {"anyOf": [{"type": "string", "pattern": "^[0-9]+d$"}, {"type": "integer"}]})
    19000000
    """
    options = [schema, *schema.get("anyOf", [])]
    for option in options:
        if option.get("type") == "string" and re.search(option.get("pattern", ""), text):
            return text
    whole = text.isascii() and text.isdigit() and len(text) <= 78
    return int(text) if whole and any(option.get("type") == "integer" for option in options) else text
