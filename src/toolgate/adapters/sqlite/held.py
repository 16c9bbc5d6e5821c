"""The keys calls share, in SQLite: who holds them is compared and set inside the transaction of a change."""

from __future__ import annotations

import sqlite3

from toolgate.adapters.held import Held, check_move, check_stands
from toolgate.adapters.sql.rows import moment, time_of, uuid_hex
from toolgate.kernel.change import Change
from toolgate.kernel.holding import How

_HOLDER = "SELECT call_id, held_until FROM effect_keys WHERE project_id=? AND effect_key=?"
_PUT = "INSERT OR REPLACE INTO effect_keys (project_id, effect_key, call_id, held_until) VALUES (?,?,?,?)"
_FREE = "DELETE FROM effect_keys WHERE project_id=? AND effect_key=?"
_VERSION = "SELECT version FROM tool_executions WHERE project_id=? AND id=?"


def check_held(connection: sqlite3.Connection, change: Change) -> None:
    """Raise EffectHeldError where a key, or the call a change rests on, is not as the change expects."""
    if (stands := change.stands) is not None:
        row = connection.execute(_VERSION, (change.project, uuid_hex(stands[0]))).fetchone()
        check_stands(stands, None if row is None else row[0])
    for move in change.moves:
        if move.how is How.HARD:
            check_move(move, _held(connection, change.project, move.key), change.at)


def move_keys(connection: sqlite3.Connection, change: Change) -> None:
    """Make the moves of a change that was checked; a soft one is made where its key is held as expected."""
    for move in change.moves:
        if move.only_looks:
            continue
        if move.how is How.SOFT:
            held = _held(connection, change.project, move.key)
            if held is None or held[0] != move.expect:
                continue
        if move.holder is None:
            connection.execute(_FREE, (change.project, move.key))
        else:
            connection.execute(_PUT, (change.project, move.key, move.holder, moment(move.until)))


def _held(connection: sqlite3.Connection, project: str, key: str) -> Held | None:
    row = connection.execute(_HOLDER, (project, key)).fetchone()
    return None if row is None else (row[0], time_of(row[1]))
