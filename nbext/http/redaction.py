"""Secrets out of texts: the API key, also spelled otherwise or cut, and whatever of a node's URL could be a key."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from nbext.settings import Secret

_STARS = "***"
# So many characters of a key, from its beginning or its end, are too much to show.
_PART = 6


def redacted(value: Any, key: Secret | None) -> Any:
    """Return a JSON value with the key, wherever a text holds it, as stars.

    In any case, as base64 and in a URL's escapes; and its beginning and its end, since a text may have been cut.
    """
    if not key or not key.reveal():
        return value
    if isinstance(value, str):
        secret = key.reveal()
        return _without_ends(
            _masked(value, {secret, quote(secret, safe=""), *_packed(secret)}), secret
        )
    if isinstance(value, list):
        return [redacted(item, key) for item in value]
    if isinstance(value, dict):
        return {redacted(name, key): redacted(item, key) for name, item in value.items()}
    return value


def _masked(text: str, words: Iterable[str]) -> str:
    # The longest first: a word may be a part of another.
    patterns = map(re.escape, sorted(words, key=len, reverse=True))
    return re.sub("|".join(patterns), _STARS, text, flags=re.IGNORECASE)


def _packed(secret: str) -> Iterator[str]:
    """Yield what is in base64 wherever the secret stands in the text that was encoded: there are three ways."""
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + secret.encode()).decode().rstrip("=")
        # Its first and last characters are made from what is around the secret, too.
        inner = whole[(before * 8 + 5) // 6 : len(whole) - ((before + len(secret)) % 3 > 0)]
        if len(inner) >= _PART:
            yield from {inner, inner.translate(str.maketrans("+/", "-_"))}


def _without_ends(text: str, secret: str) -> str:
    head, tail = secret[:_PART], secret[-_PART:]
    pieces, at = list[str](), 0
    for match in re.finditer(f"{re.escape(head)}|{re.escape(tail)}", text):
        start, end = match.span()
        if start < at:
            continue
        if match[0] == head:
            while text[end : end + 1] == secret[end - start : end - start + 1] != "":
                end += 1
        else:
            while start > at and text[start - 1 : end] == secret[start - 1 - end :]:
                start -= 1
        pieces, at = [*pieces, text[at:start], _STARS], end
    return "".join([*pieces, text[at:]])


class Redaction(logging.Filter):
    """Takes everything of some URLs that could be a key out of a text; and, until `close`, out of urllib3's log.

    At the level DEBUG that log has the path of each request.
    """

    def __init__(self, urls: Sequence[Secret]) -> None:
        super().__init__()
        parts: set[str] = set()
        for url in urls:
            split = urlsplit(url.reveal())
            parts |= {
                url.reveal(),
                split.netloc,
                split.path,
                split.query,
                split.username or "",
                split.password or "",
            }
            # Hosts too: some providers put the key there. A word such as v3 is none.
            parts |= {
                piece
                for piece in re.split(r"[/&=.?]", f"{split.hostname}/{split.path}?{split.query}")
                if len(piece) >= 8 or (any(mark.isdigit() for mark in piece) and len(piece) > 4)
            }
        self._words = [Secret(part) for part in parts if len(part) > 3]
        for name in _LOGS:
            logging.getLogger(name).addFilter(self)

    def close(self) -> None:
        """Leave urllib3's log alone."""
        for name in _LOGS:
            logging.getLogger(name).removeFilter(self)

    def is_needed(self, raw: bytes) -> bool:
        """Say whether an answer repeats any of them."""
        return any(word.reveal().encode() in raw for word in self._words)

    def __call__(self, text: str) -> str:
        """Return the text without them."""
        return _masked(text, [word.reveal() for word in self._words]) if self._words else text

    def filter(self, record: logging.LogRecord) -> bool:
        """Take them out of a record of the log."""
        record.msg, record.args = self(record.getMessage()), ()
        return True


_LOGS = ("urllib3.connectionpool", "urllib3.util.retry")
