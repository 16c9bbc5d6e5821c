"""Effect keys: which call of a project holds the identity of an effect, and until when."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_ALLOWED = "(SELECT string_to_array(current_setting('toolgate.projects', true), chr(31)))::text[]"
_SEEN = f"'*' = ANY ({_ALLOWED}) OR project_id = ANY ({_ALLOWED})"


def upgrade() -> None:
    op.create_table(
        "effect_keys",
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("effect_key", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("project_id", "effect_key", name=op.f("pk_effect_keys")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE effect_keys ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE effect_keys FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY of_project ON effect_keys USING ({_SEEN}) WITH CHECK ({_SEEN})")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP POLICY of_project ON effect_keys")
    op.drop_table("effect_keys")
