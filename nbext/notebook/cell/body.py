"""The body of a cell: strict JSON with ``{{python}}`` in the place of any value, and what that Python becomes."""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from nbext.core.strict_json import NotJson, exact_number, parse
from nbext.core.untrusted_text import visible
from nbext.errors import InvalidSegment, UsageError, did_you_mean
from nbext.notebook.cell.json_errors import explain
from nbext.notebook.cell.json_source import Token, at, second_of_a_key, tokens

# A service's body may hold 1 MiB; a cell that is larger by itself cannot become one.
MAX_TEXT = 1024 * 1024
# The user's own expression may raise anything; what is not here shows its own traceback.
_RAISED_BY_EXPRESSIONS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
_MARK = re.compile(r"\A(\s*)\ufeff")
_QUOTED_EXPRESSION = re.compile(r'"\{\{[^"{}]+\}\}"')


@dataclass(frozen=True)
class Body:
    """What a cell says: its value, and its text."""

    value: Any
    text: str


def read_json_body(text: str, names: Mapping[str, Any]) -> Body:
    """Read a cell; `UsageError` names the line and column of what is wrong, and shows it with a caret.

    Numbers keep their digits: a fraction that a float would change becomes a Decimal. Nothing is
    evaluated before the whole text is known to be JSON, and nothing inside a JSON string ever is.
    """
    if len(text) > MAX_TEXT:
        raise UsageError(
            f"The cell has {len(text):,} characters; a request can have at most {MAX_TEXT:,}.\n  {at(text, MAX_TEXT)}"
        )
    # Editors on Windows may put a byte order mark before the text.
    text = _MARK.sub(r"\1", text)
    # Most cells hold no Python, and need no tokens to be read.
    if "{{" not in text:
        return Body(_parse(text, text), text)
    masked, expressions, quoted = _masked(text)
    value = _parse(text, masked)
    if quoted is not None:
        raise UsageError(
            f"{visible(quoted.text[1:-1])} is in quotes, so it would be sent as text. Remove the quotes: the "
            f"Python value becomes JSON by itself.\n  {at(text, quoted.start)}"
        )
    return Body(_filled(value, text, expressions, names), text)


def _masked(text: str) -> tuple[str, dict[str, Token], Token | None]:
    """Return the text with a string for each ``{{expression}}``, the expressions by that string, and a quoted one."""
    # A character that the cell does not contain: no string of the cell can be taken for a placeholder.
    sentinel = next(chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    pieces: list[str] = []
    expressions: dict[str, Token] = {}
    quoted = None
    end = 0
    for token in tokens(text):
        if token.kind == "string" and quoted is None and _QUOTED_EXPRESSION.fullmatch(token.text):
            quoted = token
        elif token.kind == "python":
            if not token.whole:
                source = visible(token.text[2:-2].strip()[:80])
                fault = (
                    f"{source!r} is not a Python expression, which {{{{ }}}} needs. Write a JSON object in single "
                    "braces."
                )
                if not token.text.endswith("}}"):
                    fault = "The {{ is not closed: }} is missing."
                raise UsageError(f"{fault}\n  {at(text, token.start)}")
            placeholder = f"{sentinel}{len(expressions)}"
            expressions[placeholder] = token
            pieces += [text[end : token.start], f'"{placeholder}"']
            end = token.start + len(token.text)
    return "".join([*pieces, text[end:]]), expressions, quoted


def exact_fraction(digits: str) -> float | Decimal:
    """Return a fraction as a float where that is exact to the digit, else as a Decimal."""
    exact_number(
        digits
    )  # refuses what no amount has digits for, before a power of ten is made of it
    exact = Decimal(digits)
    near = float(digits)
    return near if Decimal(repr(near)) == exact else exact


def _parse(text: str, masked: str) -> Any:
    try:
        return parse(masked, exact_fraction)
    except NotJson as error:
        fault, why = error.fault, str(error)
    if fault == "depth":
        raise UsageError("Objects and lists are nested too deeply.")
    if fault != "duplicate":
        # JSON itself has no bound on digits, so there `explain` finds no fault.
        raise UsageError(explain(text) or f"This is not JSON: {why}")
    found = second_of_a_key(text)
    if found is None:
        raise UsageError("A key appears twice in one object.")
    key, first, second = found
    raise UsageError(
        f"{_twice(key)}\n  The first: {at(text, first)}\n  The second: {at(text, second)}"
    )


def _twice(key: str) -> str:
    return (
        f"The key {visible(key)!r} appears twice in one object, and only one could count. Leave one out; several "
        'conditions of one kind are a list: {"token": [..., ...]}.'
    )


def _filled(
    value: Any, text: str, expressions: Mapping[str, Token], names: Mapping[str, Any], of: str = ""
) -> Any:
    if isinstance(value, dict):
        filled: dict[str, Any] = {}
        for written, item in value.items():
            key, place = _filled(written, text, expressions, names), expressions.get(written)
            if not isinstance(key, str):
                kind, of_key = type(key).__name__, expressions[written].start
                raise UsageError(f"A key must be a string, not {kind}.\n  {at(text, of_key)}")
            if key in filled:
                raise UsageError(
                    _twice(key) + (f"\n  {at(text, place.start)}" if place is not None else "")
                )
            filled[key] = _filled(item, text, expressions, names, key)
        return filled
    if isinstance(value, list):
        return [_filled(item, text, expressions, names, of) for item in value]
    if isinstance(value, str) and value in expressions:
        token = expressions[value]
        return evaluated(token.text[2:-2].strip(), text, token.start, names, of)
    return value


def evaluated(source: str, text: str, position: int, names: Mapping[str, Any], of: str = "") -> Any:
    """Return the JSON value of one expression, which begins at a position of a text, under the key ``of``."""
    # Imported here: loading the extension needs no client.
    from nbext.client.filters import from_python

    lost: Mapping[str, str] = getattr(names, "lost", {})
    # A lost name such as max is no builtin.
    known = {name: value for name, value in vars(builtins).items() if name not in lost}
    try:
        value = eval(f"({source}\n)", {**names, "__builtins__": known})
    except NameError as error:
        hint = did_you_mean(error.name or "", filter(_is_the_users, names))
        message = f"{error.name!r} is not defined in this notebook.{hint}"
        if error.name and error.name in lost:
            message = lost[error.name]
    except _RAISED_BY_EXPRESSIONS as error:
        message = f"{{{{{source}}}}} failed: {type(error).__name__}: {error}"
    else:
        try:
            return from_python(value, f"{{{{{source}}}}}", of)
        except InvalidSegment as error:
            message = str(error)
    # Raised here, so that no frame of the user's expression hangs on our error.
    raise UsageError(f"{message}\n  {at(text, position)}")


def _is_the_users(name: str) -> bool:
    # IPython puts names such as open and exit among the notebook's: nobody who mistyped a name meant these.
    return not (
        name.startswith("_") or name in ("In", "Out", "exit", "quit") or hasattr(builtins, name)
    )


def laid_out(value: Any, width: int, name: str | None = None, indent: str = "") -> str:
    """Return JSON in which what fits on a line of this width is on one line; after its name, where it has one."""
    start = f"{indent}{json.dumps(name, ensure_ascii=False)}: " if name is not None else indent
    line = start + json.dumps(value, default=str, ensure_ascii=False)
    if len(line) <= width or not value or not isinstance(value, dict | list):
        return line
    members = value.items() if isinstance(value, dict) else ((None, one) for one in value)
    inside = ",\n".join(laid_out(one, width, key, f"{indent}  ") for key, one in members)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{start}{opening}\n{inside}\n{indent}{closing}"
