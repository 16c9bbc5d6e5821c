"""The database file: making it, checking that it is ours, and connecting to it.

A process may die at any moment of this, and several may do it at once: a new file is made under
another name and moved into place, an upgrade is one transaction, and one process at a time does either.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolgate.errors import StoreError

HEAD = "0001"
"""The schema revision this version needs; a test compares it with the migrations."""

APPLICATION_ID = 0x7467_6174  # "tgat", so that `file` and we can tell whose database this is


def connect(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Return a connection in autocommit mode, set up for WAL; StoreError where the file cannot be used."""
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=busy_s)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA temp_store=MEMORY")
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} cannot be opened as a database: {error}.") from error
    return connection


def prepare(path: Path) -> None:
    """Make or upgrade the file at `path`. Nothing is changed where it is not ours."""
    if path.is_dir():
        raise StoreError(f"{path} is a directory; give the path of a file, such as {path}/toolgate.db.")
    if not path.parent.exists():
        raise StoreError(f"The folder {path.parent} does not exist; make it first.")
    _check_writable(path)
    if not _is_fresh(path) and revision_of(path) == HEAD:
        return
    with _alone(path):
        if _is_fresh(path):
            _make(path)
        elif revision_of(path) != HEAD:  # another process may have upgraded it meanwhile
            _upgrade(path)


def _check_writable(path: Path) -> None:
    """Refuse what may only be read before SQLite makes a log beside it that may only be read as well."""
    for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        if file.exists() and not os.access(file, os.W_OK):
            raise StoreError(f"The file {file.name} is read-only; nothing was changed. Check its permissions.")


def _is_fresh(path: Path) -> bool:
    return not path.exists() or path.stat().st_size == 0


def _make(path: Path) -> None:
    """Make a new database under another name, so that under its own it is there wholly or not at all."""
    draft = path.with_name(path.name + ".new")
    try:
        for left in (draft, draft.with_name(draft.name + "-journal")):
            left.unlink(missing_ok=True)  # by a process that died here
        _upgrade(draft)
        draft.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"The file {path.name} cannot be made ({error.strerror}).") from error


def sync_folder(folder: Path) -> None:
    """Return when the names in `folder` are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other process makes or upgrades this file, and keep others waiting meanwhile."""
    folder = path.with_name(path.name + ".owners")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(folder / "schema.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"The lock folder {folder.name} cannot be used ({error.strerror}).") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_sealed(path: Path) -> bool:
    """Whether any key has ever sealed values in this database."""
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            return connection.execute("SELECT 1 FROM settings WHERE name='keys'").fetchone() is not None
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} cannot be read: {error}.") from error


def revision_of(path: Path) -> str:
    """The schema revision of an existing file; StoreError where it is not a database of ours."""
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} cannot be opened: {error}.") from error
    try:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if "alembic_version" not in tables:
            raise StoreError(f"The file {path.name} is a database, but not one of Toolgate's; nothing was changed.")
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} is not a usable database ({error}); nothing was changed.") from error
    finally:
        connection.close()
    return "" if row is None else str(row[0])


def _upgrade(path: Path) -> None:
    """Run the migrations in one transaction; imported here because an up-to-date file needs neither library."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import SQLAlchemyError

    from toolgate.adapters.stores import migrate

    engine = create_engine(f"sqlite:///{path}")
    # Python's own transactions would end before each statement that changes the schema.
    event.listen(engine, "connect", lambda connection, _record: setattr(connection, "isolation_level", None))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            migrate.upgrade(connection)
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise StoreError(f"The file {path.name} cannot be made or upgraded: {cause}.") from error
    finally:
        engine.dispose()
