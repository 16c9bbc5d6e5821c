"""The statements that write the rows of a change to SQLite, and which changes may be written together."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from toolgate.adapters.sql.delegation_rows import DELEGATION_COLUMNS
from toolgate.adapters.sql.rows import (
    APPROVAL_COLUMNS,
    CALL_COLUMNS,
    CHANGING,
    EVENT_COLUMNS,
    GRANT_COLUMNS,
    LARGE_PARAMS_COLUMNS,
    LARGE_UNDO_COLUMNS,
    PARAMS,
    UNDO_COLUMNS,
    moment,
)
from toolgate.adapters.sql.write_set import Beside, Large, WriteSet
from toolgate.adapters.sqlite.bulk import deleting, inserting, updating

INSERT_CALL = inserting("tool_executions", CALL_COLUMNS, verb="INSERT OR IGNORE")
UPDATE_CALL = updating("tool_executions", CALL_COLUMNS[CHANGING:], ("project_id", "id", "version"))
UPDATE_PARAMS = updating("tool_executions", CALL_COLUMNS[PARAMS:CHANGING], ("project_id", "id"))
PUT_APPROVAL = inserting(
    "approval_requests",
    APPROVAL_COLUMNS,
    then=" ON CONFLICT (id) DO UPDATE SET " + ", ".join(f"{name}=excluded.{name}" for name in APPROVAL_COLUMNS[9:]),
)
PUT_UNDO = inserting("undo_records", UNDO_COLUMNS, verb="INSERT OR REPLACE")
PUT_GRANT = inserting("grants", GRANT_COLUMNS, verb="INSERT OR REPLACE")
PUT_DELEGATION = inserting("delegations", DELEGATION_COLUMNS, verb="INSERT OR REPLACE")
INSERT_RUN = inserting("runs", ("id", "project_id", "name", "created_at"), verb="INSERT OR IGNORE")
INSERT_EVENT = inserting("events", ("position", *EVENT_COLUMNS))
INSERT_RATE = inserting("rate_uses", ("project_id", "key", "at", "amount"))
_BESIDE = {
    Beside.PUT_PARAMS: inserting("large_params", LARGE_PARAMS_COLUMNS, verb="INSERT OR REPLACE"),
    Beside.DROP_PARAMS: deleting("large_params", LARGE_PARAMS_COLUMNS[:2]),
    Beside.PUT_UNDO: inserting("large_undo", LARGE_UNDO_COLUMNS, verb="INSERT OR REPLACE"),
    Beside.DROP_UNDO: deleting("large_undo", LARGE_UNDO_COLUMNS[:2]),
}

_HAS_UNDO = "SELECT 1 FROM large_undo WHERE project_id=? AND action_id=?"


def put_large(connection: sqlite3.Connection, large: Large) -> None:
    """Do with a large value what its change says."""
    what, row, make = large
    if make is not None:
        if connection.execute(_HAS_UNDO, row).fetchone() is not None:
            return
        what, row = Beside.PUT_UNDO, make()
    _BESIDE[what].write(connection, [row])


def free_undo(connection: sqlite3.Connection, now: datetime) -> None:
    """Remove undo data whose time is over, inside a transaction."""
    over = "SELECT project_id, action_id FROM undo_records WHERE expires_at<=?"
    connection.execute(f"DELETE FROM large_undo WHERE (project_id, action_id) IN ({over})", (moment(now),))
    connection.execute("DELETE FROM undo_records WHERE expires_at<=?", (moment(now),))


def are_apart(write_sets: list[WriteSet]) -> bool:
    """Whether no change of these can decide what becomes of another one."""
    if len(write_sets) == 1:
        return True
    seen: set[tuple[str, str]] = set()
    keys: set[tuple[str, str]] = set()
    for change, *_ in write_sets:
        if change.reservations or change.undo_expect is not None or change.set_mode is not None:
            return False
        if change.grant is not None or change.delegation is not None or change.stands is not None:
            return False
        for move in change.moves:
            if (change.project, move.key) in keys:
                return False
            keys.add((change.project, move.key))
        if change.call is not None:
            seen.add((change.call.project, change.call.id))
    return len(seen) == sum(write_set.change.call is not None for write_set in write_sets)
