"""Whose a segment is, and how much of the disk a key takes with its own (SQL).

Keys that ask the same share a segment and its file: each of them owns it, and each of them pays for it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import BindParameter, Connection, bindparam, delete, func, insert, select, update

from nbext.service.accounts.database import Database
from nbext.service.accounts.keys import Key
from nbext.service.accounts.schema import keys, owners, segments
from nbext.service.http.problems import Problem
from nbext.service.limits import Limits

_OWNED = select(owners.c.created_at).where(
    owners.c.segment == bindparam("which"), owners.c.key_id == bindparam("key")
)
_ADD = insert(owners).values(
    segment=bindparam("which"),
    size=select(segments.c.stored).where(segments.c.id == bindparam("which")).scalar_subquery(),
)
_TAKEN = select(func.sum(owners.c.size)).where(owners.c.key_id == bindparam("key"))
_THESE: BindParameter[list[str]] = bindparam("ids", expanding=True)
_STORED = (
    update(segments)
    .where(segments.c.id.in_(_THESE))
    .values(
        stored=func.coalesce(segments.c.size, 0)
        + func.length(segments.c.request)
        + func.length(segments.c.facts)
        + func.coalesce(func.length(segments.c.preview), 0)
    )
)
_SIZE = (
    update(owners)
    .where(owners.c.segment.in_(_THESE))
    .values(
        size=select(segments.c.stored).where(segments.c.id == owners.c.segment).scalar_subquery()
    )
)
_MINE = owners.c.key_id == bindparam("key")
# The owner's key is in no registry, and not private.
_ACCESS = (
    select(
        func.count().label("owners"),
        func.count().filter(_MINE).label("own"),
        func.count().filter(func.coalesce(keys.c.private, 0) == 0).label("open"),
        func.max(owners.c.created_at).filter(_MINE).label("since"),
    )
    .select_from(owners.outerjoin(keys, keys.c.id == owners.c.key_id))
    .where(owners.c.segment == bindparam("which"))
)


def own(db: Connection, segment_id: str, key_id: str, now: float) -> float:
    """Make a segment a key's own, beside those that own it already; return since when it is."""
    since: float | None = db.scalar(_OWNED, {"which": segment_id, "key": key_id})
    if since is None:
        db.execute(_ADD, {"which": segment_id, "key_id": key_id, "created_at": now})
    return now if since is None else since


def count_bytes(db: Connection, ids: Sequence[str]) -> None:
    """Note anew what these segments take on the disk: result, request, preview and the rest of the answer."""
    db.execute(_STORED, {"ids": ids})
    repeat_size(db, ids)


def repeat_size(db: Connection, ids: Sequence[str]) -> None:
    """Note for each owner of these segments what they take now."""
    db.execute(_SIZE, {"ids": ids})


def forget(db: Connection, ids: Sequence[str]) -> None:
    """Delete whose these segments were."""
    db.execute(delete(owners).where(owners.c.segment.in_(ids)))


def check_quota(db: Connection, key_id: str, limits: Limits) -> None:
    """Raise the problem 507 where a key's segments take all that they may."""
    # The owner's key is bounded by ``keep_bytes`` alone, as it has no rate: for one person the oldest results go.
    if key_id == "owner":
        return
    taken = db.scalar(_TAKEN, {"key": key_id}) or 0
    if taken >= limits.key_bytes:
        raise Problem(
            "quota",
            f"The results of this key take {taken:,} bytes, and may take {limits.key_bytes:,}. Delete some"
            f" with ?result=delete, or wait: results are deleted {limits.keep_days:g} days after their last use.",
        )


@dataclass(frozen=True)
class Access:
    """What a segment is to a key: whether it is its own, whether others have it too, whether every key may see it.

    ``since`` is when the key asked for it first (seconds since 1970), 0 where it never did.
    """

    own: bool
    shared: bool
    open: bool
    since: float

    def seen_by(self, key: Key) -> bool:
        """Return whether the key may read it: ids travel in shared notebooks, but not those of private keys."""
        return "admin" in key.scopes or self.own or (self.open and not key.private)


class Owners:
    """Which keys own which segments, and what follows from it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def access(self, segment_id: str, key_id: str) -> Access:
        """Return what a segment is to a key."""
        with self._database.read() as db:
            found = db.execute(_ACCESS, {"which": segment_id, "key": key_id}).one()
        return Access(found.own > 0, found.owners > found.own, found.open > 0, found.since or 0.0)

    def sees(self, key: Key, segment_id: str) -> bool:
        """Return whether a key may read a segment."""
        return self.access(segment_id, key.id).seen_by(key)

    def add(self, segment_id: str, key_id: str) -> float:
        """Make a segment that is there a key's own, too; return since when it is (seconds since 1970)."""
        with self._database.write() as db:
            return own(db, segment_id, key_id, time.time())

    def leave(self, segment_id: str, key: Key) -> bool:
        """Leave a segment to the other keys that own it; False where the key may end it, 403 where it may not."""
        access = self.access(segment_id, key.id)
        if "admin" in key.scopes:
            return False
        if not access.own:
            raise Problem(
                "not-yours",
                "This is another key's segment. Only that key, or one with the scope admin, may end it.",
            )
        if access.shared:
            with self._database.write() as db:
                db.execute(
                    delete(owners).where(owners.c.segment == segment_id, owners.c.key_id == key.id)
                )
        return access.shared
