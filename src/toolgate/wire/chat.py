"""What goes in and out where people talk with the agent: messages, conversations, runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from toolgate.wire.ids import SessionId
from toolgate.wire.schemas import Answer, Body, Id, Limit, Query

RunWord = Literal["running", "waiting", "completed", "stopped", "failed", "cancelled"]


class MessageBody(Body):
    """A message to the agent."""

    content: Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
    session_id: SessionId | None = Field(default=None, description="The conversation; a new one where none is given.")


class MessageAnswer(Answer):
    success: bool = True
    message_id: str
    session_id: str
    run_id: str | None = Field(default=None, description="The run that works on it.")


class ConversationsQuery(Query):
    before: Id | None = Field(default=None, description="Only those written to before this conversation.")
    limit: Limit = 100


class ConversationRecord(Answer):
    session_id: str
    title: str
    messages: int
    created_at: datetime
    updated_at: datetime


class ConversationList(Answer):
    success: bool = True
    conversations: list[ConversationRecord]
    next: str | None = Field(default=None, description="The `before` of the next page.")


class MessagesQuery(Query):
    after: Annotated[int, Field(ge=0, lt=2**31)] = Field(default=0, description="Only those after this position.")
    limit: Limit = 100


class ChatToolCall(Answer):
    tool_id: str
    tool_name: str
    tool_params: Any = None


class ChatToolResult(Answer):
    tool_id: str
    tool_name: str
    status: str
    result: Any = None
    joined: str | None = Field(default=None, description="The earlier call that it was, where it joined one.")


class MessageRecord(Answer):
    """One message, masked. `notice`: said about the run, not by the model."""

    message_id: str
    run_id: str
    position: int
    role: Literal["person", "agent", "tools"]
    content: str = ""
    tool_calls: list[ChatToolCall] = Field(default_factory=list)
    tool_results: list[ChatToolResult] = Field(default_factory=list)
    notice: bool = False
    created_at: datetime


class MessageList(Answer):
    success: bool = True
    session_id: str
    messages: list[MessageRecord]
    next: int | None = Field(default=None, description="The `after` of the next page.")


class ChatRunsQuery(Query):
    session_id: SessionId | None = Field(default=None, description="Only runs of this conversation.")
    status: RunWord | None = Field(default=None, description="Only runs of this status.")
    before: Id | None = Field(default=None, description="Only those begun before this run.")
    limit: Limit = 100


class ChatRunRecord(Answer):
    """One run of the agent. `waiting_for` are the ids of the calls it waits for."""

    run_id: str
    session_id: str
    message_id: str
    status: RunWord
    steps: int
    waiting_for: list[str]
    input_tokens: int
    output_tokens: int
    cost: float | None = None
    worked_seconds: float
    error: str | None = None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None


class ChatRunAnswer(Answer):
    success: bool = True
    run: ChatRunRecord


class ChatRunList(Answer):
    success: bool = True
    runs: list[ChatRunRecord]
    next: str | None = Field(default=None, description="The `before` of the next page.")
