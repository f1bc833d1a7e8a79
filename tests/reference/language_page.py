"""The page of the segment language: every group, condition, scope key and field."""

from __future__ import annotations

import json
from typing import Any

from nbext.language.conditions import CONDITIONS
from nbext.language.conditions.condition import Condition
from nbext.language.describe import CODES
from nbext.language.fields import GROUPS, RULES, SCOPE, Field
from tests.reference import table

_RULES = """# The segment language

A segment is a JSON object of conditions. `operator` (AND, the default, or OR) joins the direct children of the
object. Every key is a child; a list under a key is several children; inside groups, several keys mean AND. Unknown
keys, empty groups and an empty object are errors, never ignored.

"""


def page() -> str:
    """Return the page."""
    return (
        _RULES
        + "".join(f"* {rule}\n" for rule in RULES)
        + "\n## At the top of the object\n\n"
        + _fields(SCOPE)
        + "\n## Groups\n\n"
        + table(["group", "what it means", "example"], [[f"`{g.name}`", g.help, _code(g.examples[0])] for g in GROUPS])
        + "".join(_condition(condition) for condition in CONDITIONS.values())
        + "\n## What is refused\n\nEvery error has a JSON pointer to its place and one of these codes. "
        "All errors of a query are reported together.\n\n"
        + table(["code", "what is wrong"], [[f"`{code}`", text] for code, text in CODES.items()])
    )


def _condition(condition: type[Condition]) -> str:
    examples = "\n".join(json.dumps({condition.name: example}) for example in condition.examples)
    return (
        f"\n## {condition.name}\n\n{condition.help}\n\n{_fields(condition.fields)}{_together(condition)}"
        f"\n```json\n{examples}\n```\n"
    )


def _fields(fields: tuple[Field, ...]) -> str:
    rows = [[f"`{f.name}`{' (required)' if f.required else ''}", _meaning(f), _examples(f)] for f in fields]
    return table(["field", "what it means", "examples"], rows)


def _meaning(field: Field) -> str:
    choices = f" One of {', '.join(f'`{c}`' for c in field.choices)}." if field.choices else ""
    unit = f" Counted in {field.unit}." if field.unit and field.unit != "token" else ""
    unit = " In the token's unit." if field.unit == "token" else unit
    default = "" if field.default is None else f" Default: {_code(field.default)}."
    return f"{field.help}{choices}{unit}{default}"


def _together(condition: type[Condition]) -> str:
    lines = [f"* Not both `{one}` and `{other}`." for one, other in condition.exclusive]
    lines += [
        f"* `{name}` only beside {' or '.join(f'`{other}`' for other in others)}." for name, others in condition.needs
    ]
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def _examples(field: Field) -> str:
    return ", ".join(map(_code, field.examples))


def _code(value: Any) -> str:
    return f"`{json.dumps(value)}`"
