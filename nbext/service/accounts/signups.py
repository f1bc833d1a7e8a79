"""Newsletter sign-ups: one row per address, with the time of consent. Nothing is ever sent from here."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nbext.core.wire import email_of
from nbext.service.accounts.database import Database, Row, insert_into
from nbext.service.problems import Problem

_DAY = 86_400
# New addresses of one key within a day.
_MOST = 10_000


@dataclass
class SignUps:
    """The addresses that were recorded."""

    _database: Database

    def record(self, given: object, key_id: str) -> str:
        """Store an address and return it as it is stored; a repeat leaves the first consent and looks the same.

        The problem is 507 where the key has recorded as many as it may within a day.
        """
        email, now = email_of(given), time.time()
        of_today = "SELECT count(*) FROM signups WHERE key_id = :key AND consented_at > :since"
        # The same answer whether it was there or not: else anyone with a key could ask who reads the newsletter.
        if self._database.scalar(of_today, key=key_id, since=now - _DAY) >= _MOST:
            raise Problem("quota", f"This key has recorded {_MOST:,} addresses within a day.")
        row = {"address": email.casefold(), "email": email, "consented_at": now, "key_id": key_id}
        self._database.change(f"{insert_into('signups', row)} ON CONFLICT DO NOTHING", **row)
        return email

    def all(self) -> list[Row]:
        """Return every sign-up, the oldest first: its ``email``, and ``consented_at`` in seconds since 1970."""
        return self._database.rows("SELECT * FROM signups ORDER BY consented_at, address")

    def delete(self, email: str) -> bool:
        """Delete an address; False where it was not recorded."""
        this = "DELETE FROM signups WHERE address = :address"
        return self._database.change(this, address=email.casefold()) > 0
