"""Many servers on one database: who is alive, where kept events begin, and a second wall between projects."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_OF_PROJECTS = (
    "agent_runs", "approval_requests", "chain_heads", "conversations", "events", "grants", "messages", "rate_uses",
    "runs", "tool_executions", "undo_records",
)  # fmt: skip
_ALLOWED = "(SELECT string_to_array(current_setting('toolgate.projects', true), chr(31)))::text[]"
"""Evaluated once for each statement. Without the setting it is NULL, and nothing is seen."""
_SEEN = f"'*' = ANY ({_ALLOWED}) OR project_id = ANY ({_ALLOWED})"


def upgrade() -> None:
    op.create_table(
        "owners",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("alive_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("owner", name=op.f("pk_owners")),
    )
    with op.batch_alter_table("chain_heads") as table:
        table.add_column(sa.Column("base_seq", sa.BigInteger(), nullable=False, server_default=sa.text("0")))
        table.add_column(sa.Column("base_hash", sa.LargeBinary(), nullable=True))
    op.create_index(
        "ix_approval_requests_created_at_id",
        "approval_requests",
        ["created_at", "id"],
        unique=False,
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    if op.get_bind().dialect.name == "postgresql":
        for table_name in _OF_PROJECTS:
            op.execute(f"ALTER TABLE {table_name} ENABLE ROW LEVEL SECURITY")
            op.execute(f"ALTER TABLE {table_name} FORCE ROW LEVEL SECURITY")
            op.execute(f"CREATE POLICY of_project ON {table_name} USING ({_SEEN}) WITH CHECK ({_SEEN})")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table_name in _OF_PROJECTS:
            op.execute(f"DROP POLICY of_project ON {table_name}")
            op.execute(f"ALTER TABLE {table_name} NO FORCE ROW LEVEL SECURITY")
            op.execute(f"ALTER TABLE {table_name} DISABLE ROW LEVEL SECURITY")
    op.drop_index(
        "ix_approval_requests_created_at_id",
        table_name="approval_requests",
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    with op.batch_alter_table("chain_heads") as table:
        table.drop_column("base_hash")
        table.drop_column("base_seq")
    op.drop_table("owners")
