"""Grants: a remembered yes, with its pattern, its uses and its end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "grants",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("tool_name", sa.String(length=128), nullable=False),
        sa.Column("requester", sa.Text(), nullable=False),
        sa.Column("granted_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("uses_left", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("detail", sa.JSON().with_variant(sa.Text(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grants")),
    )
    op.create_index("ix_grants_project_id_tool_name", "grants", ["project_id", "tool_name"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_grants_project_id_tool_name", table_name="grants")
    op.drop_table("grants")
