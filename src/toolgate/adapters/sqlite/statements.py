"""The statements that write the rows of a change to SQLite, and which changes may be written together."""

from __future__ import annotations

from toolgate.adapters.sql.rows import (
    APPROVAL_COLUMNS,
    CALL_COLUMNS,
    CHANGING,
    EVENT_COLUMNS,
    GRANT_COLUMNS,
    PARAMS,
    UNDO_COLUMNS,
)
from toolgate.adapters.sql.write_set import WriteSet
from toolgate.adapters.sqlite.bulk import inserting, updating

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
INSERT_RUN = inserting("runs", ("id", "project_id", "name", "created_at"), verb="INSERT OR IGNORE")
INSERT_EVENT = inserting("events", ("position", *EVENT_COLUMNS))
INSERT_RATE = inserting("rate_uses", ("project_id", "key", "at", "amount"))


def are_apart(write_sets: list[WriteSet]) -> bool:
    """Whether no change of these can decide what becomes of another one."""
    if len(write_sets) == 1:
        return True
    seen = set()
    for change, *_ in write_sets:
        if change.reservations or change.undo_expect is not None or change.set_mode is not None:
            return False
        if change.grant is not None:
            return False
        if change.call is not None:
            seen.add((change.call.project, change.call.id))
    return len(seen) == sum(write_set.change.call is not None for write_set in write_sets)
