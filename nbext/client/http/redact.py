"""A stranger's text in our messages: cut, with nothing in it that hides, or is the key.

It stays text: `<` is `<`. Whoever makes HTML of a message escapes it there (`nbext.core.untrusted_text.html`).
"""

from __future__ import annotations

import unicodedata
from typing import Any

from nbext.settings import Secret

MESSAGE_LENGTH = 500
# Control, bidi and zero-width characters, surrogates, private use, line and paragraph separators.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_STARS = "***"
# So many first characters of a key are too much to show.
_PART = 6


def shown(text: object, key: Secret | None = None, length: int = MESSAGE_LENGTH) -> str:
    """Return the text as it may stand in a message."""
    # The key goes first: escaping or cutting could leave a part of it.
    plain = redacted(str(text), key)
    safe = "".join(_escape(c) if unicodedata.category(c) in _HIDDEN else c for c in plain[: 4 * length])
    return safe if len(safe) <= length else safe[: length - 1] + "…"


def _escape(character: str) -> str:
    return " " if character in "\n\t" else character.encode("unicode_escape", "backslashreplace").decode()


def _without(text: str, secret: str) -> str:
    # Also its beginnings: a text that was cut may end inside of the key.
    for length in range(len(secret), min(len(secret), _PART) - 1, -1):
        text = text.replace(secret[:length], _STARS)
    return text


def redacted(value: Any, key: Secret | None) -> Any:
    """Return a JSON value with the key, wherever a text holds it, as stars."""
    if not key:
        return value
    if isinstance(value, str):
        return _without(value, key.reveal())
    if isinstance(value, list):
        return [redacted(item, key) for item in value]
    if isinstance(value, dict):
        return {redacted(name, key): redacted(item, key) for name, item in value.items()}
    return value
