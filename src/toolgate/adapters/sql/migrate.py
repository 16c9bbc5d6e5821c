"""Bring a database to the schema this version needs, or say why that cannot be done."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, delete, insert

from toolgate.adapters.sql.tables import settings
from toolgate.adapters.sql.versions import FLOOR, HEAD, SETTING
from toolgate.errors import StoreError

_HERE = Path(__file__).parent / "migrations"


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the migrations up to `revision`; a revision this version does not know is refused."""
    check_known(connection)
    command.upgrade(_config(connection), revision)
    if current(connection) == HEAD:
        connection.execute(delete(settings).where(settings.c.name == SETTING))
        connection.execute(insert(settings).values(name=SETTING, value=FLOOR))


def downgrade(connection: Connection, revision: str) -> None:
    """Run the migrations down to `revision`."""
    command.downgrade(_config(connection), revision)


def current(connection: Connection) -> str | None:
    """The revision the database is at, None before the first."""
    return MigrationContext.configure(connection).get_current_revision()


def revisions() -> list[str]:
    """Every revision, oldest first."""
    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    script = ScriptDirectory.from_config(config)
    return [item.revision for item in script.walk_revisions()][::-1]


def check_known(connection: Connection) -> None:
    """Refuse a database made by a newer version."""
    found = current(connection)
    if found is not None and found not in revisions():
        raise StoreError(
            f"The database is at schema revision {found[:40]!r}, which this version does not know: it was made by "
            "a newer Toolgate. Upgrade Toolgate, or open another file."
        )
