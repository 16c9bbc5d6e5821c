"""Executors: an action goes in, what its tool returned comes out, and everything between is the gate's.

An executor without a gate works in a private project on the gate of its approval service, so that unrelated
executors share no ids, rates or events. Its wait owns its call: cancelling `execute` cancels the call.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from uuid import UUID

from toolgate.doors.places import private_project
from toolgate.errors import (
    EffectHeldError,
    ToolApprovalDeniedError,
    ToolApprovalTimeoutError,
    ToolDeniedError,
    ToolExecutionError,
    ToolgateError,
    ToolUndoError,
    UsageError,
)
from toolgate.gate import Gate
from toolgate.kernel.call import Status
from toolgate.kernel.context import DEFAULT_PROJECT, Context, as_id, behavior_of
from toolgate.kernel.demands import RiskWaiver
from toolgate.kernel.misuse import explained_class
from toolgate.kernel.output import Result
from toolgate.kernel.payload import jsonable
from toolgate.kernel.policy import Default, Policy, Stance
from toolgate.kernel.record import evolve
from toolgate.kernel.registry import ToolRegistry as KernelRegistry
from toolgate.kernel.response import ToolResponse
from toolgate.pipeline.realm import AdjustedPolicy, Realm
from toolgate.ports.sink import Sink
from toolgate.tools.approval import ApprovalService, get_approval_service
from toolgate.tools.context import context_of
from toolgate.tools.definitions import Action, ToolDefinition, ToolOutput, action_of
from toolgate.tools.events import render, render_all
from toolgate.tools.keeping import Keeping
from toolgate.tools.registry import ToolRegistry, get_tool_registry
from toolgate.tools.service_channel import ServiceChannel
from toolgate.tools.undo import AnyUndoStore

log = logging.getLogger("toolgate.tools")


@explained_class
@dataclass(frozen=True, kw_only=True)
class ToolExecutorConfig:
    """How an executor behaves.

    emit_events: tell the event sink; the gate's own record is written either way.
    store_undo_data: keep what undoable tools leave for their undo.
    require_approval_for_risky: ask about tools of medium or high risk even where they do not demand it. False
        lets them run, but never one that demands approval, and nothing the gate's policy asks about or denies.
    approval_timeout_seconds: how long people may take, where neither call nor tool says; by level where None.
    undo_ttl_seconds: how long undo data is kept, where the tool does not say; the undo store's time where None.
    on_sink_failure: "spool" tells a failing sink later, out of the record; "refuse" runs nothing unheard.
    sink_name: what the store remembers the sink by, so that it hears after a restart what it missed; with `project`.
    """

    emit_events: bool = True
    store_undo_data: bool = True
    require_approval_for_risky: bool = True
    approval_timeout_seconds: float | None = None
    undo_ttl_seconds: float | None = None
    on_sink_failure: Literal["spool", "refuse"] = "spool"
    sink_name: str | None = None

    def __post_init__(self) -> None:
        if self.on_sink_failure not in ("spool", "refuse"):
            raise UsageError(f'on_sink_failure is "spool" or "refuse", not {str(self.on_sink_failure)[:40]!r}.')
        for name in ("approval_timeout_seconds", "undo_ttl_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"{name} must be a positive number of seconds, or None.")


class _Seat(NamedTuple):
    """Where an executor sits: on which gate, and what holds its project's tools there."""

    gate: Gate
    realm: Realm


async def _moment(realm: Realm) -> None:
    """Give the sink a moment, so that a quick one has heard of a call when its caller goes on."""
    if realm.relay is not None:
        await realm.relay.moment()


@explained_class
class ToolExecutor:
    """Runs actions through the gate. `execute` raises what went wrong; `execute_tool` answers with it."""

    def __init__(
        self,
        registry: KernelRegistry | Iterable[Any] | None = None,
        *,
        config: ToolExecutorConfig | None = None,
        event_sink: Sink | None = None,
        undo_store: AnyUndoStore | None = None,
        approval_service: Any = None,
        gate: Gate | None = None,
        project: str | None = None,
    ) -> None:
        """Without a registry, the gate's tools are run, else the process's. `project` is where calls are made:
        private unless given, or unless the tools are the gate's own; while this executor lives it goes by its registry.
        """
        if registry is None:
            registry = gate.registry if gate is not None else get_tool_registry()
        self.registry = registry if isinstance(registry, KernelRegistry) else ToolRegistry(registry)
        self.config = config if config is not None else ToolExecutorConfig()
        self.event_sink = event_sink
        self._gate = gate
        self._service = approval_service
        self._keeping = Keeping(undo_store)
        is_at_home = gate is not None and gate.registry is self.registry
        self.project = project or (DEFAULT_PROJECT if is_at_home else private_project())
        self._seat: _Seat | None = None
        if event_sink is not None and self.config.sink_name is not None:
            self._sit()  # what the sink missed is told without waiting for a call

    def register(self, tool: Any) -> None:
        """Offer a tool through this executor's registry."""
        if isinstance(self.registry, ToolRegistry):
            self.registry.register(tool)
        else:
            self.registry.add(tool)

    def get_tool(self, name: str) -> Any:
        """Return the tool of this name or action type; None where there is none."""
        return self.registry.get(name) if isinstance(self.registry, ToolRegistry) else self.registry.find(name)

    def can_execute(self, name: str) -> bool:
        """Whether there is a tool of this name or action type."""
        return name in self.registry

    @property
    def gate(self) -> Gate:
        """The gate this executor's calls go through."""
        return self._sit().gate

    def _sit(self) -> _Seat:
        """Take a seat on the gate of the approval service: its own, or the process-wide one as it is now."""
        gate = self._gate
        if gate is None:
            own = self._service if isinstance(self._service, ApprovalService) else None
            gate = (own if own is not None else get_approval_service()).gate
        if self._seat is None or self._seat.gate is not gate:
            self._seat = _Seat(gate, self._attach(gate))
        return self._seat

    def _attach(self, gate: Gate) -> Realm:
        config, refuses = self.config, self.config.on_sink_failure == "refuse"
        is_foreign = self._service is not None and not isinstance(self._service, ApprovalService)
        return gate.host.attach(
            self.project,
            self.registry,
            adjust=self._adjust,
            sink=self.event_sink if config.emit_events else None,
            sink_name=config.sink_name,
            sink_required=refuses,
            render=render_all if refuses else render,
            channels=(ServiceChannel(self._service, self.registry),) if is_foreign else (),
            keeps_undo=config.store_undo_data,
        )

    def _adjust(self, policy: Policy) -> Policy:
        """Return this executor's policy: the gate's, with what the configuration adds where the gate's is silent."""
        return AdjustedPolicy(base=policy, change=self._adjust_stance, revision=policy.revision)

    def _adjust_stance(self, stance: Stance) -> Stance:
        config = self.config
        changes: dict[str, Any] = {"undo_ttl_s": stance.undo_ttl_s or config.undo_ttl_seconds or self._keeping.ttl_s}
        if stance.approval_timeout_s is None:
            changes["approval_timeout_s"] = config.approval_timeout_seconds
        if not config.require_approval_for_risky and stance.default is Default.BY_RISK:
            changes["rules"] = (*stance.rules, RiskWaiver())
        return evolve(stance, **changes)

    async def execute(self, action: Any, ctx: Any = None) -> ToolOutput:
        """Run an action's tool and return what it returned, a failing ToolOutput included.

        Raises the documented ToolError where it did not run or raised. The same action id runs once: executing it
        again returns what it gave. Cancelling this cancels the call.
        """
        own = action_of(action)
        result = await self._call(own, context_of(ctx, self.project, own))
        output = await self._output_of(result)
        if output is None:
            raise await self._error_of(result, own, ctx)
        if result.success and self.config.store_undo_data and not result.joined:
            await self._keep(own, result)
        return output

    async def _call(self, action: Action, context: Context) -> Result:
        gate, realm = self._sit()
        id = str(action.id)
        try:
            return await gate.call(
                action.type, jsonable(action.payload), context=context, call_id=id, own=True, distinct=True
            )
        except EffectHeldError:
            return await gate.get(id, project=context.project)  # it was recorded as denied
        finally:
            await _moment(realm)

    async def execute_tool(
        self,
        tool_name: str,
        tool_params: Mapping[str, Any] | None = None,
        session_id: UUID | str | None = None,
        *,
        ctx: Any = None,
    ) -> ToolResponse:
        """Run a tool by name; whatever happens to the call is in the response, nothing is raised for it."""
        action = Action(type=tool_name, payload=dict(tool_params or {}))
        context = context_of(ctx, self.project, action)
        if session_id is not None:
            context = evolve(context, session_id=str(session_id))
        result = await self._call(action, context)
        if result.success and self.config.store_undo_data:
            await self._keep(action, result)
        return ToolResponse.of(result)

    async def undo_action(self, action_id: UUID | str, ctx: Any = None, *, force: bool = False) -> bool:
        """Take an action back. False where there is nothing to take back: never was, expired, or undone already.

        Raises ToolUndoError where the undo handler failed or refused; the undo data is kept then, so that it can
        be tried again. Raises ToolDeniedError where the rules do not let the tool act here. `force` undoes
        although the state has changed since.
        """
        context = context_of(ctx, self.project, Action(id=action_id))
        gate, realm = self._sit()
        result = await self._keeping.undo(gate, action_id, context, force=force)
        await _moment(realm)
        if result is None or result.success:
            return result is not None
        if result.status is Status.DENIED:
            raise self._denied(result, ctx)
        if result.duration_ms is None and result.error_code != "undo_conflict":
            log.info("action %s was not undone: %s", action_id, result.error)
            return False
        error = ToolUndoError(tool=result.tool_name, action_id=action_id, reason=result.error)
        raise error from result.cause

    async def _keep(self, action: Action, result: Result) -> None:
        tool = self.registry.find(result.tool_name)
        if tool is not None and tool.undoable:
            ttl_s = tool.undo_ttl_seconds or self.config.undo_ttl_seconds
            await self._keeping.keep(self.gate, self.project, action.id, ttl_s)

    async def _output_of(self, result: Result) -> ToolOutput | None:
        """What the handler returned: itself where it ran for us, else as recorded; None where it did not return."""
        if result.output is not None:
            return result.output
        if result.success:
            return ToolOutput(success=True, data=result.data, artifacts=list(result.artifacts))
        if result.status is Status.FAILED and result.error_code == "execution_failed":
            call = await self.gate.calls.get(result.call_id, project=self.project)
            if call.result is not None:  # a handler that raised left none
                return ToolOutput(success=False, data=result.data, error=result.error, artifacts=list(result.artifacts))
        return None

    async def _error_of(self, result: Result, action: Action, ctx: Any) -> ToolgateError:
        """The documented error of a result, with what its class says besides the text."""
        if result.status is Status.DENIED:
            return self._denied(result, ctx)
        error = result.to_error()
        if isinstance(error, ToolExecutionError):
            error.action_id, error.cause = action.id, result.cause
        elif isinstance(error, ToolApprovalDeniedError | ToolApprovalTimeoutError) and result.approval_id is not None:
            approval = await self.gate.approvals.get(result.approval_id, project=self.project)
            error.reason, error.request_id = approval.reason, as_id(approval.id)
            if isinstance(error, ToolApprovalTimeoutError):
                error.timeout_seconds = (approval.expires_at - approval.created_at).total_seconds()
        return error

    def _denied(self, result: Result, ctx: Any) -> ToolDeniedError:
        tool = self.registry.find(result.tool_name)
        try:
            if tool is not None:
                self._check_behavior_gating(tool, ctx)
        except ToolDeniedError as error:
            return error
        return ToolDeniedError(result.error, tool=result.tool_name, behavior=behavior_of(ctx), reason=result.error_code)

    @staticmethod
    def _check_behavior_gating(tool: ToolDefinition, ctx: Any) -> bool:
        """Return True where a tool may run in a context's behavior; raise the ToolDeniedError that says why not."""
        behavior = behavior_of(ctx)
        if tool.is_behavior_allowed(behavior):
            return True
        raise ToolDeniedError(tool=tool.name, behavior=behavior, allowed=tool.allowed_behaviors)


class AdvancedToolExecutor(ToolExecutor):
    """The same executor under the name document 001 gives it."""
