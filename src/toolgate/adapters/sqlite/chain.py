"""An event at the end of the chain of `_system`, inside a transaction of the caller: of what is no change of a call."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from toolgate.adapters.sql.rows import moment
from toolgate.adapters.sqlite.statements import INSERT_EVENT
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.event import Draft, genesis, link

_HEAD = "SELECT seq, hash FROM chain_heads WHERE project_id=?"
_PUT_HEAD = (
    "INSERT INTO chain_heads (project_id, seq, hash) VALUES (?, ?, ?) "
    "ON CONFLICT (project_id) DO UPDATE SET seq=excluded.seq, hash=excluded.hash"
)


def append(connection: sqlite3.Connection, at: datetime, drafts: Sequence[Draft]) -> int:
    """Add events to the chain of the project `_system`, in a transaction that writes; return the last one's number."""
    seq, last = connection.execute(_HEAD, (SYSTEM_PROJECT,)).fetchone() or (0, genesis(SYSTEM_PROJECT))
    (position,) = connection.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()
    linked = link(drafts, SYSTEM_PROJECT, at, seq, last)
    rows = [
        (position + step, SYSTEM_PROJECT, number, name, moment(at), *rest)
        for step, (number, name, _, *rest) in enumerate(linked, 1)
    ]
    INSERT_EVENT.write(connection, rows)
    connection.execute(_PUT_HEAD, (SYSTEM_PROJECT, linked[-1][0], linked[-1][7]))
    return linked[-1][0]
