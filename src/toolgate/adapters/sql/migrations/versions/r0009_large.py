"""Large arguments and undo data in rows of their own, which a change of the call's row leaves alone.

What is there stays where it is: it is read from both places, and moves when it is written again.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from toolgate.errors import StoreError

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_ALLOWED = "(SELECT string_to_array(current_setting('toolgate.projects', true), chr(31)))::text[]"
_SEEN = f"'*' = ANY ({_ALLOWED}) OR project_id = ANY ({_ALLOWED})"
_JSON = sa.JSON().with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    _create("large_params", sa.Column("tool_params", _JSON, nullable=True), "sealed_params")
    _create("large_undo", None, "sealed_data")


def downgrade() -> None:
    """Put large arguments back into their rows. A view that was as its arguments are stays shortened."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SELECT set_config('toolgate.projects', '*', true)")
    kept = op.get_bind().execute(sa.text("SELECT count(*) FROM large_undo")).scalar()
    if kept:
        raise StoreError(
            f"The undo data of {kept} large calls cannot be put back without the key it is sealed with; wait until it "
            "has expired and been removed. Nothing was changed."
        )
    same = "l.project_id=tool_executions.project_id AND l.action_id=tool_executions.id"
    op.execute(
        f"UPDATE tool_executions SET sealed_params=(SELECT l.sealed_params FROM large_params AS l WHERE {same}), "
        f"tool_params=coalesce((SELECT l.tool_params FROM large_params AS l WHERE {same}), tool_params) "
        f"WHERE EXISTS (SELECT 1 FROM large_params AS l WHERE {same})"
    )
    op.drop_table("large_undo")
    op.drop_table("large_params")


def _create(name: str, view: sa.Column[object] | None, sealed: str) -> None:
    op.create_table(
        name,
        sa.Column("project_id", sa.String(length=128), nullable=False),
        sa.Column("action_id", sa.Uuid(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        *([] if view is None else [view]),
        sa.Column(sealed, sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "action_id", name=op.f(f"pk_{name}")),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY of_project ON {name} USING ({_SEEN}) WITH CHECK ({_SEEN})")
