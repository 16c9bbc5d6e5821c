"""What happened, what of it a sink has heard, who waits for that, and how long anybody may."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future

FREE_TRIES, FIRST_PAUSE_S, LONGEST_PAUSE_S = 5, 0.5, 30.0
"""So many failures in a row may be a hiccup, and every call tries again; from then on pauses grow."""


class Hearing:
    """Counts what happened and what of it was heard. Safe from any thread, for waiters on any loop."""

    def __init__(self) -> None:
        self.happened = self.heard = 0
        self.failures = 0
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, Future[bool]]] = []

    @property
    def is_complete(self) -> bool:
        """Whether all that happened was heard."""
        return self.heard >= self.happened

    def note(self) -> None:
        """Something happened."""
        with self._lock:
            self.happened += 1

    def hear(self, so_far: int) -> None:
        """What had happened when the count was `so_far` is heard now."""
        with self._lock:
            self.heard = max(self.heard, so_far)
            done = [answer for goal, answer in self._waiting if goal <= self.heard]
            self._waiting = [item for item in self._waiting if item[0] > self.heard]
        for answer in done:
            answer.set_result(True)

    def fail(self) -> None:
        """Nothing more is heard for now: nobody waits any longer."""
        with self._lock:
            self.failures += 1
            waiting, self._waiting = self._waiting, []
        for _, answer in waiting:
            answer.set_result(False)

    async def wait(self, goal: int, timeout_s: float, *, failures: int) -> bool | None:
        """Whether `goal` is heard before the next failure after the given one; None where neither came in time."""
        answer: Future[bool] = Future()
        with self._lock:
            if self.heard >= goal or self.failures != failures:
                return self.heard >= goal
            self._waiting.append((goal, answer))
        try:
            # Waited for like this, somebody who is cancelled leaves the answer to itself.
            await asyncio.wait({asyncio.wrap_future(answer)}, timeout=timeout_s)
        finally:
            with self._lock:
                self._waiting = [item for item in self._waiting if item[1] is not answer]
        return answer.result() if answer.done() else None


class Pauses:
    """When a sink that failed is tried again."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._fails = 0
        self._calls_at = self._anyway_at = 0.0

    @property
    def is_over_for_calls(self) -> bool:
        """Whether a call may try it."""
        return self._fails <= FREE_TRIES or self._clock() >= self._calls_at

    @property
    def is_over(self) -> bool:
        """Whether it is tried although no call asks for it."""
        return self._fails == 0 or self._clock() >= self._anyway_at

    def fail(self) -> bool:
        """Note a failure; whether it is worth a line in the log: the first, and those that pauses follow."""
        self._fails += 1
        pause_s = 0.0
        if self._fails > FREE_TRIES:
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (self._fails - FREE_TRIES - 1))
        self._calls_at = self._clock() + pause_s
        self._anyway_at = self._clock() + max(pause_s, FIRST_PAUSE_S)
        return self._fails == 1 or pause_s > 0

    def end(self) -> None:
        """It works again."""
        self._fails = 0


class Allowance:
    """How long calls may wait for one sink, all of them together: `most` at once, then a `share` of all time.

    A wait of up to `free` seconds does not count: so much, every call may wait.
    """

    def __init__(self, clock: Callable[[], float], *, most: float, share: float, free: float) -> None:
        self._clock = clock
        self._free = free
        self._most = most
        self._share = share
        self._left = most
        self._at = clock()

    @property
    def left(self) -> float:
        """Seconds that may be waited now."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._at) * self._share)
        self._at = now
        return self._free + max(0.0, self._left)

    def spend(self, seconds: float) -> None:
        """Note that somebody waited."""
        self._left -= max(0.0, seconds - self._free)
