"""The database file: making it, checking that it is ours, and connecting to it.

A process may die at any moment of this, and several may do it at once: a new file is made under
another name and moved into place, an upgrade is one transaction, and one process at a time does either.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.versions import HEAD
from toolgate.adapters.sqlite.owners import SCHEMA_OWNER
from toolgate.errors import StoreError
from toolgate.guards.files import sync_folder

SCHEMA = Path(__file__).with_name("schema.sql")
"""What the migrations make of an empty SQLite file, written down by `tools/write_schema.py`; a test compares."""

APPLICATION_ID = 0x7467_6174  # "tgat", so that `file` and we can tell whose database this is

PAGE_BYTES = 2048
"""A commit writes a page of every index it touches: with half of SQLite's usual size it takes a fifth less time."""

PRIVATE = 0o600
"""The permissions of a new database: its rows are people's words and arguments."""

CREATE_S = 10.0
"""How long to wait for another process that makes the same file."""

RETRY_S = 0.005

CACHE_KB = 16 * 1024
"""How much of a transaction the writer may hold in memory. With SQLite's usual 2 MB, one with a large call and its undo
data is written out before its end, and takes a quarter longer."""

LOG_BYTES = 16 * 1024 * 1024
"""How long the write-ahead log may grow before it is moved into the file, and how much of it is then kept."""


def connect(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Return a connection in autocommit mode to a file that is ours; StoreError where it cannot be used."""
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=busy_s)
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} cannot be opened as a database: {error}.") from error
    connection.execute("PRAGMA wal_autocheckpoint=0")  # checkpoints have a thread of their own; reads nothing
    return connection


def _use_wal(connection: sqlite3.Connection, busy_s: float) -> None:
    """Switch to WAL, waiting for others who open the same new file: SQLite itself does not wait here."""
    deadline = monotonic() + busy_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or monotonic() >= deadline:
                raise
            sleep(RETRY_S)
        else:
            return


def prepare(path: Path) -> None:
    """Make or upgrade the file at `path`. Nothing is changed where it is not ours."""
    open_file(path, busy_s=CREATE_S).close()


def open_file(path: Path, *, busy_s: float) -> sqlite3.Connection:
    """Make or upgrade the file at `path` and return a connection to it. Nothing is changed where it is not ours."""
    fresh = is_fresh(path)
    _check_writable(path)
    if fresh:
        with alone(path):
            if is_fresh(path):  # another process may have made it meanwhile
                _make(path)
    _tighten(path)
    connection = connect(path, busy_s=busy_s)
    try:
        if _revision(connection, path) != HEAD:
            with alone(path):
                if _revision(connection, path) != HEAD:
                    _upgrade(path)
        _use_wal(connection, busy_s)
        connection.execute("PRAGMA temp_store=MEMORY")
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"The file {path.name} cannot be opened as a database: {error}.") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _check_writable(path: Path) -> None:
    """Refuse what may only be read before SQLite makes a log beside it that may only be read as well."""
    for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        if file.exists() and not os.access(file, os.W_OK, effective_ids=True):
            raise StoreError(f"The file {file.name} is read-only; nothing was changed. Check its permissions.")


def is_fresh(path: Path) -> bool:
    """Whether there is nothing at `path` yet; StoreError where no database can be there."""
    try:
        if path.is_dir():
            raise StoreError(f"{path} is a directory; give the path of a file, such as {path}/toolgate.db.")
        if not path.parent.exists():
            raise StoreError(f"The folder {path.parent} does not exist; create it first.")
        return not path.exists() or path.stat().st_size == 0
    except OSError as error:
        raise StoreError(f"The file {path.name} cannot be reached ({error.strerror}).") from error


def _make(path: Path) -> None:
    """Make a new database under another name, so that under its own it is there wholly or not at all."""
    draft = path.with_name(path.name + ".new")
    try:
        for left in (draft, draft.with_name(draft.name + "-journal")):
            left.unlink(missing_ok=True)  # by a process that died here
        make_private(draft)
        _create(draft)
        draft.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreError(f"The file {path.name} cannot be created ({error.strerror}).") from error


def make_private(path: Path) -> None:
    """Make an empty file that is its owner's alone; SQLite gives its journal and logs the same permissions."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))


def exposed(path: Path) -> list[Path]:
    """Which of a database's files other people can read or write: itself, its journal and its logs."""
    beside = (path, *(path.with_name(path.name + end) for end in ("-journal", "-wal", "-shm")))
    return [file for file in beside if file.exists() and file.stat().st_mode & 0o077]


def _tighten(path: Path) -> None:
    """Let a log that an older version left open to others be read by nobody who may not read the database."""
    mode = path.stat().st_mode & 0o777
    for end in ("-wal", "-shm"):
        file = path.with_name(path.name + end)
        with suppress(OSError):  # somebody else's, or gone by now
            if (found := file.stat().st_mode & 0o777) & ~mode:
                file.chmod(found & mode)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process makes or upgrades this file, and keep others waiting meanwhile."""
    folder = path.with_name(path.name + ".owners")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(folder / f"{SCHEMA_OWNER}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"The lock folder {folder.name} cannot be used ({error.strerror}).") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


PUT_KEYS = "INSERT OR REPLACE INTO settings (name, value) VALUES ('keys', ?)"


def keys_of(connection: sqlite3.Connection) -> list[str]:
    """The ids of the keys that have sealed values in this database."""
    try:
        row = connection.execute("SELECT value FROM settings WHERE name='keys'").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"The database cannot be read: {error}.") from error
    return [] if row is None else row[0].split()


def note_key(connection: sqlite3.Connection, sealer: Sealer) -> None:
    """Note that the first of these keys is in use, inside a transaction, unless that is known."""
    known = keys_of(connection)
    if sealer.current not in known:
        connection.execute(PUT_KEYS, (" ".join([*known, sealer.current]),))


def check_current(path: Path) -> None:
    """Refuse what is not a database of ours, of this version's schema, before anything touches it."""
    found = revision_of(path)
    if found != HEAD:
        raise StoreError(
            f"The database is at schema {found!r}, this version needs {HEAD!r}; run `toolgate db upgrade`."
        )


def revision_of(path: Path) -> str:
    """The schema revision of an existing file; StoreError where it is not a database of ours."""
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"The file {path.name} cannot be opened: {error}.") from error
    try:
        return _revision(connection, path)
    finally:
        connection.close()


def _revision(connection: sqlite3.Connection, path: Path) -> str:
    try:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise StoreError(f"The file {path.name} is a database, but not one of Toolgate's; nothing was changed.")
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} is not a usable database ({error}); nothing was changed.") from error
    return "" if row is None else str(row[0])


def _create(path: Path) -> None:
    """Make the tables of this version. The migrations would make the same, but loading them takes a second."""
    connection = connect(path, busy_s=CREATE_S)
    try:
        connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
        connection.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA.read_text(encoding="ascii").split(";\n"):
            connection.execute(statement)
        connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (HEAD,))
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreError(f"The file {path.name} cannot be created: {error}.") from error
    finally:
        connection.close()


def _upgrade(path: Path) -> None:
    """Run the migrations in one transaction; imported here because an up-to-date file needs neither library."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    from toolgate.adapters.sql import migrate

    # Python's own transactions would end before each statement that changes the schema.
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(path, isolation_level=None), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            migrate.upgrade(connection)
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise StoreError(f"The file {path.name} cannot be upgraded: {cause}.") from error
    finally:
        engine.dispose()
