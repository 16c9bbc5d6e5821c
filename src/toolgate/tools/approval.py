"""Asking a person by hand: request, wait, decide, look up. Every request is a call through a gate of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from toolgate.bootstrap import open as open_gate
from toolgate.errors import NotFoundError, ToolApprovalTimeoutError
from toolgate.gate import Gate
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.context import Context, Principal
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.store import ApprovalQuery

PROJECT = "_approvals"
DEFAULT_TIMEOUT_S = 300.0


@dataclass
class ApprovalRequest:
    """A question about one action. `id` is the approval's own, set when it is asked."""

    action_id: UUID | str
    tool_name: str
    message: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    pipeline_run_id: str | None = None
    status: ApprovalStatus = ApprovalStatus.PENDING
    decided_by: str | None = None
    decided_at: datetime | None = None
    created_at: datetime | None = None

    @property
    def approval_message(self) -> str:
        return self.message


@dataclass(frozen=True)
class ApprovalDecision:
    """An answer. `granted` is what decides."""

    granted: bool
    request_id: str
    decided_by: str | None = None
    reason: str | None = None


class ApprovalService:
    """Approvals that outlive the process when opened on a file. The first decision is final."""

    def __init__(self, gate: Gate | None = None) -> None:
        self._gate = gate if gate is not None else open_gate("memory://")

    @classmethod
    def open(cls, url: str = "memory://") -> ApprovalService:
        """Return a service on `sqlite:///file.db` (durable) or `memory://`."""
        return cls(open_gate(url))

    async def request(self, request: ApprovalRequest, *, timeout_seconds: float = DEFAULT_TIMEOUT_S) -> ApprovalRequest:
        """Ask; return the request with its id. The same action id asks once."""
        gate = self._gate
        self._hold(request.tool_name)
        result = await gate.call(
            request.tool_name,
            request.payload,
            context=Context(project=PROJECT, run_id=request.pipeline_run_id),
            call_id=str(request.action_id),
            wait=False,
            approval_timeout_s=timeout_seconds,
            message=request.message or None,
        )
        if result.approval_id is None:
            raise result.to_error()
        return self._fill(request, await gate.approval(result.approval_id, project=PROJECT))

    async def request_approval(self, action: Any, ctx: Any, tool: Any) -> ApprovalRequest:
        """Ask about an action of a tool, in the shape document 000 uses."""
        run_id = getattr(ctx, "pipeline_run_id", None) or (
            ctx.get("pipeline_run_id") if isinstance(ctx, dict) else None
        )
        return await self.request(
            ApprovalRequest(
                action_id=getattr(action, "id", None) or uuid4(),
                tool_name=tool.name,
                message=tool.approval_message or f"Run {tool.name}?",
                payload=dict(getattr(action, "payload", None) or {}),
                pipeline_run_id=None if run_id is None else str(run_id),
            )
        )

    async def await_decision(self, request_id: UUID | str, timeout_seconds: float | None = None) -> ApprovalDecision:
        """Return the decision; raise ToolApprovalTimeoutError, and close the request as expired, when time is up."""
        approval = await self._find(request_id)
        try:
            async with asyncio.timeout(timeout_seconds):
                while approval.is_pending:
                    await self._gate.wait(approval.call_id, project=PROJECT)
                    approval = await self._gate.approval(approval.id, project=PROJECT)
        except TimeoutError:
            await self._gate.cancel(approval.call_id, reason="timeout", project=PROJECT)
            approval = await self._gate.approval(approval.id, project=PROJECT)
        if approval.status is ApprovalStatus.EXPIRED or approval.is_pending:
            raise ToolApprovalTimeoutError(
                tool=approval.tool_name, request_id=approval.id, timeout_seconds=timeout_seconds
            )
        granted = approval.status is ApprovalStatus.APPROVED
        return ApprovalDecision(granted, approval.id, approval.decided_by, approval.reason)

    async def record_decision(
        self, request_id: UUID | str, granted: bool, user_id: UUID | str | Principal, *, reason: str | None = None
    ) -> ApprovalDecision:
        """Record a person's answer; raise DecisionConflictError where it is decided or too late."""
        approval = await self._find(request_id)
        who = Principal.of(user_id)
        await self._gate.decide(approval.id, "approve" if granted else "deny", by=who, reason=reason, project=PROJECT)
        return ApprovalDecision(granted, approval.id, who.name, reason)

    async def get_status(self, id: UUID | str) -> ApprovalStatus:
        """Return the status by request id or by action id; raise NotFoundError."""
        return (await self._find(id)).status

    async def list_pending(self) -> list[ApprovalRequest]:
        """Return the undecided requests, oldest first."""
        return [_as_request(approval) for approval in await self._gate.pending(project=PROJECT)]

    async def close(self) -> None:
        await self._gate.aclose()

    async def _find(self, id: UUID | str) -> Approval:
        text = str(id)
        for query in (ApprovalQuery(project=PROJECT, id=text), ApprovalQuery(project=PROJECT, call_id=text)):
            found = await self._gate.approvals(query)
            if found:
                self._hold(found[-1].tool_name)
                return found[-1]
        raise NotFoundError(f"There is no approval request {text[:64]}, by request id or action id.")

    def _hold(self, tool_name: str) -> None:
        """Offer the question's tool here, so that an approved request comes to its end in this process."""
        if tool_name not in self._gate.registry:
            self._gate.register(_question(tool_name))

    @staticmethod
    def _fill(request: ApprovalRequest, approval: Approval) -> ApprovalRequest:
        request.id = approval.id
        request.status = approval.status
        request.created_at = approval.created_at
        return request


def _as_request(approval: Approval) -> ApprovalRequest:
    return ApprovalRequest(
        action_id=approval.call_id,
        tool_name=approval.tool_name,
        message=approval.message,
        payload=approval.arguments or {},
        id=approval.id,
        pipeline_run_id=approval.run_id,
        status=approval.status,
        decided_by=approval.decided_by,
        decided_at=approval.decided_at,
        created_at=approval.created_at,
    )


async def _nothing(_input: ToolInput) -> ToolOutput:
    """An approval by hand runs nothing here: whoever asked goes on."""
    return ToolOutput.ok()


def _question(name: str) -> ToolDefinition:
    return ToolDefinition(name, {}, _nothing, requires_approval=True, effects="read")
