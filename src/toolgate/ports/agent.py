"""Agent: takes a person's message and works on it with tools, through the gate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from toolgate.kernel.context import Context
from toolgate.ports.threads import Run, Threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message. `context` is what calls made about it are made with; `account` is who wrote it.

    Where `account` is left out, it is the person the context names, or else its principal.
    """

    message_id: str
    session_id: str
    content: str
    context: Context
    account: str | None = None


Say = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""Tells whoever listens to the turn's session: the name of the message and its data."""


class Agent(Protocol):
    """Awaited in a task of its own after the message is accepted; what it raises is told as `chat.error`.

    Cancelling it ends the turn; calls it made go on.
    """

    async def take(self, turn: Turn, say: Say) -> None: ...


class Host(Protocol):
    """Where a resident agent lives: it carries what the agent says, and knows who people are."""

    async def say(self, run: Run, name: str, data: Mapping[str, Any]) -> None:
        """Tell whoever listens to the run's conversation; nobody may."""
        ...

    async def context_of(self, run: Run) -> Context | None:
        """Return what calls of this run are made with now; None where its account may not ask any more."""
        ...


@runtime_checkable
class ResidentAgent(Protocol):
    """An agent whose runs outlive requests and processes: it keeps them in `threads` and takes them up again."""

    @property
    def threads(self) -> Threads: ...

    async def begin(self, host: Host) -> None:
        """Start to work, first on what was left behind."""
        ...

    async def accept(self, turn: Turn) -> Run:
        """Return the run of a message once it is durable; work on it goes on by itself.

        ConflictError where the conversation has a run that is still open.
        """
        ...

    async def cancel(self, project: str, run_id: str, *, by: str) -> Run:
        """End a run and the calls it waits for; a run that has ended is returned as it is. NotFoundError."""
        ...

    async def close(self) -> None:
        """Stop working; open runs stay open, for whoever begins next."""
        ...
