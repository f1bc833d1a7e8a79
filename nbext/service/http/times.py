"""Moments: kept as seconds since 1970, told as ISO-8601 UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(seconds: float | None) -> str | None:
    """Return the moment as text with milliseconds, or None where there is none.

    >>> iso(0)
    '1970-01-01T00:00:00.000Z'
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_block(seconds: int | None) -> str | None:
    """Return a block's time, which has no part of a second, or None where the data has none.

    >>> iso_block(1)
    '1970-01-01T00:00:01Z'
    """
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
