"""Alembic's entry point: it runs on the connection the caller hands over."""

from __future__ import annotations

from alembic import context

from toolgate.adapters.sql.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
