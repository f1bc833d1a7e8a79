"""The JSON Schema (draft 2020-12) of segment requests, made of the conditions' fields; ``nbext schema`` prints it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from nbext.core.rules import DEFAULT_LIMIT, MAX_LIMIT, one_of
from nbext.language.conditions import CONDITIONS, FILE_TYPE, GROUP, GROUPS, OPERATOR, SCOPE
from nbext.language.conditions.condition import Condition
from nbext.language.fields import FIELD_TYPES, Field

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_EXAMPLE = {"token": {"token": "UNI", "balance": {"min": "1000"}}, "not": {"nft": {"nft": "BAYC"}}}


def json_schema() -> dict[str, Any]:
    """Return the schema of an execute request; its ``$defs`` hold each condition under its name.

    Everything `nbext.language.parse.parse` takes, it takes; what only the parser can know (checksums,
    chains, nesting, ``min`` above ``max``) it lets pass.
    """
    scope = {field.name: _field(field) for field in SCOPE}
    # A scope key alone asks for nothing.
    asking = [{"required": [name]} for name in (*CONDITIONS, *GROUP)]
    return {
        "$schema": DRAFT,
        "title": "Segment request",
        "description": "Which wallets to return: conditions, how they are joined, and how many rows.",
        "type": "object",
        "properties": {
            "operator": _field(OPERATOR),
            "filters": {
                **_map("Filters", "The conditions. operator joins them.", scope),
                "anyOf": asking,
                "examples": [_EXAMPLE],
            },
            "fileType": _field(FILE_TYPE),
            "limit": {
                "title": "limit",
                "description": "How many rows to return, by address. 0 only counts.",
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_LIMIT,
                "default": DEFAULT_LIMIT,
            },
        },
        "required": ["filters"],
        "additionalProperties": False,
        "$defs": {
            "map": _map(
                "Conditions",
                "Conditions that all hold. A list under a key is several conditions.",
                {},
            ),
            **{name: condition_schema(condition) for name, condition in CONDITIONS.items()},
        },
    }


def condition_schema(condition: type[Condition]) -> dict[str, Any]:
    """Return the schema of one condition."""
    schema: dict[str, Any] = {
        "title": condition.name,
        "description": condition.help,
        "type": "object",
        "properties": {field.name: _field(field) for field in condition.fields},
        "additionalProperties": False,
        "examples": list(condition.examples),
    }
    if required := [field.name for field in condition.fields if field.required]:
        schema["required"] = required
    else:
        # Where no field is required, one that asks something is.
        asking = [field.name for field in condition.fields if field.name not in condition.idle]
        schema["anyOf"] = [{"required": [name]} for name in asking]
    # JSON Schema has no "not both": it is said as a schema that must not hold.
    if condition.exclusive:
        schema["allOf"] = [{"not": {"required": list(pair)}} for pair in condition.exclusive]
    if condition.needs:
        schema["dependentSchemas"] = {
            name: {"anyOf": [{"required": [other]} for other in others]}
            for name, others in condition.needs
        }
    return schema


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "condition", nargs="?", metavar="CONDITION", help=f"one of: {', '.join(CONDITIONS)}"
    )


def run(args: argparse.Namespace) -> int:
    """Print the schema as JSON; a `ValidationError` where there is no condition of that name."""
    schema = json_schema()
    if args.condition is not None:
        name = one_of(args.condition, CONDITIONS, "nbext schema")
        schema = {"$schema": DRAFT, **condition_schema(CONDITIONS[name])}
    print(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0


def _map(title: str, description: str, more: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a map of conditions and groups, and of what ``more`` it may have."""
    members: dict[str, Any] = {}
    for name in CONDITIONS:
        one = {"$ref": f"#/$defs/{name}"}
        members[name] = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
    for group in GROUPS:
        maps: dict[str, Any] = {"type": "array", "items": {"$ref": "#/$defs/map"}, "minItems": 1}
        members[group.name] = {
            "title": group.name,
            "description": group.help,
            **({"anyOf": [{"$ref": "#/$defs/map"}, maps]} if group.name == "not" else maps),
            "examples": list(group.examples),
        }
    return {
        "title": title,
        "description": description,
        "type": "object",
        "properties": members | more,
        "additionalProperties": False,
        "minProperties": 1,
    }


def _field(field: Field) -> dict[str, Any]:
    schema = {
        "title": field.name,
        "description": field.help,
        **FIELD_TYPES[field.kind].schema(field),
    }
    if field.unit is not None:
        schema["description"] += f" Unit: {field.unit}."
    if field.default is not None:
        schema["default"] = field.default
    if field.examples:
        schema["examples"] = list(field.examples)
    return schema
