"""An approval service that is not ours: asked like any channel, with the methods document 000 gives it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from toolgate.kernel.approval import Approval
from toolgate.kernel.context import Principal, as_id
from toolgate.kernel.registry import ToolRegistry
from toolgate.ports.channel import Answer, Decision
from toolgate.tools.approval import ApprovalRequest
from toolgate.tools.definitions import Action


class ServiceChannel:
    """Carries questions to an object with `request_approval` (or `request`) and `await_decision`."""

    def __init__(self, service: Any, registry: ToolRegistry) -> None:
        self._service = service
        self._registry = registry

    async def ask(self, approval: Approval) -> Answer | None:
        asked = await self._request(approval)
        seconds = (approval.expires_at - approval.created_at).total_seconds()
        try:
            said = await self._service.await_decision(getattr(asked, "id", asked), seconds)
        except TimeoutError:  # nobody answered there; the gate keeps the time itself
            return None
        by = getattr(said, "decided_by", None)
        decision = Decision.APPROVE if getattr(said, "granted", said) is True else Decision.DENY
        who = Principal.of(type(self._service).__name__ if by is None else by)
        return Answer(decision, who, getattr(said, "reason", None))

    async def _request(self, approval: Approval) -> Any:
        service, arguments = self._service, dict(approval.arguments or {})
        if callable(getattr(service, "request_approval", None)):
            action = Action(id=as_id(approval.call_id), type=approval.tool_name, payload=arguments)
            if _takes_ids(service.request_approval):
                return await service.request_approval(
                    action_id=action.id,
                    tool_name=approval.tool_name,
                    pipeline_run_id=None if approval.run_id is None else as_id(approval.run_id),
                    approval_message=approval.message,
                    payload_summary=arguments,
                )
            ctx = {"pipeline_run_id": approval.run_id, "user_id": approval.user, "session_id": approval.session_id}
            return await service.request_approval(action, ctx, self._registry.find(approval.tool_name))
        return await service.request(
            ApprovalRequest(
                as_id(approval.call_id), approval.tool_name, approval.message, arguments, as_id(approval.id)
            )
        )


def _takes_ids(request_approval: Callable[..., Any]) -> bool:
    """Whether a method is of stageflow's shape: it takes the ids and texts, not the objects."""
    taken = signature(request_approval).parameters
    return "action_id" in taken and "action" not in taken
