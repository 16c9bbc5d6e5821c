"""Conversations with the agent, their messages and the agent's runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(sa.Text(), "sqlite")
_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "conversations",
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("account", sa.String(length=128), nullable=False),
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("updated_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "account", "id", name=op.f("pk_conversations")),
    )
    op.create_table(
        "messages",
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("account", sa.String(length=128), nullable=False),
        sa.Column("conversation_id", sa.String(length=128), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("shown", _JSON, nullable=True),
        sa.Column("sealed_content", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("pk_messages")),
        sa.UniqueConstraint(
            "project_id",
            "account",
            "conversation_id",
            "position",
            name=op.f("uq_messages_project_id_account_conversation_id_position"),
        ),
    )
    op.create_table(
        "agent_runs",
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("account", sa.String(length=128), nullable=False),
        sa.Column("conversation_id", sa.String(length=128), nullable=False),
        sa.Column("message_id", sa.String(length=64), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("updated_at", _MOMENT, nullable=False),
        sa.Column("ended_at", _MOMENT, nullable=True),
        sa.Column("detail", _JSON, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("pk_agent_runs")),
    )
    op.create_index(op.f("ix_agent_runs_status"), "agent_runs", ["status"], unique=False)
    op.create_index(
        "ix_agent_runs_project_id_account_conversation_id",
        "agent_runs",
        ["project_id", "account", "conversation_id"],
        unique=False,
    )


def downgrade() -> None:
    op.drop_table("agent_runs")
    op.drop_table("messages")
    op.drop_table("conversations")
