"""Idempotency keys: a call that is made again with the same key is answered with the same segment."""

from __future__ import annotations

import hashlib
import re
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbext.core.operations import IDEMPOTENCY_HEADER
from nbext.core.strict_json import canonical_json
from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key
from nbext.service.http.problems import Problem

KEPT_SECONDS = 24 * 3600
_NAME = re.compile(r"[\x21-\x7e]{1,255}\Z")


@dataclass(frozen=True)
class Claim:
    """An Idempotency-Key of one caller, and the hash of the body it came with."""

    key_id: str
    name: str
    body: str

    def keep(self, db: sqlite3.Connection, segment_id: str, now: float) -> None:
        """Enter the claim in the caller's transaction; 422 where another body was quicker."""
        db.execute(
            "INSERT INTO idempotency (key_id, name, body, segment, created_at) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET body = excluded.body, segment = excluded.segment,"
            " created_at = excluded.created_at WHERE created_at <= ?",
            (self.key_id, self.name, self.body, segment_id, now, now - KEPT_SECONDS),
        )
        self.segment(db, now)

    def segment(self, db: sqlite3.Connection, now: float) -> str | None:
        """Return the id of the segment that this claim made, or None; 422 where another body made it."""
        row = db.execute(
            "SELECT body, segment FROM idempotency WHERE key_id = ? AND name = ? AND created_at > ?",
            (self.key_id, self.name, now - KEPT_SECONDS),
        ).fetchone()
        if row and row["body"] != self.body:
            raise Problem(
                "idempotency-key-reused",
                f"This {IDEMPOTENCY_HEADER} came with another body before. Use a new one for a new request.",
            )
        return row["segment"] if row else None


def claim_of(header: str | None, key: Key, body: Mapping[str, Any]) -> Claim | None:
    """Return the claim that a request makes, or None where it makes none; 400 where the header is unusable."""
    if header is None:
        return None
    if not _NAME.match(header):
        raise Problem("bad-header", f"{IDEMPOTENCY_HEADER} is 1 to 255 printable ASCII characters without spaces.")
    return Claim(key.id, header, hashlib.sha256(canonical_json(body)).hexdigest())


class Claims:
    """The claims of the last 24 hours; they are entered with their segment, by the registry."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def segment_of(self, claim: Claim) -> str | None:
        """Return the id of the segment that this claim made, or None where it is new.

        Raises
        ------
        Problem
            422: the same key came with another body.
        """
        with self._database.read() as db:
            return claim.segment(db, time.time())

    def forget_old(self) -> None:
        """Delete the claims that are older than 24 hours."""
        with self._database.write() as db:
            db.execute("DELETE FROM idempotency WHERE created_at <= ?", (time.time() - KEPT_SECONDS,))
