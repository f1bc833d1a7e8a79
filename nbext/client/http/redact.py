"""A stranger's text in our messages: cut, with nothing in it that hides, or is the key.

It stays text: `<` is `<`. Whoever makes HTML of a message escapes it there (`nbext.core.untrusted_text.html`).
"""

from __future__ import annotations

from typing import Any

from nbext.core.untrusted_text import visible
from nbext.settings import Secret

MESSAGE_LENGTH = 500
_STARS = "***"
# So many first characters of a key are too much to show.
_PART = 6


def shown(text: object, key: Secret | None = None, length: int = MESSAGE_LENGTH) -> str:
    """Return the text as it may stand in a message."""
    # The key goes first: escaping or cutting could leave a part of it.
    plain = redacted(str(text), key).replace("\n", " ").replace("\t", " ")
    safe = visible(plain, length)
    # An escape is up to ten times as long as its character, and a message is not to grow with a stranger's text.
    return safe if len(safe) <= length + 30 else safe[:length] + "…"


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
