"""A write-ahead log that takes nothing: the disk is full, or broken, for this process."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from toolgate import Gate
from toolgate.adapters.sqlite import store as sqlite


@contextmanager
def failing_log(file: Path, instead: str) -> Iterator[None]:
    """Let this process's writes to the write-ahead log go to another file; put the log back afterwards."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # so that nobody needs to read what is in it
    log = f"{file}-wal"
    fds = [int(fd) for fd in os.listdir("/proc/self/fd") if _target(fd) == log]
    assert fds
    kept = [(fd, os.dup(fd)) for fd in fds]
    other = os.open(instead.format(log=log), os.O_WRONLY if instead == "/dev/full" else os.O_RDONLY)
    try:
        for fd in fds:
            os.dup2(other, fd)
        yield
    finally:
        os.close(other)
        for fd, copy in kept:
            os.dup2(copy, fd)
            os.close(copy)


def open_log(gate: Gate) -> None:
    """Make the writer open its log, which it does not do before it needs it."""
    store = gate._driver.store
    assert isinstance(store, sqlite.SqliteStore)
    store._connection.execute("SELECT count(*) FROM settings").fetchone()


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


FULL, BROKEN = "/dev/full", "{log}"
"""Writes answer 'no space left', or fail outright (the log opened for reading only)."""
