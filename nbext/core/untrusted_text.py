"""A stranger's text, made visible: names on a chain and answers of a service are written by anybody.

`visible` is for a text that stands alone, `quoted` for one inside a message, `html` for markup. All three show the same
characters as escapes and cut at a bound, so that what is checked in one place cannot hide in another.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from html import escape

MAX_SHOWN = 200
# Control, format (bidi, zero-width, tags), surrogate, private, unassigned; line and paragraph separators.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters, marks and symbols to Unicode, yet drawn as nothing: "USDC" and one of these would be a second USDC.
_BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"


def visible(value: object, limit: int | None = MAX_SHOWN) -> str:
    r"""Return the value as text in which nothing hides: control, bidi and zero-width characters as escapes.

    A text longer than ``limit`` is cut, and the result says how long it is.

    >>> visible("USD\u202ec\x1b[31m")
    'USD\\u202ec\\x1b[31m'
    """
    text = str(value)
    if limit is None or len(text) <= limit:
        return _escaped(text)
    return f"{_escaped(text[:limit])}… ({len(text):,} characters)"


def quoted(value: object, limit: int = 80) -> str:
    r"""Return the value in quotes, as it stands in a message, with nothing hidden and cut at ``limit`` characters.

    >>> quoted("US\u200bDC")
    "'US\\u200bDC'"
    """
    text = str(value)
    quote = _escaped(repr(text[:limit]))
    return quote if len(text) <= limit else f"{quote}… ({len(text):,} characters)"


def shown(value: object) -> str:
    """Return a value of a JSON document as a message shows it: ``'text'``, ``5``, ``true``, an object, a list."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    # A number of a million digits would take its time to be written.
    if isinstance(value, int) and value.bit_length() > 300:
        return "a number of more than 90 digits"
    return visible(value, 80)


def html(value: object, limit: int | None = MAX_SHOWN) -> str:
    """Return the value as HTML that shows it literally, inside an element or a quoted attribute.

    >>> html("<script>alert('1')</script>")
    '&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;'
    """
    return escape(visible(value, limit))


def _escaped(text: str) -> str:
    # Nearly every text is plain ASCII; looking up a category for each character took most of a table's display.
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape", "surrogatepass").decode("ascii")
        if character in _BLANK or unicodedata.category(character) in _HIDDEN
        else character
        for character in text
    )
