"""Ask, and take the answer: the changes that open, decide, edit, extend, escalate and close an approval."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from toolgate.errors import DecisionConflictError
from toolgate.kernel.approval import Approval, ApprovalStatus, Note, digest_of, plain_question, shown_digest_of
from toolgate.kernel.assessment import LEVEL_TIMEOUT_S, ApprovalLevel
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.event import Draft
from toolgate.kernel.marks import Marks
from toolgate.kernel.narration import tell, tell_approval
from toolgate.kernel.payload import summarize
from toolgate.kernel.policy import Stance
from toolgate.kernel.record import evolve, slim
from toolgate.kernel.terms import NO_TERMS, ApprovalTerms
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline.steps.running import first

WARN_BEFORE_S = 60.0
MAX_COMMENTS = 100
DISPATCH_GRACE_S = 5.0
"""An approved call nobody claimed for this long is offered again by the sweeper."""


def timeout_s(
    call: Call, tool: ToolDefinition, stance: Stance, level: ApprovalLevel, terms: ApprovalTerms | None = None
) -> float:
    """How long a person may take: the call's own word, the tool's, the policy's, or the level's.

    Where the call's word is only its caller's claim, it may shorten that, not lengthen it. `terms` are those this call
    is asked under; without them, those every call of the tool is.
    """
    asked_s = (stance.terms if terms is None else terms).timeout_s
    policy_s = stance.approval_timeout_s if asked_s is None else asked_s
    own, said = call.approval_timeout_s, (tool.approval_timeout_seconds, policy_s)
    allowed = next((seconds for seconds in said if seconds is not None), LEVEL_TIMEOUT_S[level])
    return allowed if own is None else min(own, allowed) if call.context.claimed else own


def ask(
    call: Call,
    tool: ToolDefinition,
    *,
    id: str,
    nonce: str,
    now: datetime,
    timeout: float,
    mode: int,
    marks: Marks,
    terms: ApprovalTerms = NO_TERMS,
    undo_ttl_s: float | None = None,
    owner: str = "",
    silent: bool = False,
    can_undo: bool = True,
) -> Change:
    """Park a call and ask. An earlier approval of it keeps its answer, but no longer lets it run.

    `owner` is who runs it once it is approved; where it dies before, somebody else does. Unless the
    question is `silent`, it also puts it to people by its channels, and then somebody else must do that too.
    `can_undo`: what its tool can undo includes this call.
    """
    asked = evolve(call.to(Status.AWAITING_APPROVAL), approval_id=id, approved_by=None, approved_at=None, owner=owner)
    approval = question(
        asked,
        tool,
        id=id,
        nonce=nonce,
        now=now,
        timeout=timeout,
        terms=terms,
        undo_ttl_s=undo_ttl_s,
        can_undo=can_undo,
    )
    approval = marks.put(evolve(approval, silent=True) if silent else approval)
    return Change(
        project=call.project,
        at=now,
        call=slim(evolve(asked, due_at=approval.due_at)),
        expect=call.version or None,
        mode_seen=mode,
        approvals=(slim(approval),),
        events=(*first(call), requested(approval, call)),
    )


def question(
    call: Call,
    tool: ToolDefinition | None,
    *,
    id: str,
    nonce: str,
    now: datetime,
    timeout: float,
    terms: ApprovalTerms,
    undo_ttl_s: float | None = None,
    can_undo: bool = True,
) -> Approval:
    """Return the question about a call as it is now, bound to exactly what would run.

    Without the tool, which another process holds, nothing is known of it but what an earlier question says.
    """
    expires_at = now + timedelta(seconds=timeout)
    escalates = terms.escalate_after_s is not None and terms.escalate_after_s < timeout
    asked = Approval(
        id=id,
        project=call.project,
        call_id=call.id,
        tool_name=call.tool_name,
        digest=digest_of(call, nonce=nonce),
        nonce=nonce,
        definition_hash=call.definition_hash,
        requester=call.context.principal,
        user=call.context.user,
        run_id=call.context.run_id,
        session_id=call.context.session_id,
        correlation_id=call.context.request_id,
        created_at=now,
        expires_at=expires_at,
        warn_at=expires_at - timedelta(seconds=min(WARN_BEFORE_S, timeout / 2)),
        escalate_at=now + timedelta(seconds=terms.escalate_after_s or 0.0) if escalates else None,
        level=call.level,
        risk=call.risk,
        confidence=call.confidence,
        factors=call.factors,
        reasons=call.reasons,
        claim=call.claim,
        arguments=call.shown,
        preview=call.preview,
        facts=call.facts,
        terms=terms,
        message=call.message or (None if tool is None else tool.approval_message) or _question(call),
    )
    return asked if tool is None else _quoting(asked, call, tool, undo_ttl_s, can_undo=can_undo)


def _quoting(
    asked: Approval, call: Call, tool: ToolDefinition, undo_ttl_s: float | None, *, can_undo: bool
) -> Approval:
    """Return a question with what it quotes of the tool's definition."""
    is_undoable = tool.undoable and can_undo
    return evolve(
        asked,
        input_schema=None if call.undo_of is not None else tool.input_schema or None,
        undoable=is_undoable,
        undo_ttl_s=undo_ttl_s if is_undoable else None,
        approve_label=tool.approve_label,
        reject_label=tool.reject_label,
        requires_reason=tool.requires_reason,
    )


def requested(approval: Approval, call: Call) -> Draft:
    """Draft the event that tells of a question about a call."""
    content = {
        "message": approval.message,
        "payload_summary": call.quotation,
        "factors": list(approval.factors),
        "reasons": list(approval.reasons),
    }
    data = {
        "level": approval.level,
        "risk_level": approval.risk,
        "confidence": approval.confidence,
        "digest": approval.digest,
        "expires_at": approval.expires_at,
        "quorum": approval.terms.quorum,
    }
    return tell_approval(approval, "approval.requested", data, content)


def _question(call: Call) -> str:
    return f"Undo {call.tool_name} ({call.undo_of})?" if call.undo_of else plain_question(call.tool_name)


def decide(
    call: Call,
    approval: Approval,
    *,
    approve: bool,
    by: str,
    reason: str | None,
    now: datetime,
    marks: Marks,
    roles: Collection[str] = (),
    allowances: tuple[str, ...] = (),
    on_behalf_of: str | None = None,
    standing: tuple[Note, ...] | None = None,
) -> Change:
    """Record a person's answer; raise DecisionConflictError where it comes second or too late.

    A yes counts as one of the votes the terms ask for; the one decides with which they are enough, by people with the
    `roles` that somebody among them must hold. One no ends it. `allowances` name what a yes was excused from, for its
    event. `on_behalf_of` is whose vote it is, where that was delegated; the roles are theirs then. `standing` are those
    of the votes before that still count, as they count now; without it, all of them do.
    """
    approval.check_open(at=now)
    note = Note(by, now, reason, on_behalf_of)
    if not approve:
        return _reject(call, approval, note, marks=marks)
    shown = check_marked(approval, marks)
    vote = note._replace(roles=approval.terms.counted(roles))
    voted = evolve(approval, votes=(*approval.votes, vote))
    if not voted.is_enough((*(approval.votes if standing is None else standing), vote)):
        return _vote(call, marks.put(voted, shown), now=now, allowances=allowances)
    closed = marks.put(voted.close(ApprovalStatus.APPROVED, at=now, by=note.who, reason=reason), shown)
    due = now + timedelta(seconds=call.approved_for_s or DISPATCH_GRACE_S)
    approvers = ", ".join(dict.fromkeys(vote.who for vote in closed.votes))
    decided = evolve(call.to(Status.APPROVED), approved_by=approvers, approved_at=now, due_at=due)
    return _step(decided, call.version, closed, now, (_decided(closed, allowances, on_behalf_of),))


def check_marked(approval: Approval, marks: Marks) -> str:
    """Take no yes to a question that nobody here asked so, and count no vote that nobody here took. A no is taken.

    Returns the digest of what people are shown, which an answer does not change.
    """
    shown = shown_digest_of(approval)
    if not marks.hold(approval, shown):
        raise DecisionConflictError(
            f"Approval {approval.id} does not carry the mark of this gate: what it shows, who may answer it or its "
            "votes were changed, or it was made under a key that is not here. It can only be rejected; ask again."
        )
    return shown


def _vote(call: Call, voted: Approval, *, now: datetime, allowances: tuple[str, ...]) -> Change:
    vote = voted.votes[-1]
    data: dict[str, Any] = {
        "voted_by": vote.who,
        "votes": len(voted.votes),
        "quorum": voted.terms.quorum,
        "mark": voted.mark,
    }
    if voted.lacks:
        data["lacks"] = [sorted(roles) for roles in voted.lacks]
    if allowances:
        data["allowances"] = list(allowances)
    if vote.on_behalf_of is not None:
        data["on_behalf_of"] = vote.on_behalf_of
    event = tell_approval(voted, "approval.voted", data, {"reason": vote.text})
    return _step(call.stay(), call.version, voted, now, (event,))


def _reject(call: Call, approval: Approval, said: Note, *, marks: Marks) -> Change:
    now, reason = said.at, said.text
    closed = marks.put(approval.close(ApprovalStatus.DENIED, at=now, by=said.who, reason=reason))
    error = f"Approval was denied by {said.who}" + (f": {reason}" if reason else ".")
    ended = evolve(
        call.to(Status.REJECTED),
        due_at=None,
        completed_at=now,
        error=error,
        error_code="approval_denied",
        reason=reason,
    )
    decided = _decided(closed, on_behalf_of=said.on_behalf_of)
    return _step(ended, call.version, closed, now, (decided, _refusal(ended, "approval_denied", error)))


def respond(
    call: Call, approval: Approval, *, by: str, response: bytes, shown: Any, now: datetime, marks: Marks
) -> Change:
    """Answer the agent instead of running the call: it ends REJECTED, and its result is the answer."""
    closed = marks.put(approval.close(ApprovalStatus.DENIED, at=now, by=by, reason="answered instead of running"))
    error = f"{by} answered instead of letting it run."
    ended = evolve(
        call.to(Status.REJECTED),
        due_at=None,
        completed_at=now,
        error=error,
        error_code="responded",
        result=response,
        shown_result=shown,
    )
    events = (_decided(closed, response=summarize(shown, len(response))), _refusal(ended, "responded", error))
    return _step(ended, call.version, closed, now, events)


def _decided(closed: Approval, allowances: tuple[str, ...] = (), on_behalf_of: str | None = None, **more: Any) -> Draft:
    data: dict[str, Any] = {
        "decision": closed.status.value,
        "decided_by": closed.decided_by,
        "digest": closed.digest,
        "votes": [vote.who for vote in closed.votes],
        "mark": closed.mark,
    }
    if allowances:
        data["allowances"] = list(allowances)
    if on_behalf_of is not None:
        data["on_behalf_of"] = on_behalf_of
    return tell_approval(closed, "approval.decided", data, {"reason": closed.reason, **more})


def edit(
    call: Call,
    approval: Approval,
    edited: Call,
    fresh: Approval,
    *,
    by: str,
    reason: str | None,
    now: datetime,
    marks: Marks,
    roles: Collection[str] = (),
    allowances: tuple[str, ...] = (),
    answers: bool = True,
) -> Change:
    """Let another question, about the arguments a person changed, take the place of this one, and answer it yes.

    `edited` is the call with the new arguments, `fresh` its question. The old one closes without an answer. Where it
    does not answer, the new one waits like any other.
    """
    check_marked(approval, marks)
    fresh = marks.put(fresh)
    closed = approval.close(ApprovalStatus.EXPIRED, at=now, reason=f"edited by {by}")
    asked = evolve(edited, approval_id=fresh.id, due_at=fresh.due_at)
    answer = (
        decide(
            asked, fresh, approve=True, by=by, reason=reason, now=now, marks=marks, roles=roles, allowances=allowances
        )
        if answers
        else _step(asked.stay(), call.version, fresh, now, ())
    )
    told = {"edited_by": by, "superseded_by": fresh.id}
    said = {"difference": fresh.difference, "reason": reason}
    events = (
        tell_approval(closed, "approval.edited", told, said),
        requested(fresh, edited),
        *answer.events,
    )
    return evolve(answer, approvals=(closed, *answer.approvals), events=events, expect=call.version, rewrites=True)


def escalate(call: Call, approval: Approval, *, by: str | None, now: datetime, marks: Marks) -> Change:
    """Ask people with the roles the policy names for that, too; `by` is None where time did it."""
    approval.check_open(at=now)
    shown = check_marked(approval, marks)
    wider = marks.put(evolve(approval, escalated=True, escalate_at=None), shown)
    data = {"roles": sorted(approval.terms.escalate_to), "escalated_by": by}
    event = tell_approval(wider, "approval.escalated", data)
    return _step(evolve(call.stay(), due_at=wider.due_at), call.version, wider, now, (event,))


def comment(call: Call, approval: Approval, *, by: str, text: str, now: datetime) -> Change:
    """Put a person's words beside an undecided question."""
    approval.check_open(at=now)
    told = evolve(approval, comments=(*approval.comments, Note(by, now, text))[-MAX_COMMENTS:])
    event = tell_approval(told, "approval.commented", {"comment_by": by}, {"comment": text})
    return _step(call.stay(), call.version, told, now, (event,))


def _step(call: Call, expect: int, approval: Approval, now: datetime, events: tuple[Draft, ...]) -> Change:
    return Change(project=call.project, at=now, call=call, expect=expect, approvals=(approval,), events=events)


def expire(call: Call, approval: Approval, *, now: datetime) -> Change:
    """End a call whose approval nobody decided in time. This is not a denial."""
    closed = approval.close(ApprovalStatus.EXPIRED, at=now, reason="timeout")
    error = f"Nobody decided before {approval.expires_at.isoformat(timespec='seconds')}; ask again if it still matters."
    ended = evolve(call.to(Status.TIMEOUT), due_at=None, completed_at=now, error=error, error_code="approval_timeout")
    events = (
        tell_approval(closed, "approval.expired", {}, {"reason": "timeout"}),
        _refusal(ended, "approval_timeout", error),
    )
    return Change(project=call.project, at=now, call=ended, expect=call.version, approvals=(closed,), events=events)


def unclaimed(call: Call, *, now: datetime) -> Change:
    """End an approved call that its caller did not come to run in time. Its approval stays what it is."""
    error = f"It was approved, and its caller did not run it within {call.approved_for_s:g} s; nothing ran. Ask again."
    ended = evolve(call.to(Status.TIMEOUT), due_at=None, completed_at=now, error=error, error_code="unclaimed")
    event = _refusal(ended, "unclaimed", error)
    return Change(project=call.project, at=now, call=ended, expect=call.version, events=(event,))


def warn(call: Call, approval: Approval, *, now: datetime) -> Change:
    """Announce that an approval is about to expire."""
    event = tell_approval(approval, "approval.expiring", {"expires_at": approval.expires_at})
    told = evolve(approval, warn_at=None)
    return _step(evolve(call.stay(), due_at=told.due_at), call.version, told, now, (event,))


def extend(call: Call, approval: Approval, *, seconds: float, by: str, now: datetime, marks: Marks) -> Change:
    """Move the expiry of an undecided approval to `seconds` from now."""
    approval.check_open(at=now)
    shown = check_marked(approval, marks)
    expires_at = now + timedelta(seconds=seconds)
    warn_at = expires_at - timedelta(seconds=min(WARN_BEFORE_S, seconds / 2))
    longer = marks.put(evolve(approval, expires_at=expires_at, warn_at=warn_at), shown)
    event = tell_approval(approval, "approval.extended", {"expires_at": expires_at, "extended_by": by})
    return _step(evolve(call.stay(), due_at=longer.due_at), call.version, longer, now, (event,))


def close(approval: Approval, *, reason: str, now: datetime) -> tuple[Approval, Draft]:
    """Close an undecided approval without an answer, because its call ended or it was superseded."""
    closed = approval.close(ApprovalStatus.EXPIRED, at=now, reason=reason)
    return closed, tell_approval(closed, "approval.expired", {}, {"reason": reason})


def _refusal(call: Call, code: str, message: str) -> Draft:
    if call.undo_of is not None:
        return tell(call, "tool.undo_failed", {"error_code": code}, {"error": message})
    return tell(call, "tool.denied", {}, {"reason": code, "message": message})
