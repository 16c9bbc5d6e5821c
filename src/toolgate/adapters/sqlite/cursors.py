"""How far named sinks were told, in SQLite: one row each, held by one owner at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from toolgate.ports.sink import Cursor

_FIND = "SELECT seq, owner FROM sink_cursors WHERE project_id=? AND sink=?"
_HEAD = "SELECT seq FROM chain_heads WHERE project_id=?"
_PUT = "INSERT INTO sink_cursors (project_id, sink, seq, owner) VALUES (?,?,?,?)"
_TAKE = "UPDATE sink_cursors SET owner=? WHERE project_id=? AND sink=?"
_MOVE = "UPDATE sink_cursors SET seq=max(seq, ?) WHERE project_id=? AND sink=? AND owner=?"
_LEAVE = "UPDATE sink_cursors SET owner=NULL WHERE project_id=? AND sink=? AND owner=?"


def open_cursor(
    connection: sqlite3.Connection, project: str, sink: str, owner: str, is_alive: Callable[[str], bool]
) -> Cursor:
    """Find or make the row and take it, unless an owner that is alive has it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (head,) = connection.execute(_HEAD, (project,)).fetchone() or (0,)
        seq, holder = connection.execute(_FIND, (project, sink)).fetchone() or (None, None)
        is_ours = holder is None or holder == owner or not is_alive(holder)
        if seq is None:
            connection.execute(_PUT, (project, sink, head, owner))
        elif is_ours:
            connection.execute(_TAKE, (owner, project, sink))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return Cursor(head if seq is None else seq, head, is_ours)


def move_cursor(connection: sqlite3.Connection, project: str, sink: str, owner: str, seq: int) -> bool:
    """Move the row on; False where it is not this owner's."""
    return connection.execute(_MOVE, (seq, project, sink, owner)).rowcount == 1


def close_cursor(connection: sqlite3.Connection, project: str, sink: str, owner: str) -> None:
    """Leave the row to whoever comes."""
    connection.execute(_LEAVE, (project, sink, owner))
