"""The registry of many services: owners of segments, a queue, shared rates and roles, an audit log.

Before it was the SQLite file that marks itself with ``PRAGMA user_version = 1`` and has no revision of Alembic's.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text, text

from nbext.service.accounts import schema
from nbext.service.accounts.schema import Real, Whole

revision = "0002"
down_revision = None


def upgrade() -> None:
    """Add what is new; segments that wait go on waiting, of no key."""
    op.alter_column("segments", "owner", new_column_name="lease")
    op.add_column("segments", Column("key_id", Text, nullable=False, server_default=text("''")))
    for name in ("priority", "turn", "attempts", "stored"):
        op.add_column("segments", Column(name, Whole, nullable=False, server_default=text("0")))
    op.drop_index("segments_by_status", "segments")
    op.create_index("segments_by_use", "segments", ["status", "used_at", "stored"])
    op.create_index("segments_by_turn", "segments", ["status", "turn", "priority"])
    op.create_index("segments_by_file", "segments", ["file"])
    for column in (
        Column("expires_at", Real),
        Column("former_digest", Text),
        Column("former_until", Real),
    ):
        op.add_column("keys", column)
    op.add_column("keys", Column("private", Whole, nullable=False, server_default=text("0")))
    op.create_index("keys_by_former_digest", "keys", ["former_digest"])
    op.create_index("idempotency_by_age", "idempotency", ["created_at"])
    op.execute(
        "UPDATE segments SET stored"
        " = coalesce(size, 0) + length(request) + length(facts) + coalesce(length(preview), 0)"
    )
    # As `schema` has them, until a later revision changes one of the four.
    schema.metadata.create_all(
        op.get_bind(), [schema.owners, schema.rates, schema.roles, schema.audit]
    )
