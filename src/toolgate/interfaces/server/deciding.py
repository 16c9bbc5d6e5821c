"""People's answers over the wire, by REST, WebSocket and the pages without script alike.

What a yes takes besides the right to give it is in `friction`; who may decide at all, the gate says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from toolgate.errors import ConflictError, NotAllowedError, UsageError
from toolgate.interfaces.server import friction, views
from toolgate.interfaces.server.problems import ProblemError, problem_of
from toolgate.interfaces.server.services import Services
from toolgate.kernel.approval import Approval
from toolgate.kernel.context import Principal
from toolgate.kernel.grant import Remember
from toolgate.kernel.output import Result
from toolgate.ports.channel import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Who answers which question of a project, and what they saw.

    `is_plain`: said with the bare words of documents 000 and 004. `allowances` name what a yes was excused from.
    `on_behalf_of` is whose vote it is, where that was delegated to who answers. `network`: a yes also gives the command
    a network, this once.
    """

    project: str
    approval_id: str
    by: Principal
    reason: str | None = None
    digest: str | None = None
    remember: Remember | None = None
    is_plain: bool = False
    allowances: tuple[str, ...] = ()
    on_behalf_of: str | None = None
    network: bool = False


async def decide(services: Services, reply: Reply, decision: Decision) -> Result:
    """Approve or reject; raise the problem that answers who may not or comes late."""
    if reply.network and decision is Decision.APPROVE:
        return await _approve(services, _alone(reply), partial(_with_network, services))

    async def say(given: Reply) -> Result:
        return await services.gate.decide(
            given.approval_id,
            decision,
            by=given.by,
            reason=given.reason,
            digest=given.digest,
            project=given.project,
            remember=given.remember,
            allowances=given.allowances,
            on_behalf_of=given.on_behalf_of,
        )

    return await (_approve(services, reply, say) if decision is Decision.APPROVE else answer(services, reply, say))


def _alone(reply: Reply) -> Reply:
    """Refuse what would go further than this one call, or be somebody else's word."""
    if reply.remember is not None or reply.on_behalf_of is not None:
        raise UsageError("A network is granted for one call, with one's own vote: neither remembered nor for others.")
    return reply


async def _with_network(services: Services, given: Reply) -> Result:
    return await services.gate.approvals.approve_with_network(
        given.approval_id,
        by=given.by,
        reason=given.reason,
        digest=given.digest,
        project=given.project,
        allowances=given.allowances,
        look=friction.needs_preview,
    )


async def edit(services: Services, reply: Reply, arguments: Mapping[str, Any]) -> Result:
    """Approve with other arguments; a change of HIGH risk that nobody was shown yet is asked anew."""

    async def say(given: Reply) -> Result:
        return await services.gate.approvals.edit(
            given.approval_id,
            arguments,
            by=given.by,
            reason=given.reason,
            digest=given.digest,
            project=given.project,
            remember=given.remember,
            allowances=given.allowances,
            look=friction.needs_preview,
        )

    return await _approve(services, reply, say)


async def answer(services: Services, reply: Reply, say: Callable[[Reply], Awaitable[Any]]) -> Any:
    """Do what `say` does; a conflict is answered with what was decided."""
    try:
        return await say(reply)
    except ConflictError as error:
        raise await conflict(services, reply, error) from None


async def _approve(services: Services, reply: Reply, say: Callable[[Reply], Awaitable[Result]]) -> Result:
    async def check(given: Reply) -> None:
        await services.gate.approvals.check(
            given.approval_id,
            by=given.by,
            digest=given.digest,
            project=given.project,
            on_behalf_of=given.on_behalf_of,
        )

    try:
        allowances = await friction.allowances_of(services, reply)
    except (ProblemError, NotAllowedError):
        await answer(services, reply, check)  # who may not decide it at all, or comes late, hears that first
        raise
    result: Result = await answer(services, replace(reply, allowances=allowances), say)
    return result


class Held(NamedTuple):
    """Whose votes somebody could give on a question, and whether they have none of their own on it."""

    on_behalf_of: list[str]
    has_no_own_vote: bool


async def votes_held(services: Services, approval: Approval, by: Principal) -> Held:
    """Return whose delegated votes somebody could give on a question now; none on one that is decided."""
    approvals, project = services.gate.approvals, approval.project
    held = [*await approvals.votes_held(approval.id, by=by, project=project)] if approval.is_pending else []
    if not held:
        return Held([], False)
    try:
        await approvals.check(approval.id, by=by, project=project)
    except NotAllowedError:
        return Held(held, True)
    except ConflictError:  # nothing can be decided in LOCKDOWN; or they have answered
        return Held([], False)
    return Held(held, False)


async def conflict(services: Services, reply: Reply, error: ConflictError) -> ProblemError:
    """The 409 of an answer that came second or too late, with what was decided."""
    problem = problem_of(error)
    found = await services.gate.approvals.get(reply.approval_id, project=reply.project)
    problem.more |= {"approval_id": found.id, "decided": outcome(found)}
    return problem


def outcome(approval: Approval) -> dict[str, Any]:
    """What was decided, by whom and when; `votes` are who has said yes so far."""
    return {
        "status": views.APPROVAL_STATUS[approval.status],
        "decided_by": approval.decided_by,
        "decided_at": None if approval.decided_at is None else approval.decided_at.isoformat(),
        "reason": approval.reason,
        "votes": [vote.who for vote in approval.votes],
    }
