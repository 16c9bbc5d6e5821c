"""How much each use takes of a rate or budget."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("rate_uses") as table:
        table.add_column(sa.Column("amount", sa.BigInteger(), nullable=False, server_default=sa.text("1")))


def downgrade() -> None:
    with op.batch_alter_table("rate_uses") as table:
        table.drop_column("amount")
