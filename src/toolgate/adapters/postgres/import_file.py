"""Bring a SQLite file into PostgreSQL: every row as it is, the chains intact and verified, all of it or nothing.

Sealed values stay sealed, so the keys of the file must be among those of the database. A project that has anything in
the database already is refused.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
from sqlalchemy import Boolean, DateTime, String, Table, Text

from toolgate.adapters import sealing
from toolgate.adapters.postgres.chain import append
from toolgate.adapters.postgres.link import LOST, Connection, Link, connect, failure
from toolgate.adapters.postgres.upkeep import linked, verify_chain
from toolgate.adapters.postgres.write import PUT_SETTING, locks_on
from toolgate.adapters.sealing import check_keys
from toolgate.adapters.sql.tables import metadata
from toolgate.adapters.sql.upkeep import told_imported
from toolgate.adapters.sqlite import upkeep
from toolgate.adapters.sqlite.file import keys_of
from toolgate.adapters.sqlite.owners import SCHEMA_OWNER, OwnerLock
from toolgate.errors import ConflictError, StoreError
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.ports.directory import HOST

PAGE = 2000
_NUMBERED = {"events": "position", "rate_uses": "id"}
"""Columns whose values the database gives anew."""
_LEFT = ("settings", "owners")
_SHARED = ("accounts", "tokens")

Say = Callable[[str, int], None]


class Imported(NamedTuple):
    """How many rows of each table were brought, and the verified chains."""

    rows: dict[str, int]
    chains: dict[str, int]


def bring(path: Path, url: str, *, by: str = HOST, say: Say = lambda _table, _rows: None) -> Imported:
    """Import a file; `say` hears the table and the rows so far. StoreError: nothing was imported."""
    _check_unused(path)
    reports = upkeep.verify_chains(path)
    for report in reports:
        if report.problem is not None:
            raise StoreError(f"Project '{report.project}' is not imported, its chain is broken: {report.problem}.")
    source = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=10, check_same_thread=False
    )
    try:
        source.execute("BEGIN")
        with linked(url) as link:
            noted = keys_of(source)
            check_keys(noted, sealing.load_shared(link.address.key))
            chains = {report.project: report.events for report in reports}
            return link.run(_bring(link, source, noted, chains, say, by))
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} cannot be read: {error}. Nothing was imported.") from error
    finally:
        source.close()


def _check_unused(path: Path) -> None:
    """Refuse a file that some process has open: what it writes later would be missing."""
    folder = path.with_name(path.name + ".owners")
    if not folder.exists():
        return
    lock = OwnerLock(folder, f"import-{os.getpid()}")
    try:
        for name in os.listdir(folder):
            owner = name.removesuffix(".lock")
            if owner not in (SCHEMA_OWNER, lock.owner) and lock.is_alive(owner):
                raise StoreError(f"Some process uses {path.name}; stop it first, so that nothing is left behind.")
    finally:
        lock.close()


async def _bring(
    link: Link, source: sqlite3.Connection, noted: list[str], chains: dict[str, int], say: Say, by: str
) -> Imported:
    is_committing = False
    try:
        connection = await connect(link.address, statement_timeout="0", idle_in_transaction_session_timeout="0")
        try:
            await connection.execute(
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT set_config('toolgate.projects', '*', true)"
            )
            done = await _copy(connection, source, noted, chains, say, by)
            is_committing = True
            await connection.execute("COMMIT")
            is_committing = False
        finally:
            connection.terminate()  # an open transaction is rolled back
    except (asyncpg.PostgresError, *LOST) as error:
        if is_committing:
            raise StoreError(
                "The connection to PostgreSQL was lost at the last moment: it is not known whether the file was "
                "imported. Import it again: that is refused where it was, and then `toolgate audit "
                "verify` checks what arrived."
            ) from error
        raise failure(error) from error
    return done


async def _copy(
    connection: Connection, source: sqlite3.Connection, noted: list[str], chains: dict[str, int], say: Say, by: str
) -> Imported:
    tables = [table for table in metadata.sorted_tables if table.name not in _LEFT]
    projects = _projects(source, tables)
    await connection.execute(f"SELECT {', '.join(['true', *locks_on([*projects, SYSTEM_PROJECT])])}")
    for table in tables:
        if table.name not in _SHARED:
            sql = f"SELECT project_id FROM {table.name} WHERE project_id = ANY ($1::text[]) LIMIT 1"
            taken = await connection.fetchval(sql, projects)
            if taken is not None:
                raise ConflictError(f"Project '{taken}' has rows in the database already; nothing was imported.")
    rows = {str(table.name): await _copy_table(connection, source, table, say) for table in tables}
    await _copy_settings(connection, source, noted)
    for project, events in chains.items():
        report = await verify_chain(connection, project)
        if report.problem is not None or report.events != events:
            raise StoreError(f"The chain of project '{project}' did not arrive whole; nothing was imported.")
    done = Imported({name: count for name, count in rows.items() if count}, chains)
    await append(connection, datetime.now(UTC), [told_imported(done.rows, by=by)])
    return done


def _projects(source: sqlite3.Connection, tables: list[Table]) -> list[str]:
    found: set[str] = set()
    for table in tables:
        if "project_id" in table.c:
            found.update(row[0] for row in source.execute(f"SELECT DISTINCT project_id FROM {table.name}"))
    return sorted(found)


async def _copy_table(connection: Connection, source: sqlite3.Connection, table: Table, say: Say) -> int:
    columns = [column for column in table.columns if column.name != _NUMBERED.get(table.name)]
    names = ", ".join(column.name for column in columns)
    marks = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    then = " ON CONFLICT DO NOTHING" if table.name in _SHARED else ""
    changes = [_change(column.type) for column in columns]
    order = f" ORDER BY {_NUMBERED[table.name]}" if table.name in _NUMBERED else ""
    done = 0
    for page in _pages(source.execute(f"SELECT {names} FROM {table.name}{order}")):
        rows = [tuple(change(value) for change, value in zip(changes, row, strict=True)) for row in page]
        await connection.executemany(f"INSERT INTO {table.name} ({names}) VALUES ({marks}){then}", rows)
        done += len(rows)
        say(table.name, done)
    return done


def _pages(cursor: sqlite3.Cursor) -> Iterator[list[Any]]:
    while page := cursor.fetchmany(PAGE):
        yield page


def _change(kind: Any) -> Callable[[Any], Any]:
    """How a column's value in SQLite becomes one PostgreSQL takes."""
    if isinstance(kind, DateTime):
        return lambda value: None if value is None else datetime.fromisoformat(value + "+00:00")
    if isinstance(kind, Boolean):
        return lambda value: None if value is None else bool(value)
    if isinstance(kind, String | Text) and not hasattr(kind, "enums"):
        length = kind.length if kind.length in (100, 1000) else None  # an error and its name are cut to fit
        return lambda value: value if value is None else str(value).replace("\x00", "\u2400")[:length]
    return lambda value: value


async def _copy_settings(connection: Connection, source: sqlite3.Connection, noted: list[str]) -> None:
    """The keys of both; the mode of the file only where the database has none of its own."""
    kept = await connection.fetchval("SELECT value FROM settings WHERE name='keys'")
    known = (kept or "").split()
    await connection.execute(PUT_SETTING, "keys", " ".join([*known, *(id for id in noted if id not in known)]))
    mode = source.execute("SELECT value FROM settings WHERE name='mode'").fetchone()
    if mode is not None:
        sql = "INSERT INTO settings (name, value) VALUES ('mode', $1) ON CONFLICT DO NOTHING"
        await connection.execute(sql, mode[0])
