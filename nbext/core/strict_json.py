"""JSON as it was sent: integers of any size exact, decimals as Decimal, nothing repaired but lone surrogates."""

from __future__ import annotations

import codecs
import json
import re
from decimal import Decimal
from typing import Any

from nbext.errors import ProtocolError

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
REPLACED = "a text of the answer held half a character (a lone surrogate); it is shown as U+FFFD"


class NotJson(ProtocolError):
    """The body is no single JSON document."""


def decode(body: bytes) -> tuple[Any, list[str]]:
    """Return the document, and warnings about what had to be replaced.

    Raises
    ------
    ProtocolError
        Not UTF-8, not one JSON document, NaN or Infinity, a name twice in one object, nested too deeply.
    """
    text = _text(body)
    try:
        document = _DECODER.decode(text.strip(" \t\r\n"))
    except RecursionError:
        failure = "it is nested too deeply"
    except json.JSONDecodeError as error:
        failure = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except ValueError as error:
        failure = str(error)[:100]
    else:
        if _SURROGATE_ESCAPE.search(text) and _SURROGATE.search(json.dumps(document, default=str, ensure_ascii=False)):
            return _without_surrogates(document), [REPLACED]
        return document, []
    # Raised here, outside of the except block, so that no frame of the decoder hangs on it.
    raise NotJson(f"the answer is not JSON that can be read: {failure}.")


def _text(body: bytes) -> str:
    body = body.removeprefix(codecs.BOM_UTF8)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.start
    raise NotJson(f"the answer is not JSON that can be read: byte {place:,} is not UTF-8.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice[:40]!r} stands twice in one object")
    return found


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=Decimal, parse_constant=_refuse)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(name): _without_surrogates(item) for name, item in value.items()}
    return value
