"""What a model is to the loop: it gets what was said so far and answers with text and tool calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from toolgate.agent.history import Said
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.threads import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A tool call as the model wrote it. `ref` is its own id of it; `arguments` are its text, whatever that is."""

    ref: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer of a model. `raw` is its own form, to be given back to it unchanged."""

    text: str = ""
    calls: tuple[Wanted, ...] = ()
    usage: Usage = field(default_factory=Usage)
    raw: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a model is asked: everything said so far, in order, and the tools it may call."""

    said: Sequence[Said]
    tools: Sequence[ToolDefinition]
    instructions: str = ""


Hear = Callable[[str], Awaitable[None]]
"""Is given the text of an answer piece by piece, while it is made."""


class Model(Protocol):
    """Cancelling `answer` gives up the answer. Raises ModelError, with a text for people and without secrets."""

    @property
    def name(self) -> str: ...

    async def answer(self, question: Question, hear: Hear) -> Reply: ...

    async def close(self) -> None: ...
