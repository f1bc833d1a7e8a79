"""The keys that the service accepts: stored as hashes, with scopes and a rate."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbext.core.untrusted_text import quoted
from nbext.errors import ConfigError, StorageError, did_you_mean
from nbext.service.accounts.database import Database, Lent, Row, insert_into
from nbext.service.problems import Problem
from nbext.settings import Secret

# `admin` cancels and deletes the segments of other keys, and sees those of private ones.
SCOPES = ("read", "execute", "signup", "admin")
DEFAULT_SCOPES = ("read", "execute", "signup")
DEFAULT_RATE = "600/minute"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}\Z")
_ID = re.compile(r"[0-9a-f]{12}\Z", re.IGNORECASE)
# Also as registries of former versions have it: "10 per second", "100/2 Minutes".
_RATE = re.compile(
    r"\s*([1-9]\d{0,8})\s*(?:/|\s+per\s)\s*([1-9]\d{0,8})?\s*(second|minute|hour|day|month|year)s?\s*",
    re.IGNORECASE,
)
_RATE_SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "month": 30 * 86_400,
    "year": 360 * 86_400,
}
# For how long a revoked key may still be accepted: what was found is looked up again this often (seconds). Looking in
# the registry for each request would cost more than all other checks together.
FRESH = 1.0
_EPOCH = time.time() - time.monotonic()
# Keys whose look-up is remembered: more than that at once are looked up again.
_REMEMBERED = 10_000


@dataclass(frozen=True)
class Key:
    """A key that was accepted: whose it is, what it may do, and how often. No part of its text."""

    id: str
    name: str
    scopes: frozenset[str] = frozenset(SCOPES)
    rate: str | None = None
    created_at: float = 0.0
    revoked_at: float | None = None
    expires_at: float | None = None
    # It sees its own segments only, and others do not see them.
    private: bool = False

    @property
    def state(self) -> str:
        """One of ``in use``, ``revoked`` and ``expired``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if (self.expires_at or math.inf) <= time.time() else "in use"


_OWNER = Key("owner", "owner")


def digest_of(text: str) -> str:
    """Return what is stored of a key: keys are random, so one round of SHA-256 cannot be guessed back."""
    # surrogateescape: a header's bytes need not be UTF-8.
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class KeyRing:
    """All keys of a service: the owner's, which is in memory only, and those in the registry."""

    def __init__(self, database: Database, owner: Secret | None = None) -> None:
        self._database = database
        # digest -> when it was looked up, and the key; the owner's is always as if it had just been.
        self._own = {digest_of(owner.reveal()): (math.inf, _OWNER)} if owner else {}
        self._found = {**self._own}

    def known(self, text: str) -> Key | None:
        """Return the key of that text where it was found less than FRESH seconds ago: no look into the registry."""
        read_at, key = self._found.get(digest_of(text), (-FRESH, None))
        return key if time.monotonic() - read_at < FRESH else None

    def find(self, text: str) -> Key | None:
        """Return the key of that text, or None; one statement, however many keys there are."""
        # Another request with it may have been quicker.
        if found := self.known(text):
            return found
        # What is looked for is a hash: how long the look takes tells nobody a part of a key.
        digest = digest_of(text)
        rows = self._database.rows(_BY_DIGEST, sought=digest, now=time.time())
        key = _key(rows[0]) if rows else None
        if key is None or key.state != "in use":
            return None
        # Most of so many are not fresh any more.
        if len(self._found) >= _REMEMBERED:
            self._found = {**self._own}
        self._found[digest] = (time.monotonic(), key)
        return key

    def all(self) -> list[Key]:
        """Return every stored key, the oldest first, revoked ones too."""
        return [_key(row) for row in self._database.rows(_ALL)]

    def add(
        self,
        name: str,
        scopes: Sequence[str] = DEFAULT_SCOPES,
        rate: str | None = DEFAULT_RATE,
        *,
        lasts: float | None = None,
        private: bool = False,
    ) -> tuple[Key, Secret]:
        """Make a key; its text is returned this once and stored nowhere. ConfigError where it may not be as given.

        ``lasts`` is for how many seconds it is accepted; None for ever.
        """
        if not _NAME.match(name):
            raise ConfigError(
                f"{quoted(name)} cannot name a key. Use 1 to 64 letters, digits, spaces, dots, _ or -, and begin with a"
                " letter or digit."
            )
        # A command that takes a name or an id must not end another key.
        if name.casefold() == "owner" or _ID.match(name):
            raise ConfigError(f"{name!r} looks like a key's id. Choose another name.")
        for scope in scopes:
            if scope not in SCOPES:
                raise ConfigError(
                    f"Unknown scope {scope!r}.{did_you_mean(scope, SCOPES)} Allowed: {', '.join(SCOPES)}."
                )
        if rate is not None:
            parse_rate(rate)
        text, now = _new_text(), time.time()
        expires_at = None if lasts is None else now + lasts
        key = Key(
            secrets.token_hex(6), name, frozenset(scopes), rate, now, None, expires_at, private
        )
        row = {
            **vars(key),
            "scopes": " ".join(sorted(key.scopes)),
            "private": int(private),
            "digest": digest_of(text.reveal()),
        }
        # Two commands may add one name at once.
        if not self._database.change(f"{insert_into('keys', row)} ON CONFLICT DO NOTHING", **row):
            raise ConfigError(
                f"A key named {name!r} is in use. Revoke it first, or choose another name."
            )
        return key, text

    def rotate(self, name: str, *, grace: float, lasts: float | None = None) -> tuple[Key, Secret]:
        """Give a key a new text; the former one is accepted for ``grace`` seconds more. The key keeps its segments.

        With a ``grace`` of 0 all former ones end.

        ``lasts`` is for how many seconds the key is accepted from now on; None leaves its end as it is.
        """
        text, now = _new_text(), time.time()
        with self._database.write() as db:
            row = _named(db, name)[0]
            if _key(row).state == "expired" and lasts is None:
                raise ConfigError(
                    f"The key {row.name!r} has expired. Give it a new end: --expires 90d"
                )
            # Without grace the key may have leaked: what was promised before ends, too.
            ended = "until < :now" if grace else "key_id = :id"
            db.change(f"DELETE FROM former_keys WHERE {ended}", id=row.id, now=now)
            db.add("former_keys", [{"digest": row.digest, "key_id": row.id, "until": now + grace}])
            (row,) = db.rows(
                "UPDATE keys SET digest = :digest, expires_at = :end WHERE id = :id RETURNING *",
                id=row.id,
                digest=digest_of(text.reveal()),
                end=row.expires_at if lasts is None else now + lasts,
            )
        return _key(row), text

    def revoke(self, name: str) -> Key:
        """End a key, given by its name or id; running services accept it for at most FRESH seconds more."""
        with self._database.write() as db:
            row = _named(db, name)[0]
            db.change(
                "UPDATE keys SET revoked_at = :now WHERE id = :id", id=row.id, now=time.time()
            )
        return _key(row)

    def ids_of(self, name: str) -> list[str]:
        """Return the ids of all keys of that name or id, revoked ones too; ConfigError where there is none."""
        # The owner's key is in no registry.
        if name == "owner":
            return [name]
        return [row.id for row in _named(self._database, name, revoked=True)]


_ALL = "SELECT * FROM keys ORDER BY created_at"
_BY_DIGEST = """
    SELECT * FROM keys WHERE digest = :sought OR id IN (
        SELECT key_id FROM former_keys WHERE digest = :sought AND until > :now
    )
"""


def _named(db: Lent | Database, name: str, *, revoked: bool = False) -> list[Row]:
    """Return the rows of the keys of that name or id, also of ``revoked`` ones; ConfigError where there is none."""
    rows = [row for row in db.rows(_ALL) if revoked or row.revoked_at is None]
    # Not by the statement: a name of a command line may be a text that no registry has.
    found = [row for row in rows if name in (row.id, row.name)]
    if not found:
        near = did_you_mean(name, [row.name for row in rows])
        in_use = "" if revoked else " in use"
        raise ConfigError(f"No key{in_use} has the name or id {quoted(name)}.{near}")
    return found


def _key(row: Row) -> Key:
    stored = row._asdict()
    del stored["digest"]
    return Key(**{**stored, "scopes": frozenset(row.scopes.split()), "private": bool(row.private)})


def _new_text() -> Secret:
    return Secret("nbx_" + secrets.token_urlsafe(32))


def parse_rate(text: str) -> tuple[int, int]:
    """Return how many requests in how many seconds a text such as ``600/minute`` allows, or raise ConfigError."""
    found = _RATE.fullmatch(text)
    if not found:
        raise ConfigError(
            f"{quoted(text)} is not a rate. Write 600/minute, 10/second or 20000/day."
        )
    return int(found[1]), int(found[2] or 1) * _RATE_SECONDS[found[3].lower()]


class Rates:
    """How many requests each key may still send, for all services of a registry together.

    A service takes a twentieth of a key's rate at a time, and counts that down in memory: a request costs a statement
    once in twenty of its window. The rate is never exceeded; with several services a key may be refused a twentieth
    early for each. Where the registry cannot be written, on a full disk, each process counts for itself: reads go on.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # By how much the clock is behind that of the service that is ahead of all others, as the registry shows.
        self._behind = 0.0
        # Key id -> until when the rest may be spent, and the rest.
        self._left: dict[str, tuple[float, int]] = {}
        # What this process granted while the registry could not be written, as it has that of all.
        self._unstored: dict[str, tuple[float, int, int]] = {}

    def _now(self) -> float:
        """Return the time as a clock shows it that is never set: one that is set back would grant a window again."""
        return _EPOCH + time.monotonic() + self._behind

    def spend(self, key: Key) -> bool:
        """Count one request of what was taken before; False where that is used up. No look into the registry."""
        if key.rate is None:
            return True
        until, left = self._left.get(key.id, (0.0, 0))
        if not left or until <= self._now():
            return False
        self._left[key.id] = (until, left - 1)
        return True

    def take(self, key: Key) -> None:
        """Take more of the key's rate and count one request, or raise the problem 429 with the seconds to wait."""
        rate = parse_rate(key.rate or DEFAULT_RATE)
        try:
            # Whoever comes second waits: else two services take the same rest.
            with self._database.write(alone=True) as db:
                stored = next(iter(db.rows(_RATE_OF, key=key.id)), None)
                (began, taken, former), granted = self._counted(stored, rate)
                if granted:
                    db.change(_TAKE, key=key.id, began=began, taken=taken, former=former)
        except StorageError:
            row, granted = self._counted(self._unstored.get(key.id), rate)
            self._unstored[key.id], began = row, row[0]
        until = began + rate[1]
        if not granted:
            wait = max(1, math.ceil(until - self._now()))
            raise Problem(
                "rate-limit",
                f"This key may send {key.rate} requests. Try again in {wait} s.",
                headers={"Retry-After": str(wait)},
            )
        # What another thread took meanwhile is the key's, too.
        of, left = self._left.get(key.id, (until, 0))
        self._left[key.id] = (until, granted - 1 + left * (of == until))

    def _counted(self, row: Any, rate: tuple[int, int]) -> tuple[tuple[float, int, int], int]:
        """Return what becomes of a key's row when a part of its rate is taken, and how many requests that part is."""
        (amount, span), now = rate, self._now()
        began = now // span * span
        latest, taken, former = row or (began, 0, 0)
        # Another machine's clock, or one that was set back before this service began: all count in one window.
        if latest > began:
            self._behind += latest - now
            now = began = latest
        elif latest < began:
            taken, former = 0, taken if latest == began - span else 0
        # The part of the window before that is less than a span ago, as if its requests were spread evenly.
        before = former * (1 - (now - began) / span)
        granted = max(0, min(max(1, amount // 20), math.floor(amount - before - taken)))
        return (began, taken + granted, former), granted


_RATE_OF = "SELECT began, taken, former FROM rates WHERE key_id = :key"
_TAKE = """
    INSERT INTO rates (key_id, began, taken, former) VALUES (:key, :began, :taken, :former)
    ON CONFLICT (key_id)
    DO UPDATE SET began = excluded.began, taken = excluded.taken, former = excluded.former
"""
