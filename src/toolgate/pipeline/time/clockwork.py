"""When the sweeper runs: one timer, on the background loop, set to the earliest deadline known."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from toolgate.pipeline.background import Background
from toolgate.pipeline.time.sweeper import Sweeper

LONGEST_NAP_S = 5.0
"""Wake up this often while anything is due at all: the wall clock may jump, the timer's does not."""

log = logging.getLogger("toolgate.sweeper")


class Clockwork:
    """Sleeps until something is due. `wind` may be called from any thread, and is cheap when nothing changes."""

    def __init__(self, background: Background, sweeper: Sweeper, now: Callable[[], datetime]) -> None:
        self._background = background
        self._sweeper = sweeper
        self._now = now
        self._lock = threading.Lock()
        self._next: datetime | None = None
        self._timer: asyncio.TimerHandle | None = None

    def wind(self, due_at: datetime) -> None:
        """Make sure a sweep happens at `due_at` or earlier."""
        with self._lock:
            if self._next is not None and self._next <= due_at:
                return
            self._next = due_at
        if self._background.is_closed:
            return
        with contextlib.suppress(RuntimeError):  # closed just now; whoever opens the store next looks after it
            self._background.loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        """On the background loop: (re)start the timer for the earliest deadline."""
        with self._lock:
            due_at = self._next
        if self._timer is not None:
            self._timer.cancel()
        if due_at is None:
            return
        nap_s = min(max((due_at - self._now()).total_seconds(), 0.0), LONGEST_NAP_S)
        self._timer = self._background.loop.call_later(nap_s, self._ring)

    def _ring(self) -> None:
        with self._lock:
            self._next = None
        self._background.spawn(self._sweep())

    async def _sweep(self) -> None:
        try:
            next_at = await self._sweeper.sweep()
        except Exception as error:  # noqa: BLE001  # whatever it was, deadlines must not stop being kept
            log.error("a sweep failed (%s); trying again", type(error).__name__)
            next_at = self._now() + timedelta(seconds=1)
        if next_at is not None:
            self.wind(next_at)
