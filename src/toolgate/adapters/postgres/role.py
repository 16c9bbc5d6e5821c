"""Who a server is to its database, and whether the walls between projects hold against that."""

from __future__ import annotations

from dataclasses import dataclass

from toolgate.adapters.postgres.link import Connection

_ROLE = """
SELECT current_user::text, rolsuper, rolbypassrls,
  EXISTS (SELECT 1 FROM pg_class AS c WHERE c.oid = to_regclass('tool_executions') AND pg_has_role(c.relowner, 'USAGE'))
FROM pg_roles WHERE rolname = current_user
"""


@dataclass(frozen=True, slots=True)
class Role:
    """The role a connection has."""

    name: str
    is_superuser: bool
    passes_walls: bool
    owns_tables: bool

    @property
    def warning(self) -> str | None:
        """What a person should know before this role serves; None where there is nothing."""
        who = f"The server connects to PostgreSQL as {self.name!r}, which"
        if self.is_superuser:
            return f"{who} is a SUPERUSER: row-level security does not hold against it. Use a role of its own."
        if self.passes_walls:
            return f"{who} has BYPASSRLS: row-level security does not hold against it. Use a role of its own."
        if self.owns_tables:
            return (
                f"{who} OWNS the tables, and may switch row-level security off: it guards against mistakes alone. "
                "Let another role own them; see the guide to PostgreSQL."
            )
        return None


async def role_of(connection: Connection) -> Role:
    """Return the role of a connection. A superuser owns everything."""
    name, is_superuser, bypasses, owns = await connection.fetchrow(_ROLE)
    return Role(name, is_superuser, is_superuser or bypasses, owns)
