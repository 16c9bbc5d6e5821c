"""Conversations and runs in the store's own PostgreSQL."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolgate.adapters.postgres.link import EVERYTHING, Link
from toolgate.adapters.sql.thread_rows import (
    CONVERSATION_COLUMNS,
    MESSAGE_COLUMNS,
    RUN_CHANGING,
    RUN_COLUMNS,
    Seal,
    conversation_of,
    message_of,
    message_row,
    run_of,
    run_row,
)
from toolgate.errors import ConflictError
from toolgate.ports.threads import OPEN, Conversation, Message, Run, RunQuery, RunStatus

THREAD_LOCK = 0x7469


def _insert(table: str, columns: Sequence[str]) -> str:
    marks = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


_CHANGED = RUN_COLUMNS[RUN_CHANGING:]
_RUN = f"SELECT {', '.join(RUN_COLUMNS)} FROM agent_runs AS t"
_CONVERSATION = f"SELECT {', '.join(CONVERSATION_COLUMNS)} FROM conversations"
_MESSAGE = f"SELECT {', '.join(MESSAGE_COLUMNS)} FROM messages"
_OPEN_RUN = (
    "SELECT 1 FROM agent_runs WHERE project_id=$1 AND account=$2 AND conversation_id=$3 AND status IN "
    f"({', '.join(repr(status.value) for status in sorted(OPEN))}) LIMIT 1"
)
_CHANGE_RUN = (
    f"UPDATE agent_runs SET {', '.join(f'{name}=${place}' for place, name in enumerate(_CHANGED, 4))} "
    "WHERE project_id=$1 AND id=$2 AND version=$3 RETURNING id"
)
_GROW = (
    "UPDATE conversations SET size=size+$1, updated_at=greatest(updated_at, $2) "
    "WHERE project_id=$3 AND account=$4 AND id=$5 RETURNING size"
)
_PLACE = ("created_at", 'project_id COLLATE "C"', 'id COLLATE "C"')


class PostgresThreads:
    """Ownership of runs is judged by the rows in which servers say that they are alive."""

    def __init__(self, link: Link, *, sealer: Seal) -> None:
        self._link = link
        self._sealer = sealer

    async def _all(self, sql: str, *values: Any, project: str | None) -> list[Any]:
        projects: str | list[str] = EVERYTHING if project is None else [project]
        return await self._link.do(self._link.fetch(sql, *values, projects=projects))

    async def save(self, run: Run, *, messages: Sequence[Message] = (), title: str | None = None) -> list[Message]:
        return await self._link.do(self._save(run, messages, title))

    async def _save(self, run: Run, messages: Sequence[Message], title: str | None) -> list[Message]:
        row = run_row(run)
        thread = (run.project, run.account, run.conversation_id)
        # One save of a conversation at a time: two new runs must not both find that none is open.
        lock = zlib.crc32("\x00".join(thread).encode()) - 2**31
        async with self._link.transaction([run.project], writing=True) as connection:
            await connection.execute("SELECT pg_advisory_xact_lock($1, $2)", THREAD_LOCK, lock)
            if run.version == 1:
                if await connection.fetchval(_OPEN_RUN, *thread) is not None:
                    raise ConflictError("Another run of this conversation is still open.")
                await connection.execute(_insert("agent_runs", RUN_COLUMNS), *row)
                made = (*thread, title or "", 0, run.created_at, run.updated_at)
                sql = _insert("conversations", CONVERSATION_COLUMNS) + " ON CONFLICT DO NOTHING"
                await connection.execute(sql, *made)
            else:
                values = (run.project, run.id, run.version - 1, *row[RUN_CHANGING:])
                if await connection.fetchval(_CHANGE_RUN, *values) is None:
                    raise ConflictError(f"Run {run.id[:64]} was changed by somebody else.")
            size = await connection.fetchval(_GROW, len(messages), run.updated_at, *thread)
            kept = [replace(one, position=size - len(messages) + at) for at, one in enumerate(messages, 1)]
            rows = [message_row(one, one.position, self._sealer) for one in kept]
            await connection.executemany(_insert("messages", MESSAGE_COLUMNS), rows)
        return kept

    async def run(self, project: str, run_id: str) -> Run | None:
        found = await self._all(f"{_RUN} WHERE project_id=$1 AND id=$2", project, run_id, project=project)
        return run_of(found[0]) if found else None

    async def runs(self, query: RunQuery) -> list[Run]:
        where, values = ["true"], list[Any]()
        wanted = {"project_id": query.project, "account": query.account, "conversation_id": query.conversation_id}
        for column, value in wanted.items():
            if value is not None:
                values.append(value)
                where.append(f"{column}=${len(values)}")
        if query.statuses is not None:
            values.append(sorted(status.value for status in query.statuses))
            where.append(f"status=ANY(${len(values)})")
        if query.before is not None:
            last = query.before
            values += [last.created_at, last.project, last.id]
            where.append(f"({', '.join(_PLACE)}) < (${len(values) - 2}, ${len(values) - 1}, ${len(values)})")
        order = ", ".join(f"{column} DESC" for column in _PLACE)
        sql = f"{_RUN} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ${len(values) + 1}"
        return [run_of(row) for row in await self._all(sql, *values, query.limit, project=query.project)]

    async def orphans(self, *, limit: int = 100) -> list[Run]:
        sql = (
            f"{_RUN} WHERE status=$1 AND NOT EXISTS "
            "(SELECT 1 FROM owners AS o WHERE o.owner=t.owner AND o.alive_until>now()) "
            "AND pg_postmaster_start_time() < now() - interval '9 s' "  # after a start everybody has time to come back
            f"ORDER BY {', '.join(_PLACE)} LIMIT $2"
        )
        return [run_of(row) for row in await self._all(sql, RunStatus.RUNNING.value, limit, project=None)]

    async def conversation(self, project: str, account: str, id: str) -> Conversation | None:
        sql = f"{_CONVERSATION} WHERE project_id=$1 AND account=$2 AND id=$3"
        found = await self._all(sql, project, account, id, project=project)
        return conversation_of(found[0]) if found else None

    async def conversations(
        self, project: str, account: str, *, before: Conversation | None = None, limit: int = 100
    ) -> list[Conversation]:
        where, values = "project_id=$1 AND account=$2", [project, account, limit]
        if before is not None:
            where += ' AND (updated_at, id COLLATE "C") < ($4, $5)'
            values += [before.updated_at, before.id]
        sql = f'{_CONVERSATION} WHERE {where} ORDER BY updated_at DESC, id COLLATE "C" DESC LIMIT $3'
        return [conversation_of(row) for row in await self._all(sql, *values, project=project)]

    async def messages(
        self, project: str, account: str, conversation_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[Message]:
        sql = (
            f"{_MESSAGE} WHERE project_id=$1 AND account=$2 AND conversation_id=$3 AND position>$4 "
            "AND sealed_content IS NOT NULL ORDER BY position LIMIT $5"
        )
        rows = await self._all(sql, project, account, conversation_id, after, limit, project=project)
        return [message_of(row, self._sealer) for row in rows]

    async def close(self) -> None:
        await self._link.close()
