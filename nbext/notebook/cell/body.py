"""The body of a cell: strict JSON read kindly, with ``{{python}}`` in the place of any value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from nbext.core.strict_json import NotJson, parse
from nbext.core.untrusted_text import visible
from nbext.errors import UsageError, did_you_mean
from nbext.notebook.cell.json_errors import explain
from nbext.notebook.cell.json_source import place_of, second_of_a_key
from nbext.notebook.cell.places import at
from nbext.notebook.cell.python_values import json_value

# A service's body may hold 1 MiB; a cell that is larger by itself cannot become one.
MAX_TEXT = 1024 * 1024
# The user's own expression may raise anything; what is not here shows its own traceback.
_RAISED_BY_EXPRESSIONS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError,
)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_QUOTED_EXPRESSION = re.compile(r'"\{\{([^"{}]+)\}\}"')


@dataclass(frozen=True)
class Expression:
    """One ``{{expression}}``: its Python text, and where it begins."""

    source: str
    position: int


@dataclass(frozen=True)
class Body:
    """What a cell says: its value, its text, and which of its places are Python's."""

    value: Any
    text: str
    masked: str

    def place_of(self, pointer: str) -> int | None:
        """Return where a JSON pointer stands in the cell, or None."""
        return place_of(self.masked, pointer)


def read(text: str, names: Mapping[str, Any]) -> Body:
    """Read a cell.

    Numbers keep their digits: a fraction that a float would change comes as a Decimal. Nothing is
    evaluated before the whole text is known to be JSON, and nothing inside a JSON text ever is.

    Raises
    ------
    UsageError
        Not JSON, a key twice in one object, an expression that fails or has no JSON form. The message
        names line and column, and shows the place with a caret.
    """
    if len(text) > MAX_TEXT:
        raise UsageError(
            f"the cell holds {len(text):,} characters; a request holds at most {MAX_TEXT:,}.\n  {at(text, MAX_TEXT)}"
        )
    text = text.removeprefix("\ufeff")
    masked, expressions = mask(text)
    value = _parse(text, masked)
    if found := _QUOTED_EXPRESSION.search(masked):
        raise UsageError(
            f"{{{{{visible(found[1])}}}}} stands in quotes, so it would be sent as it is written: leave the quotes "
            f"out, Python's value becomes JSON by itself.\n  {at(text, found.start())}"
        )
    return Body(_filled(value, text, expressions, names), text, masked)


def mask(text: str) -> tuple[str, dict[str, Expression]]:
    """Put a JSON text of the same length in the place of each ``{{expression}}``."""
    if "{{" not in text:
        return text, {}
    # A character that the cell does not hold: no text of the cell can be taken for a placeholder.
    sentinel = next(chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    pieces: list[str] = []
    expressions: dict[str, Expression] = {}
    position = 0
    while position < len(text):
        string = _STRING.match(text, position)
        # Texts are passed over whole: braces inside of them are a name's, not ours.
        if string:
            pieces.append(string.group())
            position = string.end()
        elif text.startswith("{{", position):
            end = _checked_end(text, position)
            placeholder = (sentinel + chr(0x4E00 + len(expressions))).ljust(end - position - 2, sentinel)
            expressions[placeholder] = Expression(text[position + 2 : end - 2].strip(), position)
            pieces.append(f'"{placeholder}"')
            position = end
        else:
            pieces.append(text[position])
            position += 1
    return "".join(pieces), expressions


def end_of_expression(text: str, start: int) -> int | None:
    """Return the end of the first ``}}`` that leaves a whole Python expression before it, if one does."""
    end = text.find("}}", start)
    while end >= 0:
        source = text[start + 2 : end].strip()
        try:
            compile(f"({source}\n)", "<cell>", "eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            end = text.find("}}", end + 1)
        else:
            return end + 2
    return None


def _checked_end(text: str, start: int) -> int:
    end, first = end_of_expression(text, start), text.find("}}", start)
    if end is not None:
        return end
    if first < 0:
        raise UsageError(f"the {{{{ is never closed by }}}}.\n  {at(text, start)}")
    source = visible(text[start + 2 : first].strip()[:80])
    raise UsageError(
        f"{{{{ }}}} holds a Python expression, and {source!r} is none. For a JSON object write one brace.\n"
        f"  {at(text, start)}"
    )


def number(digits: str) -> float | Decimal:
    """Return a fraction as a float where that is exact to the digit, else as a Decimal."""
    exact = Decimal(digits)
    near = float(digits)
    return near if Decimal(repr(near)) == exact else exact


def _parse(text: str, masked: str) -> Any:
    try:
        return parse(masked, number)
    except NotJson as error:
        fault, why = error.fault, str(error)
    if fault == "duplicate":
        message = _twice(text, masked)
    elif fault == "depth":
        message = "objects and lists are nested too deep to be read."
    else:
        message = (explain(masked) or f"this is not JSON: {why}").translate(_without_placeholders(text, masked))
    raise UsageError(message)


def _without_placeholders(text: str, masked: str) -> dict[int, str]:
    return {ord(c): "·" for c in set(masked) - set(text)}


def _twice(text: str, masked: str) -> str:
    found = second_of_a_key(masked)
    if found is None:
        return "a key stands twice in one object."
    key, first, second = found
    return (
        f"the key {visible(key)!r} stands twice in one object, and only one could count. For several conditions of one "
        f'kind write a list: {{"{visible(key)}": [..., ...]}}.\n  The first: {at(text, first)}\n'
        f"  The second: {at(text, second)}"
    )


def _filled(value: Any, text: str, expressions: Mapping[str, Expression], names: Mapping[str, Any]) -> Any:
    if not expressions:
        return value
    if isinstance(value, dict):
        return {
            _key(key, text, expressions, names): _filled(item, text, expressions, names)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_filled(item, text, expressions, names) for item in value]
    if isinstance(value, str) and value in expressions:
        return evaluated(expressions[value], text, names)
    return value


def _key(key: str, text: str, expressions: Mapping[str, Expression], names: Mapping[str, Any]) -> str:
    if key not in expressions:
        return key
    value = evaluated(expressions[key], text, names)
    if not isinstance(value, str):
        raise UsageError(f"a key is a text; this is {type(value).__name__}.\n  {at(text, expressions[key].position)}")
    return value


def evaluated(expression: Expression, text: str, names: Mapping[str, Any]) -> Any:
    """Return the JSON value of one expression.

    Raises
    ------
    UsageError
        The expression fails, or its value has no JSON form.
    """
    place = at(text, expression.position)
    try:
        value = eval(f"({expression.source}\n)", dict(names))
        return json_value(value)
    except NotJson as error:
        message = f"{{{{{expression.source}}}}}: {error}."
    except NameError as error:
        hint = did_you_mean(error.name or "", [name for name in names if not name.startswith("_")])
        message = f"{error.name!r} is not defined in this notebook.{hint}"
    except _RAISED_BY_EXPRESSIONS as error:
        message = f"{{{{{expression.source}}}}} failed: {type(error).__name__}: {error}"
    raise UsageError(f"{message}\n  {place}")
