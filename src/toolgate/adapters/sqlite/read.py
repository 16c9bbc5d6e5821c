"""Reading from SQLite. Every read sees all changes whose commit has returned."""

from __future__ import annotations

import sqlite3
import threading
from datetime import datetime
from typing import Any

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.brakes import Watch
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
    moment,
    question_of,
    time_of,
    undo_of,
    uuid_hex,
)
from toolgate.adapters.sqlite.brakes import stored_brakes
from toolgate.errors import StoreError
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.brake import Brakes
from toolgate.kernel.call import Call, Status
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Grant
from toolgate.kernel.undo import UndoRecord
from toolgate.ports.store import ApprovalQuery, CallQuery, DelegationQuery, Due, GrantQuery, Head, Question

_CALL = f"SELECT {call_columns()} FROM tool_executions"
_APPROVAL = f"SELECT {', '.join(APPROVAL_COLUMNS)} FROM approval_requests"
_VERSION = "SELECT version FROM tool_executions WHERE project_id=? AND id=?"
_DELEGATION = f"SELECT {', '.join(DELEGATION_COLUMNS)} FROM delegations"
_GRANT = f"SELECT {', '.join(GRANT_COLUMNS)} FROM grants"
_EVENT = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events"


class Reader:
    """One connection for reading, shared by the threads of a process one at a time."""

    def __init__(self, connection: sqlite3.Connection, sealer: Sealer) -> None:
        self._connection = connection
        self._sealer = sealer
        self._lock = threading.Lock()

    def _all(self, sql: str, values: tuple[Any, ...] | list[Any]) -> list[Any]:
        with self._lock:
            try:
                return self._connection.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"The database cannot be read: {error}.") from error

    def call(self, project: str, call_id: str) -> Call | None:
        found = self._all(
            f"{_CALL} WHERE project_id=? AND id=? AND call_id=?",
            (project, uuid_hex(call_id), call_id),
        )
        return call_of(found[0], self._sealer) if found else None

    def question(self, approval_id: str, project: str | None) -> Question | None:
        where, values = ("", ()) if project is None else (" AND a.project_id=?", (project,))
        found = self._all(f"{QUESTION} WHERE a.id=?{where}", (uuid_hex(approval_id), *values))
        return question_of(found[0], self._sealer) if found else None

    def version(self, project: str, call_id: str) -> int | None:
        """How often a call was changed; None where there is no such call."""
        found = self._all(_VERSION, (project, uuid_hex(call_id)))
        return found[0][0] if found else None

    def calls(self, query: CallQuery) -> list[Call]:
        where: list[str] = ["1=1"]
        values: list[str | None] = []
        # Newest first is what people look at: the plus keeps SQLite on the index of times, which yields the first page
        # at once, and off those of project and tool, where it would sort everything there ever was.
        plus = "+" if query.newest_first and query.run_id is None else ""
        if query.project is not None:
            where.append(f"{plus}project_id=?")
            values.append(query.project)
        if query.statuses is not None:
            wide = plus if Status.COMPLETED in query.statuses else ""  # the other statuses are few
            where.append(f"{wide}status IN ({','.join('?' * len(query.statuses))})")
            values += sorted(status.value for status in query.statuses)
        if query.run_id is not None:
            where.append("pipeline_run_id=?")
            values.append(uuid_hex(query.run_id))
        if query.tool_name is not None:
            where.append(f"{plus}tool_name=?")
            values.append(query.tool_name)
        if query.since is not None:
            where.append("created_at>=?")
            values.append(moment(query.since))
        beyond, way = ("<", " DESC") if query.newest_first else (">", "")
        if query.after is not None:
            where.append(f"(created_at, project_id, call_id) {beyond} (?, ?, ?)")
            values += [moment(query.after.created_at), query.after.project, query.after.id]
        order = ", ".join(f"{column}{way}" for column in ("created_at", "project_id", "call_id"))
        sql = f"{_CALL} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"  # names are ours
        return [call_of(row, self._sealer) for row in self._all(sql, [*values, query.limit])]

    def approvals(self, query: ApprovalQuery) -> list[Approval]:
        where, values = ["1=1"], []
        wanted = {
            "id": None if query.id is None else uuid_hex(query.id),
            "project_id": query.project,
            "action_id": None if query.call_id is None else uuid_hex(query.call_id),
            "status": None if query.status is None else query.status.value,
        }
        # Those that wait have an index in their order, which SQLite takes only where the text of a query says so.
        in_order = query.status is ApprovalStatus.PENDING and query.id is None and query.call_id is None
        if in_order:
            where.append(f"status='{wanted.pop('status')}'")
        for column, value in wanted.items():
            if value is not None:
                where.append(f"{column}=?")
                values.append(value)
        if query.after is not None:
            where.append("(created_at, id) > (?, ?)")
            values += [str(moment(query.after.created_at)), uuid_hex(query.after.id)]
        source = f"{_APPROVAL} INDEXED BY ix_approval_requests_created_at_id" if in_order else _APPROVAL
        sql = f"{source} WHERE {' AND '.join(where)} ORDER BY created_at, id LIMIT ?"  # names are ours
        return [approval_of(row) for row in self._all(sql, [*values, query.limit])]

    def undo(self, project: str, call_id: str) -> UndoRecord | None:
        found = self._all(f"{UNDO} WHERE project_id=? AND action_id=?", (project, uuid_hex(call_id)))
        return undo_of(found[0], self._sealer) if found else None

    def grants(self, query: GrantQuery) -> list[Grant]:
        wanted = {
            "project_id=?": query.project,
            "id=?": None if query.id is None else uuid_hex(query.id),
            "tool_name=?": query.tool_name,
            "expires_at>? AND revoked_at IS NULL AND uses_left>0": moment(query.live_at),
        }
        return [grant_of(row) for row in self._fitting(_GRANT, wanted, query.limit)]

    def delegations(self, query: DelegationQuery) -> list[Delegation]:
        wanted = {
            "project_id=?": query.project,
            "id=?": None if query.id is None else uuid_hex(query.id),
            "giver=?": query.giver,
            "delegate=?": query.delegate,
            "expires_at>? AND ended_at IS NULL": moment(query.live_at),
        }
        return [delegation_of(row) for row in self._fitting(_DELEGATION, wanted, query.limit)]

    def _fitting(self, source: str, wanted: dict[str, str | None], limit: int) -> list[Any]:
        """The rows that fit every condition that has a value, oldest first."""
        where = " AND ".join(["1=1", *(clause for clause, value in wanted.items() if value is not None)])
        values = [value for value in wanted.values() if value is not None]
        return self._all(f"{source} WHERE {where} ORDER BY created_at, rowid LIMIT ?", [*values, limit])

    def events(self, project: str, *, after: int, limit: int, call_id: str | None) -> list[Event]:
        if call_id is None:
            found = self._all(f"{_EVENT} WHERE project_id=? AND seq>? ORDER BY seq LIMIT ?", (project, after, limit))
        else:
            found = self._all(
                # The signs keep SQLite off the index of the chain, which it would walk from end to end.
                f"{_EVENT} WHERE call_id=? AND +project_id=? AND +seq>? ORDER BY +seq LIMIT ?",
                (call_id, project, after, limit),
            )
        return [event_of(row) for row in found]

    def head(self, project: str) -> Head:
        found = self._all("SELECT seq, hash, base_seq, base_hash FROM chain_heads WHERE project_id=?", (project,))
        return head_of(project, found)

    def due(self, now: datetime, limit: int) -> Due:
        found = self._all(f"{_CALL} WHERE due_at<=? ORDER BY due_at LIMIT ?", (moment(now), limit))
        next_row = self._all("SELECT min(due_at) FROM tool_executions WHERE due_at IS NOT NULL", ())
        return Due([call_of(row, self._sealer) for row in found], time_of(next_row[0][0]))

    def has_expired_undo(self, now: datetime) -> bool:
        """Whether there is an undo record whose time is over."""
        return bool(self._all("SELECT 1 FROM undo_records WHERE expires_at<=? LIMIT 1", (moment(now),)))

    def other_owners(self, owner: str, status: Status) -> list[str | None]:
        """Every other owner of calls in this status; None where one has no owner."""
        found = self._all(
            "SELECT DISTINCT owner FROM tool_executions WHERE status=? AND owner IS NOT ?",
            (status.value, owner),
        )
        return [row[0] for row in found]

    def owned_by(self, owners: list[str | None], status: Status, limit: int) -> list[Call]:
        """The oldest calls of any of these owners in this status."""
        owned = " OR ".join(["owner IS ?"] * len(owners))
        found = self._all(
            f"{_CALL} WHERE status=? AND ({owned}) ORDER BY created_at LIMIT ?",  # text is ours
            (status.value, *owners, limit),
        )
        return [call_of(row, self._sealer) for row in found]

    def told_of(self, first: int, last: int) -> list[tuple[str, str, str]]:
        """Return (project, call id, status) of every call the events at these positions tell of."""
        told = self._all(
            "SELECT DISTINCT project_id, call_id FROM events WHERE position BETWEEN ? AND ? AND call_id IS NOT NULL",
            (first, last),
        )
        found = []
        for project, call_id in told:
            row = self._all(
                "SELECT status FROM tool_executions WHERE project_id=? AND id=?", (project, uuid_hex(call_id))
            )
            found += [(project, call_id, status) for (status,) in row]
        return found

    def position(self) -> int:
        """The position of the last event."""
        last: int = self._all("SELECT coalesce(max(position), 0) FROM events", ())[0][0]
        return last

    def data_version(self) -> int:
        """A number that changes whenever another connection has written."""
        version: int = self._all("PRAGMA data_version", ())[0][0]
        return version

    def setting(self, name: str) -> str | None:
        found = self._all("SELECT value FROM settings WHERE name=?", (name,))
        return found[0][0] if found else None

    def brakes(self, watch: Watch) -> Brakes:
        """Return the stored brakes, as far as they are to be believed."""
        with self._lock:
            try:
                self._connection.execute("BEGIN")  # all of it as it stood at one moment
                try:
                    return stored_brakes(self._connection, watch)
                finally:
                    self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise StoreError(f"The database cannot be read: {error}.") from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()
