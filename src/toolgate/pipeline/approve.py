"""Ask, and take the answer: the changes that open, decide, extend, warn about and close an approval."""

from __future__ import annotations

from datetime import datetime, timedelta

from toolgate.kernel.approval import Approval, ApprovalStatus, digest_of
from toolgate.kernel.assessment import LEVEL_TIMEOUT_S, ApprovalLevel
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.event import Draft
from toolgate.kernel.narration import tell, tell_approval
from toolgate.kernel.policy import Policy
from toolgate.kernel.tool import ToolDefinition

WARN_BEFORE_S = 60.0
DISPATCH_GRACE_S = 5.0
"""An approved call nobody claimed for this long is offered again by the sweeper."""


def timeout_s(call: Call, tool: ToolDefinition, policy: Policy, level: ApprovalLevel) -> float:
    """How long a person may take: the call's own wish, the tool's, the policy's, or the level's."""
    wishes = (call.approval_timeout_s, tool.approval_timeout_seconds, policy.approval_timeout_s)
    return next((wish for wish in wishes if wish is not None), LEVEL_TIMEOUT_S[level])


def request(
    call: Call,
    tool: ToolDefinition,
    *,
    id: str,
    nonce: str,
    now: datetime,
    timeout: float,
    first: tuple[Draft, ...],
    owner: str | None = None,
) -> Change:
    """Park a call and ask. An earlier approval of it keeps its answer, but no longer lets it run.

    `owner` is who puts the question to people; where it dies before they answer, somebody else must.
    """
    expires_at = now + timedelta(seconds=timeout)
    warn_at = expires_at - timedelta(seconds=min(WARN_BEFORE_S, timeout / 2))
    asked = call.to(Status.AWAITING_APPROVAL, approval_id=id, approved_by=None, due_at=warn_at, owner=owner)
    approval = Approval.make(
        id=id,
        project=call.project,
        call_id=call.id,
        tool_name=call.tool_name,
        message=call.message or tool.approval_message or _question(call),
        digest=digest_of(asked, nonce=nonce),
        nonce=nonce,
        definition_hash=call.definition_hash,
        requester=call.context.principal,
        user=call.context.user,
        run_id=call.context.run_id,
        session_id=call.context.session_id,
        correlation_id=call.context.request_id,
        created_at=now,
        expires_at=expires_at,
        warn_at=warn_at,
        level=call.level,
        risk=call.risk,
        confidence=call.confidence,
        reasons=call.reasons,
        arguments=call.shown,
        preview=call.preview,
        undoable=tool.undoable,
        requires_reason=tool.requires_reason,
    )
    event = tell_approval(
        approval,
        "approval.requested",
        {
            "message": approval.message,
            "level": approval.level,
            "risk_level": approval.risk,
            "confidence": approval.confidence,
            "reasons": list(approval.reasons),
            "digest": approval.digest,
            "expires_at": expires_at,
        },
    )
    return Change.make(
        project=call.project,
        at=now,
        call=asked,
        expect=call.version or None,
        approvals=(approval,),
        events=(*first, event),
    )


def _question(call: Call) -> str:
    return f"Undo {call.tool_name} ({call.undo_of})?" if call.undo_of else f"Run {call.tool_name}?"


def decide(call: Call, approval: Approval, *, approve: bool, by: str, reason: str | None, now: datetime) -> Change:
    """Record a person's answer; raise DecisionConflictError where it comes second or too late."""
    status = ApprovalStatus.APPROVED if approve else ApprovalStatus.DENIED
    closed = approval.close(status, at=now, by=by, reason=reason)
    events = [
        tell_approval(
            closed,
            "approval.decided",
            {"decision": status.value, "decided_by": by, "reason": reason, "digest": approval.digest},
        )
    ]
    if approve:
        due = now + timedelta(seconds=DISPATCH_GRACE_S)
        decided = call.to(Status.APPROVED, approved_by=by, approved_at=now, due_at=due)
    else:
        error = f"Approval was denied by {by}" + (f": {reason}" if reason else ".")
        decided = call.to(Status.REJECTED, due_at=None, completed_at=now, error=error, error_code="approval_denied")
        events.append(_refusal(decided, "approval_denied", error))
    return Change.make(
        project=call.project,
        at=now,
        call=decided,
        expect=call.version,
        approvals=(closed,),
        events=tuple(events),
    )


def expire(call: Call, approval: Approval, *, now: datetime) -> Change:
    """End a call whose approval nobody decided in time. This is not a denial."""
    closed = approval.close(ApprovalStatus.EXPIRED, at=now, reason="timeout")
    error = f"Nobody decided before {approval.expires_at.isoformat(timespec='seconds')}; ask again if it still matters."
    ended = call.to(Status.TIMEOUT, due_at=None, completed_at=now, error=error, error_code="approval_timeout")
    events = (
        tell_approval(closed, "approval.expired", {"reason": "timeout"}),
        _refusal(ended, "approval_timeout", error),
    )
    return Change.make(
        project=call.project, at=now, call=ended, expect=call.version, approvals=(closed,), events=events
    )


def warn(call: Call, approval: Approval, *, now: datetime) -> Change:
    """Announce that an approval is about to expire."""
    event = tell_approval(approval, "approval.expiring", {"expires_at": approval.expires_at})
    told = approval.evolve(warn_at=None)
    waiting = call.stay(due_at=approval.expires_at)
    return Change.make(
        project=call.project, at=now, call=waiting, expect=call.version, approvals=(told,), events=(event,)
    )


def extend(call: Call, approval: Approval, *, seconds: float, by: str, now: datetime) -> Change:
    """Move the expiry of an undecided approval to `seconds` from now."""
    approval.close(ApprovalStatus.DENIED, at=now)  # raises where it is decided or expired; the result is not kept
    expires_at = now + timedelta(seconds=seconds)
    warn_at = expires_at - timedelta(seconds=min(WARN_BEFORE_S, seconds / 2))
    longer = approval.evolve(expires_at=expires_at, warn_at=warn_at)
    event = tell_approval(approval, "approval.extended", {"expires_at": expires_at, "extended_by": by})
    return Change.make(
        project=call.project,
        at=now,
        call=call.stay(due_at=warn_at),
        expect=call.version,
        approvals=(longer,),
        events=(event,),
    )


def close(approval: Approval, *, reason: str, now: datetime) -> tuple[Approval, Draft]:
    """Close an undecided approval without an answer, because its call ended or it was superseded."""
    closed = approval.close(ApprovalStatus.EXPIRED, at=now, reason=reason)
    return closed, tell_approval(closed, "approval.expired", {"reason": reason})


def _refusal(call: Call, code: str, message: str) -> Draft:
    if call.undo_of is not None:
        return tell(call, "tool.undo_failed", {"error": message, "error_code": code})
    return tell(call, "tool.denied", {"reason": code, "message": message})
