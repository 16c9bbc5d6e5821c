"""The tables in a PostgreSQL database: making them, upgrading them, and refusing what this version cannot use."""

from __future__ import annotations

import asyncpg

from toolgate.adapters.postgres.link import LOST, Connection, Link, connect, failure
from toolgate.adapters.postgres.url import Address, read
from toolgate.adapters.sql.versions import HEAD, SETTING, check
from toolgate.errors import StoreError

_LOCK = "SELECT set_config('toolgate.projects', '*', true), pg_advisory_xact_lock(29800, 1)"


async def revision_of(connection: Connection) -> str | None:
    """The schema revision of the database; None where it has no tables of ours."""
    if await connection.fetchval("SELECT to_regclass('alembic_version')::text") is None:
        return None
    found = await connection.fetchval("SELECT version_num FROM alembic_version")
    return None if found is None else str(found)


async def ensure(address: Address) -> None:
    """Make the tables in an empty database; refuse one whose tables are of another version."""
    try:
        connection = await connect(address)
        try:
            found = await revision_of(connection)
            floor = None if found in (None, HEAD) else await floor_of(connection)
        finally:
            await connection.close()
    except (asyncpg.PostgresError, *LOST) as error:
        raise failure(error, doing="read") from error
    if found is None:
        await _migrate(address)
    else:
        check(found, floor)


async def floor_of(connection: Connection) -> str | None:
    """The oldest version that may use the database; None where it does not say, or is not ours."""
    if await connection.fetchval("SELECT to_regclass('settings')::text") is None:
        return None
    found = await connection.fetchval("SELECT value FROM settings WHERE name=$1", SETTING)
    return None if found is None else str(found)


def prepared(url: str) -> Link:
    """Return a way to the database a URL names, with its tables made where there were none."""
    link = Link(read(url))
    try:
        link.run(ensure(link.address))
    except BaseException:
        link.abandon()
        raise
    return link


async def upgrade(url: str) -> tuple[str | None, str]:
    """Bring a database to this version's schema; return the revision before and after."""
    address = read(url)
    try:
        connection = await connect(address)
        try:
            before = await revision_of(connection)
        finally:
            await connection.close()
    except (asyncpg.PostgresError, *LOST) as error:
        raise failure(error, doing="read") from error
    if before != HEAD:
        await _migrate(address)
    return before, HEAD


async def _migrate(address: Address) -> None:
    """Run the migrations in one transaction, one server at a time; loaded here since most openings need none."""
    from sqlalchemy import text
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    from toolgate.adapters.sql import migrate

    async def opened() -> Connection:
        return await connect(address, statement_timeout="0", lock_timeout="60000")

    engine = create_async_engine("postgresql+asyncpg://", async_creator=opened, poolclass=NullPool, connect_args={})
    try:
        async with engine.begin() as connection:
            await connection.execute(text(_LOCK))
            await connection.run_sync(migrate.upgrade)
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        said = str(getattr(cause, "__cause__", None) or cause).splitlines()[0]
        raise StoreError(f"The tables cannot be created or upgraded: {said}. Nothing was changed.") from error
    except (asyncpg.PostgresError, *LOST) as error:
        raise failure(error) from error
    finally:
        await engine.dispose()
