"""The tables, for both databases. Schema and migrations read this; the hot write path does not import it.

Readable columns hold masked values only. What must be executed, returned or undone is in the
`sealed_*` columns.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Enum,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

Moment = DateTime(timezone=True)
Json = JSON().with_variant(Text(), "sqlite")
"""A column declared JSON has numeric affinity in SQLite: it would keep the text `3.0` as the number 3."""

runs = Table(
    "runs",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
)

tool_executions = Table(
    "tool_executions",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("id", Uuid, primary_key=True),
    Column("call_id", Text, nullable=False),
    Column("user_id", Uuid),
    Column("principal", Text, nullable=False),
    Column("session_id", Text),
    Column("pipeline_run_id", Uuid),
    Column("approval_id", Uuid),
    Column("tool_name", String(128), nullable=False, index=True),
    Column("tool_params", Json),
    Column("result", Json),
    Column("risk_level", String(20), nullable=False),
    Column("requires_approval", Boolean, nullable=False),
    Column("status", String(50), nullable=False, index=True),
    Column("error", String(1000)),
    Column("error_type", String(100)),
    Column("execution_time_ms", Integer),
    Column("created_at", Moment, nullable=False, index=True),
    Column("started_at", Moment),
    Column("approved_at", Moment),
    Column("completed_at", Moment),
    Column("due_at", Moment),
    Column("version", Integer, nullable=False),
    Column("owner", Text),
    Column("detail", Json, nullable=False),
    Column("sealed_params", LargeBinary),
    Column("sealed_result", LargeBinary),
    ForeignKeyConstraint(["project_id", "pipeline_run_id"], ["runs.project_id", "runs.id"]),
    # Every index costs each call a page; `id` follows from `call_id` and needs no other.
    Index(
        "ix_tool_executions_pipeline_run_id",
        "pipeline_run_id",
        sqlite_where=text("pipeline_run_id IS NOT NULL"),
        postgresql_where=text("pipeline_run_id IS NOT NULL"),
    ),
    Index(
        "ix_tool_executions_due_at",
        "due_at",
        sqlite_where=text("due_at IS NOT NULL"),
        postgresql_where=text("due_at IS NOT NULL"),
    ),
)

approval_requests = Table(
    "approval_requests",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", String(128), nullable=False, index=True),
    Column("pipeline_run_id", Uuid, index=True),
    Column("action_id", Uuid, nullable=False, index=True),
    Column("call_id", Text, nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("approval_message", Text, nullable=False),
    Column(
        "status",
        Enum("pending", "approved", "denied", "expired", name="approval_status"),
        nullable=False,
        index=True,
    ),
    Column("decided_by", Uuid),
    Column("decided_by_name", Text),
    Column("decided_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("detail", Json, nullable=False),
    ForeignKeyConstraint(["project_id", "pipeline_run_id"], ["runs.project_id", "runs.id"]),
    # What waits is listed oldest first, however much was decided before.
    Index(
        "ix_approval_requests_created_at_id",
        "created_at",
        "id",
        sqlite_where=text("status = 'pending'"),
        postgresql_where=text("status = 'pending'"),
    ),
)

events = Table(
    "events",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("project_id", String(128), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("type", String(64), nullable=False),
    Column("at", Moment, nullable=False),
    Column("call_id", Text),
    Column("frame", LargeBinary, nullable=False),
    Column("content", LargeBinary),
    Column("prev", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    UniqueConstraint("project_id", "seq"),
    Index("ix_events_call_id", "call_id"),
)

chain_heads = Table(
    "chain_heads",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("base_seq", BigInteger, nullable=False, server_default=text("0")),
    Column("base_hash", LargeBinary),
)

sink_cursors = Table(
    "sink_cursors",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("sink", String(128), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("owner", Text),
)

undo_records = Table(
    "undo_records",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("action_id", Uuid, primary_key=True),
    Column("call_id", Text, nullable=False),
    Column("tool_name", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("sealed_data", LargeBinary, nullable=False),
    Column("claimed_by", Text),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False, index=True),
)

large_params = Table(
    "large_params",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("action_id", Uuid, primary_key=True),
    Column("call_id", Text, nullable=False),
    Column("tool_params", Json),
    Column("sealed_params", LargeBinary, nullable=False),
)

large_undo = Table(
    "large_undo",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("action_id", Uuid, primary_key=True),
    Column("call_id", Text, nullable=False),
    Column("sealed_data", LargeBinary, nullable=False),
)

rate_uses = Table(
    "rate_uses",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("project_id", String(128), nullable=False),
    Column("key", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("amount", BigInteger, nullable=False, server_default=text("1")),
    Index("ix_rate_uses_project_id_key_at", "project_id", "key", "at"),
)

effect_keys = Table(
    "effect_keys",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("effect_key", Text, primary_key=True),
    Column("call_id", Text, nullable=False),
    Column("held_until", Moment),
)

grants = Table(
    "grants",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", String(128), nullable=False),
    Column("tool_name", String(128), nullable=False),
    Column("requester", Text, nullable=False),
    Column("granted_by", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("revoked_at", Moment),
    Column("uses_left", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("detail", Json, nullable=False),
    Index("ix_grants_project_id_tool_name", "project_id", "tool_name"),
)

delegations = Table(
    "delegations",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("project_id", String(128), nullable=False),
    Column("giver", Text, nullable=False),
    Column("delegate", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("version", Integer, nullable=False),
    Column("detail", Json, nullable=False),
    Index("ix_delegations_project_id_delegate", "project_id", "delegate"),
)

settings = Table(
    "settings",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

owners = Table(
    "owners",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("alive_until", Moment, nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    Column("name", String(128), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("acts_for", Text),
    Column("roles", Json, nullable=False),
    Column("told", BigInteger),
    Column("mark", Text),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("account", String(128), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("used_as", String(16), nullable=False),
    Column("label", Text, nullable=False),
    Column("scope", Json, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
    Column("parent", String(64), index=True),
    Column("told", BigInteger),
    Column("mark", Text),
    ForeignKeyConstraint(["account"], ["accounts.name"]),
    UniqueConstraint("digest"),
)

conversations = Table(
    "conversations",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("account", String(128), primary_key=True),
    Column("id", String(128), primary_key=True),
    Column("title", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
)

messages = Table(
    "messages",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("account", String(128), nullable=False),
    Column("conversation_id", String(128), nullable=False),
    Column("run_id", String(64), nullable=False),
    Column("position", Integer, nullable=False),
    Column("role", String(16), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("shown", Json),
    Column("sealed_content", LargeBinary),
    UniqueConstraint("project_id", "account", "conversation_id", "position"),
)

agent_runs = Table(
    "agent_runs",
    metadata,
    Column("project_id", String(128), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("account", String(128), nullable=False),
    Column("conversation_id", String(128), nullable=False),
    Column("message_id", String(64), nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("status", String(16), nullable=False, index=True),
    Column("version", Integer, nullable=False),
    Column("owner", Text),
    Column("updated_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("detail", Json, nullable=False),
    Index("ix_agent_runs_project_id_account_conversation_id", "project_id", "account", "conversation_id"),
)
