"""What the wire looks like for looking back: runs, the timeline and the record of a call, and the audit chain."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from toolgate.wire.schemas import Answer, ApprovalRecord, Body, EventRecord, ExecutionRecord, Id, Query


class RunSummary(Answer):
    """A run at a glance. `is_partial`: it has more calls than were counted."""

    run_id: str
    calls: int
    is_partial: bool = False
    statuses: dict[str, int] = Field(description="How many calls have which exact status.")
    tools: list[str] = Field(description="Its first tools, by name.")
    requester: str
    user: str | None = None
    session_id: str | None = None
    started_at: datetime
    last_at: datetime


class RunList(Answer):
    """Runs, the one with the newest call first. `next` is the `after` of the next page."""

    success: bool = True
    runs: list[RunSummary]
    next: str | None = None


class RunListQuery(Query):
    after: Id | None = Field(default=None, description="The `next` of the page before.")
    limit: Annotated[int, Field(ge=1, le=50, description="How many at most.")] = 20


class TimelineStep(Answer):
    """One thing that happened to a call. `event` and `seq` are null for what the call's own record tells."""

    stage: str
    event: str | None = None
    seq: int | None = None
    at: datetime
    after_ms: float = Field(description="How long after the step before.")
    said: str
    by: str | None = None
    reason: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)


class TimelineAnswer(Answer):
    """What happened to a call, in order. `is_partial`: it has more events than are shown."""

    success: bool = True
    tool_id: str
    steps: list[TimelineStep]
    is_partial: bool = False
    can_undo: bool = False


class ChainedEvent(EventRecord):
    """An event as it stands in the chain, and whether it is what was chained.

    With SHA-256, `frame` names the hash of `salt` and `content`; `hash` is that of a one, `prev`, and the hash of a
    zero and `frame`. Salt and content are empty where there is no content, or where it was destroyed.
    """

    frame: str
    salt: str
    content: str
    prev: str
    hash: str
    is_sound: bool


class CallDetail(Answer):
    """What decided about a call."""

    policy_revision: str
    reasons: list[str]
    factors: list[str]
    facts: Any = None
    level: str
    confidence: int | None = None
    claim: str | None = None
    definition_hash: str
    placement: str


class CallRecord(Answer):
    """Everything a reader may see of one call, with its place in the chain."""

    success: bool = True
    call: ExecutionRecord
    decided: CallDetail
    approvals: list[ApprovalRecord]
    events: list[ChainedEvent]
    is_partial: bool = False


class RowDifference(Answer):
    """A row that says something else than its events."""

    kind: str = Field(description="`call` or `approval`.")
    id: str
    what: str = Field(description="What differs, in words.")


class AuditAnswer(Answer):
    """How much of a project's chain was checked, by this server since it started.

    `problem` says what does not fit; then `verified` is the last event before it.
    """

    success: bool = True
    events: int
    verified: int
    is_whole: bool = Field(description="Everything there is was checked and fits.")
    problem: str | None = None
    head_hash: str | None = Field(default=None, description="The hash of the last checked event: keep it elsewhere.")
    checked_at: datetime | None = None
    differences: list[RowDifference] = Field(
        default_factory=list, description="Rows of calls and approvals that say something else than their events."
    )


class VerifyBody(Body):
    restart: bool = Field(default=False, description="Begin at the first event again.")
