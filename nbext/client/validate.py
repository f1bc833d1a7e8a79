"""Arguments, checked before any request; an error names what is allowed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from nbext.core.rules import MAX_SEARCH_TERM, MAX_SYMBOL, SEGMENT_ID, is_whole
from nbext.core.untrusted_text import shown
from nbext.errors import ValidationError

MAX_ID = 512


def whole_number(given: object, pointer: str, minimum: int, maximum: int) -> int:
    """Return a whole number within bounds; numpy's integers are whole numbers, True is not."""
    if is_whole(given) and minimum <= int(given) <= maximum:
        return int(given)
    raise ValidationError.of(
        pointer,
        "bound",
        f"{shown(given)} is not allowed. Allowed: a whole number from {minimum:,} to {maximum:,}.",
    )


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


def search_term_of(given: object, takes_all: Callable[[], bool]) -> str:
    """Return the text to search for; an empty one, for all there is, where the service ``takes_all``."""
    if not isinstance(given, str):
        kind = type(given).__name__
        raise ValidationError.of("/searchTerm", "type", f"A term is a text, not {kind}.")
    is_empty = not given.strip()
    if is_empty and takes_all():
        return ""
    if is_empty or len(given) > MAX_SEARCH_TERM:
        detail = f"The term has {len(given):,} characters. Allowed: 1 to {MAX_SEARCH_TERM}."
        if is_empty:
            detail = "The term is empty. This service needs a name or a symbol; only nbext's own lists everything."
        raise ValidationError.of("/searchTerm", "length", detail)
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in given):
        raise ValidationError.of(
            "/searchTerm", "characters", "The term has a control character or half a character."
        )
    return given
