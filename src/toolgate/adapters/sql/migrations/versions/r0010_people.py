"""The wall between projects stands around accounts, tokens and settings, too; in PostgreSQL alone.

A transaction of a project sees no accounts or tokens, and changes no setting but the list of keys; one of the
directory says that it changed. What every transaction needs to see, such as the mode, stays visible to all.
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_ALLOWED = "(SELECT string_to_array(current_setting('toolgate.projects', true), chr(31)))::text[]"
_PEOPLE = ("accounts", "tokens")
_SEES_PEOPLE = f"'*' = ANY ({_ALLOWED}) OR chr(30) || 'directory' = ANY ({_ALLOWED})"
_CHANGES = (
    f"'*' = ANY ({_ALLOWED}) OR '_system' = ANY ({_ALLOWED}) OR (name = 'keys' AND cardinality({_ALLOWED}) IS NOT NULL)"
    f" OR (name = 'directory_revision' AND chr(30) || 'directory' = ANY ({_ALLOWED}))"
)


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in _PEOPLE:
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY of_directory ON {table} USING ({_SEES_PEOPLE}) WITH CHECK ({_SEES_PEOPLE})")
    op.execute("ALTER TABLE settings ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE settings FORCE ROW LEVEL SECURITY")
    op.execute("CREATE POLICY seen ON settings FOR SELECT USING (true)")
    op.execute(f"CREATE POLICY changed ON settings USING ({_CHANGES}) WITH CHECK ({_CHANGES})")


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for policy, table in (
        ("changed", "settings"),
        ("seen", "settings"),
        *(("of_directory", table) for table in _PEOPLE),
    ):
        op.execute(f"DROP POLICY {policy} ON {table}")
    for table in ("settings", *_PEOPLE):
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
