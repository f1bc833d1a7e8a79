"""The keys that the service accepts: stored as hashes, with scopes and a rate."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from nbext.core.untrusted_text import quoted
from nbext.errors import ConfigError, did_you_mean
from nbext.service.accounts.database import Database
from nbext.service.http.problems import Problem
from nbext.settings import Secret

SCOPES = ("read", "execute", "signup")
DEFAULT_RATE = "600/minute"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}\Z")
_RATE = re.compile(r"\s*[1-9]\d{0,8}\s*(/|\s+per\s)\s*([1-9]\d{0,8}\s*)?[a-z]+\s*", re.IGNORECASE)
# For how long a revoked key may still be accepted: the list is read again this often (seconds). Reading it for each
# request would cost more than all other checks together.
FRESH = 1.0


@dataclass(frozen=True)
class Key:
    """A key that was accepted: whose it is, what it may do, and how often. No part of its text."""

    id: str
    name: str
    scopes: frozenset[str] = frozenset(SCOPES)
    rate: str | None = None
    created_at: float = 0.0
    revoked_at: float | None = None


def digest_of(text: str) -> str:
    """Return what is stored of a key: keys are random, so one round of SHA-256 cannot be guessed back."""
    # surrogateescape: a header's bytes need not be UTF-8.
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class KeyRing:
    """All keys of a service: the owner's, which is in memory only, and those in the registry."""

    def __init__(self, database: Database, owner: Secret | None = None) -> None:
        self._database = database
        self._owner = digest_of(owner.reveal()) if owner else None
        self._known: list[tuple[str, Key]] = []
        self._read_at = -FRESH

    def find(self, text: str) -> Key | None:
        """Return the key of that text, or None."""
        now = time.monotonic()
        if now - self._read_at >= FRESH:
            own = [(self._owner, Key("owner", "owner"))] if self._owner else []
            self._known = own + [(digest, key) for digest, key in self._rows() if key.revoked_at is None]
            self._read_at = now
        digest, found = digest_of(text), None
        # Every stored hash is compared, in constant time: the time of an answer reveals neither a hash nor its place.
        for known, key in self._known:
            if hmac.compare_digest(known, digest):
                found = key
        return found

    def _rows(self) -> Iterable[tuple[str, Key]]:
        with self._database.read() as db:
            rows = db.execute("SELECT * FROM keys ORDER BY created_at").fetchall()
        for row in rows:
            scopes = frozenset(row["scopes"].split())
            yield row["digest"], Key(row["id"], row["name"], scopes, row["rate"], row["created_at"], row["revoked_at"])

    def all(self) -> list[Key]:
        """Return every stored key, the oldest first, revoked ones too."""
        return [key for _, key in self._rows()]

    def add(self, name: str, scopes: Sequence[str] = SCOPES, rate: str | None = DEFAULT_RATE) -> tuple[Key, Secret]:
        """Make a key; its text is returned this once and stored nowhere. ConfigError where it may not be as given."""
        _check(name, scopes, rate)
        text = "nbx_" + secrets.token_urlsafe(32)
        key = Key(secrets.token_hex(6), name, frozenset(scopes), rate, time.time())
        with self._database.write() as db:
            if db.execute("SELECT 1 FROM keys WHERE name = ? AND revoked_at IS NULL", (name,)).fetchone():
                raise ConfigError(f"A key named {name!r} is in use. Revoke it first, or choose another name.")
            db.execute(
                "INSERT INTO keys (id, name, digest, scopes, rate, created_at) VALUES (?, ?, ?, ?, ?, ?)",
                (key.id, name, digest_of(text), " ".join(sorted(key.scopes)), rate, key.created_at),
            )
        self._read_at = -FRESH
        return key, Secret(text)

    def revoke(self, name: str) -> None:
        """End a key, given by its name or id; running services accept it for at most FRESH seconds more."""
        with self._database.write() as db:
            ended = db.execute(
                "UPDATE keys SET revoked_at = ? WHERE (name = ? OR id = ?) AND revoked_at IS NULL",
                (time.time(), name, name),
            ).rowcount
        self._read_at = -FRESH
        if not ended:
            names = [key.name for key in self.all() if key.revoked_at is None]
            raise ConfigError(f"No key named {name!r} is in use.{did_you_mean(name, names)}")


def _check(name: str, scopes: Sequence[str], rate: str | None) -> None:
    if not _NAME.match(name):
        raise ConfigError(
            f"{quoted(name)} cannot name a key. Use 1 to 64 letters, digits, spaces, dots, _ or -, and begin with a"
            " letter or digit."
        )
    for scope in scopes:
        if scope not in SCOPES:
            raise ConfigError(f"Unknown scope {scope!r}.{did_you_mean(scope, SCOPES)} Allowed: {', '.join(SCOPES)}.")
    if rate is not None:
        parse_rate(rate)


@lru_cache(maxsize=256)
def parse_rate(text: str) -> RateLimitItem:
    """Return the rate of a text such as ``600/minute`` or ``10 per second``, or raise ConfigError."""
    try:
        # The library alone reads the first of several rates, and zeros, which would lock a key out.
        return parse(_RATE.fullmatch(text)[0])  # type: ignore[index]  # no match is no rate
    except (TypeError, ValueError):
        raise ConfigError(f"{quoted(text)} is not a rate. Write 600/minute, 10/second or 20000/day.") from None


class Rates:
    """Counts each key's requests in a moving window, in memory: every service counts its own."""

    def __init__(self) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def take(self, key: Key) -> None:
        """Count one request, or raise the problem 429 with the seconds to wait."""
        if key.rate is None:
            return
        rate = parse_rate(key.rate)
        if not self._limiter.hit(rate, key.id):
            reset = self._limiter.get_window_stats(rate, key.id).reset_time
            wait = max(1, math.ceil(reset - time.time()))
            raise Problem(
                "rate-limit",
                f"This key may send {key.rate} requests. Try again in {wait} s.",
                headers={"Retry-After": str(wait)},
            )
