"""Whether others had their turns on an event loop while something large was worked on."""

from __future__ import annotations

import time

SHARE = 0.6
"""Work on the loop is nearly all of what the process works meanwhile; work aside leaves the loop little."""


class Turns:
    """Counts, while it is entered, how much of the process's work the loop's own thread did: a busy machine changes
    how long that takes, and not how much it is."""

    async def __aenter__(self) -> Turns:
        self._mine, self._all = -time.thread_time(), -time.process_time()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._mine += time.thread_time()
        self._all += time.process_time()

    @property
    def were_given(self) -> bool:
        return self._mine < SHARE * self._all
