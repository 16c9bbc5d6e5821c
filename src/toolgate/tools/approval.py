"""Approvals: ask by hand or through an executor, wait, decide, look up. Every question is a call through a gate.

A service is a view of one gate. It sees what every executor on that gate asks, and what is asked by hand,
which belongs to a project of its own, since nothing runs here when such a question is approved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from os import PathLike
from typing import Any
from uuid import UUID, uuid4

from toolgate.bootstrap import open as open_gate
from toolgate.doors.places import close_anywhere
from toolgate.doors.process import ProcessWide
from toolgate.doors.questions import Questions
from toolgate.errors import DecisionConflictError, NotFoundError, UsageError
from toolgate.gate import Gate
from toolgate.kernel.approval import Approval, ApprovalStatus, plain_question
from toolgate.kernel.artifact import ApprovalArtifact, summary_of
from toolgate.kernel.context import Principal, as_id
from toolgate.kernel.misuse import explained_class, fits
from toolgate.kernel.record import evolve
from toolgate.ports.store import ApprovalQuery
from toolgate.tools.context import context_of
from toolgate.tools.definitions import Action
from toolgate.tools.errors import ApprovalWaitTimeoutError

PROJECT = "_approvals"
DEFAULT_TIMEOUT_S = 300.0
Id = UUID | str

__all__ = [
    "ApprovalArtifact",
    "ApprovalDecision",
    "ApprovalRequest",
    "ApprovalService",
    "ApprovalStatus",
    "clear_approval_service",
    "get_approval_service",
    "set_approval_service",
]


@explained_class
@dataclass(init=False)
class ApprovalRequest:
    """A question about one action. `id` is the approval's own, set when it is asked; `payload` is shown masked.

    `approval_message` and `payload_summary` are other names of `message` and `payload`.
    """

    action_id: Id
    tool_name: str
    message: str
    payload: Mapping[str, Any]
    id: Id | None
    pipeline_run_id: Id | None
    status: ApprovalStatus
    decided_by: Id | None
    decided_at: datetime | None
    created_at: datetime | None
    expires_at: datetime | None

    def __init__(
        self,
        action_id: Id,
        tool_name: str,
        message: str = "",
        payload: Mapping[str, Any] | None = None,
        id: Id | None = None,
        pipeline_run_id: Id | None = None,
        status: ApprovalStatus = ApprovalStatus.PENDING,
        decided_by: Id | None = None,
        decided_at: datetime | None = None,
        created_at: datetime | None = None,
        expires_at: datetime | None = None,
        *,
        approval_message: str = "",
        payload_summary: Mapping[str, Any] | None = None,
    ) -> None:
        self.action_id, self.tool_name, self.id = action_id, tool_name, id
        self.message = message or approval_message
        self.payload = payload or payload_summary or {}
        self.pipeline_run_id, self.status, self.decided_by = pipeline_run_id, status, decided_by
        self.decided_at, self.created_at, self.expires_at = decided_at, created_at, expires_at

    @property
    def approval_message(self) -> str:
        return self.message

    @property
    def payload_summary(self) -> Mapping[str, Any]:
        return self.payload

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values, as it is: only what the service returns is masked."""
        told = {name: _as_json(value) for name, value in vars(self).items()}
        return told | {"approval_message": self.message, "payload_summary": told["payload"]}

    @property
    def artifact(self) -> ApprovalArtifact:
        """What a client shows the person who is asked."""
        summary, arguments = summary_of(self.tool_name, self.payload), dict(self.payload)
        return ApprovalArtifact(
            str(self.id or ""), self.tool_name, self.message, action_summary=summary, arguments=arguments
        )


@dataclass(frozen=True)
class ApprovalDecision:
    """An answer. `granted` is what decides."""

    granted: bool
    request_id: Id
    decided_by: Id | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {name: _as_json(value) for name, value in asdict(self).items()}


@explained_class
class ApprovalService:
    """Approvals that outlive the process when opened on a file. The first decision is final."""

    def __init__(self, gate: Gate | None = None, *, default_timeout_seconds: float = DEFAULT_TIMEOUT_S) -> None:
        self.gate = gate if gate is not None else open_gate("memory://")
        self.default_timeout_seconds = default_timeout_seconds
        self._questions = Questions(self.gate, PROJECT)

    @classmethod
    def open(cls, url: str | PathLike[str] = "memory://") -> ApprovalService:
        """Return a service on a SQLite file, named by its path or as `sqlite:///file.db`, on
        `postgresql://user@host/database` (both durable), or on `memory://`.
        """
        return cls(open_gate(url))

    async def request(self, request: ApprovalRequest, *, timeout_seconds: float | None = None) -> ApprovalRequest:
        """Ask; return the request with its id. The same action id asks once."""
        action = Action(id=request.action_id, type=request.tool_name)
        run_id = None if request.pipeline_run_id is None else str(request.pipeline_run_id)
        approval = await self._questions.ask(
            request.tool_name,
            request.payload,
            context=evolve(context_of(None, PROJECT, action), run_id=run_id),
            call_id=str(request.action_id),
            timeout_s=self.default_timeout_seconds if timeout_seconds is None else timeout_seconds,
            message=request.message or None,
        )
        request.id, request.status = as_id(approval.id), approval.status
        request.created_at, request.expires_at = approval.created_at, approval.expires_at
        return request

    async def request_approval(
        self,
        action: Any = None,
        ctx: Any = None,
        tool: Any = None,
        approval_message: str = "",
        payload_summary: Mapping[str, Any] | None = None,
        *,
        action_id: Id | None = None,
        tool_name: str | None = None,
        pipeline_run_id: Id | None = None,
    ) -> ApprovalRequest:
        """Ask about an action of a tool, in the shape document 000 uses; return what is asked, masked.

        In stageflow's shape the same places hold an action id, a tool's name and a run id, which have keywords too.
        """
        if isinstance(action, Id) or action_id is not None:
            ids = (action_id or action, tool_name or ctx, pipeline_run_id or tool)
            return await self._ask(*ids, approval_message, payload_summary, None)
        name = getattr(tool, "name", None)
        if name is None:
            raise UsageError("Give an action, its context and its tool; or `action_id` and `tool_name`.")
        return await self._ask(
            getattr(action, "id", None) or uuid4(),
            name,
            pipeline_run_id or context_of(ctx, PROJECT, Action()).run_id,
            approval_message or getattr(tool, "approval_message", None) or "",
            payload_summary or getattr(action, "payload", None),
            getattr(tool, "approval_timeout_seconds", None),
        )

    async def _ask(
        self,
        action_id: Id,
        tool_name: str,
        run_id: Id | None,
        message: str,
        payload: Mapping[str, Any] | None,
        timeout_seconds: float | None,
    ) -> ApprovalRequest:
        if not isinstance(tool_name, str):
            raise UsageError("An approval is asked about a tool: give its `tool_name`.")
        question = message or plain_question(tool_name)
        request = ApprovalRequest(action_id, tool_name, question, dict(payload or {}), pipeline_run_id=run_id)
        asked = await self.request(request, timeout_seconds=timeout_seconds)
        return _as_request(await self._find(asked.id or ""))

    async def await_decision(self, request_id: Id, timeout_seconds: float | None = None) -> ApprovalDecision:
        """Return the decision. When time is up raise ToolApprovalTimeoutError, and close a request made by hand.

        The error is a TimeoutError as well.
        """
        approval = await self._questions.answer(await self._find(request_id), timeout_seconds)
        if approval.status is ApprovalStatus.EXPIRED or approval.is_pending:
            raise ApprovalWaitTimeoutError(
                tool=approval.tool_name,
                request_id=as_id(approval.id),
                timeout_seconds=timeout_seconds,
                reason=approval.reason,
            )
        granted = approval.status is ApprovalStatus.APPROVED
        return ApprovalDecision(granted, as_id(approval.id), _maybe_id(approval.decided_by), approval.reason)

    async def record_decision(
        self,
        request_id: Id,
        granted: bool,
        user_id: Id | Principal | None = None,
        reason: str | None = None,
        *,
        decided_by: Id | Principal | None = None,
    ) -> ApprovalDecision:
        """Record a person's answer; raise DecisionConflictError where it is decided or too late.

        Who answers must be said, as `user_id` or `decided_by`.
        """
        user_id = user_id if user_id is not None else decided_by
        if user_id is None:
            raise UsageError("An answer needs somebody who gives it: say who with `user_id` or `decided_by`.")
        approval = await self._find(request_id)
        who = Principal.of(user_id)
        await self.gate.decide(
            approval.id, "approve" if granted is True else "deny", by=who, reason=reason, project=approval.project
        )
        said_by = who.name if isinstance(user_id, Principal) else user_id
        return ApprovalDecision(granted is True, as_id(approval.id), said_by, reason)

    async def cancel_request(self, request_id: Id) -> bool:
        """Close an undecided request together with its call; False where it is not there or decided."""
        try:
            approval = await self._find(request_id)
            if not approval.is_pending:
                return False
            await self.gate.cancel(approval.call_id, reason="the request was cancelled", project=approval.project)
        except (NotFoundError, DecisionConflictError):
            return False
        return True

    async def get_status(self, id: Id) -> ApprovalStatus:
        """Return the status by request id or by action id; raise NotFoundError."""
        return (await self._find(id)).status

    async def get_request(self, id: Id) -> ApprovalRequest:
        """Return a request by its id or by its action id, its payload masked; raise NotFoundError."""
        return _as_request(await self._find(id))

    async def list_pending(self) -> list[ApprovalRequest]:
        """Return the undecided requests of this gate, oldest first, their payloads masked."""
        return [_as_request(approval) for approval in await self.gate.pending()]

    async def get_pending_requests(self, pipeline_run_id: Id | None = None) -> list[ApprovalRequest]:
        """Return what `list_pending` does, or only what was asked in one run."""
        pending = await self.list_pending()
        run_id = None if pipeline_run_id is None else as_id(str(pipeline_run_id))
        return [request for request in pending if run_id is None or request.pipeline_run_id == run_id]

    async def cleanup(self, request_id: Id) -> None:
        """Close a request that nobody needs any more, if it is undecided. Its record stays until retention ends."""
        await self.cancel_request(request_id)

    async def close(self) -> None:
        """Close the gate; undecided requests of a file stay undecided."""
        await self.gate.aclose()

    async def _find(self, id: Id) -> Approval:
        text = str(id)
        for query in (ApprovalQuery(id=text), ApprovalQuery(call_id=text)):
            found = await self.gate.approvals.list(query)
            if found:
                newest = max(found, key=lambda approval: approval.created_at)
                if newest.project == PROJECT:
                    self._questions.hold(newest.tool_name)
                return newest
        raise NotFoundError(f"There is no approval request {text[:64]}, by request id or action id.")


def _as_json(value: object) -> object:
    """Return a field as JSON has it: ids as text, times in ISO 8601."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, UUID | ApprovalStatus) else value


def _maybe_id(text: str | None) -> Id | None:
    return None if text is None else as_id(text)


def _as_request(approval: Approval) -> ApprovalRequest:
    return ApprovalRequest(
        action_id=as_id(approval.call_id),
        tool_name=approval.tool_name,
        message=approval.message,
        payload=approval.arguments or {},
        id=as_id(approval.id),
        pipeline_run_id=_maybe_id(approval.run_id),
        status=approval.status,
        decided_by=_maybe_id(approval.decided_by),
        decided_at=approval.decided_at,
        created_at=approval.created_at,
        expires_at=approval.expires_at,
    )


_service = ProcessWide(ApprovalService)


def get_approval_service() -> ApprovalService:
    """Return the process-wide service, on the gate that executors without one of their own share."""
    return _service.get()


def set_approval_service(service: ApprovalService) -> None:
    """Make a service the process-wide one."""
    if not fits(service, ApprovalService):
        raise UsageError(f"An approval service is an ApprovalService, not {type(service).__name__}.")
    _service.put(service)


def clear_approval_service() -> None:
    """Forget the process-wide service and close its gate; the next one asked for is new."""
    previous = _service.put(None)
    if previous is not None:
        close_anywhere(previous.gate)
