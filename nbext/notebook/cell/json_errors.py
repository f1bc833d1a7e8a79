"""What is wrong with a text that is not JSON, in words that say how to mend it."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from nbext.core.untrusted_text import visible
from nbext.notebook.cell.json_source import Scan, first_fault
from nbext.notebook.cell.places import at, line_and_column

_CLOSERS = {"{": "}", "[": "]"}
# Longer Python texts are not written out again as JSON.
_SHOWN = 400

# What stands at the fault -> what to say. The first that matches is said; {0} is what matched.
_AT_THE_FAULT: tuple[tuple[str, str], ...] = (
    (r"//|/\*|#", "JSON has no comments: take out what begins with {0}."),
    (r"'", "JSON writes texts and keys in double quotes (\"), not in single quotes (')."),
    (r"[“”„‟‘’«»]", "{0} is a typographic quote, as word processors make them: write \"."),
    (
        r"[\u00a0\u2000-\u200f\u202f\u2028\u2029\u3000\ufeff]",
        "JSON does not know the space or mark that stands here ({1}).",
    ),
    (r"(True|False|None)\b", "{0} is Python; JSON writes true, false and null."),
    (r"-?(NaN|Infinity|inf|nan)\b", "JSON has no {0}: leave the bound out."),
    (r"0[xX][0-9a-fA-F]+", "an address is a text: write it in double quotes."),
    (r"[+-]?[0-9]+(_[0-9]+)+", "JSON numbers have no underscores: write the digits alone."),
    (r"[+-]?0[0-9]+", "a JSON number has no leading zero: write {0} in double quotes, or without the zero."),
    (r"\+[0-9.]+|-?\.[0-9]+|-?[0-9]+\.(?![0-9])", "{0} is not a JSON number: write 0.5, 5 or \"5\"."),
    (r"[fFrRbBuU]{1,2}[\"']", "JSON texts have no prefix: {0} is Python. Write a Python value as {{{{expression}}}}."),
    (r"\(", "JSON has no parentheses: a list stands in [ ]."),
    (r"\$(?:\w+|\{\w+\})", "a Python value is written {{{{name}}}}, not {0}."),
)


def explain(text: str) -> str | None:
    """Return what is wrong with a text, where, and how to mend it; None where its marks are those of JSON."""
    if not text.strip():
        return "there is nothing to read: the cell is empty."
    scan = first_fault(text)
    if scan is None:
        return None
    position, words = _fault(text, scan)
    return f"{words}\n  {at(text, position)}{_as_json(text)}"


def _fault(text: str, scan: Scan) -> tuple[int, str]:
    if scan.position >= len(text):
        return _at_the_end(text, scan)
    before = text[scan.previous] if scan.previous >= 0 else ""
    here = text[scan.position]
    # Pointed at the comma, which is what has to go, and not at the bracket, where reading stopped.
    if before == "," and here in "}]":
        return scan.previous, f"JSON has no trailing comma: delete the comma before {here}."
    for pattern, words in _AT_THE_FAULT:
        found = re.match(pattern, text[scan.position : scan.position + 200])
        if found:
            return scan.position, words.format(visible(found.group()), f"U+{ord(here):04X}")
    if here == '"':
        fault = _bad_string(text, scan.position)
        if fault:
            return fault
    return scan.position, _by_what_was_expected(text, scan, here)


def _at_the_end(text: str, scan: Scan) -> tuple[int, str]:
    if not scan.open:
        return scan.position, "there is nothing to read: the cell is empty."
    last = scan.open[-1]
    line, column = line_and_column(text, last)
    missing = "".join(_CLOSERS[text[position]] for position in reversed(scan.open))
    words = f"{missing} is missing at the end: the {text[last]} of line {line}, column {column} is never closed."
    if scan.expected in ("value", "colon") and text[scan.previous] != ",":
        words = f"the text ends before the value is there; after it {missing} is missing too."
    return last, words


def _bad_string(text: str, start: int) -> tuple[int, str] | None:
    """Name what is wrong inside a text that begins here; None where it is whole."""
    position = start + 1
    while position < len(text):
        c = text[position]
        if c == '"':
            return None
        if c == "\n":
            return start, 'the closing " of this text is missing on its line.'
        if c < " ":
            return position, f"a text may not hold {visible(c)!r}: write \\t for a tab, \\n for a new line."
        if c == "\\":
            if not re.match(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})', text[position : position + 6]):
                escape = visible(text[position : position + 2])
                return position, f"JSON has no escape {escape}: write \\\\ for a backslash."
            position += 1
        position += 1
    return start, 'the closing " of this text is missing.'


def _by_what_was_expected(text: str, scan: Scan, here: str) -> str:
    found = re.match(r"[\w.$-]+", text[scan.position : scan.position + 80])
    shown = visible(found.group() if found else here)
    if scan.expected == "nothing":
        too_many = f"there is one {here} too many."
        return too_many if here in "}]" else "the object ends before this: a cell holds one object."
    if here in "}]" and scan.open and _CLOSERS[text[scan.open[-1]]] != here:
        line, column = line_and_column(text, scan.open[-1])
        opener = text[scan.open[-1]]
        return f"{here} does not close the {opener} of line {line}, column {column}: write {_CLOSERS[opener]}."
    return {
        "next": f"a comma is missing before {shown}.",
        "colon": f"a colon (:) is missing after the key, before {shown}.",
        "key": _no_key(shown, is_word=found is not None),
        "key or }": _no_key(shown, is_word=found is not None),
    }.get(scan.expected) or _no_value(shown, is_word=found is not None)


def _no_key(shown: str, *, is_word: bool) -> str:
    if is_word:
        return f'a key stands in double quotes: "{shown}".'
    return f"a key in double quotes belongs here, not {shown}."


def _no_value(shown: str, *, is_word: bool) -> str:
    if not is_word:
        return f"a value belongs here, not {shown}."
    return (
        f'{shown} is neither a number nor true, false or null: a text stands in double quotes ("{shown}"), '
        f"a Python variable in double braces ({{{{{shown}}}}})."
    )


def _as_json(text: str) -> str:
    """Return what a Python literal would be in JSON, where the text is one and is not long."""
    if len(text) > _SHOWN * 4 or "0x" in re.sub(r"'[^']*'|\"[^\"]*\"", "", text):
        return ""
    # Literals only: nothing of the cell is run.
    try:
        value = ast.literal_eval(text.strip())
        shown = json.dumps(value, default=_listed, allow_nan=False, ensure_ascii=False)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ""
    if not isinstance(value, dict) or len(shown) > _SHOWN:
        return ""
    return f"\n  It reads as a Python dict. As JSON it is:\n    {visible(shown)}"


def _listed(value: Any) -> list[Any]:
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    raise TypeError(type(value).__name__)
