"""Whether others had their turns on an event loop while something large was worked on."""

from __future__ import annotations

import asyncio
import time

SHARE = 0.8
"""Work on the loop takes all of the time in one go. Work aside lets others in every few milliseconds, but on a busy
machine nobody has a turn for a while."""


class Turns:
    """Takes turns on the loop while it is entered, and notes the longest wait for one."""

    async def __aenter__(self) -> Turns:
        self._longest = 0.0
        self._began = self._last = time.perf_counter()
        self._task = asyncio.create_task(self._take())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._note()
        self._task.cancel()

    @property
    def were_given(self) -> bool:
        return self._longest < SHARE * (self._last - self._began)

    async def _take(self) -> None:
        while True:
            await asyncio.sleep(0.001)
            self._note()

    def _note(self) -> None:
        now = time.perf_counter()
        self._longest, self._last = max(self._longest, now - self._last), now
