"""Sink: somebody outside who is told of events; and how far each was told, which a store keeps beside the events.

The store's own record does not depend on any sink.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, NamedTuple, Protocol


class Sink(Protocol):
    """Told of each event in order, at least once. A sink that raises, or never returns, is told again later.

    A sink that has `try_emit` with the same parameters is told through that instead. What is not a coroutine function
    is called on a thread of its own and may block.
    """

    def emit(self, *, type: str, data: dict[str, Any]) -> Awaitable[None] | None: ...


class Cursor(NamedTuple):
    """How far a sink was told: up to `seq`, of a project whose last event is `head`.

    `is_ours` says whether whoever opened it tells the sink; otherwise another owner does, who is alive.
    """

    seq: int
    head: int
    is_ours: bool


class Cursors(Protocol):
    """The part of a store that keeps how far sinks were told. A sink without a name (None) is kept nowhere.

    One owner at a time tells a named sink. Raises StoreError where nothing can be read or written.
    """

    async def open_cursor(self, project: str, sink: str | None) -> Cursor:
        """Return how far a sink was told, and take it over where its owner is dead or let go of it.

        One that is new here, or has no name, begins after the project's last event.
        """
        ...

    async def move_cursor(self, project: str, sink: str, seq: int) -> bool:
        """Note that a sink was told up to `seq`; False where it is another owner's by now. It never moves back."""
        ...

    async def close_cursor(self, project: str, sink: str | None) -> None:
        """Let go of a sink, so that another owner may tell it at once."""
        ...
