"""Arguments, checked before any request; an error names what is allowed.

Filters become exact JSON here: what JSON cannot hold is refused with its path, never rounded.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from itertools import count
from numbers import Integral
from typing import Any

from nbext.core import addresses, chains, rules
from nbext.core.rules import MAX_SEARCH_TERM, MAX_SYMBOL, SEGMENT_ID, is_whole
from nbext.core.strict_json import LONE_SURROGATE, MAX_DIGITS
from nbext.core.times import time_text
from nbext.core.untrusted_text import quoted, shown
from nbext.errors import FieldError, InvalidSegment, ValidationError, did_you_mean

MAX_LEVELS, MAX_VALUES, MAX_BYTES = 64, 50_000, 1_000_000
MAX_ID = 512
# Beyond this, a reader of JSON that keeps numbers as doubles would change the last digits.
_EXACT = 2**53


def one_of(given: object, allowed: Iterable[str], pointer: str) -> str:
    """Return the word if it is allowed, in the spelling of the interface."""
    words = list(allowed)
    if isinstance(given, str):
        for word in words:
            if given == word or (given.isascii() and given.lower() == word.lower()):
                return word
    hint = did_you_mean(given[:40], words) if isinstance(given, str) else ""
    raise ValidationError.of(
        pointer, "choice", f"{shown(given)} is not allowed.{hint} Allowed: {', '.join(words)}."
    )


def whole_number(given: object, pointer: str, minimum: int, maximum: int) -> int:
    """Return a whole number within bounds; numpy's integers are whole numbers, True is not."""
    if is_whole(given) and minimum <= int(given) <= maximum:
        return int(given)
    raise ValidationError.of(
        pointer,
        "bound",
        f"{shown(given)} is not allowed. Allowed: a whole number from {minimum:,} to {maximum:,}.",
    )


def limit_of(given: object, *, counting: bool = False) -> int:
    """Return how many rows to keep; "all" and None are the most. Only our own service is known to count by 0."""
    given = rules.MAX_LIMIT if given is None or given == "all" else given
    limit = rules.limit_of(given, least=0 if counting else 1)
    if isinstance(limit, int):
        return limit
    if is_whole(given) and given == 0:
        limit = (
            "A limit of 0 only counts, which this service is not known to do. "
            f"Write a whole number from 1 to {rules.MAX_LIMIT:,}."
        )
    raise ValidationError.of("/limit", "bound", limit)


def segment_id_of(given: object, *, ours: bool = True) -> str:
    """Return a segment's id. Another service's may have any characters that can be seen."""
    if isinstance(given, str) and (SEGMENT_ID.match(given) if ours else is_foreign_id(given)):
        return given
    allowed = (
        "1 to 128 letters, digits, - and _"
        if ours
        else f"1 to {MAX_ID} characters, none of them hidden"
    )
    raise ValidationError.of("id", "id", f"{shown(given)} is not a segment id. Ids have {allowed}.")


def is_foreign_id(text: str) -> bool:
    """Say whether another service's id can be a part of a path, once percent-encoded."""
    # A path's . and .. are steps, however they are written.
    return 0 < len(text) <= MAX_ID and text not in (".", "..") and text.isprintable()


def chain_of(given: object, *, ours: bool) -> str:
    """Return the chain as it goes out: our own service's name for it, or what was written to a remote."""
    text = str(given) if type(given) is int else given
    if not isinstance(text, str) or not chains.CHAIN_TEXT.match(text):
        raise ValidationError.of(
            "chain",
            "chain",
            f"{shown(text)} is not a chain. Allowed: {', '.join(chains.chain_names())}, or a chain id.",
        )
    # A remote may know chains that we do not.
    return chains.chain_of(text).name if ours else text


def address_of(given: object) -> str:
    """Return an address in lower case."""
    if isinstance(given, str) and re.fullmatch(r"[\w.-]+\.eth", given):
        raise ValidationError.of(
            "address",
            "address",
            f"{quoted(given)} is an ENS name. nbext does not resolve names: give the 0x address.",
        )
    return addresses.normalised(given)


def is_symbol(given: object) -> bool:
    """Say whether the text can be a token's symbol and not a mistyped address."""
    text = given.strip().lower() if isinstance(given, str) else ""
    return (
        isinstance(given, str)
        and 0 < len(text) <= MAX_SYMBOL
        and text not in (".", "..")
        and not text.startswith("0x")
        and not text.endswith(".eth")
        and all(unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") for c in given)
        # So many hex digits are an address whose 0x was left away; so many letters and digits are one mistyped.
        and not re.fullmatch(r"[0-9a-f]{30,}|[0-9a-z]{37,}", text)
    )


def search_term_of(given: object, *, all_allowed: bool) -> str:
    """Return the text to search for; an empty one, for all there is, where the service takes that."""
    text = given if isinstance(given, str) else ""
    if all_allowed and given is not None and not text.strip():
        return ""
    if not text.strip() or len(text) > MAX_SEARCH_TERM:
        detail = f"The term has {len(text):,} characters. Allowed: 1 to {MAX_SEARCH_TERM}."
        if not text.strip():
            detail = "The term is empty. This service needs a name or a symbol; only nbext's own lists everything."
        raise ValidationError.of("/searchTerm", "length", detail)
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise ValidationError.of(
            "/searchTerm", "characters", "The term has a control character or half a character."
        )
    return text


def filters_of(filters: object) -> dict[str, Any]:
    """Return the filters as plain JSON values.

    Decimals, dates, times and whole numbers beyond 2**53 become texts; numpy's numbers become plain ones. What JSON
    cannot hold is an InvalidSegment that names its path, such as ``$.a[0]``.
    """
    if not isinstance(filters, Mapping):
        raise _refused("$", f"Expected an object of conditions, got {type(filters).__name__}.")
    plain: dict[str, Any] = _plain(filters, "$", 1, count())
    size = len(json.dumps(plain, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise _refused("$", f"The filters have {size:,} bytes as JSON. Allowed: {MAX_BYTES:,}.")
    return plain


def _refused(path: str, detail: str) -> InvalidSegment:
    """Return the error for one place in the filters."""
    error: FieldError = {"pointer": path, "code": "value", "detail": detail}
    return InvalidSegment([error])


def _plain(given: Any, path: str, level: int, values: Iterator[int]) -> Any:
    """Return one value of the filters, with all in it; ``values`` counts them."""
    if next(values) > MAX_VALUES:
        raise _refused(
            "$",
            f"The filters have more than {MAX_VALUES:,} values, the most that a request can have.",
        )
    if given is None or isinstance(given, bool):
        return given
    if not isinstance(given, Mapping | list | tuple):
        return _text(given, path) if isinstance(given, str) else _number(given, path)
    # An object that contains itself ends here as well.
    if level > MAX_LEVELS:
        raise _refused(path[:80], f"The filters are nested more than {MAX_LEVELS} levels deep.")
    if not isinstance(given, Mapping):
        return [_plain(item, f"{path}[{i}]", level + 1, values) for i, item in enumerate(given)]
    found = {}
    for name, item in given.items():
        if not isinstance(name, str):
            raise _refused(
                path, f"The name {name!r:.40} is {type(name).__name__}; names in JSON are texts."
            )
        found[_text(name, path)] = _plain(item, f"{path}.{name[:60]}", level + 1, values)
    return found


def _text(given: str, path: str) -> str:
    if LONE_SURROGATE.search(given):
        raise _refused(
            path, "The text has half a character (a lone surrogate), which UTF-8 cannot carry."
        )
    # numpy's texts and enums are texts, but not to every encoder; str() of an enum is its name.
    return str.__str__(given)


def _number(given: Any, path: str) -> Any:
    allowed = "texts, numbers, dates, times, true, false, null, lists and objects"
    unfit = _refused(path, f"JSON cannot hold a {type(given).__name__}. Allowed: {allowed}.")
    # numpy's scalars say what they hold as a plain Python value, but times as integers.
    if type(given).__module__ == "numpy" and getattr(given, "ndim", 1) == 0:
        if given.dtype.kind in "mM":
            raise unfit
        given = given.item()
    # NaT, which equals nothing, is a time to Python.
    if isinstance(given, date) and given == given:  # noqa: PLR0124
        return time_text(given)
    if isinstance(given, bool | str):
        return given
    # Python writes no integer of more than 4,300 digits.
    if isinstance(given, Integral) and int(given).bit_length() <= 4 * MAX_DIGITS:
        return int(given) if abs(int(given)) <= _EXACT else str(int(given))
    if isinstance(given, Decimal) and given.is_finite() and abs(given.adjusted()) <= MAX_DIGITS:
        return format(given, "f")
    if isinstance(given, float) and math.isfinite(given):
        return given
    if isinstance(given, Integral | float | Decimal):
        raise _refused(path, f"{shown(given)} is not a number that JSON can hold.")
    raise unfit
