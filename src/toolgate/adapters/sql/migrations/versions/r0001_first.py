"""The first schema: executions, approvals, runs, chained events, undo records, rates and settings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chain_heads",
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_chain_heads")),
    )
    op.create_table(
        "events",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(length=64), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("prev", sa.LargeBinary(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_events")),
        sa.UniqueConstraint("project_id", "seq", name=op.f("uq_events_project_id_seq")),
    )
    op.create_index("ix_events_call_id", "events", ["call_id"], unique=False)
    op.create_table(
        "rate_uses",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rate_uses")),
    )
    op.create_index("ix_rate_uses_project_id_key_at", "rate_uses", ["project_id", "key", "at"], unique=False)
    op.create_table(
        "runs",
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("pk_runs")),
    )
    op.create_table(
        "settings",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_settings")),
    )
    op.create_table(
        "undo_records",
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("action_id", sa.Uuid(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.String(length=128), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("sealed_data", sa.LargeBinary(), nullable=False),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "action_id", name=op.f("pk_undo_records")),
    )
    op.create_index(op.f("ix_undo_records_expires_at"), "undo_records", ["expires_at"], unique=False)
    op.create_table(
        "approval_requests",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("pipeline_run_id", sa.Uuid(), nullable=True),
        sa.Column("action_id", sa.Uuid(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("approval_message", sa.Text(), nullable=False),
        sa.Column(
            "status", sa.Enum("pending", "approved", "denied", "expired", name="approval_status"), nullable=False
        ),
        sa.Column("decided_by", sa.Uuid(), nullable=True),
        sa.Column("decided_by_name", sa.Text(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("detail", sa.JSON().with_variant(sa.Text(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "pipeline_run_id"],
            ["runs.project_id", "runs.id"],
            name=op.f("fk_approval_requests_project_id_pipeline_run_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approval_requests")),
    )
    op.create_index(op.f("ix_approval_requests_action_id"), "approval_requests", ["action_id"], unique=False)
    op.create_index(
        op.f("ix_approval_requests_pipeline_run_id"), "approval_requests", ["pipeline_run_id"], unique=False
    )
    op.create_index(op.f("ix_approval_requests_project_id"), "approval_requests", ["project_id"], unique=False)
    op.create_index(op.f("ix_approval_requests_status"), "approval_requests", ["status"], unique=False)
    op.create_table(
        "tool_executions",
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=True),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("pipeline_run_id", sa.Uuid(), nullable=True),
        sa.Column("approval_id", sa.Uuid(), nullable=True),
        sa.Column("tool_name", sa.String(length=128), nullable=False),
        sa.Column("tool_params", sa.JSON().with_variant(sa.Text(), "sqlite"), nullable=True),
        sa.Column("result", sa.JSON().with_variant(sa.Text(), "sqlite"), nullable=True),
        sa.Column("risk_level", sa.String(length=20), nullable=False),
        sa.Column("requires_approval", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(length=50), nullable=False),
        sa.Column("error", sa.String(length=1000), nullable=True),
        sa.Column("error_type", sa.String(length=100), nullable=True),
        sa.Column("execution_time_ms", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("approved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("detail", sa.JSON().with_variant(sa.Text(), "sqlite"), nullable=False),
        sa.Column("sealed_params", sa.LargeBinary(), nullable=True),
        sa.Column("sealed_result", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id", "pipeline_run_id"],
            ["runs.project_id", "runs.id"],
            name=op.f("fk_tool_executions_project_id_pipeline_run_id"),
        ),
        sa.PrimaryKeyConstraint("project_id", "id", name=op.f("pk_tool_executions")),
    )
    op.create_index(op.f("ix_tool_executions_created_at"), "tool_executions", ["created_at"], unique=False)
    op.create_index(
        "ix_tool_executions_due_at",
        "tool_executions",
        ["due_at"],
        unique=False,
        sqlite_where=sa.text("due_at IS NOT NULL"),
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_index(
        "ix_tool_executions_pipeline_run_id",
        "tool_executions",
        ["pipeline_run_id"],
        unique=False,
        sqlite_where=sa.text("pipeline_run_id IS NOT NULL"),
        postgresql_where=sa.text("pipeline_run_id IS NOT NULL"),
    )
    op.create_index(op.f("ix_tool_executions_project_id"), "tool_executions", ["project_id"], unique=False)
    op.create_index(op.f("ix_tool_executions_status"), "tool_executions", ["status"], unique=False)
    op.create_index(op.f("ix_tool_executions_tool_name"), "tool_executions", ["tool_name"], unique=False)
    op.create_index(op.f("ix_tool_executions_user_id"), "tool_executions", ["user_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_tool_executions_user_id"), table_name="tool_executions")
    op.drop_index(op.f("ix_tool_executions_tool_name"), table_name="tool_executions")
    op.drop_index(op.f("ix_tool_executions_status"), table_name="tool_executions")
    op.drop_index(op.f("ix_tool_executions_project_id"), table_name="tool_executions")
    op.drop_index(
        "ix_tool_executions_pipeline_run_id",
        table_name="tool_executions",
        sqlite_where=sa.text("pipeline_run_id IS NOT NULL"),
        postgresql_where=sa.text("pipeline_run_id IS NOT NULL"),
    )
    op.drop_index(
        "ix_tool_executions_due_at",
        table_name="tool_executions",
        sqlite_where=sa.text("due_at IS NOT NULL"),
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.drop_index(op.f("ix_tool_executions_created_at"), table_name="tool_executions")
    op.drop_table("tool_executions")
    op.drop_index(op.f("ix_approval_requests_status"), table_name="approval_requests")
    op.drop_index(op.f("ix_approval_requests_project_id"), table_name="approval_requests")
    op.drop_index(op.f("ix_approval_requests_pipeline_run_id"), table_name="approval_requests")
    op.drop_index(op.f("ix_approval_requests_action_id"), table_name="approval_requests")
    op.drop_table("approval_requests")
    op.drop_index(op.f("ix_undo_records_expires_at"), table_name="undo_records")
    op.drop_table("undo_records")
    op.drop_table("settings")
    op.drop_table("runs")
    op.drop_index("ix_rate_uses_project_id_key_at", table_name="rate_uses")
    op.drop_table("rate_uses")
    op.drop_index("ix_events_call_id", table_name="events")
    op.drop_table("events")
    op.drop_table("chain_heads")
