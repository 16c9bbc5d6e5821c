"""What a yes over the wire takes besides the right to give it: another person, a reason, having been shown the change.

Every surface of the server asks here. A library's own `decide` is its host's word and does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolgate.authority import Verb, may
from toolgate.errors import NotAllowedError
from toolgate.interfaces.server.problems import ProblemError
from toolgate.kernel.approval import Approval
from toolgate.kernel.artifact import preview_parts
from toolgate.kernel.context import Principal
from toolgate.kernel.terms import ApprovalLevel
from toolgate.kernel.tool import RiskLevel

if TYPE_CHECKING:
    from toolgate.interfaces.server.deciding import Reply
    from toolgate.interfaces.server.services import Services

SINGLE_PERSON: Final = "single_person"
"""The allowance of the only person who can decide, under the policy's setting of that name."""
OWN_CLIENT: Final = "own_client"
"""The allowance of a person's plain client, as documents 000 and 004 have it, for that person's own calls."""


def needs_preview(asked: Approval) -> bool:
    """Whether who says yes to this question must have been served all of its preview."""
    return asked.risk == RiskLevel.HIGH.value and asked.preview is not None


async def allowances_of(services: Services, reply: Reply) -> tuple[str, ...]:
    """Return what a yes is excused from, for its record; raise NotAllowedError or a problem for what it lacks."""
    asked = await services.gate.approvals.get(reply.approval_id, project=reply.project)
    is_own = asked.user is not None and Principal.of(asked.user).id == reply.by.id
    found: tuple[str, ...] = ()
    if is_own and asked.level == ApprovalLevel.FULL:
        await _check_alone(services, reply, asked)
        found = (SINGLE_PERSON,)
    lack = await _lack(services, reply, asked)
    if lack is None:
        return found
    if is_own and reply.is_plain:
        return (*found, OWN_CLIENT)
    raise lack


async def _check_alone(services: Services, reply: Reply, asked: Approval) -> None:
    """At level full another person decides; where there is none, the policy must say that one person is enough."""
    who = reply.by.name
    for account in await services.directory.accounts(project=reply.project):
        other = account.principal_in(reply.project)
        able = may(Verb.DECIDE, account, reply.project)
        if able and other.id != reply.by.id and asked.terms.accepts(other.roles, escalated=asked.escalated):
            raise NotAllowedError(f"{who} is who this call is for; at level full another person decides.")
    if not services.gate.host.policy(reply.project).single_person:
        raise NotAllowedError(
            f"{who} is who this call is for, and at level full another person decides, but nobody else can here. Add a "
            "person to the project, or write `single_person: true` into the policy: then the only person decides, and "
            "the record says so."
        )


async def _lack(services: Services, reply: Reply, asked: Approval) -> ProblemError | None:
    if asked.needs_reason and not (reply.reason or "").strip():
        why = "the risk is HIGH" if asked.risk == RiskLevel.HIGH.value else "it is asked at level full"
        return ProblemError(
            400, "reason_needed", f"Approving `{asked.tool_name}` needs a `reason`: {why}. Say why it may run."
        )
    if needs_preview(asked) and not await services.served.has(reply.by.name, asked.id, preview_parts(asked.preview)):
        return ProblemError(
            409,
            "not_shown",
            f"The risk is HIGH, and this server has not shown {reply.by.name} all of what `{asked.tool_name}` would "
            "change. Open it here in full, with `approvals/{approval_id}/artifact?full=true`, then decide.",
            approval_id=asked.id,
        )
    return None
