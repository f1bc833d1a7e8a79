"""What is wrong with a text that is not JSON, where, and what to write instead."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from nbext.core.untrusted_text import visible
from nbext.notebook.cell.json_source import Reading, at, first_fault, line_and_column

# A longer Python text is not printed again as JSON: the message would hide the fault.
_SHOWN = 400

# What is found at the fault -> what to say. The first that matches is said; {0} is what matched, {1} its code point.
_AT_THE_FAULT: tuple[tuple[str, str], ...] = (
    (r"//|/\*|#", "JSON has no comments. Delete {0} and what follows it."),
    (r"'", "JSON puts keys and strings in double quotes (\"), not in single quotes (')."),
    (r"[“”„‟‘’«»]", "{0} is a typographic quote, as word processors write it. Use \"."),
    (
        r"[\u00a0\u2000-\u200f\u202f\u2028\u2029\u3000\ufeff]",
        "This space or invisible mark ({1}) is not allowed in JSON. Delete it, or use a plain space.",
    ),
    (r"(True|False|None)\b", "{0} is Python. JSON uses true, false and null."),
    (r"-?(NaN|Infinity|inf|nan)\b", "JSON has no {0}. Leave the bound out."),
    (r"0[xX][0-9a-fA-F]+", "An address is a string. Put it in double quotes."),
    (r"[+-]?[0-9]+(_[0-9]+)+", "JSON numbers have no underscores. Write the digits only."),
    (r"[+-]?0[0-9]+", "A JSON number has no leading zero. Put {0} in double quotes, or drop the zero."),
    (r"\+[0-9.]+|-?\.[0-9]+|-?[0-9]+\.(?![0-9])", "{0} is not a JSON number. Write 0.5, 5 or \"5\"."),
    (r"[fFrRbBuU]{1,2}[\"']", "JSON strings have no prefix: {0} is Python. Put a Python value in {{{{...}}}}."),
    (r"\(", "JSON has no parentheses. Write a list in [ ]."),
    (r"\$(?:\w+|\{\w+\})", "Write a Python value as {{{{name}}}}, not as {0}."),
)


def explain(text: str) -> str | None:
    """Return what is wrong with a text, where, and what to write instead; None where it is JSON."""
    if not text.strip():
        return "The cell is empty."
    reading = first_fault(text)
    if reading is None:
        return None
    position, words = _at_the_end(text, reading) if reading.position >= len(text) else _fault(text, reading)
    return f"{words}\n  {at(text, position)}{_as_json(text)}"


def _fault(text: str, reading: Reading) -> tuple[int, str]:
    position, here = reading.position, text[reading.position]
    # The caret points at the comma, which has to go, and not at the bracket, where reading stopped.
    if here in "}]" and reading.previous >= 0 and text[reading.previous] == ",":
        return reading.previous, f"JSON has no trailing comma. Delete the comma before {here}."
    for pattern, words in _AT_THE_FAULT:
        if found := re.match(pattern, text[position : position + 200]):
            return position, words.format(visible(found.group()), f"U+{ord(here):04X}")
    if here == '"' and (fault := _bad_string(text, position)):
        return fault
    return position, _by_what_was_expected(text, reading, here)


def _at_the_end(text: str, reading: Reading) -> tuple[int, str]:
    # Nothing is open only where nothing was read, and an empty cell was answered before.
    last = reading.levels[-1]
    opened = f"the {text[last.start]} at line %d, column %d is not closed." % line_and_column(text, last.start)
    missing = "".join(level.closer for level in reversed(reading.levels))
    if reading.expected in ("value", "colon") and text[reading.previous] != ",":
        return last.start, f"The text ends where a value is expected, and {missing} is missing after it."
    return last.start, f"{missing} is missing at the end: {opened}"


def _bad_string(text: str, start: int) -> tuple[int, str] | None:
    """Return the position and the words for what is wrong inside the string that begins here; None if nothing is."""
    position = start + 1
    while position < len(text) and text[position] != "\n":
        c = text[position]
        if c == '"':
            return None
        if c < " ":
            return position, f"A string cannot contain {visible(c)!r}. Write \\t for a tab, \\n for a new line."
        if c == "\\":
            if not re.match(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})', text[position : position + 6]):
                escape = visible(text[position : position + 2])
                return position, f"JSON has no escape {escape}. Write \\\\ for a backslash."
            position += 1
        position += 1
    return start, 'The closing " of this string is missing on its line.'


_MISSING_MARK = {"next": "A comma is missing before {}.", "colon": "A colon (:) is missing after the key, before {}."}


def _by_what_was_expected(text: str, reading: Reading, here: str) -> str:
    found = re.match(r"[\w.$-]+", text[reading.position : reading.position + 80])
    shown = visible(found.group() if found else here)
    if reading.expected == "nothing":
        return f"There is one {here} too many." if here in "}]" else "Unexpected text after the cell's object."
    if here in "}]" and reading.levels and (opened := reading.levels[-1]).closer != here:
        line, column = line_and_column(text, opened.start)
        return f"{here} does not close the {text[opened.start]} at line {line}, column {column}. Write {opened.closer}."
    if reading.expected in _MISSING_MARK:
        return _MISSING_MARK[reading.expected].format(shown)
    if reading.expected in ("key", "key or }"):
        return f'A key needs double quotes: "{shown}".' if found else f"Expected a key in double quotes, not {shown}."
    if found is None:
        return f"Expected a value, not {shown}."
    return (
        f"{shown} is not a JSON value. Put a string in double quotes (\"{shown}\"), "
        f"a Python variable in double braces ({{{{{shown}}}}})."
    )


def _as_json(text: str) -> str:
    """Return what a Python literal would be in JSON, where the text is one and is short."""
    # ast would read 0x... as an integer: an address without its quotes would come back as a huge number.
    if len(text) > _SHOWN * 4 or "0x" in re.sub(r"'[^']*'|\"[^\"]*\"", "", text):
        return ""
    # Literals only: nothing in the cell is run.
    try:
        value = ast.literal_eval(text.strip())
        shown = json.dumps(value, default=_listed, allow_nan=False, ensure_ascii=False)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ""
    if not isinstance(value, dict) or len(shown) > _SHOWN:
        return ""
    return f"\n  This is a Python dict. As JSON it is:\n    {visible(shown)}"


def _listed(value: Any) -> list[Any]:
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    raise TypeError(type(value).__name__)
