"""The keys that the service takes: kept as hashes, with scopes and a rate."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nbext.errors import ConfigError, did_you_mean
from nbext.service.accounts.database import Database
from nbext.settings import Secret

SCOPES = ("read", "execute", "signup")
DEFAULT_RATE = "600/minute"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}\Z")
# How long a revoked key may still be taken: the list is read anew this often (seconds).
FRESH = 1.0


@dataclass(frozen=True)
class Key:
    """A key that was taken: who it is for, what it may do, and how often. No part of its text."""

    id: str
    name: str
    scopes: frozenset[str] = frozenset(SCOPES)
    rate: str | None = None
    created_at: float = 0.0
    revoked_at: float | None = None


def digest_of(text: str) -> str:
    """Return what is kept of a key: keys are random, so one round of SHA-256 gives nothing away."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class KeyRing:
    """All keys of a service: the owner's, which lives in memory, and those in the registry."""

    def __init__(self, database: Database, owner: Secret | None = None) -> None:
        self._database = database
        self._owner = digest_of(owner.reveal()) if owner else None
        self._known: list[tuple[str, Key]] = []
        self._read_at = -FRESH

    def find(self, text: str) -> Key | None:
        """Return the key of that text, or None; every kept hash is compared, in constant time."""
        digest, found = digest_of(text), None
        for kept, key in self._current():
            if hmac.compare_digest(kept, digest):
                found = key
        return found

    def _current(self) -> list[tuple[str, Key]]:
        now = time.monotonic()
        if now - self._read_at >= FRESH:
            own = [(self._owner, Key("owner", "owner"))] if self._owner else []
            self._known = own + [(digest, key) for digest, key in self._rows() if key.revoked_at is None]
            self._read_at = now
        return self._known

    def _rows(self) -> Iterable[tuple[str, Key]]:
        with self._database.read() as db:
            rows = db.execute("SELECT * FROM keys ORDER BY created_at").fetchall()
        for row in rows:
            scopes = frozenset(row["scopes"].split())
            yield row["digest"], Key(
                row["id"], row["name"], scopes, row["rate"], row["created_at"], row["revoked_at"]
            )

    def all(self) -> list[Key]:
        """Return every kept key, the oldest first, revoked ones too."""
        return [key for _, key in self._rows()]

    def add(
        self, name: str, scopes: Sequence[str] = SCOPES, rate: str | None = DEFAULT_RATE
    ) -> tuple[Key, Secret]:
        """Make a key; its text is returned this once and not kept.

        Raises
        ------
        ConfigError
            The name is taken or not allowed; an unknown scope; a rate that is not one.
        """
        _check(name, scopes, rate)
        text = "nbx_" + secrets.token_urlsafe(32)
        key = Key(secrets.token_hex(6), name, frozenset(scopes), rate, time.time())
        with self._database.write() as db:
            if db.execute("SELECT 1 FROM keys WHERE name = ? AND revoked_at IS NULL", (name,)).fetchone():
                raise ConfigError(f"a key named {name!r} is in use. Revoke it first, or choose another name.")
            db.execute(
                "INSERT INTO keys (id, name, digest, scopes, rate, created_at) VALUES (?, ?, ?, ?, ?, ?)",
                (key.id, name, digest_of(text), " ".join(sorted(key.scopes)), rate, key.created_at),
            )
        self._read_at = -FRESH
        return key, Secret(text)

    def revoke(self, name: str) -> None:
        """End a key, named by its name or id; services that run take it for at most FRESH seconds more."""
        with self._database.write() as db:
            ended = db.execute(
                "UPDATE keys SET revoked_at = ? WHERE (name = ? OR id = ?) AND revoked_at IS NULL",
                (time.time(), name, name),
            ).rowcount
        self._read_at = -FRESH
        if not ended:
            names = [key.name for key in self.all() if key.revoked_at is None]
            raise ConfigError(f"no key named {name!r} is in use.{did_you_mean(name, names)}")


def _check(name: str, scopes: Sequence[str], rate: str | None) -> None:
    if not _NAME.match(name):
        raise ConfigError(f"{name[:80]!r} is not a name: 1 to 64 letters, digits, spaces, dots, _ or -.")
    for scope in scopes:
        if scope not in SCOPES:
            raise ConfigError(f"unknown scope {scope!r}.{did_you_mean(scope, SCOPES)} Allowed: {', '.join(SCOPES)}.")
    if rate is not None:
        from nbext.service.middleware.rate_limit import parse_rate

        parse_rate(rate)
