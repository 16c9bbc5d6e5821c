"""Looking after a PostgreSQL database from outside: checking chains, status, retention. Backups are pg_dump's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import asyncpg

from toolgate.adapters.postgres import schema
from toolgate.adapters.postgres.bulk import FREE_UNDO
from toolgate.adapters.postgres.chain import append, lock
from toolgate.adapters.postgres.link import EVERYTHING, LOST, Connection, Link, connect, failure
from toolgate.adapters.postgres.role import role_of
from toolgate.adapters.postgres.schema import revision_of
from toolgate.adapters.postgres.url import Address, read
from toolgate.adapters.sql import brakes, versions
from toolgate.adapters.sql.rows import EVENT_COLUMNS, event_of
from toolgate.adapters.sql.upkeep import FORGETTABLE, ChainReport, told_pruned
from toolgate.adapters.sql.versions import HEAD
from toolgate.kernel.call import Status
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.event import ChainError, genesis, verify
from toolgate.ports.directory import HOST

T = TypeVar("T")
PAGE = 5000
_EVENTS = f"""
SELECT {", ".join(EVENT_COLUMNS)} FROM events
WHERE project_id=$1 AND seq>$2 ORDER BY seq LIMIT $3
"""
_CLEAN = r"regexp_replace(detail::text, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')"
"""`json` keeps the escape of the character 0, which `jsonb` refuses; an escaped backslash before `u0000` is none."""
_FINAL = tuple(status.value for status in Status if status.is_final)


@contextmanager
def linked(url: str) -> Iterator[Link]:
    """A way to a database of this version's schema, for one command."""
    link = Link(read(url))
    try:
        link.run(_check(link.address))
        yield link
    finally:
        link.abandon()


async def _check(address: Address) -> None:
    async with moment_of(address) as connection:
        versions.check(await revision_of(connection), await schema.floor_of(connection))


@asynccontextmanager
async def moment_of(address: Address) -> AsyncIterator[Connection]:
    """One moment in time of everything, however long looking at it takes."""
    try:
        connection = await connect(address, statement_timeout="0", idle_in_transaction_session_timeout="0")
        try:
            await connection.execute(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT set_config('toolgate.projects', '*', true)"
            )
            yield connection
            await connection.execute("COMMIT")
        finally:
            await connection.close(timeout=5)
    except (asyncpg.PostgresError, *LOST) as error:
        raise failure(error, doing="read") from error


def do(url: str, work: Coroutine[Any, Any, T]) -> T:
    """Do some work on a database of this version's schema, for one command."""
    try:
        with linked(url) as link:
            return link.run(work)
    finally:
        work.close()


def verify_chains(url: str) -> list[ChainReport]:
    """Check the chain of every project against its events and its recorded head."""
    return do(url, _verify_all(read(url)))


def projects_of(url: str) -> list[str]:
    """The projects anything was recorded for, by name."""
    return do(url, _projects(read(url)))


async def _projects(address: Address) -> list[str]:
    async with moment_of(address) as connection:
        return sorted(row[0] for row in await connection.fetch("SELECT project_id FROM chain_heads"))


async def _verify_all(address: Address) -> list[ChainReport]:
    async with moment_of(address) as connection:
        found = await connection.fetch(
            "SELECT project_id FROM chain_heads UNION SELECT DISTINCT project_id FROM events"
        )
        return [await verify_chain(connection, project) for project in sorted(row[0] for row in found)]


async def verify_chain(connection: Connection, project: str) -> ChainReport:
    """Check one project's chain, in a transaction that sees it."""
    sql = "SELECT seq, hash, base_seq, base_hash FROM chain_heads WHERE project_id=$1"
    head = await connection.fetchrow(sql, project)
    seq, digest, base_seq, base_hash = head or (0, b"", 0, b"")
    last: tuple[int, bytes] = (base_seq, base_hash if base_seq else genesis(project))
    count = redacted = 0
    try:
        while page := await connection.fetch(_EVENTS, project, last[0], PAGE):
            events = [event_of(row) for row in page]
            verify(events, after=last)
            count += len(events)
            redacted += sum(event.is_redacted for event in events)
            last = (events[-1].seq, events[-1].hash)
        sql = "SELECT min(seq) FROM events WHERE project_id=$1 AND seq<=$2"
        early = await connection.fetchval(sql, project, base_seq)
        if early is not None:
            raise ChainError(f"Event {early} of project '{project}' is there although it was removed.")
    except ChainError as error:
        return ChainReport(project, count, str(error))
    if head is None or last != (seq, digest):
        return ChainReport(project, count, "the newest events are missing: the chain ends before its recorded head")
    return ChainReport(project, count, None, redacted)


def status_of(url: str) -> dict[str, Any]:
    """What a person wants to know at a glance."""
    link = Link(read(url))
    try:
        return link.run(_status(link.address))
    finally:
        link.abandon()


async def _status(address: Address) -> dict[str, Any]:
    async with moment_of(address) as connection:
        revision = await revision_of(connection)
        size = await connection.fetchval("SELECT pg_database_size(current_database())")
        role = await role_of(connection)
        found = {"revision": revision, "needed": HEAD, "bytes": size, "row_security": not role.passes_walls,
                 "role_warning": role.warning, "events": None, "calls": {},
                 "pending_approvals": None, "mode": None, "brakes": None, "servers": 0}  # fmt: skip
        if revision != HEAD:
            return found
        calls = await connection.fetch("SELECT status, count(*) FROM tool_executions GROUP BY status")
        return found | {
            "calls": dict(calls),
            "events": await connection.fetchval("SELECT count(*) FROM events"),
            "pending_approvals": await connection.fetchval(
                "SELECT count(*) FROM approval_requests WHERE status='pending'"
            ),
            **brakes.shown(await connection.fetchval("SELECT value FROM settings WHERE name='mode'")),
            "servers": await connection.fetchval("SELECT count(*) FROM owners WHERE alive_until>now()"),
        }


def role_warning(url: str) -> str | None:
    """What a person should know of the role a server has in its database; None where there is nothing."""
    link = Link(read(url))
    try:
        return link.run(_warning(link.address))
    finally:
        link.abandon()


async def _warning(address: Address) -> str | None:
    async with moment_of(address) as connection:
        return (await role_of(connection)).warning


def upgrade(url: str) -> tuple[str | None, str]:
    """Bring the database to this version's schema; return the revision before and after."""
    link = Link(read(url))
    try:
        return link.run(schema.upgrade(url))
    finally:
        link.abandon()


def prune(url: str, cut: datetime, *, by: str = HOST, events: bool = False) -> tuple[int, int]:
    """Forget the arguments and results of old calls and, with `events`, remove their events; return how many of each.

    The record is told of it, in the transaction that forgets; events go afterwards, project by project.
    """
    with linked(url) as link:
        return link.run(_prune(link, cut, by, events))


async def _prune(link: Link, cut: datetime, by: str, events: bool) -> tuple[int, int]:
    forgotten = await _forget(link, cut, by)
    if not events:
        return forgotten, 0
    projects = await link.fetch("SELECT project_id FROM chain_heads", projects=EVERYTHING)
    return forgotten, sum([await _remove(link, one, cut, by) for (one,) in projects if one != SYSTEM_PROJECT])


async def _forget(link: Link, cut: datetime, by: str) -> int:
    """Forget arguments, previews, results and undo data of calls finished before `cut`; return how many.

    What was said in the agent's runs that ended before it is forgotten too, and the nonces without which nobody can try
    out which arguments a digest stands for. The rows stay, so a call id is never run again, and the events stay, so the
    chain verifies.
    """
    old = "completed_at<$1 AND sealed_params IS NOT NULL AND status = ANY ($2::text[])"
    gone = '{"arguments": null, "preview": null, "difference": null, "nonce": ""}'
    bare = f"({_CLEAN}::jsonb - 'facts' || '{gone}'::jsonb)::json"
    async with link.transaction(EVERYTHING, writing=True) as connection:
        await connection.execute("SET LOCAL statement_timeout=0")
        await connection.execute(
            f"UPDATE approval_requests SET detail={bare} WHERE (project_id, action_id) IN "
            f"(SELECT project_id, id FROM tool_executions WHERE {old})",
            cut, list(FORGETTABLE),
        )  # fmt: skip
        await connection.execute(
            "DELETE FROM large_params WHERE (project_id, action_id) IN "
            f"(SELECT project_id, id FROM tool_executions WHERE {old})",
            cut, list(FORGETTABLE),
        )  # fmt: skip
        done = await connection.execute(
            "UPDATE tool_executions SET tool_params=NULL, result=NULL, sealed_params=NULL, sealed_result=NULL, "
            f"detail=({_CLEAN}::jsonb - '{{preview,facts,first_asked}}'::text[])::json WHERE {old}",
            cut, list(FORGETTABLE),
        )  # fmt: skip
        await connection.execute(FREE_UNDO, cut)
        await connection.execute("DELETE FROM effect_keys WHERE held_until<$1", cut)
        await connection.execute(
            "UPDATE messages SET shown=NULL, sealed_content=NULL WHERE created_at<$1 AND (project_id, run_id) IN "
            "(SELECT project_id, id FROM agent_runs WHERE ended_at<$1)",
            cut,
        )
        await connection.execute("UPDATE conversations SET title='' WHERE updated_at<$1", cut)
        forgotten = int(done.rpartition(" ")[2])
        await lock(connection)
        await append(connection, datetime.now(UTC), [told_pruned(cut, forgotten, None, by=by)])
    return forgotten


async def _remove(link: Link, project: str, cut: datetime, by: str) -> int:
    """Remove a project's oldest events, as far as all of them are older than `cut` and of calls that ended.

    Where the kept ones begin is noted with the head, so the chain verifies from there. Those of `_system` stay: what
    accounts and tokens are is told there. One project in one transaction, which takes the lock of `_system` alone, at
    its end: the oldest events of the others change no more.
    """
    async with link.transaction([project, SYSTEM_PROJECT], writing=True) as connection:
        await connection.execute("SET LOCAL statement_timeout=0")
        first = await connection.fetchval(
            "SELECT min(e.seq) FROM events AS e LEFT JOIN tool_executions AS t ON t.project_id=e.project_id "
            "AND t.call_id=e.call_id WHERE e.project_id=$1 AND (e.at>=$2 OR NOT (t.status = ANY ($3::text[])))",
            project, cut, list(_FINAL),
        )  # fmt: skip
        row = await connection.fetchrow(
            "SELECT seq, hash FROM events WHERE project_id=$1 AND seq<coalesce($2, 9223372036854775807) "
            "ORDER BY seq DESC LIMIT 1",
            project, first,
        )  # fmt: skip
        if row is None:
            return 0
        done = await connection.execute("DELETE FROM events WHERE project_id=$1 AND seq<=$2", project, row[0])
        sql = "UPDATE chain_heads SET base_seq=$2, base_hash=$3 WHERE project_id=$1"
        await connection.execute(sql, project, *row)
        removed = int(done.rpartition(" ")[2])
        await lock(connection)
        await append(connection, datetime.now(UTC), [told_pruned(cut, 0, removed, by=by, project=project)])
    return removed
