"""What a change writes, made ready by whoever brings the change and off the writer's time. For every SQL store.

Only the events are missing; they take their place in the chain inside the transaction.
"""

from __future__ import annotations

from typing import NamedTuple

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.rows import (
    Row,
    approval_row,
    call_changes,
    call_row,
    moment,
    params_row,
    undo_row,
    uuid_hex,
)
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.payload import LARGE

_AWAITING = Status.AWAITING_APPROVAL

Rest = tuple[Row | None, tuple[Row, ...], Row | None, Row | None]
"""Rows few changes have: the call's parameters, approvals, an undo record, a run."""


class WriteSet(NamedTuple):
    """All rows that one change writes. A call is inserted or updated, never both.

    `is_ready` False: the rows are yet to be made, by whoever writes them.
    """

    change: Change
    insert: Row | None = None
    update: Row | None = None
    rest: Rest | None = None
    is_ready: bool = True

    def ready(self, sealer: Sealer) -> WriteSet:
        """Return it with its rows; raises what a value that cannot be encoded raises."""
        return self if self.is_ready else write_set_of(self.change, sealer)


def is_large(change: Change) -> bool:
    """Whether the rows of a change are so large that whoever brings it should not make them on an event loop."""
    call, undo = change.call, change.undo
    if undo is not None and len(undo.data) > LARGE:
        return True
    if call is None:
        return False
    return len(call.arguments) > LARGE or (call.result is not None and len(call.result) > LARGE)


def write_set_of(change: Change, sealer: Sealer) -> WriteSet:
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
        return WriteSet(change, insert, update)
    undo = None if change.undo is None else undo_row(change.undo, sealer)
    approvals = tuple([approval_row(approval) for approval in change.approvals])
    return WriteSet(change, insert, update, (params, approvals, undo, run))
