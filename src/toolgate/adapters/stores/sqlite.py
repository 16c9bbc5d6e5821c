"""The durable store of one machine: a SQLite file in WAL mode, one writer per process, group commit.

Many processes may share the file. Changes wait in a queue for the writer thread, which writes all
that are there in one transaction; a change that needs no fsync and finds the queue empty is written
at once by the thread that brought it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
from collections.abc import Awaitable
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue

from toolgate.adapters.stores import sealing
from toolgate.adapters.stores.owners import OwnerLock
from toolgate.adapters.stores.rows import moment
from toolgate.adapters.stores.sqlite_file import connect, keys_of, prepare
from toolgate.adapters.stores.sqlite_read import Reader
from toolgate.adapters.stores.sqlite_write import Group, Outcome, Writer
from toolgate.errors import StoreError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call
from toolgate.kernel.change import Change, Durability
from toolgate.kernel.context import Mode
from toolgate.kernel.event import Event
from toolgate.kernel.undo import UndoRecord
from toolgate.ports.store import ApprovalQuery, CallQuery, Due

MOST_IN_A_GROUP = 512
BUSY_S = 10.0
CHECKPOINT_EVERY = 1000
"""Groups between checkpoints, which run on a thread of their own so that no commit waits for one."""

log = logging.getLogger("toolgate.sqlite")
Waiting = tuple[Change, "asyncio.Future[None]"]


class SqliteStore:
    """Keeps every guarantee of the Store port, durably."""

    is_shared = True

    def __init__(self, path: str | Path, *, owner: str) -> None:
        self.owner = owner
        self._path = Path(path)
        self._pid = os.getpid()
        prepare(self._path)
        key_file = self._path.with_name(self._path.name + ".key")
        sealed_with = keys_of(self._path)
        self._sealer = sealing.load(key_file, create=not sealed_with)
        self._check_key(sealed_with)
        self._lock = OwnerLock(self._path.with_name(self._path.name + ".owners"), owner)
        self._reader = Reader(connect(self._path, busy_s=BUSY_S), self._sealer)
        self._connection = connect(self._path, busy_s=BUSY_S)
        self._note_key()
        self._writer = Writer(self._connection, self._sealer)
        self.mode = Mode(self._reader.setting("mode") or Mode.NORMAL)
        self._writing = threading.Lock()
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._queued = 0
        self._groups = 0
        self._closed = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def _check_key(self, sealed_with: list[str]) -> None:
        """A database remembers which keys sealed it; opening it without one is refused now, not later."""
        for id in sealed_with:
            if not self._sealer.knows(id):
                raise StoreError(
                    f"The database was sealed with key {id}, which is not among the keys given. "
                    "Nothing was changed; bring the right key file."
                )

    def _note_key(self) -> None:
        known = (self._reader.setting("keys") or "").split()
        if self._sealer.current not in known:
            self._connection.execute(
                "INSERT OR REPLACE INTO settings (name, value) VALUES ('keys', ?)",
                (" ".join([*known, self._sealer.current]),),
            )

    def commit(self, change: Change) -> Awaitable[None] | None:
        self._usable()
        if change.durability is not Durability.FSYNCED and self._queued == 0 and self._writing.acquire(blocking=False):
            try:
                if self._write_now(change):
                    return None
            finally:
                self._writing.release()
        return self._enqueue(change)

    def _usable(self) -> None:
        if self._closed:
            raise StoreError("The store is closed.")
        if os.getpid() != self._pid:
            raise StoreError("This store was opened before a fork; open it anew in the child process.")

    def _write_now(self, change: Change) -> bool:
        """Write one change on this thread; False where another process is writing."""
        group = Group([change])
        self._connection.execute("PRAGMA busy_timeout=0")
        try:
            self._writer.write(group)
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                return False
            raise _failure(error) from error
        except Exception as error:  # what no row can hold is refused
            raise _failure(error) from error
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={int(BUSY_S * 1000)}")
        self._after(group)
        refused = group.outcomes[0]
        if refused is not None:
            raise refused
        return True

    def _enqueue(self, change: Change) -> Awaitable[None]:
        if self._thread is None:
            self._start()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queued += 1
        self._queue.put((change, future))
        return asyncio.shield(future)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="toolgate-writer", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while (first := self._queue.get()) is not None:
            waiting = [first]
            stop = self._drain(waiting)
            with self._writing:
                outcomes = self._write_group([change for change, _ in waiting])
            self._queued -= len(waiting)
            _tell(waiting, outcomes)
            if stop:
                return

    def _drain(self, waiting: list[Waiting]) -> bool:
        """Take what else is in the queue; True where the end was among it."""
        while len(waiting) < MOST_IN_A_GROUP:
            try:
                item = self._queue.get_nowait()
            except Empty:
                return False
            if item is None:
                return True
            waiting.append(item)
        return False

    def _write_group(self, changes: list[Change]) -> list[Outcome]:
        group = Group(changes)
        try:
            self._writer.write(group)
        except sqlite3.OperationalError as error:
            failure = _failure(error)
            log.error("a group of %d changes could not be written: %s", len(changes), failure)
            return [failure] * len(changes)
        except Exception as error:  # noqa: BLE001  # a change no row can hold takes neither others nor this thread along
            if len(changes) > 1:
                return [outcome for change in changes for outcome in self._write_group([change])]
            return [_failure(error)]
        self._after(group)
        return group.outcomes

    def _after(self, group: Group) -> None:
        self.mode = group.mode or self.mode
        self._groups += 1
        if self._groups % CHECKPOINT_EVERY == 0:
            threading.Thread(target=self._checkpoint, name="toolgate-checkpoint", daemon=True).start()

    def _checkpoint(self) -> None:
        try:
            connection = connect(self._path, busy_s=0.0)
            try:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                connection.close()
        except (sqlite3.Error, StoreError) as error:
            log.warning("a checkpoint was put off: %s", error)

    def open_news(self) -> Reader:
        """Return a reader of its own for whoever watches the file."""
        return Reader(connect(self._path, busy_s=BUSY_S), self._sealer)

    async def call(self, project: str, call_id: str) -> Call | None:
        return self._reader.call(project, call_id)

    async def calls(self, query: CallQuery) -> list[Call]:
        return self._reader.calls(query)

    async def approvals(self, query: ApprovalQuery) -> list[Approval]:
        return self._reader.approvals(query)

    async def undo(self, project: str, call_id: str) -> UndoRecord | None:
        return self._reader.undo(project, call_id)

    async def events(
        self, project: str, *, after: int = 0, limit: int = 1000, call_id: str | None = None
    ) -> list[Event]:
        return self._reader.events(project, after=after, limit=limit, call_id=call_id)

    async def due(self, now: datetime, *, limit: int = 100) -> Due:
        with self._writing:
            try:
                self._connection.execute("DELETE FROM undo_records WHERE expires_at<=?", (moment(now),))
            except sqlite3.Error as error:
                raise _failure(error) from error
        return self._reader.due(now, limit)

    async def orphans(self, *, limit: int = 100) -> list[Call]:
        others = self._reader.owners_elsewhere(self.owner)
        dead = [owner for owner in others if owner is None or not self._lock.is_alive(owner)]
        return self._reader.executing_for(dead, limit) if dead else []

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)
        with self._writing:
            self._connection.close()
        self._reader.close()
        self._lock.close()


def _tell(waiting: list[Waiting], outcomes: list[Outcome]) -> None:
    """Give every waiter its outcome, one wake-up per event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[None], Outcome]]] = {}
    for (_, future), outcome in zip(waiting, outcomes, strict=True):
        by_loop.setdefault(future.get_loop(), []).append((future, outcome))
    for loop, told in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, told)
        except RuntimeError:
            log.debug("%d waiters are gone with their event loop; what they wrote is written", len(told))


def _settle(told: list[tuple[asyncio.Future[None], Outcome]]) -> None:
    for future, outcome in told:
        if future.done():
            continue
        if outcome is None:
            future.set_result(None)
        else:
            future.set_exception(outcome)


def _failure(error: Exception) -> StoreError:
    """What SQLite could not do, in words that say what to do."""
    if not isinstance(error, sqlite3.Error):
        kind = type(error).__name__
        return StoreError(f"A change holds a value no row can keep ({kind}); nothing of it was written.")
    text = str(error)
    if "full" in text:
        return StoreError("The disk is full: nothing was written and nothing runs. Free some space.")
    if "readonly" in text or "read-only" in text:
        return StoreError(
            "The database file is read-only: nothing was written and nothing runs. Check its permissions."
        )
    if "locked" in text or "busy" in text:
        return StoreError(f"The database stayed locked by another process for {BUSY_S:g} s; nothing was written.")
    return StoreError(f"The database cannot be written: {text}. Nothing was written and nothing runs.")
