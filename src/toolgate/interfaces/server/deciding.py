"""People's answers over the wire, by REST and WebSocket alike: one place says who may approve their own.

At level full another person decides where the project has one. Where it has none, the person a call is for may,
and the record says that nobody else could.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolgate.authority import Verb, may
from toolgate.errors import ConflictError, NotAllowedError, UsageError
from toolgate.interfaces.server import views
from toolgate.interfaces.server.problems import ProblemError, problem_of
from toolgate.interfaces.server.services import Services
from toolgate.kernel.approval import Approval
from toolgate.kernel.context import Principal
from toolgate.kernel.grant import Remember
from toolgate.kernel.output import Result
from toolgate.kernel.terms import ApprovalLevel
from toolgate.ports.channel import Decision

ALONE = "approved without a reason by the only person of the project who can approve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Who answers which question of a project, and what they saw."""

    project: str
    approval_id: str
    by: Principal
    reason: str | None = None
    digest: str | None = None
    remember: Remember | None = None


async def decide(services: Services, reply: Reply, decision: Decision) -> Result:
    """Approve or reject; raise the problem that answers who may not or comes late."""

    async def say(given: Reply) -> Result:
        return await services.gate.decide(
            given.approval_id,
            decision,
            by=given.by,
            reason=given.reason,
            digest=given.digest,
            project=given.project,
            remember=given.remember,
        )

    return await (_approve(services, reply, say) if decision is Decision.APPROVE else answer(services, reply, say))


async def edit(services: Services, reply: Reply, arguments: Mapping[str, Any]) -> Result:
    """Approve with other arguments."""

    async def say(given: Reply) -> Result:
        return await services.gate.approvals.edit(
            given.approval_id,
            arguments,
            by=given.by,
            reason=given.reason,
            digest=given.digest,
            project=given.project,
            remember=given.remember,
        )

    return await _approve(services, reply, say)


async def answer(services: Services, reply: Reply, say: Callable[[Reply], Awaitable[Any]]) -> Any:
    """Do what `say` does; a conflict is answered with what was decided."""
    try:
        return await say(reply)
    except ConflictError as error:
        raise await conflict(services, reply, error) from None


async def _approve(services: Services, reply: Reply, say: Callable[[Reply], Awaitable[Result]]) -> Result:
    if (reply.reason or "").strip():
        await _leave_to_others(services, reply)
        result: Result = await answer(services, reply, say)
        return result
    try:
        said: Result = await answer(services, reply, say)
    except UsageError:
        # Only one's own call at level full needs a reason for a yes.
        if not await _leave_to_others(services, reply):
            raise
        alone: Result = await answer(services, replace(reply, reason=ALONE), say)
        return alone
    return said


async def _leave_to_others(services: Services, reply: Reply) -> bool:
    """Whether this is the person's own call at level full; refused where somebody else could approve it."""
    asked = await services.gate.approvals.get(reply.approval_id, project=reply.project)
    is_own = asked.user is not None and Principal.of(asked.user).id == reply.by.id
    if not is_own or asked.level != ApprovalLevel.FULL:
        return False
    for account in await services.directory.accounts(project=reply.project):
        other = account.principal_in(reply.project)
        able = may(Verb.DECIDE, account, reply.project)
        if able and other.id != reply.by.id and asked.terms.accepts(other.roles, escalated=asked.escalated):
            raise NotAllowedError(f"{reply.by.name} is who this call is for; at level full another person decides.")
    return True


async def conflict(services: Services, reply: Reply, error: ConflictError) -> ProblemError:
    """The 409 of an answer that came second or too late, with what was decided."""
    problem = problem_of(error)
    found = await services.gate.approvals.get(reply.approval_id, project=reply.project)
    problem.more |= {"approval_id": found.id, "decided": outcome(found)}
    return problem


def outcome(approval: Approval) -> dict[str, Any]:
    """What was decided, by whom and when."""
    return {
        "status": views.APPROVAL_STATUS[approval.status],
        "decided_by": approval.decided_by,
        "decided_at": None if approval.decided_at is None else approval.decided_at.isoformat(),
        "reason": approval.reason,
    }
