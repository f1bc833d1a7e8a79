"""The registry's tables, the same in SQLite and PostgreSQL.

Times are seconds since 1970. A registry with another number than VERSION is refused: after a release, a change of the
tables needs the next number.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    INTEGER,
    REAL,
    BigInteger,
    Column,
    Double,
    Index,
    MetaData,
    Table,
    Text,
    text,
)
from sqlalchemy.types import TypeEngine

# The number of the tables below, which a registry has in its table ``version``.
VERSION = 1

metadata = MetaData()
# SQLite's STRICT knows neither BIGINT nor DOUBLE; PostgreSQL's own REAL has 24 bits, too few for seconds since 1970.
Whole: TypeEngine[int] = BigInteger().with_variant(INTEGER(), "sqlite")
Real: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")


def _needed(name: str, kind: Any, **options: Any) -> Column[Any]:
    return Column(name, kind, nullable=False, **options)


def _number(name: str) -> Column[Any]:
    return _needed(name, Whole, server_default=text("0"))


def _table(name: str, *columns: Column[Any]) -> Table:
    # STRICT: else SQLite stores a text where a number belongs.
    return Table(name, metadata, *columns, sqlite_strict=True)


version = _table("version", Column("number", Whole, primary_key=True))

keys = _table(
    "keys",
    Column("id", Text, primary_key=True),
    _needed("name", Text),
    _needed("digest", Text, unique=True),
    _needed("scopes", Text),
    Column("rate", Text),
    _needed("created_at", Real),
    Column("revoked_at", Real),
    Column("expires_at", Real),
    # 1: it reads its own segments only.
    _number("private"),
    # After a rotation the former text is accepted for a while.
    Column("former_digest", Text),
    Column("former_until", Real),
)
Index(
    "keys_by_name",
    keys.c.name,
    unique=True,
    sqlite_where=keys.c.revoked_at.is_(None),
    postgresql_where=keys.c.revoked_at.is_(None),
)
Index("keys_by_former_digest", keys.c.former_digest)

segments = _table(
    "segments",
    Column("id", Text, primary_key=True),
    _needed("status", Text),
    _needed("request", Text),
    _needed("facts", Text),
    _needed("fingerprint", Text),
    Column("matched", Whole),
    Column("returned", Whole),
    Column("preview", Text),
    Column("error", Text),
    _needed("created_at", Real),
    Column("started_at", Real),
    Column("completed_at", Real),
    _needed("used_at", Real),
    Column("file", Text),
    Column("size", Whole),
    Column("sha256", Text),
    # The service that runs it, by the name of its lease; 1 where somebody asked to cancel it.
    Column("lease", Text),
    _number("cancel"),
    # The key whose share of the queue it takes, and its place: see `SegmentStore.enter`.
    _needed("key_id", Text, server_default=text("''")),
    _number("priority"),
    _number("turn"),
    # How many services began to run it and did not end in order.
    _number("attempts"),
    # Bytes of the file and of the texts of this row: see `owners.count_bytes`.
    _number("stored"),
)
Index("segments_by_use", segments.c.status, segments.c.used_at, segments.c.stored)
Index("segments_by_turn", segments.c.status, segments.c.turn, segments.c.priority)
Index("segments_by_file", segments.c.file)

# Whose a segment is: keys that ask the same share its file. ``size`` repeats ``stored``, for the sum of a key.
owners = _table(
    "owners",
    Column("segment", Text, primary_key=True),
    Column("key_id", Text, primary_key=True),
    _needed("created_at", Real),
    _number("size"),
)
Index("owners_by_key", owners.c.key_id, owners.c.size)

idempotency = _table(
    "idempotency",
    Column("key_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    _needed("body", Text),
    _needed("segment", Text),
    _needed("created_at", Real),
)
Index("idempotency_by_age", idempotency.c.created_at)

signups = _table(
    "signups",
    Column("address", Text, primary_key=True),
    _needed("email", Text),
    _needed("consented_at", Real),
)

# How many requests a key was allowed in the window that began then.
rates = _table(
    "rates",
    Column("key_id", Text, primary_key=True),
    Column("began", Real, primary_key=True),
    _number("taken"),
)

# What one service at a time does, and which: the row is its lock.
roles = _table("roles", Column("name", Text, primary_key=True), Column("lease", Text))

# Who did what: a key's id, what it did, to which segment or key, from which address.
audit = _table(
    "audit",
    Column("id", Whole, primary_key=True, autoincrement=True),
    _needed("at", Real),
    Column("key_id", Text),
    _needed("action", Text),
    Column("target", Text),
    Column("client", Text),
)
Index("audit_by_time", audit.c.at)
