"""The only writer. Stages and their companions return changes; everything is committed here.

After a commit the bus gets a hint, the event listeners get the events, and the sweeper is told of a
deadline. All of these may be lost without losing truth: the store is the truth.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import uuid_utils

from toolgate.errors import NotFoundError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.canonical import DEFAULT_LIMITS, Limits
from toolgate.kernel.change import Change
from toolgate.kernel.masking import Masker
from toolgate.kernel.policy import Policy
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.tool import ToolDefinition
from toolgate.kernel.undo import DEFAULT_UNDO_TTL_S
from toolgate.pipeline.route import Route, lay_out
from toolgate.ports.bus import Bus, Hint
from toolgate.ports.runner import Runner
from toolgate.ports.store import Store

utc_now: Callable[[], datetime] = partial(datetime.now, UTC)
_EXECUTING = Status.EXECUTING
_new = tuple.__new__  # what a named tuple's own constructor does, without its Python frame


def new_id() -> str:
    """Return a time-ordered UUID as text."""
    return str(uuid_utils.uuid7())


@dataclass(slots=True, kw_only=True)
class Driver:
    """What every part of the pipeline shares: the ports, the policy, and the one way to write."""

    store: Store
    bus: Bus
    registry: ToolRegistry
    masker: Masker
    runners: Mapping[str, Runner]
    spawn: Callable[[Coroutine[Any, Any, Any]], None]
    policy: Policy = field(default_factory=Policy)
    limits: Limits = DEFAULT_LIMITS
    undo_ttl_s: float = DEFAULT_UNDO_TTL_S
    owner: str = ""
    now: Callable[[], datetime] = utc_now
    new_id: Callable[[], str] = new_id
    on_due: Callable[[datetime], None] | None = None
    refresh: Callable[[], Awaitable[None]] | None = None
    submit: Callable[..., Coroutine[Any, Any, Any]] | None = None
    on_exhausted: Callable[[str], None] | None = None
    on_asked: Callable[[Approval], None] | None = None
    listeners: list[Callable[[Change], None]] = field(default_factory=list)
    mask: Callable[[object], Any] = field(init=False)
    _routes: dict[str, Route] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mask = self.masker.__call__  # bound once: calling the object itself looks this up every time

    async def commit(self, change: Change) -> None:
        """Write the change, then tell those who wait. Raises what `Store.commit` raises."""
        writing = self.write(change)
        if writing is not None:
            await writing

    def write(self, change: Change) -> Awaitable[None] | None:
        """Do what `commit` does, at once where the store can: None means it is done."""
        writing = self.store.commit(change)
        if writing is not None:
            return self._announce_after(writing, change)
        call = change.call
        if self.listeners or call is None or call.due_at is not None:
            self._announce(change)
        elif call.status is not _EXECUTING:  # a claim of a call that runs here is nobody's news
            self.bus.publish(_new(Hint, (call.project, call.id, call.status)))
        return None

    async def _announce_after(self, writing: Awaitable[None], change: Change) -> None:
        await writing
        self._announce(change)

    def _announce(self, change: Change) -> None:
        call = change.call
        if call is not None:
            if call.status is not _EXECUTING:
                self.bus.publish(_new(Hint, (call.project, call.id, call.status)))
            if call.due_at is not None and self.on_due is not None:
                self.on_due(call.due_at)
        for listener in self.listeners:
            listener(change)

    async def read(self, project: str, call_id: str) -> Call:
        """Return the call as stored; raise NotFoundError."""
        call = await self.store.call(project, call_id)
        if call is None:
            raise NotFoundError(f"There is no call {call_id[:64]} in project '{project}'.")
        return call

    def undo_ttl(self, tool: ToolDefinition) -> float:
        """How long undo data of this tool is kept: the tool's word, the policy's, or the gate's."""
        return tool.undo_ttl_seconds or self.route(tool).stance.undo_ttl_s or self.undo_ttl_s

    def route(self, tool: ToolDefinition) -> Route:
        """Return what is known about a tool under the current policy before any call is looked at."""
        known = self._routes.get(tool.name)
        if known is None or known.tool is not tool or known.policy is not self.policy:
            known = self._routes[tool.name] = lay_out(
                tool, self.policy, owner=self.owner, placements=self.runners, mask=self.masker.text
            )
        return known
