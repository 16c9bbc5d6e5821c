"""Bringing changes from many event loops to one writer, and their outcomes back.

What an event loop brings in one turn goes over together: the writer wakes once, with a full group, instead of
contending with the loop that is still filling it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from toolgate.adapters.sql.write_set import WriteSet

ENOUGH_TO_START = 64
"""Changes of one turn that are handed over before the turn ends: they are written while the loop prepares the next."""

Outcome = Exception | None
Waiting = tuple[WriteSet, "asyncio.Future[None]"]
log = logging.getLogger("toolgate.store")


class Gathering:
    """Collects the changes of each event loop's turn; `take` gets them all at its end, on that loop's thread."""

    def __init__(self, take: Callable[[list[Waiting]], None]) -> None:
        self._take = take
        self._by_loop: dict[asyncio.AbstractEventLoop, list[Waiting]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_loop)

    def add(self, write_set: WriteSet) -> asyncio.Future[None]:
        """Return what becomes done when the change is written. Cancelling it does not cancel the write."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        gathered = self._by_loop.get(loop)
        if gathered is None:
            gathered = self._by_loop[loop] = []
            loop.call_soon(self._hand_over, loop)
        gathered.append((write_set, future))
        if len(gathered) >= ENOUGH_TO_START:
            self._hand_over(loop)
        return future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        gathered = self._by_loop.pop(loop, None)
        if gathered is not None:  # None: it went already
            self._take(gathered)

    def hand_over_all(self) -> None:
        """Let go of everything gathered so far, without waiting for the end of a turn."""
        for loop in tuple(self._by_loop):
            self._hand_over(loop)


def tell(waiting: list[Waiting], outcomes: list[Outcome]) -> None:
    """Give every waiter its outcome, one wake-up per event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[None], Outcome]]] = {}
    for (_, future), outcome in zip(waiting, outcomes, strict=True):
        by_loop.setdefault(future.get_loop(), []).append((future, outcome))
    for loop, told in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, told)
        except RuntimeError:
            log.debug("%d waiters are gone with their event loop; what they wrote is written", len(told))


def _settle(told: list[tuple[asyncio.Future[None], Outcome]]) -> None:
    for future, outcome in told:
        if future.done():
            continue
        if outcome is None:
            future.set_result(None)
        else:
            future.set_exception(outcome)
