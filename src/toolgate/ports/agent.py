"""Agent: takes a person's message and works on it with tools, through the gate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toolgate.kernel.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a person. `context` is what calls made on their behalf are made with."""

    message_id: str
    session_id: str
    content: str
    context: Context


Say = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""Tells whoever listens to the turn's session: the name of the message and its data."""


class Agent(Protocol):
    """Awaited in a task of its own after the message is accepted; what it raises is told as `chat.error`.

    Cancelling it ends the turn; calls it made go on.
    """

    async def take(self, turn: Turn, say: Say) -> None: ...
