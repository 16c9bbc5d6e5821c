"""Calls that run elsewhere: how one is taken by who made it, what is to run then, how far it is and what it gave."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from toolgate.wire.schemas import Answer, Body, Id, LenientBody, Text, WireStatus


class ClaimBody(Body):
    """Take an approved call of one's own to run it."""

    claim_id: Annotated[str, StringConstraints(min_length=16, max_length=128)] = Field(
        description="A random token of the caller's own: claiming again with it is answered alike, and reports name it."
    )


class ClaimAnswer(Answer):
    """What is to run, and how long its result is waited for."""

    tool_id: str
    tool_name: str
    tool_params: Any
    effect_key: str | None = Field(
        default=None, description="The identity of its effect: a token to pass on to whoever has the effect."
    )
    lease_seconds: float


class ResultBody(LenientBody):
    """What a tool that ran at the client gave."""

    status: Literal["completed", "failed", "unknown"] = Field(
        description="`unknown`: whoever ran it cannot say what it did; `error` says what is known."
    )
    result: Any = None
    error: Annotated[str, StringConstraints(max_length=100_000)] | None = None
    fence: Id | None = Field(
        default=None, description="The token of the execution signal; needed by others than its receiver."
    )
    undo: dict[str, Any] | None = Field(default=None, description="What undoing it takes.")
    artifacts: Annotated[list[Any], Field(max_length=1000)] = Field(default_factory=list)
    raised: Annotated[list[Annotated[str, StringConstraints(max_length=300)]], Field(max_length=64)] = Field(
        default_factory=list,
        description="With `unknown`: the names of what the error was that ended it, by which the tool's and the "
        "policy's word on errors is applied.",
    )

    @model_validator(mode="after")
    def _explained(self) -> ResultBody:
        if self.status == "failed" and not (self.error or "").strip():
            raise ValueError("a result that says `failed` needs `error`: what went wrong")
        return self


class ResultAnswer(Answer):
    success: bool
    tool_id: str
    status: WireStatus
    message: str


class ProgressBody(LenientBody):
    """How far a tool at the client is. An empty body is a heartbeat."""

    progress: Annotated[float, Field(ge=0, le=1)] | None = None
    message: Text | None = None
    data: Any = None
    fence: Id | None = None
