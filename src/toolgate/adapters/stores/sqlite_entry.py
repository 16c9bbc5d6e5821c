"""A change as rows: what the writer will write, made by whoever brings the change and off the writer's time.

Only the events are missing; they take their place in the chain inside the transaction.
"""

from __future__ import annotations

from typing import NamedTuple

from toolgate.adapters.stores.rows import (
    APPROVAL_COLUMNS,
    CALL_COLUMNS,
    CHANGING,
    GRANT_COLUMNS,
    PARAMS,
    UNDO_COLUMNS,
    Row,
    approval_row,
    call_changes,
    call_row,
    moment,
    params_row,
    undo_row,
    uuid_hex,
)
from toolgate.adapters.stores.sealing import Sealer
from toolgate.adapters.stores.sqlite_bulk import inserting, updating
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change

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
INSERT_EVENT = inserting("events", ("position", "project_id", "seq", "type", "at", "call_id", "body", "prev", "hash"))
INSERT_RATE = inserting("rate_uses", ("project_id", "key", "at", "amount"))

_AWAITING = Status.AWAITING_APPROVAL

Rest = tuple[Row | None, tuple[Row, ...], Row | None, Row | None]
"""Rows few changes have: the call's parameters, approvals, an undo record, a run."""


class Entry(NamedTuple):
    """A change and its rows. A call is inserted or updated, never both."""

    change: Change
    insert: Row | None = None
    update: Row | None = None
    rest: Rest | None = None


def entry_of(change: Change, sealer: Sealer) -> Entry:
    """Return the change with its rows, sealed; raises what a value that cannot be encoded raises."""
    call = change.call
    insert = update = run = params = None
    if call is not None and change.expect is None:
        insert = call_row(call, sealer)
        if call.context.run_id is not None:
            run = (uuid_hex(call.context.run_id), call.project, call.context.run_id, moment(call.created_at))
    elif call is not None:
        key = (call.project, uuid_hex(call.id))
        update = (*call_changes(call, sealer), *key, change.expect)
        if call.status is _AWAITING or change.rewrites:  # only asking again can change what would run
            params = (*params_row(call, sealer), *key)
    if run is None and params is None and change.undo is None and not change.approvals:
        return Entry(change, insert, update)
    undo = None if change.undo is None else undo_row(change.undo, sealer)
    approvals = tuple([approval_row(approval) for approval in change.approvals])
    return Entry(change, insert, update, (params, approvals, undo, run))


def are_apart(entries: list[Entry]) -> bool:
    """Whether no change of these can decide what becomes of another one."""
    if len(entries) == 1:
        return True
    seen = set()
    for change, *_ in entries:
        if change.reservations or change.undo_expect is not None or change.set_mode is not None:
            return False
        if change.grant is not None:
            return False
        if change.call is not None:
            seen.add((change.call.project, change.call.id))
    return len(seen) == sum(entry.change.call is not None for entry in entries)
