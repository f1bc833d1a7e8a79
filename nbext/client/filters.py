"""Filters as exact JSON: what JSON cannot say is refused with its path, never rounded."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Integral
from typing import Any

from nbext.errors import FieldError, InvalidSegment

MAX_LEVELS, MAX_VALUES, MAX_BYTES = 64, 50_000, 1_000_000
# Beyond this, a reader of JSON that keeps numbers as doubles would change the last digits.
_EXACT = 2**53


def encoded(filters: object) -> dict[str, Any]:
    """Return the filters as plain JSON values.

    Decimals and whole numbers beyond 2**53 become texts; numpy's numbers become plain ones.

    Raises
    ------
    InvalidSegment
        Not an object, or something in it is no JSON: the error names its path, such as ``$.a[0]``.
    """
    if not isinstance(filters, Mapping):
        raise refused("$", f"{type(filters).__name__} is not allowed. Allowed: a JSON object of conditions.")
    walk = _Walk()
    plain: dict[str, Any] = walk.mapping(filters, "$", 1)
    size = len(json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise refused("$", f"{size:,} bytes as JSON are too many. Allowed: {MAX_BYTES:,}.")
    return plain


def refused(path: str, detail: str) -> InvalidSegment:
    """Return the error for one place in the filters."""
    error: FieldError = {"pointer": path, "code": "value", "detail": detail}
    return InvalidSegment([error])


class _Walk:
    def __init__(self) -> None:
        self._values = 0

    def value(self, given: Any, path: str, level: int) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise refused("$", f"more than {MAX_VALUES:,} values are too many.")
        if isinstance(given, Mapping):
            return self.mapping(given, path, level)
        if isinstance(given, list | tuple):
            _check_level(path, level)
            return [self.value(item, f"{path}[{i}]", level + 1) for i, item in enumerate(given)]
        if given is None or isinstance(given, bool):
            return given
        if isinstance(given, str):
            return _text(given, path)
        return _number(given, path)

    def mapping(self, given: Mapping[Any, Any], path: str, level: int) -> dict[str, Any]:
        _check_level(path, level)
        found = {}
        for name, item in given.items():
            if not isinstance(name, str):
                raise refused(path, f"the name {name!r:.40} is {type(name).__name__}. Allowed: texts as names.")
            found[_text(name, path)] = self.value(item, f"{path}.{name[:60]}", level + 1)
        return found


def _check_level(path: str, level: int) -> None:
    # A structure that contains itself ends here as well.
    if level > MAX_LEVELS:
        raise refused(path[:80], f"nested more than {MAX_LEVELS} levels deep.")


def _text(given: str, path: str) -> str:
    if any("\ud800" <= c <= "\udfff" for c in given):
        raise refused(path, "half a character (a lone surrogate) is not allowed.")
    return str(given)


def _number(given: Any, path: str) -> Any:
    # numpy's scalars say what they hold as a plain Python value.
    if type(given).__module__ == "numpy" and hasattr(given, "item") and getattr(given, "ndim", 1) == 0:
        given = given.item()
    if isinstance(given, bool | str):
        return given
    if isinstance(given, Integral):
        return int(given) if abs(int(given)) <= _EXACT else str(int(given))
    if isinstance(given, Decimal) and given.is_finite():
        return format(given, "f")
    if isinstance(given, float) and math.isfinite(given):
        return given
    if isinstance(given, float | Decimal):
        raise refused(path, f"{given} is not a number that JSON has.")
    allowed = "text, numbers, true, false, null, lists, objects"
    raise refused(path, f"{type(given).__name__} is not allowed. Allowed: {allowed}.")
