"""What was signalled here and whether its result was delivered; survives whatever ends the runner.

What ran and how it ended is in the journal. This list only says to whom it has yet to be told.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from toolgate.errors import StoreError
from toolgate.interfaces.runner.signals import Signal

_SCHEMA = """
CREATE TABLE IF NOT EXISTS signals (
  tool_id TEXT PRIMARY KEY,
  tool_name TEXT NOT NULL,
  undo_of TEXT,
  fence TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  lease_s REAL NOT NULL,
  received_at TEXT NOT NULL,
  state TEXT NOT NULL,
  note TEXT NOT NULL DEFAULT ''
) STRICT
"""


class Taken(StrEnum):
    """What a signal is to this runner."""

    NEW = "new"
    AGAIN = "again"  # the server offers the call once more, with a new fence
    DUPLICATE = "duplicate"  # the same signal came before, or a later one did
    FOREIGN = "foreign"  # its id was another call's


class Delivery(StrEnum):
    """Where the report of a signal stands."""

    OPEN = "open"
    DELIVERED = "delivered"
    REFUSED = "refused"


class SignalRecord(NamedTuple):
    """One signal as it was noted; its parameters are in the journal alone."""

    tool_id: str
    tool_name: str
    undo_of: str | None
    fence: str
    attempt: int
    lease_s: float
    note: str = ""

    @property
    def signal(self) -> Signal:
        return Signal(
            tool_id=self.tool_id,
            tool_name=self.tool_name,
            undo_of=self.undo_of,
            fence=self.fence,
            attempt=self.attempt,
            lease_s=self.lease_s,
        )


class Ledger:
    """The list. Every change is on disk when its method returns; usable from any thread."""

    def __init__(self, path: Path) -> None:
        with ExitStack() as opened:
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))  # never open to others
                self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
                opened.callback(self._db.close)
                path.chmod(0o600)
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=FULL")
                self._db.execute(_SCHEMA)
            except (sqlite3.Error, OSError) as error:
                raise StoreError(f"The runner's list of signals {path} cannot be used: {error}.") from None
            opened.pop_all()
        self._lock = threading.Lock()

    def take(self, signal: Signal) -> Taken:
        """Note a signal before anything is done about it, and say whether it is to be done."""
        with self._lock:
            return self._take(signal)

    def _take(self, signal: Signal) -> Taken:
        found = self._db.execute(
            "SELECT tool_name, undo_of, fence, attempt FROM signals WHERE tool_id = ?", (signal.tool_id,)
        ).fetchone()
        if found is None:
            taken = Taken.NEW
        elif found[:2] != (signal.tool_name, signal.undo_of):
            return Taken.FOREIGN
        elif found[2] == signal.fence or signal.attempt <= found[3]:
            return Taken.DUPLICATE
        else:
            taken = Taken.AGAIN
        self._db.execute(
            "INSERT OR REPLACE INTO signals (tool_id, tool_name, undo_of, fence, attempt, lease_s, received_at, state)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                signal.tool_id,
                signal.tool_name,
                signal.undo_of,
                signal.fence,
                signal.attempt,
                signal.lease_s,
                datetime.now(UTC).isoformat(),
                Delivery.OPEN,
            ),
        )
        return taken

    def note(self, tool_id: str, why: str) -> None:
        """Note why a signal leads to no call here; it is what the server is told."""
        with self._lock:
            self._db.execute("UPDATE signals SET note = ? WHERE tool_id = ?", (why, tool_id))

    def close_signal(self, record: SignalRecord, state: Delivery, note: str = "") -> bool:
        """Note that a report was delivered or refused; False where the call was offered again meanwhile."""
        with self._lock:
            done = self._db.execute(
                "UPDATE signals SET state = ?, note = ? WHERE tool_id = ? AND fence = ?",
                (state, note, record.tool_id, record.fence),
            )
            return done.rowcount == 1

    def open_signal(self, tool_id: str) -> SignalRecord | None:
        """Return a signal whose report is still open."""
        found = self._read("WHERE state = ? AND tool_id = ?", Delivery.OPEN, tool_id)
        return found[0] if found else None

    def open_signals(self) -> list[SignalRecord]:
        """Return every signal whose report is still open, oldest first."""
        return self._read("WHERE state = ? ORDER BY received_at, tool_id", Delivery.OPEN)

    def _read(self, where: str, *values: str) -> list[SignalRecord]:
        query = f"SELECT tool_id, tool_name, undo_of, fence, attempt, lease_s, note FROM signals {where}"
        with self._lock, closing(self._db.execute(query, values)) as rows:
            return [SignalRecord(*row) for row in rows]

    def close(self) -> None:
        with self._lock:
            self._db.close()
