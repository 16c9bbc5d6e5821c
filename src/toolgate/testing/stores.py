"""A store that behaves like a remote one: commits take time, can be held back and can fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from toolgate.kernel.approval import Approval
from toolgate.kernel.brake import Brakes
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Grant
from toolgate.kernel.marks import Marks
from toolgate.kernel.undo import UndoRecord
from toolgate.ports.sink import Cursor
from toolgate.ports.store import ApprovalQuery, CallQuery, DelegationQuery, Due, GrantQuery, Head, Question, Store

Before = Callable[[Change], Awaitable[None]]


class RemoteStore:
    """Another store behind reads and commits that let other tasks run first.

    `before` sees every change ahead of its commit: it may wait, or raise to refuse it.
    """

    def __init__(self, inner: Store, *, before: Before | None = None) -> None:
        self._inner = inner
        self.before = before

    @property
    def owner(self) -> str:
        return self._inner.owner

    @property
    def is_shared(self) -> bool:
        return self._inner.is_shared

    @property
    def marks(self) -> Marks:
        return self._inner.marks

    @property
    def brakes(self) -> Brakes:
        return self._inner.brakes

    def commit(self, change: Change) -> Awaitable[None]:
        return self._commit(change)

    async def _commit(self, change: Change) -> None:
        await asyncio.sleep(0)
        if self.before is not None:
            await self.before(change)
        writing = self._inner.commit(change)
        if writing is not None:
            await writing

    def known(self, project: str, call_id: str) -> Call | None:
        return self._inner.known(project, call_id)

    def known_question(self, approval_id: str) -> Question | None:
        return self._inner.known_question(approval_id)

    def forget(self, project: str | None = None, call_id: str = "", version: int | None = None) -> None:
        self._inner.forget(project, call_id, version)

    async def call(self, project: str, call_id: str) -> Call | None:
        await asyncio.sleep(0)
        return await self._inner.call(project, call_id)

    async def calls(self, query: CallQuery) -> list[Call]:
        await asyncio.sleep(0)
        return await self._inner.calls(query)

    async def approvals(self, query: ApprovalQuery) -> list[Approval]:
        await asyncio.sleep(0)
        return await self._inner.approvals(query)

    async def question(self, approval_id: str, *, project: str | None = None) -> Question | None:
        await asyncio.sleep(0)
        return await self._inner.question(approval_id, project=project)

    async def undo(self, project: str, call_id: str) -> UndoRecord | None:
        await asyncio.sleep(0)
        return await self._inner.undo(project, call_id)

    async def grants(self, query: GrantQuery) -> list[Grant]:
        await asyncio.sleep(0)
        return await self._inner.grants(query)

    async def delegations(self, query: DelegationQuery) -> list[Delegation]:
        await asyncio.sleep(0)
        return await self._inner.delegations(query)

    async def events(
        self, project: str, *, after: int = 0, limit: int = 1000, call_id: str | None = None
    ) -> list[Event]:
        await asyncio.sleep(0)
        return await self._inner.events(project, after=after, limit=limit, call_id=call_id)

    async def head(self, project: str) -> Head:
        await asyncio.sleep(0)
        return await self._inner.head(project)

    async def open_cursor(self, project: str, sink: str | None) -> Cursor:
        await asyncio.sleep(0)
        return await self._inner.open_cursor(project, sink)

    async def move_cursor(self, project: str, sink: str, seq: int) -> bool:
        await asyncio.sleep(0)
        return await self._inner.move_cursor(project, sink, seq)

    async def close_cursor(self, project: str, sink: str | None) -> None:
        await asyncio.sleep(0)
        await self._inner.close_cursor(project, sink)

    async def due(self, now: datetime, *, limit: int = 100) -> Due:
        await asyncio.sleep(0)
        return await self._inner.due(now, limit=limit)

    async def orphans(self, *, status: Status = Status.EXECUTING, limit: int = 100) -> list[Call]:
        await asyncio.sleep(0)
        return await self._inner.orphans(status=status, limit=limit)

    async def close(self) -> None:
        await self._inner.close()
