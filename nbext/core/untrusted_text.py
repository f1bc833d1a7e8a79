"""The one way from a text of the service, or of a chain, to what is shown: such a text is an attacker's."""

from __future__ import annotations

import unicodedata
from html import escape

MAX_SHOWN = 200
# Control, format (bidi and zero-width among them), surrogate, private, unassigned; line and paragraph separators.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def visible(value: object, limit: int | None = MAX_SHOWN) -> str:
    r"""Return the value as text in which nothing hides: control, bidi and zero-width characters as escapes.

    A text longer than ``limit`` is cut, and says how long it is.

    >>> visible("USD\u202ec\x1b[31m")
    'USD\\u202ec\\x1b[31m'
    """
    text = value if isinstance(value, str) else str(value)
    cut = text if limit is None or len(text) <= limit else text[:limit]
    shown = "".join(_shown(character) for character in cut)
    return shown if cut is text else f"{shown}… ({len(text):,} characters)"


def html(value: object, limit: int | None = MAX_SHOWN) -> str:
    """Return the value as HTML that shows it literally, inside an element or a quoted attribute.

    >>> html("<script>alert('1')</script>")
    '&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;'
    """
    return escape(visible(value, limit))


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
