"""Where a cursor stands in a JSON text that is not finished: under which keys, in a key, a value, or Python."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_OPEN_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*\Z')
_TOKENS = re.compile(r'\{\{|"(?:[^"\\\n]|\\.)*(?:"|\Z|(?=\n))|[{}\[\],:]')


@dataclass(frozen=True)
class Cursor:
    """The keys above the cursor, what may stand at it, and what of it is typed already.

    ``quoted`` says that the typed part follows an opening quote.
    """

    path: tuple[str, ...]
    place: Literal["key", "value", "python", "nowhere"]
    typed: str = ""
    quoted: bool = False


@dataclass
class _Level:
    is_object: bool
    key: str = ""
    place: Literal["key", "value", "nowhere"] = "value"


def cursor_of(text: str) -> Cursor:
    """Return where the end of a text stands. It takes any text: what it cannot read it leaves aside."""
    # Tolerant on purpose: while somebody types, nothing is whole.
    levels: list[_Level] = []
    position = 0
    while token := _TOKENS.search(text, position):
        what, position = token.group(), token.end()
        if what == "{{" and _opens_python(levels):
            end = text.find("}}", position)
            if end < 0:
                return Cursor(_path(levels), "python", _word_at_end(text[position:]))
            position = end + 2
            _after_value(levels)
        elif what[0] == '"':
            if position == len(text) and _OPEN_STRING.fullmatch(what) and not _STRING.fullmatch(what):
                place = levels[-1].place if levels else "nowhere"
                return Cursor(_path(levels), place, what[1:], quoted=True)
            _take_string(levels, what)
        else:
            for mark in what:
                _take_mark(levels, mark)
    place = levels[-1].place if levels else "nowhere"
    return Cursor(_path(levels), place, _word_at_end(text))


def _opens_python(levels: list[_Level]) -> bool:
    # At the very beginning, two braces are two objects that somebody types.
    return bool(levels)


def _take_string(levels: list[_Level], what: str) -> None:
    if not levels:
        return
    if levels[-1].place == "key":
        levels[-1].key, levels[-1].place = what[1:].removesuffix('"'), "nowhere"
    else:
        _after_value(levels)


def _after_value(levels: list[_Level]) -> None:
    if levels:
        levels[-1].place = "nowhere"


def _take_mark(levels: list[_Level], mark: str) -> None:
    if mark in "{[":
        levels.append(_Level(mark == "{", place="key" if mark == "{" else "value"))
    elif mark in "}]":
        if levels:
            levels.pop()
        _after_value(levels)
    elif levels and mark == ":":
        levels[-1].place = "value"
    elif levels:
        levels[-1].place = "key" if levels[-1].is_object else "value"
        levels[-1].key = "" if levels[-1].is_object else levels[-1].key


def _path(levels: list[_Level]) -> tuple[str, ...]:
    inner = levels[-1] if levels else None
    return tuple(
        level.key for level in levels if level.is_object and level.key and not (level is inner and level.place == "key")
    )


def _word_at_end(text: str) -> str:
    found = re.search(r"[\w.]*\Z", text)
    return found.group() if found else ""
