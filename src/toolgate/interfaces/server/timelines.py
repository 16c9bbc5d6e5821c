"""What happened to a call, stage by stage: its events in order, and between them what only its record tells.

Rules and assessment leave no event of their own: they are told from the call, at the time of the commit that kept them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from toolgate.kernel.call import Call
from toolgate.kernel.event import Event
from toolgate.wire.history import TimelineStep

_UNJUDGED = frozenset({"tool_not_found", "invalid_arguments"})
_COMMON = frozenset({"tool_name", "action_id", "pipeline_run_id", "request_id", "correlation_request_id"})
_REFUSED_BY_PEOPLE = frozenset({"approval_denied", "approval_timeout", "approval_mismatch", "approval_unmarked"})
_POLICY = "policy:auto"
Data = dict[str, Any]


class Telling(NamedTuple):
    """How an event is told: its stage, a sentence, who did it and why."""

    stage: str
    said: str
    by: str | None = None
    reason: str | None = None


def _invoked(data: Data) -> Telling:
    repeats = f"; it repeats call {data['repeat_of']}" if data.get("repeat_of") else ""
    return Telling("validate", f"Received and checked against the tool's schema{repeats}")


def _started(data: Data) -> Telling:
    approved_by = data.get("approved_by")
    allowed = "the policy" if approved_by == _POLICY else approved_by or "nobody"
    attempt = data.get("attempt") or 1
    again = f", attempt {attempt}" if attempt > 1 else ""
    return Telling("execute", f"Started, allowed by {allowed}{again}", approved_by)


def _failed(data: Data) -> Telling:
    code = data.get("error_code")
    stage = {"tool_not_found": "resolve", "invalid_arguments": "validate"}.get(code or "", "record")
    return Telling(stage, f"Ended without success ({code})", None, data.get("error_message"))


def _denied(data: Data) -> Telling:
    reason = data.get("reason")
    stage = "approve" if reason in _REFUSED_BY_PEOPLE else "permit"
    return Telling(stage, f"Refused ({reason})", None, data.get("message"))


def _requested(data: Data) -> Telling:
    quorum = data.get("quorum") or 1
    people = "A person was" if quorum == 1 else f"{quorum} people were"
    why = "; ".join(data.get("reasons") or ()) or None
    return Telling("approve", f"{people} asked, at level {data.get('level')}", None, why)


def _decided(data: Data) -> Telling:
    yes = data.get("decision") == "approved"
    said = "Approved" if yes else "Answered instead of run" if data.get("response") is not None else "Rejected"
    excused = "".join(words for name, words in _ALLOWED.items() if name in (data.get("allowances") or ()))
    return Telling("approve", said + excused, data.get("decided_by"), data.get("reason"))


_ALLOWED = {
    "single_person": ", by the only person who can decide",
    "own_client": ", from their own client, without what a yes takes elsewhere",
}


def _progress(data: Data) -> Telling:
    done = data.get("progress")
    return Telling("execute", "Progress" if done is None else f"Progress {done:.0%}", None, data.get("message"))


def _escalated(data: Data) -> Telling:
    return Telling("approve", f"Also asked: {', '.join(data.get('roles') or ())}", data.get("escalated_by"))


def _settled(data: Data) -> Telling:
    return Telling("record", f"Settled as {data.get('outcome')}", data.get("settled_by"), data.get("reason"))


def _voted(data: Data) -> Telling:
    said = f"One yes, {data.get('votes')} of {data.get('quorum')}"
    return Telling("approve", said, data.get("voted_by"), data.get("reason"))


_TELLINGS: dict[str, Callable[[Data], Telling]] = {
    "tool.invoked": _invoked,
    "tool.joined": lambda data: Telling("record", f"Made again as {data.get('joined_as')}, which joined this one"),
    "tool.started": _started,
    "tool.undo_started": _started,
    "tool.dispatched": lambda data: Telling("execute", "Given to a runner", data.get("runner")),
    "tool.progress": _progress,
    "tool.completed": lambda data: Telling("record", "Completed"),
    "tool.failed": _failed,
    "tool.denied": _denied,
    "tool.cancelled": lambda data: Telling("record", "Cancelled", None, data.get("message") or data.get("reason")),
    "tool.settled": _settled,
    "tool.still_unknown": lambda data: Telling("record", "Not known yet", data.get("said_by"), data.get("reason")),
    "tool.late_result": lambda data: Telling("record", "A late result came; it changed nothing"),
    "tool.adopted": lambda data: Telling("record", "Brought in with the undo data kept of it"),
    "tool.undone": lambda data: Telling("record", "Undone, unchecked" if data.get("unchecked") else "Undone"),
    "tool.undo_failed": lambda data: Telling("record", "Not undone", None, data.get("error")),
    "approval.requested": _requested,
    "approval.decided": _decided,
    "approval.voted": _voted,
    "approval.escalated": _escalated,
    "approval.expiring": lambda data: Telling("approve", "About to expire"),
    "approval.extended": lambda data: Telling("approve", "Given more time", data.get("extended_by")),
    "approval.commented": lambda data: Telling("approve", "Comment", data.get("comment_by"), data.get("comment")),
    "approval.edited": lambda data: Telling("approve", "Arguments edited", data.get("edited_by"), data.get("reason")),
    "approval.undelivered": lambda data: Telling("approve", "A channel gave up", None, data.get("error")),
    "approval.expired": lambda data: Telling("approve", "Closed without an answer", None, data.get("reason")),
    "grant.created": lambda data: Telling("approve", "The yes was remembered as a grant", data.get("granted_by")),
    "grant.used": lambda data: Telling("approve", f"The grant was used by call {data.get('used_by')}", None),
    "grant.revoked": lambda data: Telling(
        "approve", "The grant was revoked", data.get("revoked_by"), data.get("reason")
    ),
}
"""Every event that can be about a call."""


def timeline(call: Call, events: list[Event]) -> list[TimelineStep]:
    """Return what happened to a call, in order."""
    steps: list[TimelineStep] = []
    before = call.created_at
    for event in events:
        data = event.data
        if event.type in _TELLINGS:
            told = _TELLINGS[event.type](data)
        else:  # an event of a later version
            told = Telling("record", event.type)
        after_ms = max(0.0, (event.at - before).total_seconds() * 1000)
        before = event.at
        steps.append(
            TimelineStep(
                stage=told.stage,
                event=event.type,
                seq=event.seq,
                at=event.at,
                after_ms=round(after_ms, 3),
                said=told.said,
                by=call.context.principal if event.type == "tool.invoked" else told.by,
                reason=told.reason,
                data={key: value for key, value in data.items() if key not in _COMMON and value is not None},
            )
        )
        if event.type == "tool.invoked" and call.error_code not in _UNJUDGED:
            steps += _judged(call, event)
    return steps


def _judged(call: Call, event: Event) -> Iterator[TimelineStep]:
    """What the rules and the assessment said, which the call's record keeps."""
    spoken = "; ".join(call.reasons)
    yield TimelineStep(
        stage="permit",
        at=event.at,
        after_ms=0,
        said="The rules spoke" if spoken else "No rule spoke",
        reason=spoken or None,
        data={"policy_revision": call.policy_revision},
    )
    if call.status.value == "DENIED" and call.approval_id is None:
        return
    score = "" if call.confidence is None else f", confidence {call.confidence}"
    yield TimelineStep(
        stage="assess",
        at=event.at,
        after_ms=0,
        said=f"Risk {call.risk}{score}: level {call.level}",
        reason="; ".join(call.factors) or None,
    )
