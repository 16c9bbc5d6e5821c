"""How far named sinks were told, in PostgreSQL: one row each, held by one owner at a time."""

from __future__ import annotations

from toolgate.adapters.postgres.link import Link
from toolgate.ports.sink import Cursor

_HEAD = "SELECT seq FROM chain_heads WHERE project_id=$1"
_OPEN = """
INSERT INTO sink_cursors AS c (project_id, sink, seq, owner) VALUES ($1, $2, $3, $4)
ON CONFLICT (project_id, sink) DO UPDATE SET owner =
    CASE WHEN EXISTS (SELECT 1 FROM owners AS o WHERE o.owner=c.owner AND o.alive_until>now())
    THEN c.owner ELSE excluded.owner END
RETURNING seq, owner
"""
_MOVE = """
UPDATE sink_cursors SET seq=greatest(seq, $4) WHERE project_id=$1 AND sink=$2 AND owner=$3 RETURNING seq
"""
_LEAVE = "UPDATE sink_cursors SET owner=NULL WHERE project_id=$1 AND sink=$2 AND owner=$3"


class Cursors:
    """Used on the link's loop."""

    def __init__(self, link: Link, owner: str) -> None:
        self._link = link
        self._owner = owner

    async def open(self, project: str, sink: str | None) -> Cursor:
        """Find or make the row and take it, unless an owner that is alive has it."""
        if sink is None:
            found = await self._link.fetch(_HEAD, project, projects=[project])
            head = found[0][0] if found else 0
            return Cursor(head, head, is_ours=True)
        async with self._link.transaction([project], writing=True) as connection:
            head = await connection.fetchval(_HEAD, project) or 0
            seq, owner = await connection.fetchrow(_OPEN, project, sink, head, self._owner)
        return Cursor(seq, head, owner == self._owner)

    async def move(self, project: str, sink: str, seq: int) -> bool:
        """Move the row on; False where it is not this owner's."""
        async with self._link.transaction([project], writing=True) as connection:
            return await connection.fetchval(_MOVE, project, sink, self._owner, seq) is not None

    async def close(self, project: str, sink: str) -> None:
        """Leave the row to whoever comes."""
        async with self._link.transaction([project], writing=True) as connection:
            await connection.execute(_LEAVE, project, sink, self._owner)
