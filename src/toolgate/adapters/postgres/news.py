"""What other servers wrote, for the bus: sending and hearing notifications, and reading what was told meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg

from toolgate.adapters.postgres.link import AWAY, EVERYTHING, Link, connect, failure
from toolgate.adapters.sql.rows import uuid_hex

CHANNEL = "toolgate"
MOST = 10_000
"""How many events are looked at in one go; the rest is looked at the next time."""

_HEADS = "SELECT project_id, seq FROM chain_heads"
_TOLD = f"""
SELECT e.project_id, e.call_id, max(e.seq) FROM unnest($1::text[], $2::bigint[]) AS k(project, seq)
JOIN LATERAL (
  SELECT project_id, call_id, seq FROM events WHERE project_id=k.project AND seq>k.seq ORDER BY seq LIMIT {MOST}
) AS e ON true GROUP BY e.project_id, e.call_id
"""
_STATUS = """
SELECT t.project_id, t.call_id, t.status FROM unnest($1::text[], $2::uuid[]) AS v(project, id)
JOIN tool_executions AS t ON t.project_id=v.project AND t.id=v.id
"""


class News:
    """Used on the link's loop."""

    def __init__(self, link: Link, owner: str) -> None:
        self._link = link
        self.owner = owner

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._link.loop

    @property
    def can_listen(self) -> bool:
        """Whether there is a session of our own to listen in; behind a transaction pooler there is none."""
        return not self._link.address.pooled

    async def listen(self, hear: Callable[[str], None], lost: Callable[[], None]) -> Any:
        """Hear every notification from now on, until the returned connection ends; `lost` is called when it does."""
        try:
            connection = await connect(self._link.address, idle_in_transaction_session_timeout="0")
            connection.add_termination_listener(lambda _connection: lost())
            await connection.add_listener(CHANNEL, lambda _connection, _pid, _channel, payload: hear(payload))
        except (asyncpg.PostgresError, *AWAY) as error:
            raise failure(error, doing="read") from error
        return connection

    async def notify(self, payloads: list[str]) -> None:
        """Send notifications to everybody who listens."""
        sql = f"SELECT pg_notify('{CHANNEL}', p) FROM unnest($1::text[]) AS p"
        async with self._link.transaction(EVERYTHING, writing=True) as connection:
            await connection.execute(sql, payloads)

    async def heads(self) -> dict[str, int]:
        """The number of each project's last event."""
        return dict(await self._link.fetch(_HEADS, projects=EVERYTHING))

    async def since(self, known: dict[str, int]) -> list[tuple[str, str, str]]:
        """Return (project, call id, status) of every call told of after the `known` heads, which are moved on.

        Numbers within a project have no gaps, so nothing that commits late is passed over.
        """
        heads = await self.heads()
        moved = {project: known.get(project, 0) for project, seq in heads.items() if known.get(project, 0) < seq}
        if not moved:
            return []
        told = await self._link.fetch(_TOLD, list(moved), list(moved.values()), projects=EVERYTHING)
        for project, _, seq in told:
            known[project] = max(known.get(project, 0), seq)
        calls = [(project, call_id) for project, call_id, _ in told if call_id is not None]
        if not calls:
            return []
        ids = [project for project, _ in calls], [uuid_hex(call_id) for _, call_id in calls]
        return [tuple(row) for row in await self._link.fetch(_STATUS, *ids, projects=EVERYTHING)]
