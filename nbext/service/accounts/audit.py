"""The audit log: which key did what, to which segment or key, and from which address (SQL).

A service notes what its callers do in memory, and writes all notes at once, every half second: a commit for each export
would wait for the disk. A service that is killed loses the notes of that half second; the segments themselves, and all
that a command does, are written before they are answered.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import Row, delete, insert, select, tuple_

from nbext.service.accounts.database import Database, audit

# Notes that wait at most; the oldest give way where the registry cannot be written for long.
_WAITING = 100_000
# Rows that one transaction deletes: others write in between.
_BATCH = 10_000


class Audit:
    """The log of one registry."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[dict[str, Any]] = deque(maxlen=_WAITING)

    def note(
        self, action: str, *, key_id: str | None, target: str | None, client: str | None
    ) -> None:
        """Note an action, to be written at the next `flush`; ``client`` is an IP address or ``command line``."""
        self._waiting.append(
            {
                "at": time.time(),
                "key_id": key_id,
                "action": action,
                "target": target,
                "client": client,
            }
        )

    def flush(self) -> None:
        """Write what was noted since the last call; nothing is lost where the registry cannot be written now."""
        rows = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not rows:
            return
        try:
            self._database.change(insert(audit), rows)
        except BaseException:
            self._waiting.extendleft(reversed(rows))
            raise

    def entries(
        self, *, since: float = 0.0, key_ids: Collection[str] | None = None
    ) -> Iterator[Row[Any]]:
        """Yield the log's rows from ``since`` (seconds since 1970) on, the oldest first; of these keys alone, if given.

        Each has what was given to `note`, and ``at``.
        """
        found = select(audit).order_by(audit.c.at, audit.c.id).limit(_BATCH)
        if key_ids is not None:
            found = found.where(audit.c.key_id.in_(key_ids))
        last: tuple[float, int] | None = (since, -1)
        # Some at a time: PostgreSQL streams only inside a transaction, which a slow reader would hold open.
        while last is not None:
            rows = self._database.rows(found.where(tuple_(audit.c.at, audit.c.id) > last))
            yield from rows
            last = (rows[-1].at, rows[-1].id) if rows else None

    def prune(self, before: float) -> None:
        """Delete the entries of before that time (seconds since 1970)."""
        old = select(audit.c.id).where(audit.c.at < before).limit(_BATCH)
        while self._database.change(delete(audit).where(audit.c.id.in_(old))) == _BATCH:
            pass
