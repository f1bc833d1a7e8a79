"""What Alembic runs to migrate a registry: the connection is the one whose transaction `Database` has opened."""

from __future__ import annotations

from alembic import context

from nbext.service.accounts.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
