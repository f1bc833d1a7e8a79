"""Times as people write them: ISO-8601 UTC, ``90d 12h 4w`` back from the data's last block, or a block number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import overload

_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?"
_BACK = r"[0-9]{1,6}[hdw]"
TIME_PATTERN = f"^({_ISO}|{_BACK})$"
_ISO_TEXT = re.compile(_ISO + r"\Z")
_BACK_TEXT = re.compile(_BACK + r"\Z")
_SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}


@dataclass(frozen=True)
class Time:
    """A time as it was written: exactly one of ``timestamp`` (seconds since 1970), ``back`` (seconds) and ``block``."""

    text: str
    timestamp: int | None = None
    back: int | None = None
    block: int | None = None

    def shown(self) -> str:
        """Return the time as a message shows it."""
        return repr(self.text) if self.block is None else f"block {self.block:,}"


def read_time(value: object) -> Time | None:
    """Return the time that a JSON value writes, or None.

    >>> read_time("90d").back
    7776000
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return Time(str(value), block=value)
    if not isinstance(value, str):
        return None
    if _BACK_TEXT.match(value):
        return Time(value, back=int(value[:-1]) * _SECONDS[value[-1]])
    if not _ISO_TEXT.match(value):
        return None
    # The pattern takes a 30th of February; the calendar does not.
    try:
        moment = datetime.fromisoformat(value.upper())
    except ValueError:
        return None
    return Time(value, timestamp=int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() // 1))


@overload
def iso(timestamp: int) -> str: ...


@overload
def iso(timestamp: int | None) -> str | None: ...


def iso(timestamp: int | None) -> str | None:
    """Return seconds since 1970 as ISO-8601 UTC, or None for None: a chain may have no block times.

    >>> iso(0)
    '1970-01-01T00:00:00Z'
    """
    return None if timestamp is None else datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
