"""Conversations and runs in the store's own SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from toolgate.adapters.sql.thread_rows import (
    CONVERSATION_COLUMNS,
    MESSAGE_COLUMNS,
    RUN_CHANGING,
    RUN_COLUMNS,
    Row,
    Seal,
    conversation_of,
    message_of,
    message_row,
    run_of,
    run_row,
    text_of,
)
from toolgate.errors import ConflictError, StoreError
from toolgate.ports.threads import OPEN, Conversation, Message, Run, RunQuery, RunStatus


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


_RUN = f"SELECT {', '.join(RUN_COLUMNS)} FROM agent_runs"
_CONVERSATION = f"SELECT {', '.join(CONVERSATION_COLUMNS)} FROM conversations"
_MESSAGE = f"SELECT {', '.join(MESSAGE_COLUMNS)} FROM messages"
_PUT_RUN = _insert("agent_runs", RUN_COLUMNS)
_PUT_MESSAGE = _insert("messages", MESSAGE_COLUMNS)
_PUT_CONVERSATION = _insert("conversations", CONVERSATION_COLUMNS) + " ON CONFLICT DO NOTHING"
_OPEN_RUN = (
    "SELECT 1 FROM agent_runs WHERE project_id=? AND account=? AND conversation_id=? AND status IN "
    f"({', '.join(repr(status.value) for status in sorted(OPEN))}) LIMIT 1"
)
_CHANGE_RUN = (
    f"UPDATE agent_runs SET {', '.join(f'{name}=?' for name in RUN_COLUMNS[RUN_CHANGING:])} "
    "WHERE project_id=? AND id=? AND version=?"
)
_GROW = (
    "UPDATE conversations SET size=size+?, updated_at=max(updated_at, ?) "
    "WHERE project_id=? AND account=? AND id=? RETURNING size"
)


class SqliteThreads:
    """`connect` gives connections to a file that has the tables already; `is_alive` says which owners still live.

    One thread writes, however many wait.
    """

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], *, sealer: Seal, is_alive: Callable[[str], bool]
    ) -> None:
        self._connect = connect
        self._sealer = sealer
        self._is_alive = is_alive
        self._reading = connect()
        self._writing: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="toolgate-threads")

    def _all(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            try:
                return self._reading.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"The conversations cannot be read: {error}.") from error

    async def save(self, run: Run, *, messages: Sequence[Message] = (), title: str | None = None) -> list[Message]:
        work = partial(self._save, run, messages, title)  # the file's other writers may make it wait
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except RuntimeError as error:
            raise StoreError("The conversations were closed.") from error

    def _save(self, run: Run, messages: Sequence[Message], title: str | None) -> list[Message]:
        try:
            if self._writing is None:
                self._writing = self._connect()
                self._writing.execute("PRAGMA synchronous=FULL")
            connection = self._writing
            connection.execute("BEGIN IMMEDIATE")
            try:
                kept = self._write(connection, run, messages, title)
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
        except sqlite3.IntegrityError as error:
            raise ConflictError(f"Run {run.id[:64]} or one of its messages exists already.") from error
        except sqlite3.Error as error:
            raise StoreError(f"The conversation cannot be written: {error}.") from error
        return kept

    def _write(
        self, connection: sqlite3.Connection, run: Run, messages: Sequence[Message], title: str | None
    ) -> list[Message]:
        row = _texts(run_row(run))
        thread = (run.project, run.account, run.conversation_id)
        if run.version == 1:
            if connection.execute(_OPEN_RUN, thread).fetchone() is not None:
                raise ConflictError("Another run of this conversation is still open.")
            connection.execute(_PUT_RUN, row)
            times = (text_of(run.created_at), text_of(run.updated_at))
            connection.execute(_PUT_CONVERSATION, (*thread, title or "", 0, *times))
        else:
            values = (*row[RUN_CHANGING:], run.project, run.id, run.version - 1)
            if connection.execute(_CHANGE_RUN, values).rowcount != 1:
                raise ConflictError(f"Run {run.id[:64]} was changed by somebody else.")
        [(size,)] = connection.execute(_GROW, (len(messages), text_of(run.updated_at), *thread)).fetchall()
        kept = [replace(one, position=size - len(messages) + at) for at, one in enumerate(messages, 1)]
        rows = [_texts(message_row(one, one.position, self._sealer)) for one in kept]
        connection.executemany(_PUT_MESSAGE, rows)
        return kept

    async def run(self, project: str, run_id: str) -> Run | None:
        found = self._all(f"{_RUN} WHERE project_id=? AND id=?", (project, run_id))
        return run_of(found[0]) if found else None

    async def runs(self, query: RunQuery) -> list[Run]:
        where, values = ["1=1"], []
        wanted = {"project_id": query.project, "account": query.account, "conversation_id": query.conversation_id}
        for column, value in wanted.items():
            if value is not None:
                where.append(f"{column}=?")
                values.append(value)
        if query.statuses is not None:
            where.append(f"status IN ({','.join('?' * len(query.statuses))})")
            values += sorted(status.value for status in query.statuses)
        if query.before is not None:
            where.append("(created_at, project_id, id) < (?, ?, ?)")
            values += [str(text_of(query.before.created_at)), query.before.project, query.before.id]
        sql = f"{_RUN} WHERE {' AND '.join(where)} ORDER BY created_at DESC, project_id DESC, id DESC LIMIT ?"
        return [run_of(row) for row in self._all(sql, [*values, query.limit])]

    async def orphans(self, *, limit: int = 100) -> list[Run]:
        rows = self._all(f"{_RUN} WHERE status=? ORDER BY created_at, project_id, id", (RunStatus.RUNNING.value,))
        alive = {owner: owner is not None and self._is_alive(owner) for owner in {row[8] for row in rows}}
        return [run_of(row) for row in rows if not alive[row[8]]][:limit]

    async def conversation(self, project: str, account: str, id: str) -> Conversation | None:
        found = self._all(f"{_CONVERSATION} WHERE project_id=? AND account=? AND id=?", (project, account, id))
        return conversation_of(found[0]) if found else None

    async def conversations(
        self, project: str, account: str, *, before: Conversation | None = None, limit: int = 100
    ) -> list[Conversation]:
        where, values = "project_id=? AND account=?", [project, account]
        if before is not None:
            where += " AND (updated_at, id) < (?, ?)"
            values += [str(text_of(before.updated_at)), before.id]
        sql = f"{_CONVERSATION} WHERE {where} ORDER BY updated_at DESC, id DESC LIMIT ?"
        return [conversation_of(row) for row in self._all(sql, [*values, limit])]

    async def messages(
        self, project: str, account: str, conversation_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[Message]:
        sql = (
            f"{_MESSAGE} WHERE project_id=? AND account=? AND conversation_id=? AND position>? "
            "AND sealed_content IS NOT NULL ORDER BY position LIMIT ?"
        )
        rows = self._all(sql, (project, account, conversation_id, after, limit))
        return [message_of(row, self._sealer) for row in rows]

    async def close(self) -> None:
        with self._lock:
            self._reading.close()
        await asyncio.to_thread(self._thread.shutdown)
        if self._writing is not None:
            self._writing.close()
            self._writing = None


def _texts(row: Row) -> Row:
    return tuple(text_of(value) if isinstance(value, datetime) else value for value in row)
