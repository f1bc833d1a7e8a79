"""A magic's line as words: posix quotes, inline JSON, ``{{python}}``, comments and a final ``;``."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from typing import Literal

from nbext.errors import UsageError
from nbext.notebook.cell.json_source import end_of_expression, excerpt, tokens

Kind = Literal["word", "quoted", "json", "python"]

_WINDOWS = os.name == "nt"
# On Windows a backslash is part of a path, as in IPython's own magics.
_PIECE = re.compile(
    r"""'[^']*'|"[^"]*"|[^\s'"]+""" if _WINDOWS else r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\]+"""
)


@dataclass(frozen=True)
class Word:
    """One word of a line: its text without quotes, where it starts, and what it is.

    ``quoted`` words are never options or variables; ``json`` is an inline object; ``python`` is the
    expression of ``{{...}}``.
    """

    text: str
    column: int
    kind: Kind = "word"


def words(line: str, magic: str) -> list[Word]:
    """Split a magic's line into words.

    Raises
    ------
    UsageError
        A quote or a ``{{`` is never closed.
    """
    found: list[Word] = []
    position = 0
    while position < len(line):
        if line[position].isspace():
            position += 1
            continue
        # A comment, as in Python; inside of a word it is a character like others.
        if line[position] == "#":
            break
        word, position = _next_word(line, position, magic)
        found.append(word)
    # A semicolon at the end is a habit from Python and from SQL.
    if found and found[-1].kind == "word" and found[-1].text.endswith(";"):
        last = found.pop()
        found += [Word(last.text[:-1], last.column)] if len(last.text) > 1 else []
    return found


def _next_word(line: str, start: int, magic: str) -> tuple[Word, int]:
    if line.startswith("{{", start):
        if "}}" not in line[start:]:
            raise UsageError(_unclosed(line, start, magic, "{{", "}}"))
        # An expression that is not Python is reported when it is evaluated.
        end = end_of_expression(line, start) or line.index("}}", start) + 2
        return Word(line[start + 2 : end - 2].strip(), start, "python"), end
    if line[start] == "{":
        end = _end_of_object(line, start)
        return Word(line[start:end], start, "json"), end
    # Pieces in and out of quotes make one word, as in a shell.
    end = start
    while end < len(line) and not line[end].isspace():
        piece = _PIECE.match(line, end)
        if piece is None and line[end] != "\\":
            raise UsageError(_unclosed(line, end, magic, line[end], line[end]))
        # A backslash that nothing follows is a character like others.
        end = piece.end() if piece else end + 1
    raw = line[start:end]
    return Word(_unquoted(raw), start, "quoted" if raw[0] in "'\"" else "word"), end


def _unclosed(line: str, position: int, magic: str, opened: str, wanted: str) -> str:
    return (
        f"{magic}: the {opened} at column {position + 1} of the line is not closed: {wanted} is missing.\n"
        + excerpt(line, position, magic + " ")
    )


def _unquoted(raw: str) -> str:
    lexer = shlex.shlex(raw, posix=True)
    # One word is given, so nothing in it separates words or begins a comment.
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = "", True, ""
    if _WINDOWS or raw.endswith("\\"):
        lexer.escape = ""
    return lexer.get_token() or ""


def _end_of_object(line: str, start: int) -> int:
    """Return where the object that starts here ends; the line's end where it is not closed."""
    depth = 0
    for token in tokens(line[start:]):
        if token.kind == "mark":
            depth += (token.text in "{[") - (token.text in "}]")
            if depth == 0:
                return start + token.start + 1
    return len(line)
