"""The database file: making it, checking that it is ours, and connecting to it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from toolgate.errors import StoreError

HEAD = "0001"
"""The schema revision this version needs; a test compares it with the migrations."""

SCHEMA = Path(__file__).with_name("sqlite_schema.sql")
"""What the migrations make of an empty SQLite file, written down by `tools/write_schema.py`; a test compares."""

CREATE_S = 10.0
"""How long to wait for another process that makes the same file."""

LOG_BYTES = 16 * 1024 * 1024
"""How long the write-ahead log may grow before it is moved into the file, and how much of it is then kept."""


def connect(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Return a connection in autocommit mode to a file that is ours; StoreError where it cannot be used."""
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=busy_s)
        connection.execute("PRAGMA wal_autocheckpoint=0")  # checkpoints have a thread of their own
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} cannot be opened as a database: {error}.") from error
    return connection


def open_file(path: Path, *, busy_s: float) -> tuple[sqlite3.Connection, bool]:
    """Make or upgrade the file at `path`; return a connection to it, and whether it is new.

    Nothing is changed where the file is not ours.
    """
    if path.is_dir():
        raise StoreError(f"{path} is a directory; give the path of a file, such as {path}/toolgate.db.")
    if not path.parent.exists():
        raise StoreError(f"The folder {path.parent} does not exist; make it first.")
    is_empty = not path.exists() or path.stat().st_size == 0
    is_new = is_empty and _create(path)
    connection = connect(path, busy_s=busy_s)
    try:
        if _revision(connection, path) != HEAD:
            _upgrade(path)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA temp_store=MEMORY")
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"The file {path.name} cannot be opened as a database: {error}.") from error
    except BaseException:
        connection.close()
        raise
    return connection, is_new


def prepare(path: Path) -> bool:
    """Make or upgrade the file at `path`; True where it is new. Nothing is changed where it is not ours."""
    connection, is_new = open_file(path, busy_s=CREATE_S)
    connection.close()
    return is_new


def revision_of(path: Path) -> str:
    """The schema revision of an existing file; StoreError where it is not a database of ours."""
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} cannot be opened: {error}.") from error
    try:
        return _revision(connection, path)
    finally:
        connection.close()


def _revision(connection: sqlite3.Connection, path: Path) -> str:
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        if "no such table" in str(error):
            raise StoreError(
                f"The file {path.name} is a database, but not one of Toolgate's; nothing was changed."
            ) from None
        raise StoreError(f"The file {path.name} is not a usable database ({error}); nothing was changed.") from error
    return "" if row is None else str(row[0])


def _create(path: Path) -> bool:
    """Make the tables of this version; False where another process did so meanwhile.

    The migrations would make the same, but loading them takes a second.
    """
    connection = connect(path, busy_s=CREATE_S)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        is_empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if is_empty:
            for statement in SCHEMA.read_text(encoding="ascii").split(";\n"):
                connection.execute(statement)
            connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (HEAD,))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} cannot be made: {error}.") from error
    finally:
        connection.close()
    return bool(is_empty)


def _upgrade(path: Path) -> None:
    """Run the migrations; imported here because an up-to-date file needs neither library."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import SQLAlchemyError

    from toolgate.adapters.stores import migrate

    engine = create_engine(f"sqlite:///{path}")
    try:
        with engine.connect() as connection:
            migrate.upgrade(connection)
            connection.commit()
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise StoreError(f"The file {path.name} cannot be upgraded: {cause}.") from error
    finally:
        engine.dispose()
