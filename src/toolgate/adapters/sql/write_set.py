"""What a change writes, made ready by whoever brings the change and off the writer's time. For every SQL store.

Only the events are missing; they take their place in the chain inside the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.large import is_apart
from toolgate.adapters.sql.rows import (
    Row,
    approval_row,
    call_changes,
    call_row,
    large_undo_row,
    moment,
    params_of,
    undo_row,
    uuid_hex,
)
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.payload import LARGE
from toolgate.kernel.undo import UndoRecord

_AWAITING = Status.AWAITING_APPROVAL


class Beside(Enum):
    """What is done with a large value that is kept beside its row."""

    PUT_PARAMS = auto()
    DROP_PARAMS = auto()
    PUT_UNDO = auto()
    KEEP_UNDO = auto()
    DROP_UNDO = auto()


class Large(NamedTuple):
    """A large value: the row it is put as, or the keys of the one that is kept or dropped.

    One that is kept is there already and is not sealed again. Its time may have been over meanwhile, and then it is
    gone: `make` returns the row it is put as after all.
    """

    what: Beside
    row: Row
    make: Callable[[], Row] | None = None


class Rest(NamedTuple):
    """Rows few changes have: the call's parameters, approvals, an undo record, a run, and what is kept beside them."""

    params: Row | None = None
    approvals: tuple[Row, ...] = ()
    undo: Row | None = None
    run: Row | None = None
    beside: tuple[Large, ...] = ()


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
    return any(value is not None and len(value) > LARGE for value in (call.arguments, call.preconditions, call.result))


def write_set_of(change: Change, sealer: Sealer) -> WriteSet:
    """Return the change with its rows, sealed; raises what a value that cannot be encoded raises."""
    call = change.call
    insert = update = run = params = None
    beside: list[Large] = []
    if call is not None and change.expect is None:
        made = params_of(call, sealer)
        insert = call_row(call, sealer, made)
        if made[2] is not None:
            beside.append(Large(Beside.PUT_PARAMS, made[2]))
        if call.context.run_id is not None:
            run = (uuid_hex(call.context.run_id), call.project, call.context.run_id, moment(call.created_at))
    elif call is not None:
        key = (call.project, uuid_hex(call.id))
        update = (*call_changes(call, sealer), *key, change.expect)
        if call.status is _AWAITING or change.rewrites:  # only asking again can change what would run
            *columns, large = params_of(call, sealer)
            params = (*columns, *key)
            if large is not None:
                beside.append(Large(Beside.PUT_PARAMS, large))
            elif change.rewrites:
                beside.append(Large(Beside.DROP_PARAMS, key))
    if run is None and params is None and change.undo is None and not change.approvals and not beside:
        return WriteSet(change, insert, update)
    undo = None
    if change.undo is not None:
        undo = undo_row(change.undo, sealer)
        beside += _undo_data(change, change.undo, sealer)
    approvals = tuple([approval_row(approval) for approval in change.approvals])
    return WriteSet(change, insert, update, Rest(params, approvals, undo, run, tuple(beside)))


def _undo_data(change: Change, undo: UndoRecord, sealer: Sealer) -> Iterator[Large]:
    """What becomes of an undo record's data where that is or was large."""
    key = (undo.project, uuid_hex(undo.call_id))
    if is_apart(undo.data):
        if change.undo_stored:
            yield Large(Beside.KEEP_UNDO, key, partial(large_undo_row, undo, sealer))
        else:
            yield Large(Beside.PUT_UNDO, large_undo_row(undo, sealer))
    elif not change.undo_stored and change.expect is not None:  # of a new call, there is nothing yet
        yield Large(Beside.DROP_UNDO, key)
