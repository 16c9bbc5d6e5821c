"""What the wire looks like: every request body, query and answer, by name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from toolgate.wire.ids import CallId, RunId, SessionId, StepId

Id = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]
Text = Annotated[str, StringConstraints(max_length=4000)]
Limit = Annotated[int, Field(ge=1, le=1000, description="How many at most.")]
WireStatus = Literal[
    "pending", "awaiting_approval", "approved", "executing", "completed", "rejected", "timeout", "failed"
]


class Body(BaseModel):
    """A request body. Unknown fields are refused, so a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class LenientBody(Body):
    """A body of a plain client, which may say more than is asked: unknown fields are passed over."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Query(BaseModel):
    """Query parameters, which arrive as text."""

    model_config = ConfigDict(extra="ignore")


class Answer(BaseModel):
    """An answer. Fields may be added in later versions."""

    model_config = ConfigDict(frozen=True)


class Problem(Answer):
    """An error (RFC 9457). `code` is what programs compare."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    success: Literal[False] = False


class ExecuteBody(Body):
    """A tool call."""

    tool_name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    tool_params: dict[str, Any] = Field(default_factory=dict)
    session_id: SessionId | None = None
    run_id: RunId | None = None
    step_id: StepId | None = Field(
        default=None, description="The turn of the run: two alike calls of one step are two on purpose."
    )
    behavior: Id | None = None
    tool_id: CallId | None = Field(default=None, description="An id of your own: the same id never runs twice.")
    claim: Text | None = Field(default=None, description="What the agent says about it; shown as no more than that.")
    repeat_of: CallId | None = Field(
        default=None, description="A call of yours that has ended, to have its effect again: a person is always asked."
    )
    distinct: bool = Field(default=False, description="It joins no earlier call: it is another one on purpose.")
    approval_timeout_seconds: Annotated[float, Field(gt=0, le=7 * 86400)] | None = None
    wait: bool = Field(default=True, description="False answers 202 as soon as the call waits for somebody.")
    wait_seconds: Annotated[float, Field(ge=0)] | None = Field(default=None, description="How long to wait at most.")


class Execution(Answer):
    """Where a call stands."""

    success: bool
    tool_id: str
    tool_name: str
    status: WireStatus
    internal_status: str = Field(description="The exact status, where `status` has one word for several.")
    result: Any = None
    error: str | None = None
    error_type: str | None = None
    rule: str | None = Field(default=None, description="The rule that refused it, where one did.")
    reason: str | None = Field(default=None, description="Why: what the rule says, or the person who said no.")
    timed_out: bool = Field(default=False, description="Time ended it, also where its outcome is unknown.")
    approval_id: str | None = None
    execution_time_ms: int | None = Field(default=None, description="How long it ran, where it did.")

    @property
    def is_final(self) -> bool:
        """Nothing more happens by itself."""
        return self.status in ("completed", "rejected", "timeout", "failed")


class ExecuteAnswer(Execution):
    """Where a call stands that was asked for."""

    joined: bool = Field(
        default=False, description="It is an earlier call, whose id `tool_id` is: no other one was made."
    )


class ExecutionRecord(Execution):
    """A call with everything a reader may see."""

    project_id: str
    session_id: str | None = None
    run_id: str | None = None
    step_id: str | None = None
    user: str | None = None
    requester: str
    tool_params: Any = None
    risk_level: Literal["LOW", "MEDIUM", "HIGH"]
    requires_approval: bool
    placement: str = "inline"
    approved_by: str | None = None
    runner: str | None = None
    attempt: int = 0
    effect_key: str | None = Field(default=None, description="The identity of its effect.")
    repeat_of: str | None = Field(default=None, description="The call whose effect it repeats.")
    settled_by: str | None = Field(default=None, description="Who said what its unknown outcome was.")
    undo_of: str | None = None
    unchecked: bool = Field(default=False, description="An undo that could not see what others changed since.")
    parent_id: str | None = Field(default=None, description="The call whose handler made this one.")
    artifacts: list[Any] = Field(default_factory=list)
    created_at: datetime
    started_at: datetime | None = None
    approved_at: datetime | None = None
    completed_at: datetime | None = None

    @property
    def waits_for_caller(self) -> bool:
        """It is approved, and whoever made it is to run it: see `Client.run_here`."""
        return self.placement == "caller" and self.status == "approved"


class ExecutionList(Answer):
    """A page of calls. `next` is the `after` of the next page; `reached` is how far the search has come."""

    success: bool = True
    tools: list[ExecutionRecord]
    next: str | None = None
    reached: datetime | None = None


class CallsQuery(Query):
    status: Literal[
        "pending", "awaiting_approval", "approved", "executing", "completed", "rejected", "timeout", "failed",
        "denied", "cancelled", "unknown",
    ] | None = None  # fmt: skip
    run_id: RunId | None = None
    tool_name: Id | None = None
    requester: Id | None = Field(default=None, description="Who asked, or the person it was asked for.")
    text: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Words in what readers see of a call: its tool, arguments, people, ids or error."
    )
    since: AwareDatetime | None = Field(default=None, description="The earliest creation.")
    order: Literal["oldest", "newest"] = Field(default="oldest", description="Which come first.")
    after: Id | None = Field(default=None, description="The `next` of the page before.")
    limit: Limit = 100


class ToolInfo(Answer):
    """A tool somebody may call."""

    name: str
    description: str
    parameters: dict[str, Any]
    input_schema: dict[str, Any]
    requires_approval: bool
    risk_level: Literal["LOW", "MEDIUM", "HIGH"]
    timeout_seconds: float
    placement: str
    undoable: bool


class ToolList(Answer):
    success: bool = True
    tools: list[ToolInfo]
    total_count: int


class CancelBody(Body):
    reason: Text = "cancelled by the caller"


class UndoBody(Body):
    force: bool = Field(default=False, description="Undo although the state has changed since; for admins.")


class UndoAnswer(Execution):
    """Where an undo stands."""

    unchecked: bool = Field(default=False, description="It could not see whether the state has changed since.")


class SettleBody(Body):
    """What a call whose outcome is unknown really did."""

    happened: bool | None = Field(description="Null: not known yet. That is recorded, and the call stays unknown.")
    reason: Annotated[str, StringConstraints(min_length=1, max_length=4000)]


Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class RememberBody(Body):
    """Remember a yes as a grant: how often, how long, and for which arguments."""

    uses: Annotated[int, Field(ge=1, le=1000)] = 10
    seconds: Annotated[float, Field(gt=0, le=30 * 86400)] = 3600.0
    pattern: dict[str, Any] | None = Field(
        default=None,
        description='By argument: `"any"`, `{"is": ...}`, `{"like": "a/*.md"}` or `{"at_least": 0, "at_most": 5}`; '
        "without `at_least` from 0, or from the number being approved where that is below.",
    )


class ApproveBody(Body):
    decision: Literal["approved"] = "approved"
    reason: Text | None = None
    digest: Digest | None = Field(default=None, description="The digest that was shown; another one is refused.")
    remember: RememberBody | None = None
    on_behalf_of: Id | None = Field(default=None, description="Whose vote it is, where that was delegated to one.")
    network: bool = Field(default=False, description="Give the command a network, in this one call.")


class RejectBody(Body):
    decision: Literal["rejected", "denied"] = "rejected"
    reason: Text | None = None
    digest: Digest | None = None
    on_behalf_of: Id | None = Field(default=None, description="Whose vote it is, where that was delegated to one.")


class EditBody(Body):
    """Approve with other arguments. A value given as it was shown, masked, stays what it really is."""

    tool_params: dict[str, Any]
    reason: Text | None = None
    digest: Digest | None = None
    remember: RememberBody | None = None


class RespondBody(Body):
    """Answer the agent instead of running the call."""

    response: Any
    digest: Digest | None = None


class CommentBody(Body):
    text: Annotated[str, StringConstraints(min_length=1, max_length=4000)]


class EscalateBody(Body):
    roles: Annotated[list[Id], Field(max_length=20, description="None: all the policy names; others are refused.")] = []


class UseRecord(Answer):
    """One call that ran because of a grant."""

    tool_id: str
    at: datetime


class GrantRecord(Answer):
    """A remembered yes."""

    grant_id: str
    project_id: str
    tool_name: str
    requester: str
    user: str | None = None
    pattern: dict[str, Any]
    level: str
    approval_id: str
    granted_by: str
    created_at: datetime
    expires_at: datetime
    max_uses: int
    uses: int
    used: list[UseRecord] = Field(default_factory=list)
    is_live: bool = Field(description="Whether it can still be used.")
    is_valid: bool = Field(
        default=True,
        description="False where it counts as not there: its mark does not hold, or its giver lost the right.",
    )
    invalid_because: str | None = None
    revoked_at: datetime | None = None
    revoked_by: str | None = None
    reason: str | None = None


class GrantAnswer(Answer):
    success: bool = True
    grant: GrantRecord


class GrantList(Answer):
    success: bool = True
    grants: list[GrantRecord]


class GrantsQuery(Query):
    tool_name: Id | None = None
    live: bool = Field(default=True, description="Only those that can still be used.")
    limit: Limit = 100


class RevokeBody(Body):
    reason: Text | None = None


class NoteRecord(Answer):
    """A vote or a comment."""

    by: str
    at: datetime
    text: str | None = None
    on_behalf_of: str | None = Field(default=None, description="Whose vote it was; `by` then says `bob for ann`.")
    roles: list[str] = Field(default_factory=list, description="Of a voter: those that `including` asks for.")


class DecisionAnswer(Answer):
    success: bool = True
    approval_id: str
    status: Literal["pending", "approved", "rejected", "timeout"]
    tool_id: str
    tool_status: WireStatus


class ExtendBody(Body):
    seconds: Annotated[float, Field(gt=0, le=7 * 86400)]


class ApprovalRecord(Answer):
    """A question and, once there is one, its answer."""

    approval_id: str
    tool_id: str
    tool_name: str
    status: Literal["pending", "approved", "rejected", "timeout"]
    risk_level: Literal["LOW", "MEDIUM", "HIGH"]
    level: str
    description: str
    arguments: Any = None
    preview: Any = None
    facts: Any = Field(default=None, description="What the policy found: commands, paths and hosts, masked.")
    digest: str
    reasons: list[str]
    claim: str | None = None
    confidence: int | None = None
    factors: list[str] = Field(default_factory=list)
    quorum: int = 1
    approvers: list[list[str]] = Field(default_factory=list, description="Roles; who approves holds one of each set.")
    including: list[list[str]] = Field(
        default_factory=list, description="Roles; of each set, somebody who approves holds one."
    )
    votes: list[NoteRecord] = Field(default_factory=list)
    comments: list[NoteRecord] = Field(default_factory=list)
    edited_from: str | None = None
    difference: Any = None
    requester: str
    user: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    undoable: bool
    undo_ttl_s: float | None = None
    requires_reason: bool
    timeout_seconds: float
    created_at: datetime
    expires_at: datetime
    decided_by: str | None = None
    decided_at: datetime | None = None
    reason: str | None = None


class ApprovalAnswer(Answer):
    success: bool = True
    approval: ApprovalRecord


class ApprovalList(Answer):
    success: bool = True
    approvals: list[ApprovalRecord]
    next: str | None = None


class ApprovalsQuery(Query):
    status: Literal["pending", "approved", "rejected", "timeout"] | None = None
    tool_id: CallId | None = None
    after: Id | None = Field(default=None, description="The last `approval_id` of the page before.")
    limit: Limit = 100


class RunAnswer(Answer):
    success: bool = True
    run_id: str
    tools: list[ExecutionRecord]
    next: str | None = None


class RunQuery(Query):
    after: Id | None = None
    limit: Limit = 100


class UndoRunBody(Body):
    force: bool = False
    skip_failures: bool = False
    preview: bool = Field(default=False, description="Change nothing and say what would happen.")


class UndoStepRecord(Answer):
    """What became of one call of the run."""

    tool_id: str
    tool_name: str
    step: str
    reason: str
    unchecked: bool = Field(default=False, description="Nobody can see whether the state has changed since.")


class UndoRunAnswer(Answer):
    success: bool
    run_id: str
    steps: list[UndoStepRecord]


class EventsQuery(Query):
    after: Annotated[int, Field(ge=0, lt=2**63)] | None = Field(
        default=None, description="The last sequence number already seen; a page begins at the first, a stream now."
    )
    tool_id: CallId | None = None
    limit: Limit = 100


class EventRecord(Answer):
    seq: int
    type: str
    at: datetime
    tool_id: str | None = None
    data: dict[str, Any]


class EventList(Answer):
    success: bool = True
    events: list[EventRecord]
    next: int | None = None


class StreamQuery(Query):
    session_id: SessionId | None = Field(default=None, description="The chat session this stream belongs to.")
    tools: Annotated[str, StringConstraints(max_length=4000)] | None = Field(
        default=None, description="Register as the runner of these tools, by name with commas; `*` is all."
    )
    undo: bool = Field(default=False, description="This runner can undo, too.")
    listen: bool = Field(default=False, description="Only listen: this stream is never given a call to run.")
    after: Annotated[int, Field(ge=0, lt=2**63)] | None = Field(default=None, description="The last id already seen.")
    ticket: str | None = Field(default=None, description="A ticket, where no header can be sent.")


class ModeBody(Body):
    mode: Literal["NORMAL", "ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"]
    reason: Text = ""


class ModeAnswer(Answer):
    success: bool = True
    mode: Literal["NORMAL", "ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"]


class Done(Answer):
    success: bool = True


class Health(Answer):
    status: str
