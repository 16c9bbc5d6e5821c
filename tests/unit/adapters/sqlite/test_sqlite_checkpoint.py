"""The write-ahead log is moved into the file when it is long, and trouble with that harms nobody."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from toolgate.adapters.sqlite import checkpoint as sqlite_checkpoint
from toolgate.adapters.sqlite.checkpoint import Checkpoints
from toolgate.adapters.sqlite.file import open_file


def test_a_long_log_is_moved_into_the_file(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_checkpoint, "LOG_BYTES", 1000)
    with closing(open_file(database, busy_s=1)) as connection:
        connection.execute("INSERT INTO settings (name, value) VALUES ('x', ?)", ("canary" * 1000,))
        assert b"canary" not in database.read_bytes()
        checkpoints = Checkpoints(database, threading.Lock())
        checkpoints.look()
        checkpoints.close()
        assert b"canary" in database.read_bytes()


def test_a_short_or_missing_log_is_left_alone(database: Path) -> None:
    checkpoints = Checkpoints(database, threading.Lock())
    checkpoints.look()
    with closing(open_file(database, busy_s=1)) as connection:
        connection.execute("INSERT INTO settings (name, value) VALUES ('x', 'canary')")
        checkpoints.look()
        checkpoints.close()
        assert b"canary" not in database.read_bytes()


def test_a_checkpoint_that_cannot_be_made_is_put_off(
    database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite_checkpoint, "LOG_BYTES", 1000)
    Path(f"{database}-wal").write_bytes(b"x" * 2000)
    database.write_bytes(b"no database" * 1000)
    checkpoints = Checkpoints(database, threading.Lock())
    checkpoints.look()
    checkpoints.close()
    assert "put off" in caplog.text
    with pytest.raises(sqlite3.DatabaseError), closing(sqlite3.connect(database)) as connection:
        connection.execute("SELECT 1 FROM settings")
