"""Asking a person about a tool by hand, in document 004's words: request, then wait for yes or no.

Whoever asks this way runs the tool themselves; through `ToolExecutor` the gate asks and runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from toolgate.bootstrap import open as open_gate
from toolgate.doors.places import private_project
from toolgate.doors.questions import Questions
from toolgate.gate import Gate
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.assessment import LEVEL_TIMEOUT_S
from toolgate.kernel.context import Context, Principal
from toolgate.kernel.misuse import explained_class
from toolgate.kernel.terms import ApprovalLevel
from toolgate.kernel.tool import RiskLevel

_LEVELS = {
    RiskLevel.LOW: ApprovalLevel.QUICK,
    RiskLevel.MEDIUM: ApprovalLevel.QUICK,
    RiskLevel.HIGH: ApprovalLevel.FULL,
}


@explained_class
class ApprovalManager:
    """Asks and waits, in a project of its own on a gate; without a gate, on one in memory."""

    def __init__(self, gate: Gate | None = None, *, project: str | None = None) -> None:
        self.gate = gate if gate is not None else open_gate("memory://")
        self.project = project or private_project()
        self._questions = Questions(self.gate, self.project)

    async def request_tool_approval(
        self,
        tool_name: str,
        tool_params: Mapping[str, Any] | None = None,
        *,
        session_id: UUID | str | None = None,
        user_id: UUID | str | None = None,
        risk_level: RiskLevel | str = RiskLevel.MEDIUM,
        tool_id: UUID | str | None = None,
        timeout_seconds: float | None = None,
        description: str | None = None,
    ) -> Approval:
        """Ask; durable when it returns. The approval's `id` is what people decide on.

        Without `timeout_seconds` the risk decides: 300 s for medium, 600 s for high.
        """
        risk = RiskLevel(risk_level)
        return await self._questions.ask(
            tool_name,
            dict(tool_params or {}),
            context=Context(
                project=self.project,
                session_id=None if session_id is None else str(session_id),
                user=None if user_id is None else str(user_id),
            ),
            call_id=None if tool_id is None else str(tool_id),
            timeout_s=timeout_seconds or LEVEL_TIMEOUT_S[_LEVELS[risk]],
            message=description,
            risk=risk,
        )

    async def wait_for_approval(self, approval_id: UUID | str, timeout: float | None = None) -> bool:
        """Return whether a person said yes; False for a no, and where nobody answered before the question closed.

        `timeout` ends the question sooner: nobody can say yes to it afterwards.
        """
        asked = await self.gate.approvals.get(str(approval_id), project=self.project)
        return (await self._questions.answer(asked, timeout)).status is ApprovalStatus.APPROVED

    async def decide(
        self, approval_id: UUID | str, approved: bool, *, by: str | Principal, reason: str | None = None
    ) -> None:
        """Record a person's answer; the first is final."""
        decision = "approve" if approved else "deny"
        await self.gate.decide(str(approval_id), decision, by=by, reason=reason, project=self.project)

    async def pending(self) -> list[Approval]:
        """Return the questions that wait for a person, oldest first."""
        return await self.gate.pending(project=self.project)
