"""The directory: accounts with their roles by project, and the digests of their tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("acts_for", sa.Text(), nullable=True),
        sa.Column("roles", _JSON, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_accounts")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("account", sa.String(length=128), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("used_as", sa.String(length=16), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("scope", _JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("parent", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["account"], ["accounts.name"], name=op.f("fk_tokens_account")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
    )
    op.create_index(op.f("ix_tokens_parent"), "tokens", ["parent"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_tokens_parent"), table_name="tokens")
    op.drop_table("tokens")
    op.drop_table("accounts")
