"""Questions: list, look, approve, reject, extend."""

from __future__ import annotations

from typing import Any

from toolgate.errors import ConflictError
from toolgate.interfaces.server import views
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.problems import ProblemError, problem_of
from toolgate.interfaces.server.schemas import (
    ApprovalAnswer,
    ApprovalList,
    ApprovalsQuery,
    ApproveBody,
    DecisionAnswer,
    ExtendBody,
    RejectBody,
)
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.ports.channel import Decision
from toolgate.ports.directory import Ability
from toolgate.ports.store import ApprovalQuery

_BASE = "/my/projects/{project_id}/approvals"
_STATUSES = {shown: status for status, shown in views.APPROVAL_STATUS.items()}


async def approve(ask: Ask) -> DecisionAnswer:
    return await _decide(ask, Decision.APPROVE)


async def reject(ask: Ask) -> DecisionAnswer:
    return await _decide(ask, Decision.DENY)


async def _decide(ask: Ask, decision: Decision) -> DecisionAnswer:
    approval_id, body = ask.params["approval_id"], ask.body
    try:
        result = await ask.services.gate.decide(
            approval_id, decision, by=ask.who, reason=body.reason, digest=body.digest, project=ask.project
        )
    except ConflictError as error:
        raise await conflict(ask, approval_id, error) from None
    return DecisionAnswer(
        approval_id=approval_id,
        status="approved" if decision is Decision.APPROVE else "rejected",
        tool_id=result.call_id,
        tool_status=views.ROW_STATUS[result.status],
    )


async def conflict(ask: Ask, approval_id: str, error: ConflictError) -> ProblemError:
    """The 409 of a decision that came second or too late, with what was decided."""
    problem = problem_of(error)
    found = await ask.services.gate.approval(approval_id, project=ask.project)
    problem.more["approval_id"] = found.id
    problem.more["decided"] = _outcome(found)
    return problem


def _outcome(approval: Approval) -> dict[str, Any]:
    return {
        "status": views.APPROVAL_STATUS[approval.status],
        "decided_by": approval.decided_by,
        "decided_at": None if approval.decided_at is None else approval.decided_at.isoformat(),
        "reason": approval.reason,
    }


async def extend(ask: Ask) -> ApprovalAnswer:
    approval_id = ask.params["approval_id"]
    try:
        longer = await ask.services.gate.extend(approval_id, ask.body.seconds, by=ask.who, project=ask.project)
    except ConflictError as error:
        raise await conflict(ask, approval_id, error) from None
    return ApprovalAnswer(approval=views.approval(longer))


async def show(ask: Ask) -> ApprovalAnswer:
    found = await ask.services.gate.approval(ask.params["approval_id"], project=ask.project)
    return ApprovalAnswer(approval=views.approval(found))


async def index(ask: Ask) -> ApprovalList:
    query: ApprovalsQuery = ask.query
    status: ApprovalStatus | None = None if query.status is None else _STATUSES[query.status]
    gate = ask.services.gate
    after = None
    if query.after is not None:
        after = await gate.approval(query.after, project=ask.project)
    found = await gate.approvals(
        ApprovalQuery(project=ask.project, call_id=query.tool_id, status=status, after=after, limit=query.limit)
    )
    last = found[-1].id if len(found) == query.limit else None
    return ApprovalList(approvals=[views.approval(one) for one in found], next=last)


OPERATIONS = (
    Operation(
        method="POST",
        path=_BASE + "/{approval_id}/approve",
        summary="Approve a call",
        handler=approve,
        ability=Ability.DECIDE,
        body=ApproveBody,
        returns=DecisionAnswer,
        problems=(409,),
        tag="approvals",
    ),
    Operation(
        method="POST",
        path=_BASE + "/{approval_id}/reject",
        summary="Reject a call",
        handler=reject,
        ability=Ability.DECIDE,
        body=RejectBody,
        returns=DecisionAnswer,
        problems=(409,),
        tag="approvals",
    ),
    Operation(
        method="POST",
        path=_BASE + "/{approval_id}/extend",
        summary="Give people more time to decide",
        handler=extend,
        ability=Ability.DECIDE,
        body=ExtendBody,
        returns=ApprovalAnswer,
        problems=(409,),
        tag="approvals",
    ),
    Operation(
        method="GET",
        path=_BASE,
        summary="List approvals, oldest first",
        handler=index,
        query=ApprovalsQuery,
        returns=ApprovalList,
        tag="approvals",
    ),
    Operation(
        method="GET",
        path=_BASE + "/{approval_id}",
        summary="Show one approval",
        handler=show,
        returns=ApprovalAnswer,
        tag="approvals",
    ),
)
