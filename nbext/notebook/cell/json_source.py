"""Where things stand in a JSON text: the first fault, a key that stands twice, the place of a pointer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Expected = Literal["value", "value or ]", "key", "key or }", "colon", "next", "nothing"]

_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
    r"|(?P<scalar>(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![\w.+]))"
    r"|(?P<mark>[{}\[\],:])"
)
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass
class Scan:
    """How far a reading came: where it stands, what it waits for, and what is still open."""

    position: int = 0
    expected: Expected = "value"
    previous: int = -1
    open: list[int] = field(default_factory=list)


def first_fault(text: str) -> Scan | None:
    """Return where the text stops being JSON, or None where it is JSON as far as its marks go."""
    scan = Scan()
    # A machine of states and a stack, not recursion: no nesting is too deep for it.
    while True:
        scan.position = _skip(text, scan.position)
        if scan.position >= len(text):
            return None if scan.expected == "nothing" else scan
        token = _TOKEN.match(text, scan.position)
        if token is None or not _step(scan, text, token):
            return scan
        scan.previous, scan.position = scan.position, token.end()


def _skip(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _step(scan: Scan, text: str, token: re.Match[str]) -> bool:
    """Take one token; False where it is not allowed here."""
    what = token.group() if token.lastgroup == "mark" else str(token.lastgroup)
    if what in ("}", "]"):
        return _close(scan, text, what)
    if scan.expected in ("value", "value or ]"):
        return _take_value(scan, what, token.start())
    following = _FOLLOWING.get((scan.expected, what))
    if following is None:
        return False
    scan.expected = "value" if what == "," and text[scan.open[-1]] == "[" else following
    return True


# What waits after a mark or a text, where it is allowed at all.
_FOLLOWING: dict[tuple[Expected, str], Expected] = {
    ("key", "string"): "colon",
    ("key or }", "string"): "colon",
    ("colon", ":"): "value",
    ("next", ","): "key",
}


def _take_value(scan: Scan, what: str, start: int) -> bool:
    if what in ("{", "["):
        scan.open.append(start)
        scan.expected = "key or }" if what == "{" else "value or ]"
    elif what in ("string", "scalar"):
        scan.expected = "next" if scan.open else "nothing"
    else:
        return False
    return True


def _close(scan: Scan, text: str, what: str) -> bool:
    if not scan.open or scan.expected not in ("next", "key or }" if what == "}" else "value or ]"):
        return False
    if text[scan.open[-1]] != ("{" if what == "}" else "["):
        return False
    scan.open.pop()
    scan.expected = "next" if scan.open else "nothing"
    return True


Path = tuple[str | int, ...]


def places(text: str) -> Iterator[tuple[Path, int]]:
    """Yield the path and the place of each key, and of each item of a list, of a text that is JSON."""
    path: list[str | int] = []
    waiting_for_key = False
    for token in _TOKEN.finditer(text):
        what = token.group()
        if waiting_for_key and token.lastgroup == "string":
            path[-1] = json.loads(what)
            waiting_for_key = False
            yield tuple(path), token.start()
            continue
        if path and isinstance(path[-1], int) and what not in ",]:}":
            yield tuple(path), token.start()
        if what in "{[" and token.lastgroup == "mark":
            path.append("" if what == "{" else 0)
            waiting_for_key = what == "{"
        elif what in ("}", "]"):
            path.pop()
            waiting_for_key = False
        elif what == "," and isinstance(path[-1], int):
            path[-1] += 1
        elif what == ",":
            waiting_for_key = True


def second_of_a_key(text: str) -> tuple[str, int, int] | None:
    """Return the first key that stands twice in one object, and the places of both."""
    seen: dict[Path, int] = {}
    for path, position in places(text):
        if isinstance(path[-1], str) and path in seen:
            return path[-1], seen[path], position
        seen[path] = position
    return None


def place_of(text: str, pointer: str) -> int | None:
    """Return where a JSON pointer's key or item stands, or its nearest parent's; None where nothing fits."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    # A field that is missing in the cell is shown at what it is missing from.
    best, depth = None, 0
    for path, position in places(text):
        length = len(path)
        if depth < length <= len(parts) and [str(part) for part in path] == parts[:length]:
            best, depth = position, length
    return best
