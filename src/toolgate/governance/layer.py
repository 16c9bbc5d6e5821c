"""The tool execution layer of document 003: one synchronous call in, one ToolResult out, the gate between.

A layer never raises for what happens to a call: it says so in the result. Its wait owns its call.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

from toolgate.adapters.telemetry.logs import write_log
from toolgate.bootstrap import open as open_gate
from toolgate.errors import ConflictError
from toolgate.gate import Gate
from toolgate.governance.approving import Approver, Asked, AskNobody, channel_of
from toolgate.governance.config import GovernanceConfig, load_governance
from toolgate.governance.definitions import ToolResult
from toolgate.governance.modes import ModeSource, read_mode
from toolgate.governance.registry import ToolRegistry
from toolgate.governance.trace import TraceContext
from toolgate.kernel.call import Status
from toolgate.kernel.context import PRIVATE, Context, Mode
from toolgate.kernel.output import Result

OPERATOR = "mode-manager"
_DENIED = re.compile(r"Tool `[^`]*` was denied: (.*) \(rule `[^`]*`\)\.\Z", re.DOTALL)


class ToolExecutionLayer:
    """Runs tools under governance. `approver` is asked where a person must say yes; without one, that is a no."""

    def __init__(
        self,
        registry: ToolRegistry,
        governance: GovernanceConfig | Mapping[str, Any] | str | Path | None,
        mode_manager: ModeSource,
        approver: Approver | None = None,
        *,
        gate: Gate | None = None,
        principal: str = "agent:orchestrator",
    ) -> None:
        """Without a `gate`, calls are kept in memory; give one to keep them in its store, in a project of their own."""
        self.registry = registry
        loaded = governance if isinstance(governance, GovernanceConfig) else load_governance(governance)
        self.governance = registry.placed(loaded)
        registry.govern(self.governance)
        self.mode_manager = mode_manager
        self._principal = principal
        self._is_own = gate is None
        self.gate = gate if gate is not None else open_gate("memory://", limits=self.governance.limits)
        self.project = f"{PRIVATE}{uuid4()}"
        asked = AskNobody(self.gate) if approver is None else channel_of(approver)
        policy = self.governance.policy
        self._realm = self.gate.attach(
            self.project,
            registry,
            adjust=lambda _base: policy,
            channels=[Asked(asked, self.gate, self._follow_mode)],
        )
        project = self.project
        self._unwatch = self.gate.watch(lambda change: write_log(change) if change.project == project else None)
        if self._is_own:
            self._finalizer = weakref.finalize(self, _close, self.gate)

    def execute_tool(
        self, tool_name: str, arguments: Mapping[str, Any] | None = None, trace_ctx: TraceContext | None = None
    ) -> ToolResult:
        """Run a tool and return what came of it; blocks until then."""
        given, context = self._ready(tool_name, arguments, trace_ctx)
        mode = read_mode(self.mode_manager.get_current_mode())
        if mode is not self.gate.mode:
            self.gate.sync.set_mode(mode, by=OPERATOR)
        try:
            result = self.gate.sync.call(tool_name, given, context=context, own=True)
        except ConflictError as error:
            return ToolResult(tool_name=tool_name, success=False, error=str(error))
        return told(result, context)

    async def aexecute_tool(
        self, tool_name: str, arguments: Mapping[str, Any] | None = None, trace_ctx: TraceContext | None = None
    ) -> ToolResult:
        """Do the same without blocking the event loop."""
        given, context = self._ready(tool_name, arguments, trace_ctx)
        await self._follow_mode()
        try:
            result = await self.gate.call(tool_name, given, context=context, own=True)
        except ConflictError as error:
            return ToolResult(tool_name=tool_name, success=False, error=str(error))
        return told(result, context)

    def _ready(
        self, tool_name: str, arguments: Mapping[str, Any] | None, trace_ctx: TraceContext | None
    ) -> tuple[Any, Context]:
        trace = trace_ctx if trace_ctx is not None else TraceContext.new_trace()
        _, span_id = trace.new_span()
        context = Context(
            principal=self._principal, project=self.project, trace_id=str(trace.trace_id), span_id=str(span_id)
        )
        given = {} if arguments is None else arguments
        found = self.registry.get_tool(tool_name) if isinstance(tool_name, str) else None
        return given if found is None else found[0].with_defaults(given), context

    async def _follow_mode(self) -> Mode:
        """Have the gate know the manager's mode, before a call and again after a person answered."""
        mode = read_mode(self.mode_manager.get_current_mode())
        if mode is not self.gate.mode:
            await self.gate.set_mode(mode, by=OPERATOR)
        return mode

    def close(self) -> None:
        """Close the layer's own gate; one that was given stays open."""
        self._unwatch()
        if self._is_own:
            self._finalizer()

    def __enter__(self) -> ToolExecutionLayer:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


def _close(gate: Gate) -> None:
    gate.close()


_CATEGORIES: dict[str, str] = {
    "tool_not_found": "not_found",
    "invalid_arguments": "validation",
    "timeout": "timeout",
    "resource_exhausted": "resources",
    "unknown": "unknown",
}


def told(result: Result, context: Context) -> ToolResult:
    """Return a result in document 003's words; `metadata` tells its category and ids."""
    about: dict[str, Any] = {
        "call_id": result.call_id,
        "trace_id": context.trace_id,
        "span_id": context.span_id,
        "status": result.status.value,
    }
    if result.success:
        return ToolResult(
            tool_name=result.tool_name,
            success=True,
            output={} if result.data is None else result.data,
            latency_ms=result.duration_ms or 0.0,
            metadata=about,
        )
    about["category"] = category_of(result)
    if about["category"] == "validation":
        about["suggestion"] = "Correct the arguments that are named and call again."
    return ToolResult(
        tool_name=result.tool_name,
        success=False,
        output={},
        error=error_of(result),
        latency_ms=result.duration_ms or 0.0,
        metadata=about,
    )


def category_of(result: Result) -> str:
    """Which kind of failure this is: permission, validation, timeout, exception, resources, and some rarer ones."""
    known = _CATEGORIES.get(result.error_code or "")
    if known is not None:
        return known
    ran = result.status in (Status.FAILED, Status.UNKNOWN) and result.duration_ms is not None
    return "exception" if ran else "permission"


def error_of(result: Result) -> str:
    """Say why a call did not succeed."""
    if result.error_code == "tool_not_found":
        return f"Tool {result.tool_name} not found"
    if category_of(result) not in ("permission", "validation"):
        return result.error or "the tool failed"
    return f"Permission denied: {_reason(result)}"


def _reason(result: Result) -> str:
    if result.status is Status.REJECTED:
        said = (result.error or "").partition(": ")[2]
        return "Approval denied by user" + (f": {said}" if said else "")
    if result.status is Status.TIMEOUT:
        return "Approval denied by user: nobody answered in time"
    found = _DENIED.match(result.error or "")
    return found[1] if found else result.error or "refused"
