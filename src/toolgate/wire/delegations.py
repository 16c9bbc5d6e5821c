"""What the wire looks like for votes that people lend to others."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from toolgate.kernel.delegation import MAX_DELEGATED_TOOLS, MAX_DELEGATION_S
from toolgate.wire.schemas import Answer, Body, Id, Limit, Query, Text

Name = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class DelegateBody(Body):
    """Lend one's own vote to another person who may decide in the project."""

    to: Name
    seconds: Annotated[float, Field(gt=0, le=MAX_DELEGATION_S)]
    tools: list[Name] = Field(
        default_factory=list, max_length=MAX_DELEGATED_TOOLS, description="For these tools alone; empty for all."
    )
    reason: Text | None = None


class EndBody(Body):
    reason: Text | None = None


class DelegationRecord(Answer):
    """A lent vote."""

    delegation_id: str
    project_id: str
    giver: str
    delegate: str
    tools: list[str]
    reason: str | None = None
    created_at: datetime
    expires_at: datetime
    is_live: bool = Field(description="Whether it can still be used.")
    is_valid: bool = Field(
        default=True,
        description="False where it counts as not there: its mark does not hold, or one of the two may not decide now.",
    )
    invalid_because: str | None = None
    ended_at: datetime | None = None
    ended_by: str | None = None


class DelegationAnswer(Answer):
    success: bool = True
    delegation: DelegationRecord


class DelegationList(Answer):
    success: bool = True
    delegations: list[DelegationRecord]


class DelegationsQuery(Query):
    giver: Id | None = None
    delegate: Id | None = None
    live: bool = Field(default=True, description="Only those that are neither over nor ended.")
    limit: Limit = 100
