"""JSON as the service reads and writes it: strict in, exact out.

In: no NaN, no duplicate keys, no lone surrogates, a bounded depth; a fraction becomes Decimal, never float.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NoReturn

MAX_DEPTH = 64
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class NotJson(ValueError):
    """The text is not the JSON that the service reads; the message says why, without the text itself."""


def read_json(raw: bytes) -> Any:
    """Return the value of a JSON document.

    Raises
    ------
    NotJson
        Not UTF-8, not JSON, NaN or Infinity, a key twice in one object, a lone surrogate, or deeper
        than MAX_DEPTH.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is not UTF-8") from None
    try:
        value = json.loads(text, parse_float=_exact, parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except json.JSONDecodeError as error:
        raise NotJson(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise NotJson(f"nested more than {MAX_DEPTH} levels deep") from None
    except NotJson:
        raise
    except ValueError:
        # Python refuses to read integers of more than 4,300 digits: the time grows with their square.
        raise NotJson("a number has too many digits") from None
    _check(text, value)
    return value


def _exact(digits: str) -> Decimal | int:
    number = Decimal(digits)
    # A huge exponent would be a small text here and gigabytes of digits where it is first used.
    if len(digits) > 400 or abs(number.adjusted()) > 400:
        raise NotJson("a number has too many digits")
    # In JSON 10.0 and 1e1 are the integer 10.
    return int(number) if number == number.to_integral_value() else number


def _no_constant(word: str) -> NoReturn:
    raise NotJson(f"{word} is not a JSON number")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twin = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise NotJson(f"the key {twin[:80]!a} stands twice in one object")
    return found


def _check(text: str, value: Any) -> None:
    # Both walks are skipped for the documents that cannot need them, which is nearly all.
    if text.count("[") + text.count("{") > MAX_DEPTH and any(depth > MAX_DEPTH for depth in _depths(value)):
        raise NotJson(f"nested more than {MAX_DEPTH} levels deep")
    if _SURROGATE_ESCAPE.search(text):
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
        except UnicodeEncodeError:
            raise NotJson("a text holds a lone surrogate, which no UTF-8 can carry") from None


def _depths(value: Any) -> Iterator[int]:
    stack = [(value, 1)]
    while stack:
        item, depth = stack.pop()
        if isinstance(item, dict | list):
            yield depth
            inner = item.values() if isinstance(item, dict) else item
            stack.extend((each, depth + 1) for each in inner)


def _plain(value: Any) -> str:
    # A fraction goes out as its digits: a reader would make a float of a bare number.
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"{type(value).__name__} is not JSON")


def to_json(value: Any) -> bytes:
    """Return the value as compact JSON in ASCII, so that any text that a chain holds can be carried."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False, default=_plain).encode("ascii")


def canonical_json(value: Any) -> bytes:
    """Return JSON that is equal for equal values: keys sorted."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False, default=_plain).encode("ascii")
