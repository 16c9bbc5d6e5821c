"""An event at the end of the chain of `_system`, inside a transaction of the caller: of what is no change of a call."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from toolgate.adapters.postgres.bulk import INSERT_EVENTS, PUT_EVENTS, columns_of
from toolgate.adapters.postgres.link import Connection
from toolgate.adapters.postgres.write import MODE_LOCK, locks_on
from toolgate.adapters.sql.rows import moment
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.event import Draft, genesis, link


async def lock(connection: Connection) -> None:
    """Keep everybody else from adding to the chain of `_system`, and from changing keys, until the transaction ends."""
    locks = [f"pg_advisory_xact_lock_shared({MODE_LOCK}, 0)", *locks_on([SYSTEM_PROJECT])]
    await connection.execute(f"SELECT {', '.join(locks)}")


async def append(connection: Connection, at: datetime, drafts: Sequence[Draft]) -> int:
    """Add events to the chain of the project `_system`, under its lock; return the last one's number."""
    head = await connection.fetchrow("SELECT seq, hash FROM chain_heads WHERE project_id=$1", SYSTEM_PROJECT)
    seq, last = head or (0, genesis(SYSTEM_PROJECT))
    linked = link(drafts, SYSTEM_PROJECT, at, seq, last)
    rows = [(SYSTEM_PROJECT, number, name, moment(at), *rest) for number, name, _, *rest in linked]
    heads = [(SYSTEM_PROJECT, linked[-1][0], linked[-1][7])]
    await connection.execute(PUT_EVENTS, *INSERT_EVENTS.values(rows), *columns_of(heads))
    return linked[-1][0]
