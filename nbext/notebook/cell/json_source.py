"""JSON as it is written: tokens with positions, the first fault, the place of a pointer, the cursor, carets.

One tokenizer and one state machine serve the cell (with ``{{python}}`` in the place of a value), the messages
about its faults, and completion, which reads text that nobody has finished.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from unicodedata import category, east_asian_width

from nbext.core.strict_json import keys_of
from nbext.core.untrusted_text import visible

# Shown on each side of a caret in a very long line: together they fit the width of a notebook's output.
_SIDE = 70
_TOKEN = re.compile(
    r"[ \t\r\n]*(?:"
    # Any escape and any control character counts as part of a string, so that a fault inside of it does not
    # change where the string ends.
    r'(?P<string>"(?:[^"\\\n]|\\.)*")'
    r'|(?P<open>"(?:[^"\\\n]|\\.)*\\?)'
    # A string of Python is one token, so that braces inside of it are not taken for marks.
    r"|(?P<other>'(?:[^'\\\n]|\\.)*')"
    r"|(?P<python>\{\{)"
    r"|(?P<mark>[{}\[\],:])"
    r"|(?P<scalar>(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![\w.+]))"
    r"|(?P<word>[\w.+-]+|[^ \t\r\n]))"
)
# A string of JSON up to its closing quote, or to what may not be in it.
SOUND_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')

Path = tuple[str | int, ...]
Kind = Literal["string", "python", "mark", "scalar", "other"]
_KINDS: dict[str, Kind] = {
    "string": "string",
    "open": "string",
    "mark": "mark",
    "scalar": "scalar",
    "other": "other",
    "word": "other",
}
Expected = Literal["value", "value or ]", "key", "key or }", "colon", "next", "nothing"]
_VALUES = frozenset({"{", "[", "string", "scalar", "python"})
# What may follow, by mark or by kind of token.
_ALLOWED: dict[Expected, frozenset[str]] = {
    "value": _VALUES,
    "value or ]": _VALUES | {"]"},
    "key": frozenset({"string", "python"}),
    "key or }": frozenset({"string", "python", "}"}),
    "colon": frozenset({":"}),
    "next": frozenset({",", "}", "]"}),
    "nothing": frozenset(),
}


class Token(NamedTuple):
    """One piece of a text; ``whole`` is False for a string or an expression that is not closed."""

    kind: Kind
    text: str
    start: int
    whole: bool = True


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of any text; what JSON does not know has the kind ``other``."""
    position = 0
    while True:
        # Begun again after each expression, because no pattern can tell where Python ends.
        for found in _TOKEN.finditer(text, position):
            group = str(found.lastgroup)
            if group == "python":
                break
            yield Token(_KINDS[group], found[group], found.start(group), group != "open")
        else:
            return
        start = found.start(group)
        end, closed = end_of_expression(text, start), text.find("}}", start)
        # Not Python: up to the first }}, so that what follows can still be read.
        position = end or (len(text) if closed < 0 else closed + 2)
        yield Token("python", text[start:position], start, end is not None)


def end_of_expression(text: str, start: int) -> int | None:
    """Return the end of the first ``}}`` that leaves a whole Python expression before it, or None."""
    end = text.find("}}", start)
    while end >= 0:
        # Compiled rather than searched for: an expression may contain braces and strings of its own.
        try:
            compile(f"({text[start + 2 : end].strip()}\n)", "<cell>", "eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            end = text.find("}}", end + 1)
        else:
            return end + 2
    return None


@dataclass
class Level:
    """An object or a list that is open: where it starts, what closes it, and the key or index it has reached."""

    start: int
    closer: str
    at: str | int


@dataclass
class JsonReader:
    """How far a text was read: what is expected next, what is still open, and where the last token started."""

    expected: Expected = "value"
    levels: list[Level] = field(default_factory=list)
    position: int = 0
    previous: int = -1

    @property
    def missing(self) -> str:
        """What closes all that is open."""
        return "".join(level.closer for level in reversed(self.levels))

    @property
    def path(self) -> Path:
        """The keys and indices that lead to the current place."""
        return tuple(level.at for level in self.levels)

    def allows(self, token: Token) -> bool:
        """Return whether JSON, with expressions in it, allows the token here."""
        what = token.text if token.kind == "mark" else token.kind
        if what not in _ALLOWED[self.expected] or not token.whole:
            return False
        if what in ("}", "]"):
            return self.levels[-1].closer == what
        return what != "string" or SOUND_STRING.fullmatch(token.text[:-1]) is not None

    def take(self, token: Token) -> None:
        """Move past a token. One that is not allowed is taken for what it probably means: a cursor may follow it."""
        # States and a stack instead of recursion: no nesting is too deep for it.
        inner = self.levels[-1] if self.levels else None
        self.previous = token.start
        if token.kind == "other":
            return
        if token.text in ("{", "["):
            is_object = token.text == "{"
            self.levels.append(
                Level(token.start, "}" if is_object else "]", "" if is_object else 0)
            )
            self.expected = "key or }" if is_object else "value or ]"
        elif inner is not None and token.text == ",":
            self.expected = "key" if inner.closer == "}" else "value"
            inner.at = inner.at + 1 if isinstance(inner.at, int) else ""
        elif token.text == ":":
            self.expected = "value"
        elif inner is not None and self.expected in ("key", "key or }") and token.kind != "mark":
            inner.at = _text_of(token)
            self.expected = "colon"
        else:
            # A value has ended, or with a closing mark the whole object or list that is one.
            if inner is not None and token.kind == "mark":
                self.levels.pop()
            self.expected = "next" if self.levels else "nothing"


def _text_of(token: Token) -> str:
    try:
        return str(json.loads(token.text))
    except ValueError:
        return token.text.strip('"')


def first_fault(text: str) -> JsonReader | None:
    """Return the reading up to where the text stops being JSON; None where all of it is JSON."""
    reading = JsonReader()
    for token in tokens(text):
        reading.position = token.start
        if not reading.allows(token):
            return reading
        reading.take(token)
    reading.position = len(text)
    return None if reading.expected == "nothing" else reading


def key_places(text: str) -> Iterator[tuple[Path, int]]:
    """Yield the path and the position of each key, and of each item of a list, of a text that is JSON."""
    reading = JsonReader()
    for token in tokens(text):
        in_list = bool(reading.levels) and reading.levels[-1].closer == "]"
        if in_list and reading.expected in ("value", "value or ]") and token.text != "]":
            yield reading.path, token.start
        reading.take(token)
        if reading.expected == "colon":
            yield reading.path, token.start


def second_of_a_key(text: str) -> tuple[str, int, int] | None:
    """Return the first key that appears twice in one object, and both positions."""
    seen: dict[Path, int] = {}
    for path, position in key_places(text):
        if isinstance(path[-1], str) and path in seen:
            return path[-1], seen[path], position
        seen[path] = position
    return None


def place_of(text: str, pointer: str) -> int | None:
    """Return the position of a JSON pointer's key or item, or its nearest parent's; None where nothing fits."""
    parts = keys_of(pointer)
    # A field that is missing in the cell is shown at the object it is missing from.
    best, depth = None, 0
    for path, position in key_places(text):
        length = len(path)
        # A pointer has keys as they are, or as messages show them, and as much of one as they do.
        if depth < length <= len(parts) and all(
            word in (str(part), visible(str(part)[:80], None))
            for word, part in zip(parts, path, strict=False)
        ):
            best, depth = position, length
    return best


@dataclass(frozen=True)
class Cursor:
    """The keys above the cursor, what may be written there, what of it is typed; ``quoted`` after an opening quote.

    ``chain`` is the nearest one that an object around the cursor names before it.
    """

    path: tuple[str, ...]
    place: Literal["key", "value", "python", "nowhere"]
    typed: str = ""
    quoted: bool = False
    chain: str | None = None


def cursor_of(text: str) -> Cursor:
    """Return where the end of an unfinished text is. Any text is taken: what cannot be read is passed over."""
    # Two braces at the very beginning are two objects that somebody types, and no expression.
    if text.lstrip().startswith("{{"):
        text = text.replace("{{", "{ {", 1)
    reading = JsonReader()
    last: Token | None = None
    chains: dict[int, str] = {}
    for token in tokens(text):
        # The token at the cursor is still being typed: it decides nothing yet.
        is_unfinished = not token.whole or token.kind in ("scalar", "other")
        if is_unfinished and token.start + len(token.text) == len(text):
            last = token
            continue
        if reading.expected == "value" and reading.levels[-1:] and reading.levels[-1].at == "chain":
            chains[reading.levels[-1].start] = _text_of(token)
        reading.take(token)
    chain = next(
        (chains[level.start] for level in reversed(reading.levels) if level.start in chains), None
    )
    path = tuple(level.at for level in reading.levels if isinstance(level.at, str) and level.at)
    if last is not None and last.kind == "python" and not last.text.endswith("}}"):
        return Cursor(path, "python", _word_at_end(last.text))
    expects: Literal["key", "value", "nowhere"] = "nowhere"
    if reading.levels and reading.expected in ("key", "key or }", "value", "value or ]"):
        expects = "key" if reading.expected.startswith("key") else "value"
    if last is not None and last.kind == "string":
        return Cursor(path, expects, last.text[1:], quoted=True, chain=chain)
    return Cursor(path, expects, _word_at_end(text), chain=chain)


def _word_at_end(text: str) -> str:
    # From the end: searching a pattern that ends at the end tries every character of a long cell first.
    start = len(text)
    while start and (text[start - 1].isalnum() or text[start - 1] in "_."):
        start -= 1
    return text[start:]


def line_and_column(text: str, position: int) -> tuple[int, int]:
    """Return the line and the column of a position, both counted from 1."""
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


def excerpt(text: str, position: int, prefix: str = "") -> str:
    """Return the line of a position with a caret under it; ``prefix`` is the magic whose line the text is."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : len(text) if end < 0 else end].rstrip("\r")
    column = min(position - start, len(line))
    cut_left = max(0, column - _SIDE)
    # Hidden characters become escapes, which are longer: the caret is counted after that.
    left = ("…" if cut_left else prefix) + visible(line[cut_left:column], None)
    right = visible(line[column : column + _SIDE], None) + (
        "…" if len(line) > column + _SIDE else ""
    )
    # A wide character fills two columns, and one that joins the one before it none.
    width = sum(
        0 if category(one) in ("Mn", "Me") else 1 + (east_asian_width(one) in "WF") for one in left
    )
    return f"    {left}{right}\n    {' ' * width}^"


def at(text: str, position: int) -> str:
    """Return ``line 2, column 5`` and the excerpt there."""
    line, column = line_and_column(text, position)
    return f"line {line}, column {column}:\n{excerpt(text, position)}"
