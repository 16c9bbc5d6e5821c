"""What the inbox is made of on the wire: cards, what a card opens to, and what a person's edit changes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from toolgate.kernel.text.rendering.budget import BUDGET
from toolgate.wire.schemas import Answer, Body, Id, Limit, NoteRecord, Query


class Card(Answer):
    """A question as a list shows it. Every text is safe to show: what hides or imitates stands as its code."""

    approval_id: str
    tool_id: str
    tool_name: str
    status: Literal["pending", "approved", "rejected", "timeout"]
    risk_level: Literal["LOW", "MEDIUM", "HIGH"]
    level: str
    summary: str
    message: str
    digest: str
    group: str = Field(description="The same for questions that look exactly alike and come from the same requester.")
    requester: str
    user: str | None = None
    run_id: str | None = None
    session_id: str | None = None
    reasons: list[str]
    confidence: int | None = None
    factors: list[str] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    must_expand: bool = False
    undoable: bool
    undo_ttl_s: float | None = None
    requires_reason: bool = Field(description="A no needs a reason.")
    needs_reason: bool = Field(default=False, description="A yes needs a reason.")
    approve_label: str
    reject_label: str
    quorum: int = 1
    approvers: list[list[str]] = Field(default_factory=list, description="Roles; who approves holds one of each set.")
    including: list[list[str]] = Field(
        default_factory=list, description="Roles; of each set, somebody who approves holds one."
    )
    lacks: list[list[str]] = Field(default_factory=list, description="Those of `including` nobody who approved holds.")
    escalates_to: list[str] = Field(default_factory=list, description="Roles the policy names for when nobody answers.")
    escalated_to: list[str] = Field(default_factory=list)
    votes: list[NoteRecord] = Field(default_factory=list)
    comments: list[NoteRecord] = Field(default_factory=list)
    edited_from: str | None = None
    has_unknown_command: bool = Field(default=False, description="A command that no grammar knows is asked about.")
    created_at: datetime
    expires_at: datetime
    decided_by: str | None = None
    decided_at: datetime | None = None
    reason: str | None = None


class BlockRecord(Answer):
    """One part of what an approver must see. `hidden` characters are left out until it is asked for in full."""

    title: str
    text: str
    style: Literal["fact", "code", "diff", "claim"]
    warnings: list[str] = Field(default_factory=list)
    hidden: int = 0
    name: str = Field(default="", description="What the part is asked for by, piece by piece.")


class ArtifactAnswer(Answer):
    """What an approver must see of one question; `arguments_text` is exactly the masked arguments, as JSON."""

    success: bool = True
    card: Card
    blocks: list[BlockRecord]
    arguments: Any = None
    arguments_text: str
    input_schema: Any = None
    on_behalf_of: list[str] = Field(
        default_factory=list, description="Whose votes the reader could give on it now, by delegations."
    )
    has_no_own_vote: bool = Field(default=False, description="With these: the reader may not decide it for themselves.")
    network: str | None = Field(
        default=None,
        description="The hosts that the command would reach, where a yes may give it a network; else null.",
    )


class PieceAnswer(Answer):
    """A piece of one part of what an approver must see, as `artifact` shows that part in full."""

    success: bool = True
    name: str
    title: str
    text: str
    style: Literal["fact", "code", "diff", "claim"]
    offset: int
    next: int | None = Field(default=None, description="Where the next piece begins; null where this is the last.")
    characters: int = Field(description="How many the whole part has.")
    lines: int = Field(description="How many the whole part has.")
    warnings: list[str] = Field(default_factory=list)


class PieceQuery(Query):
    offset: Annotated[int, Field(ge=0, lt=2**53)] = Field(default=0, description="The `next` of the piece before.")
    size: Annotated[int, Field(ge=1, le=BUDGET.most)] = Field(
        default=BUDGET.piece, description="About how many characters."
    )


class ArtifactQuery(Query):
    full: bool = Field(default=False, description="Leave nothing out.")


class DifferenceBody(Body):
    """Arguments somebody thinks of approving instead."""

    tool_params: dict[str, Any]


class DifferenceAnswer(Answer):
    """How they differ from what was shown, line by line."""

    success: bool = True
    diff: str
    hidden: int = Field(default=0, description="How many characters of the difference are left out; it says where.")
    additions: int
    deletions: int
    warnings: list[str] = Field(default_factory=list)


class WaitingQuery(Query):
    after: Id | None = Field(default=None, description="The `next` of the page before.")
    limit: Limit = 200


class WaitingAnswer(Answer):
    """Questions that wait, the riskiest first, then what expires first."""

    success: bool = True
    cards: list[Card]
    waiting: int = Field(description="How many wait in all.")
    next: str | None = Field(default=None, description="Where the next page begins; null where these are the last.")


class InboxQuery(Query):
    after: Annotated[int, Field(ge=0, lt=2**63)] | None = Field(
        default=None, description="Like the header `Last-Event-ID`: the last id already seen."
    )
    ticket: str | None = Field(default=None, description="A ticket, where no header can be sent.")
