"""Writing changes to SQLite: one transaction for many changes, each wholly in it or not at all.

Runs on whatever thread holds the writer's lock. Everything that can refuse a change is looked at
before its first row is written, so one refused change never takes the others of its group along.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from toolgate.adapters.stores.rows import (
    APPROVAL_COLUMNS,
    BORN,
    CALL_COLUMNS,
    UNDO_COLUMNS,
    approval_row,
    call_changes,
    call_row,
    moment,
    seal_params,
    undo_row,
    uuid_hex,
)
from toolgate.adapters.stores.sealing import Sealer
from toolgate.errors import ConflictError, ModeChangedError, RateLimitError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change, Durability, Reservation
from toolgate.kernel.context import Mode
from toolgate.kernel.event import Event, genesis, seal


def _insert(table: str, columns: tuple[str, ...], *, verb: str = "INSERT") -> str:
    return f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


_CHANGING = [name for name in CALL_COLUMNS[BORN:] if name != "sealed_params"]
_INSERT_CALL = _insert("tool_executions", CALL_COLUMNS, verb="INSERT OR IGNORE")
_UPDATE_CALL = (
    f"UPDATE tool_executions SET {', '.join(f'{name}=?' for name in _CHANGING)} "
    "WHERE project_id=? AND id=? AND version=?"
)
_UPDATE_PARAMS = "UPDATE tool_executions SET sealed_params=? WHERE project_id=? AND id=?"
_PUT_APPROVAL = (
    _insert("approval_requests", APPROVAL_COLUMNS)
    + " ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name}=excluded.{name}" for name in APPROVAL_COLUMNS[9:])
)
_PUT_UNDO = _insert("undo_records", UNDO_COLUMNS, verb="INSERT OR REPLACE")
_INSERT_RUN = "INSERT OR IGNORE INTO runs (id, project_id, name, created_at) VALUES (?,?,?,?)"
_INSERT_EVENT = _insert("events", ("project_id", "seq", "type", "at", "call_id", "body", "prev", "hash"))
_PUT_HEAD = _insert("chain_heads", ("project_id", "seq", "hash"), verb="INSERT OR REPLACE")
_PUT_SETTING = _insert("settings", ("name", "value"), verb="INSERT OR REPLACE")
_SEALED_PARAMS_AT = len(_CHANGING) - 1  # where call_changes leaves the gap for sealed_params

Outcome = Exception | None


@dataclass(slots=True)
class Group:
    """One transaction's worth of changes and what became of each."""

    changes: list[Change]
    heads: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    events: list[tuple[object, ...]] = field(default_factory=list)
    mode: Mode | None = None

    @property
    def durability(self) -> Durability:
        return max(change.durability for change in self.changes)


class Writer:
    """Writes groups of changes on one connection. The caller serialises calls."""

    def __init__(self, connection: sqlite3.Connection, sealer: Sealer) -> None:
        self._connection = connection
        self._sealer = sealer
        self._synchronous: Durability | None = None
        self._runs: set[tuple[str, str]] = set()

    def write(self, group: Group) -> None:
        """Write the group in one transaction and fill its outcomes; what SQLite raises means nothing was written."""
        connection = self._connection
        self._set_durability(group.durability)
        connection.execute("BEGIN IMMEDIATE")
        try:
            group.mode = self._mode()
            for change in group.changes:
                group.outcomes.append(self._attempt(change, group))
            connection.executemany(_INSERT_EVENT, group.events)
            for project, (seq, link) in group.heads.items():
                connection.execute(_PUT_HEAD, (project, seq, link))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._runs.clear()
            raise

    def _set_durability(self, wanted: Durability) -> None:
        if wanted is not self._synchronous:
            level = "FULL" if wanted is Durability.FSYNCED else "NORMAL"
            self._connection.execute(f"PRAGMA synchronous={level}")
            self._synchronous = wanted

    def _mode(self) -> Mode:
        row = self._connection.execute("SELECT value FROM settings WHERE name='mode'").fetchone()
        return Mode(row[0]) if row is not None else Mode.NORMAL

    def _attempt(self, change: Change, group: Group) -> Outcome:
        try:
            self._check(change, group)
            sealed = self._seal(change, group)
        except Exception as error:  # noqa: BLE001  # refused before its first row: the error is its outcome
            return error
        call = change.call
        if call is not None and not self._put_call(call, change):
            return ConflictError(f"Call {call.id} was changed by somebody else.")
        if sealed:
            at = moment(change.at)
            group.events += [(*event[:3], at, *event[4:]) for event in sealed]
            group.heads[change.project] = (sealed[-1].seq, sealed[-1].hash)
        self._put_rest(change)
        if change.set_mode is not None:
            self._connection.execute(_PUT_SETTING, ("mode", change.set_mode.value))
            group.mode = change.set_mode
        return None

    def _check(self, change: Change, group: Group) -> None:
        if change.mode_seen is not None and change.mode_seen is not group.mode:
            raise ModeChangedError(f"The mode is {group.mode}, not {change.mode_seen}.")
        if change.undo_expect is not None and change.undo is not None:
            row = self._connection.execute(
                "SELECT state FROM undo_records WHERE project_id=? AND action_id=?",
                (change.undo.project, uuid_hex(change.undo.call_id)),
            ).fetchone()
            if row is None or row[0] != change.undo_expect.value:
                raise ConflictError(f"Call {change.undo.call_id} is not {change.undo_expect} for undo any more.")
        if change.reservations:
            self._check_version(change)  # whoever comes second hears of that, not of the rate
        for reservation in change.reservations:
            self._check_rate(change, reservation)

    def _check_version(self, change: Change) -> None:
        call = change.call
        if call is None:
            return
        row = self._connection.execute(
            "SELECT version FROM tool_executions WHERE project_id=? AND id=?", (call.project, uuid_hex(call.id))
        ).fetchone()
        if (None if row is None else row[0]) != change.expect:
            raise ConflictError(f"Call {call.id} was changed by somebody else.")

    def _check_rate(self, change: Change, reservation: Reservation) -> None:
        start = change.at.timestamp() - reservation.window_s
        used = self._connection.execute(
            "SELECT count(*) FROM rate_uses WHERE project_id=? AND key=? AND at>?",
            (change.project, reservation.key, start),
        ).fetchone()[0]
        if used >= reservation.limit:
            raise RateLimitError(
                f"Rate limit exceeded: {reservation.limit} in {reservation.window_s:g} s for {reservation.key}."
            )

    def _seal(self, change: Change, group: Group) -> list[Event]:
        if not change.events:
            return []
        project = change.project
        seq, last = group.heads.get(project) or self._head(project)
        sealed: list[Event] = []
        for draft in change.events:
            seq += 1
            event = seal(draft, project, seq, change.at, last)
            last = event.hash
            sealed.append(event)
        return sealed

    def _head(self, project: str) -> tuple[int, bytes]:
        row = self._connection.execute("SELECT seq, hash FROM chain_heads WHERE project_id=?", (project,)).fetchone()
        return (0, genesis(project)) if row is None else (row[0], row[1])

    def _put_call(self, call: Call, change: Change) -> bool:
        """Insert or update the row; False where it is not as expected, and then nothing is written."""
        connection = self._connection
        if change.expect is None:
            done = connection.execute(_INSERT_CALL, call_row(call, self._sealer)).rowcount == 1
            if done and call.context.run_id is not None:
                self._put_run(call, call.context.run_id)
            return done
        values = call_changes(call, self._sealer)
        del values[_SEALED_PARAMS_AT]
        where = (call.project, uuid_hex(call.id))
        if connection.execute(_UPDATE_CALL, (*values, *where, change.expect)).rowcount != 1:
            return False
        if call.status is Status.AWAITING_APPROVAL:
            # Only asking again can change what would run.
            connection.execute(_UPDATE_PARAMS, (seal_params(call, self._sealer), *where))
        return True

    def _put_run(self, call: Call, run_id: str) -> None:
        key = (call.project, run_id)
        if key not in self._runs:
            self._connection.execute(_INSERT_RUN, (uuid_hex(run_id), call.project, run_id, moment(call.created_at)))
            self._runs.add(key)

    def _put_rest(self, change: Change) -> None:
        connection = self._connection
        for approval in change.approvals:
            connection.execute(_PUT_APPROVAL, approval_row(approval))
        if change.undo is not None:
            connection.execute(_PUT_UNDO, undo_row(change.undo, self._sealer))
        for reservation in change.reservations:
            connection.execute(
                "INSERT INTO rate_uses (project_id, key, at) VALUES (?,?,?)",
                (change.project, reservation.key, change.at.timestamp()),
            )
