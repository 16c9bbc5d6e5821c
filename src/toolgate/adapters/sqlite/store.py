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
from collections import deque
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic

from toolgate.adapters import sealing
from toolgate.adapters.sealing import check_keys
from toolgate.adapters.sql.brakes import Watch
from toolgate.adapters.sql.gathering import Gathering, Outcome, Waiting, tell
from toolgate.adapters.sql.recent import Recent
from toolgate.adapters.sql.write_set import WriteSet, is_large, write_set_of
from toolgate.adapters.sqlite import cursors
from toolgate.adapters.sqlite.checkpoint import Checkpoints
from toolgate.adapters.sqlite.file import PUT_KEYS, connect, keys_of, open_file
from toolgate.adapters.sqlite.news import News
from toolgate.adapters.sqlite.owners import OwnerLock
from toolgate.adapters.sqlite.read import Reader
from toolgate.adapters.sqlite.statements import free_undo
from toolgate.adapters.sqlite.write import Group, Writer
from toolgate.errors import StoreError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change, Durability
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Grant
from toolgate.kernel.undo import UndoRecord
from toolgate.ports.sink import Cursor
from toolgate.ports.store import ApprovalQuery, CallQuery, DelegationQuery, Due, GrantQuery, Head, Question

ENOUGH_FOR_A_GROUP = 512
CROWD, CROWDED_S = 16, 0.02
"""A group of this many means that for so long the next changes are likely to have company, too."""
BUSY_S = 10.0
LOOK_AT_LOG_EVERY = 16
"""Groups between two looks at the size of the write-ahead log."""

log = logging.getLogger("toolgate.sqlite")
_FSYNCED = Durability.FSYNCED
_UNKEEPABLE = (ArithmeticError, TypeError, ValueError)
"""What a value raises that no row can hold."""


class SqliteStore:
    """Keeps every guarantee of the Store port, durably."""

    is_shared = True

    def __init__(self, path: str | Path, *, owner: str) -> None:
        self.owner = owner
        self._path = Path(path)
        self._pid = os.getpid()
        reading = open_file(self._path, busy_s=BUSY_S)
        try:
            key_file = self._path.with_name(self._path.name + ".key")
            sealed_with = keys_of(reading)
            self._sealer = sealing.load(key_file, create=not sealed_with)
            check_keys(sealed_with, self._sealer)
            self.marks = self._sealer.marks
            self._reader = Reader(reading, self._sealer)
        except BaseException:
            reading.close()
            raise
        self._lock = OwnerLock(self._path.with_name(self._path.name + ".owners"), owner)
        self._lock.tidy()
        self._connection = connect(self._path, busy_s=BUSY_S)
        self._note_key()
        self._watch = Watch(self.marks)
        self._writer = Writer(self._connection, self._sealer, self._watch)
        self.brakes = self._reader.brakes(self._watch)
        self._recent = Recent()
        self._writing = threading.Lock()
        self._queue: SimpleQueue[list[Waiting] | None] = SimpleQueue()
        self._gathering = Gathering(self._take)
        self._patience_s = BUSY_S
        self._crowded_until = 0.0
        self._groups = 0
        self._checkpoints = Checkpoints(self._path, self._writing)
        self._closed = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def _note_key(self) -> None:
        known = (self._reader.setting("keys") or "").split()
        if self._sealer.current in known:
            return
        try:
            self._connection.execute(PUT_KEYS, (" ".join([*known, self._sealer.current]),))
        except sqlite3.Error as error:
            raise _failure(error) from error

    def commit(self, change: Change) -> Awaitable[None] | None:
        self._usable()
        if is_large(change):
            return self._enqueue(WriteSet(change, is_ready=False))
        try:
            write_set = write_set_of(change, self._sealer)
        except _UNKEEPABLE as error:
            raise _failure(error) from error
        self._recent.begin(change)
        if change.durability is not _FSYNCED and self._is_idle() and self._writing.acquire(blocking=False):
            try:
                if self._write_now(write_set):
                    self._recent.note(change)
                    return None
            except BaseException:
                self._recent.drop(change)
                raise
            finally:
                self._writing.release()
        return self._enqueue(write_set)

    def _is_idle(self) -> bool:
        """Whether a change would be alone: then writing it here is quickest. In a crowd, a place in a group is."""
        return not self._gathering and self._queue.empty() and monotonic() > self._crowded_until

    def _usable(self) -> None:
        if self._closed:
            raise StoreError("The store is closed.")
        self._check_process()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError("This store was opened before a fork; open it again in the child process.")

    @property
    def _reading(self) -> Reader:
        self._check_process()
        return self._reader

    def _write_now(self, write_set: WriteSet) -> bool:
        """Write one change on this thread; False where another process is writing."""
        try:
            self._wait_for_others(0.0)
            refused = self._writer.write_alone(write_set)
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                return False
            raise _failure(error) from error
        except (sqlite3.Error, *_UNKEEPABLE) as error:
            raise _failure(error) from error
        self._after()
        if refused is not None:
            raise refused
        return True

    def _wait_for_others(self, seconds: float) -> None:
        """Say how long the writer waits for another process. Saying it costs, so only where it differs."""
        if seconds != self._patience_s:
            self._connection.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")
            self._patience_s = seconds

    def _enqueue(self, write_set: WriteSet) -> Awaitable[None]:
        """Hand the change to the writer thread. Whoever stops waiting cancels the future, never the write."""
        return self._gathering.add(write_set)

    def _take(self, gathered: list[Waiting]) -> None:
        self._start()
        self._queue.put(gathered)

    def _start(self) -> None:
        if self._thread is not None:
            return
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="toolgate-writer", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        large: deque[Waiting] = deque()
        stop = False
        while not stop or large:
            waiting: list[Waiting] = []
            stop = self._drain(waiting, large, is_last=stop)
            if large:
                waiting.append(large.popleft())
            if not waiting:
                continue
            with self._writing:
                outcomes = self._write_group([write_set for write_set, _ in waiting])
            if len(waiting) >= CROWD:
                self._crowded_until = monotonic() + CROWDED_S
            for (write_set, _), outcome in zip(waiting, outcomes, strict=True):
                (self._recent.note if outcome is None else self._recent.drop)(write_set.change)
            tell(waiting, outcomes)

    def _drain(self, waiting: list[Waiting], large: deque[Waiting], *, is_last: bool) -> bool:
        """Take what is in the queue, waiting for it where there is nothing to do; True where the end was among it.

        Large changes go to `large`, of which each group takes one: nobody's small change waits for all of them.
        """
        must_wait = not large
        while not is_last and len(waiting) < ENOUGH_FOR_A_GROUP:
            try:
                more = self._queue.get(block=must_wait)
            except Empty:
                return False
            if more is None:
                return True
            must_wait = False
            for one in more:
                (waiting if one[0].is_ready else large).append(one)
        return is_last

    def _write_group(self, write_sets: list[WriteSet]) -> list[Outcome]:
        try:
            group = Group([write_set.ready(self._sealer) for write_set in write_sets])
            self._wait_for_others(BUSY_S)
            self._writer.write(group)
        except sqlite3.Error as error:
            failure = _failure(error)
            log.error("a group of %d changes could not be written: %s", len(write_sets), failure)
            return [failure] * len(write_sets)
        except _UNKEEPABLE as error:
            # A value no row can hold harms its own change only, never the thread that writes everybody's.
            if len(write_sets) > 1:
                return [self._write_group([write_set])[0] for write_set in write_sets]
            return [_failure(error)]
        self._after()
        return group.outcomes

    def _after(self) -> None:
        self.brakes = self._writer.brakes
        self._groups += 1
        if self._groups % LOOK_AT_LOG_EVERY == 0:
            self._checkpoints.look()

    def open_news(self) -> News:
        """Return a reader of its own for whoever watches the file for others' changes."""
        return News(
            self._reader,
            open_reader=lambda: Reader(connect(self._path, busy_s=BUSY_S), self._sealer),
            own=lambda: self._writer.own,
        )

    def known(self, project: str, call_id: str) -> Call | None:
        return self._recent.call(project, call_id)

    def known_question(self, approval_id: str) -> Question | None:
        return self._recent.question(approval_id)

    def forget(self, project: str | None = None, call_id: str = "", version: int | None = None) -> None:
        self._recent.clear() if project is None else self._recent.forget(project, call_id, version)

    async def call(self, project: str, call_id: str) -> Call | None:
        reading, known = self._reading, self._recent.call(project, call_id)
        if known is not None and reading.version(project, call_id) == known.version:
            return known
        return reading.call(project, call_id)

    async def calls(self, query: CallQuery) -> list[Call]:
        return self._reading.calls(query)

    async def approvals(self, query: ApprovalQuery) -> list[Approval]:
        reading = self._reading
        if query.id is not None and (known := self._recent.asked(query.id)) is not None:
            approval, version = known
            if query == ApprovalQuery(project=query.project, id=approval.id, limit=query.limit):
                if query.project not in (None, approval.project):
                    return []
                if reading.version(approval.project, approval.call_id) == version:
                    return [approval]
        return reading.approvals(query)

    async def question(self, approval_id: str, *, project: str | None = None) -> Question | None:
        reading, known = self._reading, self._recent.question(approval_id)
        if known is None:
            return reading.question(approval_id, project)
        if project not in (None, known.call.project):
            return None
        is_same = reading.version(known.call.project, known.call.id) == known.call.version
        return known if is_same else reading.question(approval_id, project)

    async def undo(self, project: str, call_id: str) -> UndoRecord | None:
        return self._reading.undo(project, call_id)

    async def grants(self, query: GrantQuery) -> list[Grant]:
        return self._reading.grants(query)

    async def delegations(self, query: DelegationQuery) -> list[Delegation]:
        return self._reading.delegations(query)

    async def events(
        self, project: str, *, after: int = 0, limit: int = 1000, call_id: str | None = None
    ) -> list[Event]:
        return self._reading.events(project, after=after, limit=limit, call_id=call_id)

    async def head(self, project: str) -> Head:
        return self._reading.head(project)

    async def open_cursor(self, project: str, sink: str | None) -> Cursor:
        if sink is None:
            head = self._reading.head(project).seq
            return Cursor(head, head, is_ours=True)
        with self._changing() as connection:
            return cursors.open_cursor(connection, project, sink, self.owner, self._lock.is_alive)

    async def move_cursor(self, project: str, sink: str, seq: int) -> bool:
        with self._changing() as connection:
            return cursors.move_cursor(connection, project, sink, self.owner, seq)

    async def close_cursor(self, project: str, sink: str | None) -> None:
        if sink is not None:
            with self._changing() as connection:
                cursors.close_cursor(connection, project, sink, self.owner)

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """The writer's connection, for what is no change of a call."""
        self._usable()
        with self._writing:
            try:
                self._wait_for_others(BUSY_S)
                yield self._connection
            except (sqlite3.Error, *_UNKEEPABLE) as error:
                raise _failure(error) from error

    async def due(self, now: datetime, *, limit: int = 100) -> Due:
        if self._reading.has_expired_undo(now):
            self._free_expired_undo(now)
        newest = self._watch.newest
        found = self._reading.brakes(self._watch)  # others may have changed them
        if self._watch.is_news(found, self.brakes, newest=newest):
            self.brakes = found
        return self._reading.due(now, limit)

    def _free_expired_undo(self, now: datetime) -> None:
        with self._changing() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                free_undo(connection, now)
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise

    async def orphans(self, *, status: Status = Status.EXECUTING, limit: int = 100) -> list[Call]:
        others = self._reading.other_owners(self.owner, status)
        if status is Status.AWAITING_APPROVAL:
            others = [owner for owner in others if owner is not None]
        dead = [owner for owner in others if owner is None or not self._lock.is_alive(owner)]
        return self._reading.owned_by(dead, status, limit) if dead else []

    async def close(self) -> None:
        if self._closed or os.getpid() != self._pid:
            return  # in a forked child everything here is the parent's
        self._closed = True
        self._gathering.hand_over_all()
        if self._thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._checkpoints.close)
        with self._writing:
            self._connection.close()
        self._reader.close()
        self._lock.close()


def _failure(error: Exception) -> StoreError:
    """What SQLite could not do, in words that say what to do."""
    if not isinstance(error, sqlite3.Error):
        return StoreError(f"The change holds a value that cannot be stored ({type(error).__name__}).")
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
