"""Times as text: ISO-8601 in UTC, of one instant or of an Arrow table's columns."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any, overload

_ISO = "%Y-%m-%dT%H:%M:%SZ"
# How people write a time, and a span back from the data's last block.
MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?"
# Six digits: whatever the span, the time stays a number that every engine can hold.
BACK = r"[0-9]{1,6}[hdw]"
# What `iso` writes.
TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z")


@overload
def iso(timestamp: int) -> str: ...


@overload
def iso(timestamp: int | None) -> str | None: ...


def iso(timestamp: int | None) -> str | None:
    """Return seconds since 1970 as ISO-8601 UTC, or None for None: a chain may have no block times.

    >>> iso(0)
    '1970-01-01T00:00:00Z'
    """
    return None if timestamp is None else datetime.fromtimestamp(timestamp, UTC).strftime(_ISO)


def utc_text(timestamp: int) -> str:
    """Return seconds since 1970 as people read it.

    >>> utc_text(0)
    '1970-01-01 00:00:00 UTC'
    """
    return iso(timestamp).replace("T", " ").replace("Z", " UTC")


def iso_ms(seconds: float | None) -> str | None:
    """Return a time as ISO-8601 UTC with milliseconds, or None without one.

    >>> iso_ms(0)
    '1970-01-01T00:00:00.000Z'
    """
    if seconds is None:
        return None
    return (
        datetime.fromtimestamp(seconds, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def time_text(value: Any) -> Any:
    """Return a date, or a time in UTC, as the segment language writes it; anything else as it is.

    >>> time_text(date(2025, 1, 31)), time_text(datetime(2025, 1, 31, 12)), time_text("30d")
    ('2025-01-31', '2025-01-31T12:00:00Z', '30d')
    """
    if not isinstance(value, datetime):
        return value.isoformat() if isinstance(value, date) else value
    # One without a zone is taken as UTC.
    utc = value.astimezone(UTC) if value.tzinfo else value
    return utc.replace(tzinfo=None).isoformat() + "Z"


def in_iso(rows: Any) -> Any:
    """Return a table or a batch of rows with its timestamps as texts, in ISO-8601 UTC."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            # Without the zone first: where pyarrow finds no database of zones it formats none, and this one is UTC.
            plain = rows.column(place).cast(pa.timestamp("s"))
            rows = rows.set_column(place, field.name, pc.strftime(plain, _ISO))
    return rows
