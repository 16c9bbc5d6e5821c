"""Questions by hand: a person is asked about a tool, and whoever asked goes on. Each is a call through a gate."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from toolgate.gate import Gate
from toolgate.kernel.approval import Approval
from toolgate.kernel.context import Context
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.tool import RiskLevel, ToolDefinition


class Questions:
    """Asks in a project of its own on a gate. Nothing runs here when a question is approved."""

    def __init__(self, gate: Gate, project: str) -> None:
        self.gate = gate
        self.project = project
        self._tools = ToolRegistry()
        self._realm = gate.host.attach(project, self._tools)  # the project goes by these tools while it is held

    async def ask(
        self,
        tool_name: str,
        arguments: Mapping[str, object],
        *,
        context: Context,
        timeout_s: float,
        call_id: str | None = None,
        message: str | None = None,
        risk: RiskLevel | None = None,
    ) -> Approval:
        """Ask; durable when it returns. Raises what kept it from being asked."""
        self.hold(tool_name, risk)
        result = await self.gate.call(
            tool_name,
            arguments,
            context=context,
            call_id=call_id,
            wait=False,
            approval_timeout_s=timeout_s,
            message=message,
            distinct=True,
        )
        if result.approval_id is None:
            raise result.to_error()
        return await self.gate.approvals.get(result.approval_id, project=self.project)

    async def answer(self, approval: Approval, timeout_s: float | None) -> Approval:
        """Return a question once it is answered or closed; when time is up, one that was asked here is closed.

        Another's question stays as it is: whoever asked it closes it.
        """
        try:
            async with asyncio.timeout(timeout_s):
                return await self.gate.approvals.answer(approval.id, project=approval.project)
        except TimeoutError:
            if approval.project != self.project:
                return approval
            await self.gate.cancel(approval.call_id, reason="timeout", project=self.project)
            return await self.gate.approvals.get(approval.id, project=self.project)

    def hold(self, tool_name: str, risk: RiskLevel | None = None) -> None:
        """Offer the question's tool here, so that an approved question comes to its end in this process."""
        known = self._tools.find(tool_name)
        if known is None or (risk is not None and known.risk is not risk):
            self._tools.add(
                ToolDefinition(tool_name, {}, _nothing, requires_approval=True, effects="read", risk_level=risk)
            )


async def _nothing(_input: ToolInput) -> ToolOutput:
    return ToolOutput.ok()
