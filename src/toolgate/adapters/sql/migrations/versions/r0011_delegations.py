"""Delegations: a vote that one person lends to another for a while."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_ALLOWED = "(SELECT string_to_array(current_setting('toolgate.projects', true), chr(31)))::text[]"
_SEEN = f"'*' = ANY ({_ALLOWED}) OR project_id = ANY ({_ALLOWED})"


def upgrade() -> None:
    op.create_table(
        "delegations",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("giver", sa.Text(), nullable=False),
        sa.Column("delegate", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("detail", sa.JSON().with_variant(sa.Text(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delegations")),
    )
    op.create_index("ix_delegations_project_id_delegate", "delegations", ["project_id", "delegate"], unique=False)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE delegations ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE delegations FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY of_project ON delegations USING ({_SEEN}) WITH CHECK ({_SEEN})")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP POLICY of_project ON delegations")
    op.drop_index("ix_delegations_project_id_delegate", table_name="delegations")
    op.drop_table("delegations")
