"""Threads: conversations with an agent, their messages, and the runs in which the agent works on them.

A run is a row that says where the work stands. Its steps are the messages it wrote, so what a restarted process needs
to go on is in the row and the messages, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from toolgate.kernel.context import Context


class RunStatus(StrEnum):
    """RUNNING: its owner works on it. WAITING: for calls, owned by nobody. The others are final."""

    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self not in OPEN


OPEN = frozenset({RunStatus.RUNNING, RunStatus.WAITING})


class Role(StrEnum):
    """Who wrote a message: the person, the agent, or the tools it called."""

    PERSON = "person"
    AGENT = "agent"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the model took so far; `cost` is None where the price of the model is not known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the agent: a person's message and all that was done about it.

    `id` is the `run_id` of the calls it makes; `context` is what they are made with. `steps` counts the answers of the
    model, `waiting` names the calls it waits for, `worked_s` is the time it did not wait for people. `version` is 1 for
    a new run and grows by one with every save.
    """

    project: str
    id: str
    account: str
    conversation_id: str
    message_id: str
    context: Context
    created_at: datetime
    updated_at: datetime
    status: RunStatus = RunStatus.RUNNING
    version: int = 1
    owner: str | None = None
    steps: int = 0
    waiting: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    worked_s: float = 0.0
    error: str | None = None
    ended_at: datetime | None = None

    def next(self, now: datetime) -> Run:
        """Return the next version of this run."""
        return replace(self, version=self.version + 1, updated_at=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. `content` is what was really said, as JSON; `shown` is its masked view.

    `position` is its place in the conversation, from 1; the store gives it.
    """

    project: str
    id: str
    account: str
    conversation_id: str
    run_id: str
    role: Role
    content: bytes
    shown: Any
    created_at: datetime
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation of one account in one project. `title` is masked; `size` is how many messages there are."""

    project: str
    account: str
    id: str
    title: str
    size: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Which runs, newest first. None means any; `before` is the last one seen."""

    project: str | None = None
    account: str | None = None
    conversation_id: str | None = None
    statuses: frozenset[RunStatus] | None = None
    before: Run | None = None
    limit: int = 100


class Threads(Protocol):
    """Safe to use from several event loops and threads at once; raises StoreError where it cannot be read or written.

    Ids of conversations belong to an account of a project: two accounts never share one. What was saved is durable
    when `save` returns. Cancelling a save leaves it wholly done or wholly not.
    """

    async def save(self, run: Run, *, messages: Sequence[Message] = (), title: str | None = None) -> list[Message]:
        """Write the run and append messages to its conversation, all or nothing; returns them with their positions.

        Version 1 makes a new run, and its conversation where there is none yet, with `title`; ConflictError where the
        run is there already or another run of the conversation is open. Any other version expects the one before it:
        ConflictError where the run is at another.
        """
        ...

    async def run(self, project: str, run_id: str) -> Run | None: ...

    async def runs(self, query: RunQuery) -> list[Run]: ...

    async def orphans(self, *, limit: int = 100) -> list[Run]:
        """Return RUNNING runs whose owner is no longer alive, oldest first."""
        ...

    async def conversation(self, project: str, account: str, id: str) -> Conversation | None: ...

    async def conversations(
        self, project: str, account: str, *, before: Conversation | None = None, limit: int = 100
    ) -> list[Conversation]:
        """Return an account's conversations, the one last written to first."""
        ...

    async def messages(
        self, project: str, account: str, conversation_id: str, *, after: int = 0, limit: int = 1000
    ) -> list[Message]:
        """Return messages in order, from after a position; those that retention forgot are left out."""
        ...

    async def close(self) -> None: ...
