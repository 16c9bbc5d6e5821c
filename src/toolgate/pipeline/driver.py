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
from weakref import WeakValueDictionary

import orjson
import uuid_utils

from toolgate.errors import NotFoundError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import PRIVATE, SYSTEM_PROJECT, Context, Mode, Principal
from toolgate.kernel.payload import LARGE, encode, quotable, summarize
from toolgate.kernel.policy import Policy
from toolgate.kernel.record import evolve
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.text.canonical import DEFAULT_LIMITS, Limits
from toolgate.kernel.text.masking import Masker
from toolgate.kernel.text.masking.echo import CallMasker
from toolgate.kernel.tool import ToolDefinition
from toolgate.kernel.undo import DEFAULT_UNDO_TTL_S, UndoRecord
from toolgate.pipeline.lane import aside, is_large
from toolgate.pipeline.plan import REMOTE, Plan, compile_plan
from toolgate.pipeline.realm import Realm
from toolgate.pipeline.reporting import DATA_BYTES, Reports, checked_fraction, shortened
from toolgate.pipeline.sinks.minder import Minder
from toolgate.pipeline.sinks.relay import Relay, Tally
from toolgate.pipeline.steps.asking import DISPATCH_GRACE_S
from toolgate.ports.bus import Bus, Hint
from toolgate.ports.runner import Runner
from toolgate.ports.store import Store

LONG_GRACE_S = 3600.0
"""For approved calls of private projects whose owner is gone: nobody takes them, and looking costs a commit."""

ENOUGH_MINDERS = 64

MODE_CHANGED = Hint(SYSTEM_PROJECT, "mode", Status.COMPLETED)
"""The mode is another; whoever hears of it reads it."""
utc_now: Callable[[], datetime] = partial(datetime.now, UTC)
WhoDecides = Callable[[str, str], Awaitable[Principal | None]]
"""Who somebody of this name is in a project now; None where they may not decide there, or are nobody."""
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
    on_recovered: Callable[[], Awaitable[None]] | None = None
    """Asked after the calls of dead processes were looked after."""
    who_decides: WhoDecides | None = None
    listeners: list[Callable[[Change], None]] = field(default_factory=list)
    minders: list[Minder] = field(default_factory=list)
    enough_minders: int = ENOUGH_MINDERS
    """With how many it is looked which of them are still needed."""
    sink_tally: Tally | None = None
    tally: Callable[[Change], None] | None = None
    """Hears of every change but those that only claim a call: cheaper than a listener."""
    reports: Reports = field(default_factory=Reports)
    lingering: set[tuple[str, str]] = field(default_factory=set)
    """The calls that ended here although their handlers could not be stopped and are still at work."""
    mask: Callable[[object], Any] = field(init=False)
    home: Realm = field(init=False)
    realms: WeakValueDictionary[str, Realm] = field(default_factory=WeakValueDictionary)
    has_realms: bool = False
    """Whether any project ever had a realm of its own: most gates have none, and asking the dictionary is slow."""

    def __post_init__(self) -> None:
        self.home = Realm(registry=self.registry)
        self.mask = self.masker.__call__  # bound once: calling the object itself looks this up every time

    async def commit(self, change: Change) -> None:
        """Write the change, then tell those who wait. Raises what `Store.commit` raises."""
        writing = self.write(change)
        if writing is not None:
            await writing

    def write(self, change: Change) -> Awaitable[None] | None:
        """Do what `commit` does, at once where the store can: None means it is done."""
        if self.has_realms and (relay := self.relay(change.project)) is not None and not relay.is_open:
            return self._write_first(relay, change)
        writing = self.store.commit(change)
        if writing is not None:
            return self._announce_after(writing, change)
        self._announce(change)
        return None

    async def _write_first(self, relay: Relay, change: Change) -> None:
        await relay.open()  # a sink begins before the first change that is made after it came
        await self.commit(change)

    async def _announce_after(self, writing: Awaitable[None], change: Change) -> None:
        await writing
        self._announce(change)

    def _announce(self, change: Change) -> None:
        call = change.call
        if self.has_realms and change.events and (relay := self.relay(change.project)) is not None:
            relay.stir()  # before anybody wakes up and asks whether everything was heard
        if call is None:
            if change.set_mode is not None:
                self.bus.publish(MODE_CHANGED)
        else:
            # A claim is nobody's news, unless somebody elsewhere is to run it, or should stop.
            is_told = is_over = call.status is not _EXECUTING
            if not is_told and call.placement in REMOTE:
                is_told = call.runner is None or call.recalled is not None
            if is_told:
                self.bus.publish(
                    _new(Hint, (call.project, call.id, call.status, call.tool_name, call.version, call.owner))
                )
            if is_over and self.tally is not None:
                self.tally(change)
            if call.due_at is not None and self.on_due is not None:
                self.on_due(call.due_at)
        for listener in self.listeners:
            listener(change)

    def masker_of(self, call: Call, undo: UndoRecord | None = None, room: int | None = None) -> Masker | CallMasker:
        """Return what masks the words of a call's handler: they may quote what its arguments or undo data hid.

        `room` is how many bytes the words take, where that is known: what is much longer cannot stand in them, so
        nobody looks for secrets in a megabyte of undo data because of a result of forty bytes.
        """
        if not call.hides and (undo is None or undo.data == b"{}"):
            return self.masker
        given = quotable(call.arguments, room) if call.hides else b"null"
        kept = b"null" if undo is None else quotable(undo.data, room)
        if not call.hides and self._hides_nothing(kept):
            return self.masker
        return CallMasker(self.masker, evolve(call, arguments=given), kept)

    def _hides_nothing(self, kept: bytes) -> bool:
        value = orjson.loads(kept)
        return bool(self.masker.of(value, kept) == value)

    async def told(
        self, call: Call, undo: UndoRecord | None, fraction: float | None, message: str | None, data: object
    ) -> dict[str, Any]:
        """Return what is kept of a handler's word on its progress, masked; ToolOutputError where it is no JSON."""
        encoded = encode(data)
        said = (call, undo, checked_fraction(fraction), message, encoded)
        is_long = len(encoded) > LARGE or is_large(message) or (undo is not None and len(undo.data) > LARGE)
        return await aside(self._told, *said) if is_long else self._told(*said)

    def _told(
        self, call: Call, undo: UndoRecord | None, fraction: float | None, message: str | None, data: bytes
    ) -> dict[str, Any]:
        masker = self.masker_of(call, undo, room=len(data) + len(message or ""))
        shown = masker.of(orjson.loads(data), data)
        if len(data) > DATA_BYTES:
            shown = summarize(shown, len(data))
        words = None if message is None else shortened(masker.text(message))
        return {"progress": fraction, "message": words, "data": shown}

    async def read(self, project: str, call_id: str) -> Call:
        """Return the call as stored; raise NotFoundError."""
        call = await self.store.call(project, call_id)
        if call is None:
            raise NotFoundError(f"There is no call {call_id[:64]} in project '{project}'.")
        return call

    def settle(self, project: str, realm: Realm) -> None:
        """Let a project go by a realm for as long as somebody holds it."""
        self.realms[project] = realm
        self.has_realms = True
        if realm.relay is not None:
            self._look_after(realm.relay)

    def _look_after(self, relay: Relay) -> None:
        """Have a relay looked after for as long as its project goes by it."""
        minder = Minder(relay, self.spawn, self.bus, is_wanted=lambda: self.relay(relay.project) is relay)
        self.minders.append(minder)
        if relay.name is not None:
            minder.wake()  # what it missed is told without waiting for a call
        if len(self.minders) > self.enough_minders:
            for other in self.minders:
                if not other.is_wanted():
                    other.wake()
            self.minders = [other for other in self.minders if other.is_wanted()]
            self.enough_minders = 2 * len(self.minders) + ENOUGH_MINDERS

    def realm(self, project: str) -> Realm:
        """Return what a project goes by: its own tools and policy, or else the gate's.

        A private project whose owner is gone has no tools: whatever the gate's own are called, they are not its.
        """
        own = self.realms.get(project) if self.has_realms else None
        if own is not None:
            return own
        return _NOBODYS if project.startswith(PRIVATE) else self.home

    def is_free(self, call: Call) -> bool:
        """Whether a call may be taken up here: it is this process's own, or nobody's and can run here.

        One of a dead process is taken over first, by recovery; one of a live process is left to it.
        """
        if call.approved_for_s is not None:
            return False  # its caller runs it
        return call.owner == self.owner or (call.owner is None and self.can_run(call))

    def can_run(self, call: Call) -> bool:
        """Whether this process has what it takes to run a call: its tool, and a runner for its placement."""
        return call.tool_name in self.realm(call.project).registry and call.placement in self.runners

    def grace_s(self, project: str) -> float:
        """How long an approved call waits before it is offered again: long, if nobody here could run it."""
        return LONG_GRACE_S if self.realm(project) is _NOBODYS else DISPATCH_GRACE_S

    def relay(self, project: str) -> Relay | None:
        """Return what passes a project's events on, if there is anybody to pass them to."""
        return self.realm(project).relay if self.has_realms else None

    def policy_of(self, project: str) -> Policy:
        """Return the policy a project's calls answer to now."""
        return self.realm(project).policy(self.policy.in_project(project))

    def plan(self, name: str, context: Context) -> Plan:
        """Return the plan of the tool of this name for a call of this context, under the policy and brakes of now.

        Raises ToolNotFoundError.
        """
        realm, project = self.realm(context.project), context.project
        return self._planned(realm, realm.registry.resolve(name), project, self.store.brakes.over(context))

    def plan_of(self, tool: ToolDefinition, context: Context) -> Plan:
        """Return the plan of a tool for a call of this context, under its project's policy and the brakes of now."""
        project = context.project
        return self._planned(self.realm(project), tool, project, self.store.brakes.over(context))

    def current(self, plan: Plan, context: Context) -> Plan:
        """Return a plan as it is now: the same, unless the modes or the project's policy are others."""
        return self.plan_of(plan.tool, context)

    def _planned(self, realm: Realm, tool: ToolDefinition, project: str, modes: tuple[Mode, ...]) -> Plan:
        policy, name = self.policy, tool.name
        if policy.projects and project in policy.projects:
            policy, name = policy.projects[project], f"{project}/{name}"
        if realm is not self.home:
            policy = realm.policy(policy)
        key = name if len(modes) == 1 else (name, modes)  # whoever is not braked is not slowed down by others
        plan = realm.plans.get(key)
        if plan is None or plan.tool is not tool or plan.policy is not policy or plan.modes != modes:
            plan = realm.plans[key] = compile_plan(tool, policy, modes, masker=self.masker)
        return plan

    def undo_ttl(self, tool: ToolDefinition, context: Context) -> float:
        """How long undo data of this tool is kept: the tool's word, the policy's, or the gate's."""
        return tool.undo_ttl_seconds or self.plan_of(tool, context).stance.undo_ttl_s or self.undo_ttl_s


_NOBODYS = Realm(registry=ToolRegistry())
