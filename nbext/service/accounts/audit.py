"""The audit log: which key did what, to which segment or key, and from which address (SQL).

A service notes what its callers do in memory, and writes all notes at once, every half second: a commit for each export
would wait for the disk. A service that is killed loses the notes of that half second; the segments themselves, and all
that a command does, are written before they are answered.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterator
from threading import Lock
from typing import Any

from nbext.service.accounts.database import Database, Row

# Notes that wait at most; the oldest give way where the registry cannot be written for long.
_WAITING = 100_000
# Rows that one transaction deletes: others write in between.
_BATCH = 10_000


class Audit:
    """The log of one registry."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[dict[str, Any]] = deque(maxlen=_WAITING)
        self._flushing = Lock()

    def note(self, action: str, **told: str | None) -> None:
        """Note an action, to be written at the next `flush`, with its ``key_id``, ``target`` and ``client``.

        That is an IP address or ``command line``.
        """
        self._waiting.append({"at": time.time(), "action": action, **told})

    def flush(self) -> None:
        """Write what was noted before this call; nothing is lost where the registry cannot be written now."""
        # What another call has taken may not be written yet.
        with self._flushing:
            rows = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not rows:
                return
            try:
                with self._database.write() as db:
                    db.add("audit", rows)
            except BaseException:
                self._waiting.extendleft(reversed(rows))
                raise

    def entries(
        self, *, since: float = 0.0, key_ids: Collection[str] | None = None
    ) -> Iterator[Row]:
        """Yield the log's rows from ``since`` (seconds since 1970) on, the oldest first; of these keys alone, if given.

        Each has what was given to `note`, and ``at``.
        """
        of = "" if key_ids is None else "AND key_id IN :keys"
        found = f"""
            SELECT * FROM audit WHERE (at, id) > (:at, :id) {of} ORDER BY at, id LIMIT {_BATCH}
        """
        last: dict[str, Any] = {"at": since, "id": -1}
        # Some at a time: PostgreSQL streams only inside a transaction, which a slow reader would hold open.
        while rows := self._database.rows(found, keys=[*(key_ids or ())], **last):
            yield from rows
            last = {"at": rows[-1].at, "id": rows[-1].id}

    def prune(self, before: float) -> None:
        """Delete the entries of before that time (seconds since 1970)."""
        old = f"SELECT id FROM audit WHERE at < :before LIMIT {_BATCH}"
        while (
            self._database.change(f"DELETE FROM audit WHERE id IN ({old})", before=before) == _BATCH
        ):
            pass
