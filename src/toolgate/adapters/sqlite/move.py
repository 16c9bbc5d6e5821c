"""Moving a database to another folder, with its key. It may die at any moment: the next run finishes what is left.

The copy is whole, with its key, before it gets its name; only then is the original removed. A note beside the copy says
which file it was made from, so that a run after a crash knows the original from another database.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from toolgate.adapters.sqlite.file import alone, is_fresh, make_private, revision_of
from toolgate.adapters.sqlite.owners import SCHEMA_OWNER, is_alive
from toolgate.errors import StoreError
from toolgate.guards.files import sync_folder

_BESIDE = ("-wal", "-shm", "-journal", ".new", ".key")
"""What lies beside a database, by the end of its name; its locks are in a folder."""


def move(source: Path, target: Path) -> None:
    """Move the database at `source`, with its key; StoreError, and nothing was removed, where that cannot be done."""
    source, target = source.resolve(), target.resolve()
    if source == target:
        raise StoreError(f"The database is at {target} already.")
    note = _beside(target, ".moving")
    try:
        is_fresh(target)
        with alone(target):
            begun = _begun(note, source)
            if not source.is_file():
                if begun is None or is_fresh(target):
                    raise StoreError(f"There is no database at {source}.")
                _remove(source, note)
                return
            with _unused(source) as connection:
                _copy(connection, source, target, note, begun)
                _remove(source, note)  # whoever waits to open it is then told by SQLite that it is gone
    except sqlite3.Error as error:
        raise StoreError(f"The database {source} cannot be moved: {error}.") from error
    except OSError as error:
        raise StoreError(f"The database {source} cannot be moved to {target} ({error.strerror}).") from error


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _begun(note: Path, source: Path) -> Any:
    """Return what an earlier run noted of this very file before it gave the copy its name."""
    if not note.is_file():
        return None
    told = json.loads(note.read_text(encoding="utf-8"))
    return told["stamp"] if told["source"] == str(source) else None


def _stamp(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_ino, found.st_size, found.st_mtime_ns]


@contextmanager
def _unused(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold the database, with all of its log in it, so that nobody can open it; StoreError where somebody has it."""
    revision_of(path)
    owners = _beside(path, ".owners")
    held = [one.stem for one in owners.glob("*.lock") if one.stem != SCHEMA_OWNER] if owners.is_dir() else []
    if any(is_alive(owners, owner) for owner in held):
        raise _in_use(path)
    with alone(path), closing(sqlite3.connect(path, isolation_level=None, timeout=1)) as connection:
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            mode = connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0]
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")  # the lock stays until the connection is closed
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise _in_use(path) from None
        if mode != "delete":
            raise _in_use(path)
        yield connection


def _in_use(path: Path) -> StoreError:
    return StoreError(
        f"The database {path} is in use; nothing was moved. Stop the server, worker or program that has it open, then "
        "run this again."
    )


def _copy(connection: sqlite3.Connection, source: Path, target: Path, note: Path, begun: Any) -> None:
    """Make the copy, unless an earlier run did; StoreError where something else is there."""
    if not is_fresh(target):
        if begun == _stamp(source):
            return
        why = "and both were used since an earlier move was cut short" if begun is not None else "which is another one"
        raise StoreError(
            f"There is a database at {target} already, {why}; nothing was moved. Move one of them away, or name "
            "another place with --to FILE."
        )
    _copy_key(_beside(source, ".key"), _beside(target, ".key"))
    draft = _beside(target, ".new")
    for left in (draft, _beside(draft, "-journal")):
        left.unlink(missing_ok=True)
    make_private(draft)
    with closing(sqlite3.connect(draft)) as copy:
        connection.backup(copy, pages=1024)
        sound = copy.execute("PRAGMA integrity_check").fetchone()[0]
    if sound != "ok":
        draft.unlink()
        raise StoreError(f"The copy of {source} is damaged ({sound}); nothing was moved.")
    _sync(draft)
    _write(note, json.dumps({"source": str(source), "stamp": _stamp(source)}).encode())
    draft.replace(target)
    sync_folder(target.parent)


def _copy_key(source: Path, target: Path) -> None:
    if not source.exists():
        return  # the environment has it
    if target.exists() and target.read_bytes() != source.read_bytes():
        raise StoreError(f"The key {target} belongs to another database; nothing was moved. Move it away first.")
    _write(target, source.read_bytes())


def _write(path: Path, content: bytes) -> None:
    draft = _beside(path, ".new")
    draft.unlink(missing_ok=True)
    make_private(draft)
    draft.write_bytes(content)
    _sync(draft)
    draft.replace(path)
    sync_folder(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(source: Path, note: Path) -> None:
    """Remove the original, and last the note that says where it went."""
    source.unlink(missing_ok=True)
    for end in _BESIDE:
        _beside(source, end).unlink(missing_ok=True)
    shutil.rmtree(_beside(source, ".owners"), ignore_errors=True)
    sync_folder(source.parent)
    note.unlink(missing_ok=True)
