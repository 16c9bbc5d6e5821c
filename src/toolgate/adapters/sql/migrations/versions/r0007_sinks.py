"""How far each named event sink was told of each project, and by which process."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_ALLOWED = "(SELECT string_to_array(current_setting('toolgate.projects', true), chr(31)))::text[]"
_SEEN = f"'*' = ANY ({_ALLOWED}) OR project_id = ANY ({_ALLOWED})"


def upgrade() -> None:
    op.create_table(
        "sink_cursors",
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("sink", sa.String(length=128), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("project_id", "sink", name=op.f("pk_sink_cursors")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE sink_cursors ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE sink_cursors FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY of_project ON sink_cursors USING ({_SEEN}) WITH CHECK ({_SEEN})")


def downgrade() -> None:
    op.drop_table("sink_cursors")
