"""Reading from PostgreSQL. Every read sees all changes whose commit has returned, of the projects it names alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from toolgate.adapters.postgres.bulk import FREE_UNDO
from toolgate.adapters.postgres.link import EVERYTHING, Link
from toolgate.adapters.postgres.owners import LEASE_S
from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.brakes import LATER, Later, Watch, serial_of
from toolgate.adapters.sql.delegation_rows import DELEGATION_COLUMNS, delegation_of
from toolgate.adapters.sql.rows import (
    APPROVAL_COLUMNS,
    EVENT_COLUMNS,
    GRANT_COLUMNS,
    QUESTION,
    UNDO,
    approval_of,
    call_columns,
    call_of,
    event_of,
    grant_of,
    head_of,
    question_of,
    undo_of,
    uuid_hex,
)
from toolgate.kernel.approval import Approval
from toolgate.kernel.brake import Brakes
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Grant
from toolgate.kernel.undo import UndoRecord
from toolgate.ports.store import ApprovalQuery, CallQuery, DelegationQuery, Due, GrantQuery, Head, Question

_CALL = f"SELECT {call_columns('t')} FROM tool_executions AS t"
_APPROVAL = f"SELECT {', '.join(APPROVAL_COLUMNS)} FROM approval_requests"
_DELEGATION = f"SELECT {', '.join(DELEGATION_COLUMNS)} FROM delegations"
_GRANT = f"SELECT {', '.join(GRANT_COLUMNS)} FROM grants"
_EVENT_FIELDS = f"SELECT {', '.join(EVENT_COLUMNS)}"
_EVENT = f"{_EVENT_FIELDS} FROM events"
_CALLS_BY_KEY = f"""
SELECT t.* FROM unnest($1::text[], $2::uuid[]) AS v(project, id) CROSS JOIN LATERAL (
  {_CALL} WHERE t.project_id=v.project AND t.id=v.id OFFSET 0
) AS t
"""
"""Each is found by its key, whatever was known of the table when the statement was planned."""
_APPROVALS_BY_ID = f"{_APPROVAL} WHERE id = ANY ($1::uuid[])"
_GRANTS_BY_TOOL = f"""
SELECT g.* FROM unnest($1::text[], $2::text[]) AS v(project, tool) CROSS JOIN LATERAL (
  {_GRANT} AS g WHERE g.project_id=v.project AND g.tool_name=v.tool AND g.expires_at>$3 AND g.revoked_at IS NULL
    AND g.uses_left>0 OFFSET 0
) AS g ORDER BY g.created_at, g.id
"""
_PLACE = ("created_at", 'project_id COLLATE "C"', 'call_id COLLATE "C"')
"""Where a call stands among the others, oldest first."""
_DEAD = (
    "NOT EXISTS (SELECT 1 FROM owners AS o WHERE o.owner=t.owner AND o.alive_until>now()) "
    "AND pg_postmaster_start_time() < now() - make_interval(secs => $3)"
)
"""After a start of the server everybody gets the time to say that they are alive."""


class _Where:
    """Conditions that are written one by one, with their values."""

    def __init__(self) -> None:
        self.clauses: list[str] = ["true"]
        self.values: list[Any] = []

    def add(self, clause: str, *values: Any) -> None:
        """Add a condition; each `?` in it stands for one of the values."""
        for value in values:
            self.values.append(value)
            clause = clause.replace("?", f"${len(self.values)}", 1)
        self.clauses.append(clause)

    def sql(self, select: str, order: str, limit: int) -> str:
        self.values.append(limit)
        return f"{select} WHERE {' AND '.join(self.clauses)} ORDER BY {order} LIMIT ${len(self.values)}"


def _seen(project: str | None) -> str | list[str]:
    return EVERYTHING if project is None else [project]


class Reader:
    """Used on the link's loop."""

    def __init__(self, link: Link, sealer: Sealer) -> None:
        self._link = link
        self._sealer = sealer

    async def call_rows(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Any]:
        """The rows of the calls of these projects and ids, as far as there are such."""
        columns = [project for project, _ in keys], [uuid_hex(call_id) for _, call_id in keys]
        found = await self._link.fetch(_CALLS_BY_KEY, *columns, projects=sorted(set(columns[0])))
        return {(row["project_id"], row["call_id"]): row for row in found}

    async def approval_rows(self, keys: Sequence[tuple[str | None, str]]) -> dict[tuple[str | None, str], Any]:
        """The rows of the approvals of these ids, where they are of the project that is named, if one is."""
        projects = {project for project, _ in keys}
        seen = EVERYTHING if None in projects else sorted(project for project in projects if project is not None)
        ids = {key: UUID(uuid_hex(key[1])) for key in keys}
        found = await self._link.fetch(_APPROVALS_BY_ID, list(set(ids.values())), projects=seen)
        there = {row["id"]: row for row in found}
        asked = {key: there.get(id) for key, id in ids.items()}
        return {key: row for key, row in asked.items() if row is not None and key[0] in (None, row["project_id"])}

    async def grant_rows(self, keys: Sequence[tuple[str, str, datetime]]) -> dict[tuple[str, str, datetime], Any]:
        """The rows of the grants for these projects and tools that may be used at these times, oldest first."""
        pairs = list({(project, tool) for project, tool, _ in keys})
        columns = [project for project, _ in pairs], [tool for _, tool in pairs], min(at for *_, at in keys)
        found: dict[tuple[str, str], list[Any]] = {}
        for row in await self._link.fetch(_GRANTS_BY_TOOL, *columns, projects=sorted(set(columns[0]))):
            found.setdefault((row["project_id"], row["tool_name"]), []).append(row)
        return {key: [row for row in found.get(key[:2], ()) if row["expires_at"] > key[2]] for key in keys}

    def call(self, row: Any) -> Call:
        """What a row of a call says."""
        return call_of(row, self._sealer)

    async def calls(self, query: CallQuery) -> list[Call]:
        where = _Where()
        if query.project is not None:
            where.add("project_id=?", query.project)
        if query.statuses is not None:
            where.add("status=ANY(?)", sorted(status.value for status in query.statuses))
        if query.run_id is not None:
            where.add("pipeline_run_id=?", uuid_hex(query.run_id))
        if query.tool_name is not None:
            where.add("tool_name=?", query.tool_name)
        if query.since is not None:
            where.add("created_at>=?", query.since)
        beyond, way = ("<", " DESC") if query.newest_first else (">", "")
        if query.after is not None:
            last = query.after
            where.add(f"({', '.join(_PLACE)}) {beyond} (?, ?, ?)", last.created_at, last.project, last.id)
        sql = where.sql(_CALL, ", ".join(f"{column}{way}" for column in _PLACE), query.limit)
        return self._calls(await self._link.fetch(sql, *where.values, projects=_seen(query.project)))

    def _calls(self, rows: list[Any]) -> list[Call]:
        return [call_of(row, self._sealer) for row in rows]

    async def approvals(self, query: ApprovalQuery) -> list[Approval]:
        where = _Where()
        if query.id is not None:
            where.add("id=?", uuid_hex(query.id))
        if query.project is not None:
            where.add("project_id=?", query.project)
        if query.call_id is not None:
            where.add("action_id=?", uuid_hex(query.call_id))
        if query.status is not None:
            where.add(f"status='{query.status.value}'")  # written out, so that the index on what waits is used
        if query.after is not None:
            where.add("(created_at, id) > (?, ?)", query.after.created_at, uuid_hex(query.after.id))
        sql = where.sql(_APPROVAL, "created_at, id", query.limit)
        return [approval_of(row) for row in await self._link.fetch(sql, *where.values, projects=_seen(query.project))]

    async def question(self, approval_id: str, project: str | None) -> Question | None:
        where, values = ("", ()) if project is None else (" AND a.project_id=$2", (project,))
        sql, id = f"{QUESTION} WHERE a.id=$1{where}", uuid_hex(approval_id)
        found = await self._link.fetch(sql, id, *values, projects=_seen(project))
        return question_of(found[0], self._sealer) if found else None

    async def undo(self, project: str, call_id: str) -> UndoRecord | None:
        sql = f"{UNDO} WHERE project_id=$1 AND action_id=$2"
        found = await self._link.fetch(sql, project, uuid_hex(call_id), projects=[project])
        return undo_of(found[0], self._sealer) if found else None

    async def grants(self, query: GrantQuery) -> list[Grant]:
        where = _Where()
        if query.project is not None:
            where.add("project_id=?", query.project)
        if query.id is not None:
            where.add("id=?", uuid_hex(query.id))
        if query.tool_name is not None:
            where.add("tool_name=?", query.tool_name)
        if query.live_at is not None:
            where.add("expires_at>? AND revoked_at IS NULL AND uses_left>0", query.live_at)
        sql = where.sql(_GRANT, "created_at, id", query.limit)
        return [grant_of(row) for row in await self._link.fetch(sql, *where.values, projects=_seen(query.project))]

    async def delegations(self, query: DelegationQuery) -> list[Delegation]:
        where = _Where()
        columns = {"project_id": query.project, "giver": query.giver, "delegate": query.delegate}
        for column, value in columns.items():
            if value is not None:
                where.add(f"{column}=?", value)
        if query.id is not None:
            where.add("id=?", uuid_hex(query.id))
        if query.live_at is not None:
            where.add("expires_at>? AND ended_at IS NULL", query.live_at)
        sql = where.sql(_DELEGATION, "created_at, id", query.limit)
        found = await self._link.fetch(sql, *where.values, projects=_seen(query.project))
        return [delegation_of(row) for row in found]

    async def events(self, project: str, *, after: int, limit: int, call_id: str | None) -> list[Event]:
        where = _Where()
        where.add("project_id=? AND seq>?", project, after)
        source = _EVENT
        if call_id is not None:  # few: found by their call, and not by walking the project's events in their order
            where.values.append(call_id)
            source = f"{_EVENT_FIELDS} FROM (SELECT * FROM events WHERE call_id=${len(where.values)} OFFSET 0) AS e"
        sql = where.sql(source, "seq", limit)
        return [event_of(row) for row in await self._link.fetch(sql, *where.values, projects=[project])]

    async def head(self, project: str) -> Head:
        sql = "SELECT seq, hash, base_seq, base_hash FROM chain_heads WHERE project_id=$1"
        return head_of(project, await self._link.fetch(sql, project, projects=[project]))

    async def due(self, now: datetime, limit: int) -> Due:
        """What has come due, after expired undo records were freed."""
        async with self._link.transaction(EVERYTHING, writing=True) as connection:
            await connection.execute(FREE_UNDO, now)
            found = await connection.fetch(f"{_CALL} WHERE due_at<=$1 ORDER BY due_at LIMIT $2", now, limit)
            next_at = await connection.fetchval("SELECT min(due_at) FROM tool_executions WHERE due_at IS NOT NULL")
        return Due(self._calls(found), next_at)

    async def brakes(self, watch: Watch) -> Brakes:
        """The stored brakes, as far as they are to be believed; the chain is looked into only where they changed."""
        newest, stored = watch.newest, await self._stored_brakes()
        while (known := watch.known(*stored)) is None:
            later = await self.later_changes(stored[0])
            before, stored = stored, await self._stored_brakes()
            if stored == before:  # nobody set a mode between the row and the chain
                return watch.believe(stored[0], later, newest=newest, at=stored[1])
        return known

    async def _stored_brakes(self) -> tuple[str | None, str | None]:
        """The row, and which transaction wrote it."""
        found = await self._link.fetch(
            "SELECT value, xmin::text FROM settings WHERE name='mode'", projects=[SYSTEM_PROJECT]
        )
        return tuple(found[0]) if found else (None, None)

    async def later_changes(self, text: str | None) -> Later:
        """What the chain of `_system` holds after the event that a stored text names."""
        found = await self._link.fetch(LATER.format("$1"), serial_of(text), projects=[SYSTEM_PROJECT])
        return Later(*found[0]) if found else Later()

    async def orphans(self, owner: str, status: Status, limit: int) -> list[Call]:
        """The oldest calls in this status whose owner is dead; also where they have none, unless a person is asked."""
        asked = status is Status.AWAITING_APPROVAL
        lost = f"owner IS NOT NULL AND {_DEAD}" if asked else f"(owner IS NULL OR {_DEAD})"
        sql = f"{_CALL} WHERE status=$1 AND owner IS DISTINCT FROM $2 AND {lost} ORDER BY created_at LIMIT $4"
        return self._calls(await self._link.fetch(sql, status.value, owner, LEASE_S, limit, projects=EVERYTHING))

    async def has_dead(self) -> bool:
        """Whether some owner died of late."""
        sql = "SELECT 1 FROM owners WHERE alive_until<=now() LIMIT 1"
        return bool(await self._link.fetch(sql, projects=EVERYTHING))

    async def setting(self, name: str) -> str | None:
        found = await self._link.fetch("SELECT value FROM settings WHERE name=$1", name, projects=EVERYTHING)
        return found[0][0] if found else None


def grants_of(rows: list[Any]) -> list[Grant]:
    """What rows of grants say."""
    return [grant_of(row) for row in rows]
