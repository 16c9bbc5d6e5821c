"""Keeping the write-ahead log short: when it is long, its pages are moved into the database file.

That happens on a thread of its own, so commits go on meanwhile. A log that never grows is also
quicker to write: its blocks are overwritten instead of allocated.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from pathlib import Path

from toolgate.adapters.sqlite.file import LOG_BYTES, connect
from toolgate.errors import StoreError

log = logging.getLogger("toolgate.sqlite")


class Checkpoints:
    """Moves the log into the file when it has grown beyond LOG_BYTES, one checkpoint at a time."""

    def __init__(self, path: Path, writing: threading.Lock) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._writing = writing
        self._thread: threading.Thread | None = None

    def look(self) -> None:
        """Start a checkpoint where the log has grown too long. Whoever writes calls this now and then."""
        if self._thread is not None and self._thread.is_alive():
            return
        try:
            is_long = self._log.stat().st_size > LOG_BYTES
        except OSError:  # gone, or not there yet
            return
        if is_long:
            self._thread = threading.Thread(target=self._run, name="toolgate-checkpoint", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            connection = connect(self._path, busy_s=0.0)
            try:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                # The log starts over only from a moment when nothing in it is left to move: the little that
                # was written meanwhile is moved while this process writes nothing.
                with self._writing:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                connection.close()
        except (sqlite3.Error, StoreError) as error:
            log.warning("a checkpoint was put off: %s", error)

    def close(self) -> None:
        """Wait for a checkpoint that runs."""
        if self._thread is not None:
            self._thread.join(timeout=10)
