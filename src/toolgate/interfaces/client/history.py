"""Looking back over the network: runs, what happened to a call, and the chain its events stand in."""

from __future__ import annotations

from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.connection import given
from toolgate.wire.history import AuditAnswer, CallRecord, RunList, TimelineAnswer


class History(Part):
    """What was."""

    async def runs(self, *, after: str | None = None, limit: int | None = None) -> RunList:
        """A page of runs, the one with the newest call first; its `next` is the `after` of the next page."""
        query = given(after=after, limit=limit)
        return await self._connection.ask(RunList, "GET", self._path("runs"), query=query, repeats=True)

    async def timeline(self, call_id: str) -> TimelineAnswer:
        """What happened to a call, stage by stage."""
        return await self._connection.ask(TimelineAnswer, "GET", self._path("tools", call_id, "timeline"), repeats=True)

    async def record(self, call_id: str) -> CallRecord:
        """Everything kept of a call, with its links in the chain."""
        return await self._connection.ask(CallRecord, "GET", self._path("tools", call_id, "record"), repeats=True)

    async def audit(self) -> AuditAnswer:
        """How far the server has checked the chain of events."""
        return await self._connection.ask(AuditAnswer, "GET", self._path("audit"), repeats=True)

    async def verify(self, *, restart: bool = False) -> AuditAnswer:
        """Have the server check the next events of the chain; `restart` begins at the first again."""
        path, body = self._path("audit", "verify"), {"restart": restart}
        return await self._connection.ask(AuditAnswer, "POST", path, body=body, repeats=not restart)
