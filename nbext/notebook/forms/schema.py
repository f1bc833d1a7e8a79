"""The segment language as its served JSON Schema tells it: conditions, groups, scope keys and their fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nbext.errors import ConfigError

Shape = Literal["choice", "flag", "pair", "list", "text"]
GROUP_KEYS = ("all", "any", "not")
_ACRONYMS = {"nft": "NFT", "id": "ID", "ids": "IDs"}


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
