"""The commands for people on a database of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Generator
from contextlib import aclosing
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import cast

from toolgate.gate import Gate
from toolgate.interfaces.cli.backend import UnknownCall
from toolgate.interfaces.server import views
from toolgate.interfaces.server.waiting import listed
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import DEFAULT_PROJECT, Context, Principal
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Remember
from toolgate.kernel.output import Result
from toolgate.pipeline.background import Background
from toolgate.ports.channel import Decision
from toolgate.ports.store import ApprovalQuery, CallQuery, DelegationQuery, GrantQuery
from toolgate.wire.brakes import BrakesAnswer, ModeName
from toolgate.wire.delegations import DelegationRecord
from toolgate.wire.schemas import (
    EventRecord,
    ExecutionRecord,
    GrantRecord,
    UndoRunAnswer,
)

PAGE = 1000
MOST_UNKNOWN = 10_000


class LocalBackend:
    """Works on a gate as one person. Without a project, it works on all of them."""

    def __init__(self, gate: Gate, who: Principal, project: str | None) -> None:
        self._gate = gate
        self._who = who
        self._project = project

    def pending(self) -> list[Approval]:
        found: list[Approval] = []
        while True:
            after = found[-1] if found else None
            query = ApprovalQuery(project=self._project, status=ApprovalStatus.PENDING, after=after, limit=PAGE)
            page = self._gate.sync.approvals.list(query)
            found += page
            if len(page) < PAGE:
                return listed(found)

    def approval(self, approval_id: str) -> Approval:
        return self._gate.sync.approvals.get(approval_id, project=self._project)

    def decide(
        self,
        asked: Approval,
        decision: Decision,
        *,
        reason: str | None = None,
        digest: str | None = None,
        remember: Remember | None = None,
        on_behalf_of: str | None = None,
    ) -> Result:
        return self._gate.sync.decide(
            asked.id,
            decision,
            by=self._who,
            reason=reason,
            digest=digest,
            project=asked.project,
            remember=remember,
            on_behalf_of=None if on_behalf_of is None else Principal(name=on_behalf_of, roles=self._who.roles),
        )

    def approve_with_network(self, asked: Approval, *, reason: str | None = None, digest: str | None = None) -> Result:
        return self._gate.sync.approvals.approve_with_network(
            asked.id, by=self._who, reason=reason, digest=digest, project=asked.project
        )

    def edit(self, asked: Approval, arguments: str, *, reason: str | None = None, digest: str | None = None) -> Result:
        return self._gate.sync.approvals.edit(
            asked.id, arguments, by=self._who, reason=reason, digest=digest, project=asked.project
        )

    def respond(self, asked: Approval, words: str, *, digest: str | None = None) -> Result:
        return self._gate.sync.approvals.respond(asked.id, words, by=self._who, digest=digest, project=asked.project)

    def comment(self, asked: Approval, words: str) -> None:
        self._gate.sync.approvals.comment(asked.id, words, by=self._who, project=asked.project)

    def extend(self, asked: Approval, seconds: float) -> None:
        self._gate.sync.approvals.extend(asked.id, seconds, by=self._who, project=asked.project)

    def latest(self, *, run: str | None, limit: int) -> list[ExecutionRecord]:
        found: list[Call] = []
        after: Call | None = None
        while True:
            page = self._gate.sync.calls.list(CallQuery(project=self._project, run_id=run, after=after, limit=PAGE))
            found = [*found, *page][-limit:]
            if len(page) < PAGE:
                return [views.record(call, is_own=False) for call in found[::-1]]
            after = page[-1]

    def follow(self, after: int | None) -> Generator[EventRecord, None, None]:
        project = self._project or DEFAULT_PROJECT
        begin = self._end_of(project) if after is None else after
        told: SimpleQueue[Event | Exception | None] = SimpleQueue()
        room = asyncio.Semaphore(PAGE)
        reader = Background("toolgate-follow")  # a Ctrl-C here must not find an event loop halfway through something
        try:
            reader.spawn(_tell(self._gate.follow(project=project, after=begin), told, room))
            while event := told.get():
                if isinstance(event, Exception):
                    raise event
                reader.loop.call_soon_threadsafe(room.release)
                yield _event(event)
        finally:
            reader.close()

    def _end_of(self, project: str) -> int:
        after = 0
        while batch := self._gate.sync.events(project=project, after=after, limit=5000):
            after = batch[-1].seq
        return after

    def undo(self, call_id: str, *, force: bool) -> Result:
        return self._gate.sync.undo(call_id, context=self._context(), force=force)

    def undo_run(self, run_id: str, *, force: bool, skip_failures: bool, preview: bool) -> UndoRunAnswer:
        report = self._gate.sync.undo_run(
            run_id, context=self._context(), force=force, skip_failures=skip_failures, preview=preview
        )
        return views.undo_report(report)

    def grants(self, *, everything: bool) -> list[GrantRecord]:
        now = datetime.now(UTC)
        query = GrantQuery(project=self._project, live_at=None if everything else now)
        return [views.grant(one, now) for one in self._gate.sync.grants.list(query)]

    def unknown(self) -> list[UnknownCall]:
        self._gate.sync.recover()
        query = CallQuery(project=self._project, statuses=frozenset({Status.UNKNOWN}), limit=MOST_UNKNOWN)
        return [
            UnknownCall(
                id=call.id,
                project=call.project,
                tool_name=call.tool_name,
                started_at=call.started_at,
                owner=call.owner,
                error=call.error,
                shown=call.shown,
                since=call.completed_at or call.created_at,
            )
            for call in self._gate.sync.calls.list(query)
        ]

    def events_of(self, call: UnknownCall) -> list[EventRecord]:
        return [_event(one) for one in self._gate.sync.events(project=call.project, call_id=call.id, limit=PAGE)]

    def settle(self, call: UnknownCall, *, happened: bool | None, reason: str) -> Result:
        return self._gate.sync.settle(call.id, happened=happened, by=self._who, reason=reason, project=call.project)

    def brakes(self) -> BrakesAnswer:
        return views.brakes(self._gate, self._project)

    def set_mode(
        self, mode: ModeName, *, reason: str, everybody: bool, agent: str | None, run: str | None
    ) -> BrakesAnswer:
        project = None if everybody else self._project
        self._gate.sync.set_mode(mode, by=self._who, reason=reason, project=project, agent=agent, run=run)
        return self.brakes()

    def revoke(self, grant_id: str, reason: str | None) -> GrantRecord:
        revoked = self._gate.sync.grants.revoke(grant_id, by=self._who, reason=reason, project=self._project)
        return views.grant(revoked, datetime.now(UTC))

    def delegate(self, to: str, *, seconds: float, tools: Collection[str], reason: str | None) -> DelegationRecord:
        project = self._project or DEFAULT_PROJECT
        given = self._gate.sync.delegations.give(
            to, by=self._who, seconds=seconds, tools=tools, reason=reason, project=project
        )
        return views.delegation(given, datetime.now(UTC))

    def delegations(self, *, everything: bool) -> list[DelegationRecord]:
        now = datetime.now(UTC)
        query = DelegationQuery(project=self._project, live_at=None if everything else now)
        return [views.delegation(one, now) for one in self._gate.sync.delegations.list(query)]

    def end_delegation(self, delegation_id: str, reason: str | None) -> DelegationRecord:
        ended = self._gate.sync.delegations.end(delegation_id, by=self._who, reason=reason, project=self._project)
        return views.delegation(ended, datetime.now(UTC))

    def _context(self) -> Context:
        name = self._who.name
        return Context(principal=name, user=name, project=self._project or DEFAULT_PROJECT)


def _event(event: Event) -> EventRecord:
    return EventRecord(seq=event.seq, type=event.type, at=event.at, tool_id=event.call_id, data=event.data)


async def _tell(
    events: AsyncIterator[Event], told: SimpleQueue[Event | Exception | None], room: asyncio.Semaphore
) -> None:
    """Pass events on while there is room for them, then what ended them: an error, or nothing."""
    async with aclosing(cast(AsyncGenerator[Event], events)):
        try:
            async for event in events:
                await room.acquire()
                told.put(event)
            told.put(None)
        except Exception as error:  # noqa: BLE001  # for whoever reads
            told.put(error)
