"""Do rows say what their events say? Rows can be written by hand; the events are a chain, and were told at the time.

Only what the events that are kept tell is compared: of a call whose first events were removed, no more than the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.call import Call, Status
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Grant
from toolgate.kernel.marks import Marks

_S = Status
_ENDS: dict[str, frozenset[Status]] = {
    "tool.completed": frozenset({_S.COMPLETED}),
    "tool.undone": frozenset({_S.COMPLETED}),
    "tool.adopted": frozenset({_S.COMPLETED}),
    "tool.failed": frozenset({_S.FAILED, _S.UNKNOWN}),
    "tool.undo_failed": frozenset(status for status in _S if status.is_final) - {_S.COMPLETED},
    "tool.denied": frozenset({_S.DENIED, _S.REJECTED, _S.TIMEOUT}),
    "tool.cancelled": frozenset({_S.CANCELLED}),
    "tool.settled": frozenset({_S.COMPLETED, _S.FAILED}),
}
"""What a call may be after an event that ends it."""
_BEGINS = frozenset({"tool.started", "tool.undo_started"})
_FIRST = frozenset({"tool.invoked", "tool.adopted", "delegation.given"})
_CLOSES = frozenset({"approval.decided", "approval.expired", "approval.edited"})
_UNSTARTED = frozenset({_S.PENDING, _S.AWAITING_APPROVAL, _S.APPROVED})


NO_MARK = "it does not carry the mark of this gate"


class Difference(NamedTuple):
    """One row that says something else than its events, or than its mark: what differs, in words."""

    project: str
    kind: str
    id: str
    what: str


class Told(NamedTuple):
    """An event, read once."""

    type: str
    at: datetime
    data: dict[str, Any]


class History:
    """The events of one call or delegation, in order; `is_cut` says that the oldest of its project were removed."""

    def __init__(self, events: Sequence[Event], *, is_cut: bool) -> None:
        self.told = [Told(event.type, event.at, event.data) for event in events]
        self.is_whole = not is_cut or any(event.type in _FIRST for event in self.told)

    def last(self, *types: str, **facts: Any) -> Told | None:
        """The last event of one of these types whose data say this."""
        found = self.all(*types, **facts)
        return found[-1] if found else None

    def all(self, *types: str, **facts: Any) -> list[Told]:
        """The events of these types whose data say this."""
        return [
            told
            for told in self.told
            if told.type in types and all(told.data.get(name) == value for name, value in facts.items())
        ]


def compare_call(call: Call, history: History) -> Iterator[str]:
    """Say what a call's row says and its events do not, or the other way round."""
    if not history.told:
        if history.is_whole and (call.undo_of is None or call.status not in _UNSTARTED):
            yield "no event tells of it"
        return
    end = history.last(*_ENDS)
    begun = history.last(*_BEGINS)
    yield from _compare_status(call, history, end, begun)
    if end is not None:
        yield from _differs("completed_at", call.completed_at, end.at)
    if begun is not None:
        yield from _differs("started_at", call.started_at, begun.at)
        yield from _differs("approved_by", call.approved_by, begun.data.get("approved_by"))
        yield from _differs("approval_id", call.approval_id, begun.data.get("approval_id"))
    elif history.is_whole and call.started_at is not None:
        yield f"started_at is {_word(call.started_at)}, and no event tells that it was started"
    asked = history.last("approval.requested", "tool.invoked")
    quoted = None if asked is None else asked.data.get("payload_summary")
    is_outline = isinstance(quoted, dict) and quoted.get("truncated") is True
    if quoted is not None and call.shown is not None and not is_outline and quoted != call.shown:
        yield "its arguments are others than its events quote"


def _compare_status(call: Call, history: History, end: Told | None, begun: Told | None) -> Iterator[str]:
    status = call.status
    if end is not None:
        outcome = end.data.get("outcome")
        allowed = _ENDS[end.type] if outcome is None else frozenset({outcome})
        if status not in allowed:
            yield f"status is {status}, its events say {' or '.join(sorted(allowed))}"
    elif status.is_final:
        yield f"status is {status}, and no event tells that it ended"
    elif begun is not None and status in _UNSTARTED:
        yield f"status is {status}, its events say that it was started"
    elif begun is None and status is Status.EXECUTING:
        yield "status is EXECUTING, and no event tells that it was started"
    elif status is Status.APPROVED and history.is_whole and not _is_approved(call, history):
        yield "status is APPROVED, and no event tells that anybody approved it"


def _is_approved(call: Call, history: History) -> bool:
    """Whether somebody said yes, or nobody was asked."""
    asked = call.approval_id
    return asked is None or history.last("approval.decided", request_id=asked, decision="approved") is not None


def compare_approval(approval: Approval, history: History) -> Iterator[str]:
    """Say what an approval's row says and its events do not, or the other way round."""
    about = {"request_id": approval.id}
    asked = history.last("approval.requested", **about)
    if asked is not None:
        yield from _differs("digest", approval.digest, asked.data["digest"])
        longer = history.last("approval.requested", "approval.extended", **about) or asked
        yield from _differs("expires_at", approval.expires_at, datetime.fromisoformat(longer.data["expires_at"]))
        yield from _differs("escalated", approval.escalated, history.last("approval.escalated", **about) is not None)
    elif history.is_whole:
        yield "no event tells that it was asked"
        return
    closed = history.last(*_CLOSES, **about)
    if asked is None and closed is None:
        return  # all that was told of it is removed
    status = approval.status.value
    if closed is None:
        if approval.status is not ApprovalStatus.PENDING:
            yield f"status is {status}, and no event tells that it was answered"
        elif history.is_whole:
            voted = history.all("approval.voted", **about)
            yield from _differs("votes", [vote.who for vote in approval.votes], [one.data["voted_by"] for one in voted])
        return
    yield from _differs("status", status, closed.data.get("decision", ApprovalStatus.EXPIRED.value))
    if closed.type == "approval.decided":
        yield from _differs("decided_by", approval.decided_by, closed.data["decided_by"])
        yield from _differs("decided_at", approval.decided_at, closed.at)
        yield from _differs("votes", [vote.who for vote in approval.votes], closed.data["votes"])


def compare_all(
    call: Call, approvals: Sequence[Approval], history: History, marks: Marks | None
) -> Iterator[Difference]:
    """Every difference in the rows of a call and its approvals; with `marks`, those of what still gives permission."""
    for what in compare_call(call, history):
        yield Difference(call.project, "call", call.id, what)
    for approval in approvals:
        for what in compare_approval(approval, history):
            yield Difference(call.project, "approval", approval.id, what)
        gives = approval.status in (ApprovalStatus.PENDING, ApprovalStatus.APPROVED) and not call.is_final
        if gives and marks is not None and not marks.hold(approval):
            yield Difference(call.project, "approval", approval.id, NO_MARK)
    there = {approval.id for approval in approvals}
    for told in history.all("approval.requested"):
        if told.data["request_id"] not in there:
            yield Difference(call.project, "approval", told.data["request_id"], "its row is missing")


def compare_grant(grant: Grant, history: History) -> Iterator[str]:
    """Say what a grant's row says and its events do not; `history` is that of the call it was given with."""
    given = history.last("grant.created", grant_id=grant.id)
    if given is None:
        if history.is_whole:
            yield "no event tells that it was given"
    else:
        yield from _differs("granted_by", grant.granted_by, given.data["granted_by"])
        yield from _differs("approval_id", grant.approval_id, given.data["approval_id"])
        yield from _differs("requester", grant.requester, given.data["requester"])
        yield from _differs("max_uses", grant.max_uses, given.data["uses"])
        yield from _differs("expires_at", grant.expires_at, datetime.fromisoformat(given.data["expires_at"]))
    taken = history.last("grant.revoked", grant_id=grant.id)
    if taken is not None:
        yield from _differs("revoked_by", grant.revoked_by, taken.data["revoked_by"])
        yield from _differs("revoked_at", grant.revoked_at, taken.at)
    elif grant.revoked_at is not None:
        yield f"revoked_at is {_word(grant.revoked_at)}, and no event tells that it was revoked"


def compare_delegation(delegation: Delegation, history: History) -> Iterator[str]:
    """Say what a delegation's row says and its events do not, or the other way round."""
    given = history.last("delegation.given")
    if given is not None:
        yield from _differs("giver", delegation.giver, given.data["giver"])
        yield from _differs("delegate", delegation.delegate, given.data["delegate"])
        yield from _differs("created_at", delegation.created_at, given.at)
        yield from _differs("expires_at", delegation.expires_at, datetime.fromisoformat(given.data["expires_at"]))
        yield from _differs("tools", _tools(delegation.tools), _tools(given.data["tools"]))
    elif history.is_whole:
        yield "no event tells that it was given"
    ended = history.last("delegation.ended")
    if ended is not None:
        yield from _differs("ended_by", delegation.ended_by, ended.data["ended_by"])
        yield from _differs("ended_at", delegation.ended_at, ended.at)
    elif delegation.ended_at is not None and history.is_whole:
        yield f"ended_at is {_word(delegation.ended_at)}, and no event tells that it was ended"


def _differs(name: str, row: Any, told: Any) -> Iterator[str]:
    if row != told:
        yield f"{name} is {_word(row)}, its events say {_word(told)}"


def _tools(names: Sequence[str]) -> str:
    return ", ".join(names) or "every tool"


def _word(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nobody"
    return "empty" if value is None else str(value)[:100]
