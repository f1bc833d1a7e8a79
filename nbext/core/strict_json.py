"""JSON, read strictly and written exactly: the one reader and the one writer of the package.

`parse` refuses what other readers accept in silence: a name twice in one object, NaN, Infinity. Integers of any
size stay integers, and a fraction becomes what ``fraction`` makes of its digits, which is never a float unless the
caller says so. `read_request` adds what a service must refuse, `read_answer` what a client must put up with. Places in
a document are JSON pointers (RFC 6901): `below` makes one, `keys_of` reads it.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from nbext.core.untrusted_text import visible

MAX_DEPTH = 64
REPLACED = "A text in the answer has half a character (a lone surrogate); it is shown as U+FFFD."
# Python reads integers of at most 4,300 digits; an exponent beyond this is small as text and gigabytes as an integer.
MAX_DIGITS = 400
# Python reads as deep as its recursion limit. Where a library or a cell raised that, brackets alone end the process.
_SAFE_LIMIT, _DEEPEST = 3_000, 900
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{\]}]', re.DOTALL)
# Only an escape can bring a surrogate in, since the text was UTF-8. A pair of escapes is one whole character.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
# Half of a character, as UTF-16 writes one: legal in JSON and in Python, and nothing that UTF-8 can carry.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJson(ValueError):
    """A text is not the JSON that we read, or a value has no JSON form.

    ``fault`` names the rule: ``encoding``, ``syntax``, ``duplicate``, ``constant``, ``digits``, ``depth``,
    ``surrogate`` or ``value``. The message says where, and never holds more of the text than one name.
    """

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def exact_number(digits: str) -> Decimal | int:
    """Return a number with a fraction or an exponent, exactly; 10.0 and 1e1 are the integer 10, as JSON has it."""
    number = Decimal(digits)
    # Without this bound 1e999999999 is read at once, and takes the machine's memory where it is first used.
    if len(digits) > MAX_DIGITS or abs(number.adjusted()) > MAX_DIGITS:
        raise NotJson("digits", "a number has too many digits")
    return int(number) if number == number.to_integral_value() else number


def parse(text: str, fraction: Callable[[str], Any] = exact_number) -> Any:
    """Return the value of one JSON document; ``fraction`` makes a number with a fraction or an exponent of its text.

    NotJson: not one document, a name twice in one object, NaN or Infinity, or nested too deeply to be read.
    """
    if sys.getrecursionlimit() > _SAFE_LIMIT and _is_deeper(text, _DEEPEST):
        raise NotJson("depth", "nested too deeply")
    try:
        return json.loads(
            text, parse_float=fraction, parse_constant=_no_constant, object_pairs_hook=_unique
        )
    except NotJson as error:
        fault, message = error.fault, str(error)
    except json.JSONDecodeError as error:
        fault, message = "syntax", f"line {error.lineno}, column {error.colno}: {error.msg}"
    except RecursionError:
        fault, message = "depth", "nested too deeply"
    except (ValueError, ArithmeticError):
        # Python refuses integers of more than 4,300 digits, because its time grows with their square.
        fault, message = "digits", "a number has too many digits"
    # Raised outside of the except block: else the decoder's frames, with all of the text in them, hang on the error.
    raise NotJson(fault, message)


def _is_deeper(text: str, most: int) -> bool:
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if depth > most:
            return True
    return False


def read_request(raw: bytes) -> Any:
    """Return the value of a request's body, which a stranger may have made to do harm.

    NotJson: as `parse`; also what is not UTF-8, deeper than MAX_DEPTH, or has a lone surrogate.
    """
    text = _decoded(raw)
    # Skipped for the documents that cannot need it, which is nearly all.
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deeper(text, MAX_DEPTH):
        raise NotJson("depth", f"nested more than {MAX_DEPTH} levels deep")
    value = parse(text)
    if _has_surrogate(text, value):
        raise NotJson("surrogate", "a text has a lone surrogate, which UTF-8 cannot carry")
    return value


def read_answer(raw: bytes) -> tuple[Any, list[str]]:
    """Return the value of a service's answer, and warnings about what had to be replaced.

    Services that escape texts in UTF-16 cut some of them in the middle of a character: one such name is no reason to
    refuse a table, so that a lone surrogate becomes U+FFFD. A byte order mark is skipped. NotJson: as `parse`; also
    what is not UTF-8.
    """
    text = _decoded(raw.removeprefix(codecs.BOM_UTF8))
    value = parse(text, Decimal)
    if _has_surrogate(text, value):
        return with_texts(value, partial(LONE_SURROGATE.sub, "\ufffd")), [REPLACED]
    return value, []


def to_json(value: Any) -> bytes:
    """Return the value as compact JSON; ASCII, because a text from a chain may hold what UTF-8 cannot carry.

    A Decimal is written as a text of its digits: most readers would make a float of a bare number.

    >>> to_json({"min": Decimal("0.10")})
    b'{"min":"0.10"}'
    """
    return _written(value).encode("ascii")


def canonical_json(value: Any) -> bytes:
    """Return JSON that is the same for equal values: names are sorted.

    >>> canonical_json({"b": 1, "a": 2})
    b'{"a":2,"b":1}'
    """
    return _written(value, sort_keys=True).encode("ascii")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.start
    raise NotJson("encoding", f"byte {place:,} is not UTF-8")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise NotJson("duplicate", f"the name {name[:80]!a} appears twice in one object")
            seen.add(name)
    return found


def _no_constant(word: str) -> Any:
    raise NotJson("constant", f"{word} is not a JSON number")


def _has_surrogate(text: str, value: Any) -> bool:
    """Say whether a document's value has one; few texts need the walk."""
    return bool(_SURROGATE_ESCAPE.search(text)) and bool(
        LONE_SURROGATE.search(json.dumps(value, default=str, ensure_ascii=False))
    )


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value, or a tuple of such, with each text and name as ``change`` makes it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)([with_texts(one, change) for one in value])
    if isinstance(value, dict):
        return {with_texts(name, change): with_texts(one, change) for name, one in value.items()}
    return value


def _digits(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"{type(value).__name__} has no JSON form")


_written = partial(json.dumps, separators=(",", ":"), allow_nan=False, default=_digits)


def below(pointer: str, key: object) -> str:
    """Return the pointer of a member, whose key is shown as messages show a stranger's text.

    >>> below("/filters", "a/b")
    '/filters/a~1b'
    """
    return f"{pointer}/{visible(str(key)[:80], None).replace('~', '~0').replace('/', '~1')}"


def keys_of(pointer: str) -> list[str]:
    """Return the keys and places that a pointer names.

    >>> keys_of("/filters/a~1b/0")
    ['filters', 'a/b', '0']
    """
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
