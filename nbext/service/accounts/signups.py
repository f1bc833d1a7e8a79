"""Newsletter sign-ups: one row per address, with the time of consent. Nothing is ever sent from here."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from nbext.core.wire import email_of
from nbext.service.accounts.database import Database, signups
from nbext.service.http.problems import Problem

_DAY = 86_400
# New addresses of one key within a day.
_MOST = 10_000


class SignUps:
    """The addresses that were recorded."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, given: object, key_id: str) -> str:
        """Store an address and return it as it is stored; a repeat leaves the first consent and looks the same.

        The problem is 507 where the key has recorded as many as it may within a day.
        """
        email, now = email_of(given), time.time()
        c = signups.c
        of_today = select(func.count()).where(c.key_id == key_id, c.consented_at > now - _DAY)
        # The same answer whether it was there or not: else anyone with a key could ask who reads the newsletter.
        if self._database.scalar(of_today) >= _MOST:
            raise Problem("quota", f"This key has recorded {_MOST:,} addresses within a day.")
        row = {
            "address": email.casefold(),
            "email": email,
            "consented_at": now,
            "key_id": key_id,
        }
        with contextlib.suppress(IntegrityError):
            self._database.change(insert(signups), row)
        return email

    def all(self) -> Sequence[Row[Any]]:
        """Return every sign-up, the oldest first: its ``email``, and ``consented_at`` in seconds since 1970."""
        every = select(signups).order_by(signups.c.consented_at, signups.c.address)
        return self._database.rows(every)

    def delete(self, email: str) -> bool:
        """Delete an address; False where it was not recorded."""
        this = delete(signups).where(signups.c.address == email.casefold())
        return self._database.change(this) > 0
