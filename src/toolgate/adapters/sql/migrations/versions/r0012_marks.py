"""Accounts and tokens carry a mark, and the number of the event that gave them.

Rows that are there get none here: that takes a key and somebody's word, which `toolgate db upgrade` has. Until then
they count as absent.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_TABLES = ("accounts", "tokens")


def upgrade() -> None:
    for table in _TABLES:
        op.add_column(table, sa.Column("told", sa.BigInteger(), nullable=True))
        op.add_column(table, sa.Column("mark", sa.Text(), nullable=True))


def downgrade() -> None:
    for table in _TABLES:
        op.drop_column(table, "mark")
        op.drop_column(table, "told")
