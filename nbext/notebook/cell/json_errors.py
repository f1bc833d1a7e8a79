"""What is wrong with a text that is not JSON, where, and what to write instead."""

from __future__ import annotations

import ast
import contextlib
import json
import re

from nbext.core.untrusted_text import visible
from nbext.notebook.cell.json_source import (
    SOUND_STRING,
    JsonReader,
    at,
    first_fault,
    line_and_column,
    tokens,
)

# A longer text is not printed again as JSON: the message would hide the fault.
_SHOWN = 400

_COMMENT = re.compile(r"(?:#|//)[^\n]*|/\*.*?\*/", re.DOTALL)
_UNDERSCORES = re.compile(r"-?[1-9][0-9]*(_[0-9]+)+(\.[0-9]+)?")
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}

# What is found at the fault -> what to say. The first that matches is said; {0} is what matched, {1} its code point.
_AT_THE_FAULT: tuple[tuple[str, str], ...] = (
    (r"//|/\*|#", "JSON has no comments. Delete {0} and what follows it."),
    (r"'", "JSON puts keys and strings in double quotes (\"), not in single quotes (')."),
    (r"[“”„‟‘’«»]", '{0} is a typographic quote, as word processors write it. Use ".'),
    (
        r"[\u00a0\u2000-\u200f\u202f\u2028\u2029\u3000\ufeff]",
        "This space or invisible mark ({1}) is not allowed in JSON. Delete it, or use a plain space.",
    ),
    (r"(True|False|None)\b", "{0} is Python. JSON uses true, false and null."),
    (r"-?(NaN|Infinity|inf|nan)\b", "JSON has no {0}. Leave the bound out."),
    (r"0[xX][0-9a-fA-F]+", "An address is a string. Put it in double quotes."),
    (r"[+-]?[0-9]+(_[0-9]+)+", "JSON numbers have no underscores. Write the digits only."),
    (
        r"[+-]?0[0-9]+",
        "A JSON number has no leading zero. Put {0} in double quotes, or drop the zero.",
    ),
    (r"\+[0-9.]+|-?\.[0-9]+|-?[0-9]+\.(?![0-9])", '{0} is not a JSON number. Write 0.5, 5 or "5".'),
    (
        r"[fFrRbBuU]{1,2}[\"']",
        "JSON strings have no prefix: {0} is Python. Put a Python value in {{{{...}}}}.",
    ),
    (r"\(", "JSON has no parentheses. Write a list in [ ]."),
    (r"\$(?:\w+|\{\w+\})", "Write a Python value as {{{{name}}}}, not as {0}."),
    (r"(?i:select)\s", 'This is SQL. Filters are JSON, such as {{"token": {{"token": "USDC"}}}}.'),
)


def explain(text: str) -> str | None:
    """Return what is wrong with a text, where, and what to write instead; None where it is JSON."""
    if not text.strip():
        return "The cell is empty."
    reading = first_fault(text)
    if reading is None:
        return None
    position, words = (
        _at_the_end(text, reading) if reading.position >= len(text) else _fault(text, reading)
    )
    return f"{words}\n  {at(text, position)}{_as_json(text)}"


def _fault(text: str, reading: JsonReader) -> tuple[int, str]:
    position, here = reading.position, text[reading.position]
    # The caret points at the comma, which has to go, and not at the bracket, where reading stopped.
    if here in "}]" and reading.previous >= 0 and text[reading.previous] == ",":
        return reading.previous, f"JSON has no trailing comma. Delete the comma before {here}."
    if here == "," and reading.previous >= 0 and text[reading.previous] == ",":
        return position, "There is one comma too many."
    for pattern, words in _AT_THE_FAULT:
        if found := re.match(pattern, text[position : position + 200]):
            return position, words.format(visible(found.group()), f"U+{ord(here):04X}")
    # A name alone in braces, as Python's own f-strings have it.
    if text[reading.previous] == "{" and (
        found := re.match(r"([A-Za-z_][\w.]*)\s*\}", text[position:])
    ):
        return (
            reading.previous,
            f"Write a Python value as {{{{{found[1]}}}}}, not as {{{found[1]}}}.",
        )
    if here == '"' and (fault := _bad_string(text, position)):
        return fault
    return position, _by_what_was_expected(text, reading, here)


def _at_the_end(text: str, reading: JsonReader) -> tuple[int, str]:
    # Nothing is open only where nothing was read, and an empty cell was answered before.
    last = reading.levels[-1]
    opened = f"the {text[last.start]} at line %d, column %d is not closed." % line_and_column(
        text, last.start
    )
    if reading.expected in ("value", "colon") and text[reading.previous] != ",":
        return (
            last.start,
            f"The text ends where a value is expected, and {reading.missing} is missing after it.",
        )
    return last.start, f"{reading.missing} is missing at the end: {opened}"


def _bad_string(text: str, start: int) -> tuple[int, str] | None:
    """Return the position and the words for what is wrong inside the string that begins here; None if nothing is."""
    sound = SOUND_STRING.match(text, start)
    position = sound.end() if sound else start
    here = text[position : position + 2]
    if here.startswith('"'):
        return None
    if here.startswith("\\"):
        return position, f"JSON has no escape {visible(here)}. Write \\\\ for a backslash."
    if here[:1] not in ("", "\n"):
        return (
            position,
            f"A string cannot contain {visible(here[0])!r}. Write \\t for a tab, \\n for a new line.",
        )
    return start, 'The closing " of this string is missing on its line.'


_MISSING_MARK = {
    "next": "A comma is missing before {}.",
    "colon": "A colon (:) is missing after the key, before {}.",
}


def _by_what_was_expected(text: str, reading: JsonReader, here: str) -> str:
    found = re.match(r"[\w.$-]+", text[reading.position : reading.position + 80])
    shown = visible(found.group() if found else here)
    if reading.expected == "nothing":
        return (
            f"There is one {here} too many."
            if here in "}]"
            else "Unexpected text after the cell's object."
        )
    if here in "}]" and reading.levels and (opened := reading.levels[-1]).closer != here:
        line, column = line_and_column(text, opened.start)
        return f"{here} does not close the {text[opened.start]} at line {line}, column {column}. Write {opened.closer}."
    if reading.expected in _MISSING_MARK:
        option = re.match(r"--[a-z][a-z-]*", text[reading.position :])
        if option and reading.expected == "next":
            return f"{reading.missing} is missing before {option.group()}."
        return _MISSING_MARK[reading.expected].format(shown)
    if reading.expected in ("key", "key or }"):
        return (
            f'A key needs double quotes: "{shown}".'
            if found
            else f"Expected a key in double quotes, not {shown}."
        )
    return (
        f'{shown} is not a JSON value. Put a string in double quotes ("{shown}"), '
        f"a Python variable in double braces ({{{{{shown}}}}})."
        if found
        else f"Expected a value, not {shown}."
    )


def _as_json(text: str) -> str:
    """Return the corrected text and how to run it, where that text is JSON and short."""
    found, _ = corrected(text)
    if not found.lstrip().startswith("{") or first_fault(found) is not None:
        return ""
    shown = "".join(token.text + " " * (token.text in (",", ":")) for token in tokens(found))
    return (
        f"\n  As JSON (--run-corrected runs it):\n    {visible(shown)}"
        if len(shown) <= _SHOWN
        else ""
    )


def corrected(text: str) -> tuple[str, list[str]]:
    """Return a text without comments, trailing commas and Python's forms of JSON, and what was wrong with it.

    Only what has one meaning is corrected, on the line where it is; the rest stays for `explain`.
    """
    pieces: list[str] = []
    faults: dict[str, None] = {}
    # Of each bracket that is open: its place among the pieces, itself, and what is within.
    opened: list[tuple[int, str, set[str]]] = []
    end, comma = 0, None
    for token in tokens(text):
        # In a comment that ended behind it.
        if token.start < end:
            continue
        comment = _COMMENT.match(text, token.start)
        gap, end = text[end : token.start], token.start + len(token.text)
        piece, fault = _in_json(token.text) if token.kind == "other" else (token.text, "")
        if comment:
            # The lines below keep their numbers.
            end, piece, fault = comment.end(), "\n" * comment.group().count("\n"), "comments"
        elif token.text in ("(", "[", "{"):
            opened.append((len(pieces) + 1, token.text, set()))
        elif token.text in (")", "]", "}") and opened:
            place, first, within = opened.pop()
            if opened:
                opened[-1][2].add("value")
            brackets, fault = _in_brackets(first + token.text, within)
            pieces[place], piece = brackets or (first, token.text)
        elif opened:
            opened[-1][2].add(token.text if token.text in (",", ":") else "value")
        if piece in ("}", "]") and comma is not None:
            pieces[comma], fault = "", fault or "trailing commas"
        pieces += [gap, piece]
        if piece.strip():
            comma = len(pieces) - 1 if piece == "," else None
        if fault:
            faults[fault] = None
    return "".join([*pieces, text[end:]]), list(faults)


def _in_brackets(pair: str, within: set[str]) -> tuple[tuple[str, str] | None, str]:
    """Return the brackets of JSON for those of Python's tuples and sets, by what is within, and what was wrong."""
    if pair == "()" and within == {"value"}:
        # One value in parentheses is that value.
        return ("", ""), "parentheses"
    if pair == "()":
        return ("[", "]"), "tuples"
    # {} is an object.
    is_set = pair == "{}" and within and ":" not in within
    return (("[", "]"), "sets") if is_set else (None, "")


def _in_json(piece: str) -> tuple[str, str]:
    """Return a piece that is Python as JSON, and what is wrong with it; any other as it is."""
    if piece in _CONSTANTS:
        return _CONSTANTS[piece], "True, False or None"
    if _UNDERSCORES.fullmatch(piece):
        return piece.replace("_", ""), "underscores in numbers"
    if len(piece) > 1 and piece[0] == piece[-1] == "'":
        # A literal only: nothing in the cell is run.
        with contextlib.suppress(SyntaxError, ValueError):
            return json.dumps(ast.literal_eval(piece), ensure_ascii=False), "single quotes"
    return piece, ""
