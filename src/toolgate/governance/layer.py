"""The tool execution layer of document 003: one synchronous call in, one ToolResult out, the gate between.

A layer never raises for what happens to a call: it says so in the result. Its wait owns its call.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from toolgate.adapters.telemetry.logs import write_log
from toolgate.bootstrap import open as open_gate
from toolgate.doors.places import close_anywhere, private_project
from toolgate.errors import UsageError, text_of
from toolgate.gate import Gate
from toolgate.governance.approving import Approver, Asked, AskNobody, channel_of
from toolgate.governance.config import GovernanceConfig, load_governance
from toolgate.governance.definitions import ToolResult
from toolgate.governance.modes import ModeSource, read_mode
from toolgate.governance.registry import ToolRegistry
from toolgate.governance.results import NoModeError, not_run, told
from toolgate.governance.trace import TraceContext
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.misuse import explained_class

OPERATOR = "mode-manager"


@explained_class
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
        self._is_closed = False
        self.gate = gate if gate is not None else open_gate("memory://", limits=self.governance.limits)
        self.project = private_project()
        asked = AskNobody(self.gate) if approver is None else channel_of(approver)
        policy = self.governance.policy
        self._realm = self.gate.host.attach(
            self.project,
            registry,
            adjust=lambda _base: policy,
            channels=[Asked(asked, self.gate, self._follow_mode)],
        )
        project = self.project
        self._stop_logging = self.gate.host.on_change(
            lambda change: write_log(change) if change.project == project else None
        )
        if self._is_own:
            self._finalizer = weakref.finalize(self, close_anywhere, self.gate)
            self._finalizer.atexit = False  # what is in memory ends with the program, and no thread starts then

    def execute_tool(
        self, tool_name: str, arguments: Mapping[str, Any] | None = None, trace_ctx: TraceContext | None = None
    ) -> ToolResult:
        """Run a tool and return what came of it; blocks until then. Never raises an Exception."""
        try:
            given, context = self._ready(tool_name, arguments, trace_ctx)
            mode = self._mode()
            if mode is not self.gate.mode:
                self.gate.sync.set_mode(mode, by=OPERATOR)
            result = self.gate.sync.call(tool_name, given, context=context, own=True, distinct=True)
            return told(result, context)
        except Exception as error:  # noqa: BLE001  # the edge: whatever fails is told, and nothing runs for it
            return not_run(tool_name, error, self._text_of(error))

    async def aexecute_tool(
        self, tool_name: str, arguments: Mapping[str, Any] | None = None, trace_ctx: TraceContext | None = None
    ) -> ToolResult:
        """Do the same without blocking the event loop; cancelling this cancels the call."""
        try:
            given, context = self._ready(tool_name, arguments, trace_ctx)
            await self._follow_mode()
            result = await self.gate.call(tool_name, given, context=context, own=True, distinct=True)
            return told(result, context)
        except Exception as error:  # noqa: BLE001  # as above
            return not_run(tool_name, error, self._text_of(error))

    def _text_of(self, error: Exception) -> str:
        return self.gate.host.masker.text(text_of(error))

    def _mode(self) -> Mode:
        """Return the manager's mode; NoModeError where it fails or answers something else."""
        try:
            return read_mode(self.mode_manager.get_current_mode())
        except Exception as error:  # somebody else's object: whatever it raises, it named no mode
            why = str(error) if isinstance(error, UsageError) else f"it failed with {type(error).__name__}"
            raise NoModeError(f"the mode manager did not say which mode holds ({why.rstrip('.')})") from error

    def _ready(
        self, tool_name: str, arguments: Mapping[str, Any] | None, trace_ctx: TraceContext | None
    ) -> tuple[Any, Context]:
        if not isinstance(tool_name, str):
            raise UsageError(f"A tool is named by text, not by {type(tool_name).__name__}.")
        trace = trace_ctx if trace_ctx is not None else TraceContext.new_trace()
        if not hasattr(trace, "new_span") or not hasattr(trace, "trace_id"):
            raise UsageError(f"trace_ctx is a TraceContext, not {type(trace).__name__}; leave it out for a new trace.")
        _, span_id = trace.new_span()
        context = Context(
            principal=self._principal, project=self.project, trace_id=str(trace.trace_id), span_id=str(span_id)
        )
        given = {} if arguments is None else arguments
        found = self.registry.get_tool(tool_name)
        return given if found is None else found[0].with_defaults(given), context

    async def _follow_mode(self) -> Mode:
        """Have the gate know the manager's mode, before a call and again after a person answered."""
        mode = self._mode()
        if mode is not self.gate.mode:
            await self.gate.set_mode(mode, by=OPERATOR)
        return mode

    def close(self) -> None:
        """Close the layer's own gate; one that was given stays open. In a coroutine, use `aclose`."""
        if self._is_own:
            self.gate.close()
            self._finalizer.detach()
        self._let_go_of_gate()

    async def aclose(self) -> None:
        """Do the same in a coroutine."""
        if self._is_own:
            await self.gate.aclose()
            self._finalizer.detach()
        self._let_go_of_gate()

    def _let_go_of_gate(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._stop_logging()

    def __enter__(self) -> ToolExecutionLayer:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> ToolExecutionLayer:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.aclose()
