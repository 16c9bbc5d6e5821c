"""Those who wait for a call, and how they are woken: one dictionary, no polling, any thread."""

from __future__ import annotations

import asyncio
import threading

from toolgate.kernel.output import Result
from toolgate.ports.bus import Hint

Key = tuple[str, str]
Waiter = asyncio.Future[Result | None]
"""Ends with nothing, or with the result that is waited for."""


class Waiters:
    """Futures by (project, call id). A wake-up says only: look again, unless it gives one of them the result."""

    def __init__(self) -> None:
        self._waiting: dict[Key, list[Waiter]] = {}
        self._lock = threading.Lock()

    def add(self, key: Key) -> Waiter:
        """Return a future of the running loop that ends at the next hint about `key`."""
        future: Waiter = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.setdefault(key, []).append(future)
        return future

    def discard(self, key: Key, future: Waiter) -> bool:
        """Stop waiting; False where a wake-up was sent already."""
        with self._lock:
            waiting = self._waiting.get(key)
            if waiting is None or future not in waiting:
                return False
            waiting.remove(future)
            if not waiting:
                del self._waiting[key]
            return True

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def wake(self, hint: Hint) -> bool:
        """Wake everybody who waits for this call; False where nobody does."""
        if not self._waiting or (key := (hint.project, hint.call_id)) not in self._waiting:
            return False
        with self._lock:
            waiting = self._waiting.pop(key, [])
        woken = False
        for future in waiting:
            woken |= _wake(future)
        return woken

    def wake_one(self, key: Key, result: Result | None) -> None:
        """Wake everybody who waits for this call, and give the result, whose data is one object, to the first."""
        with self._lock:
            waiting = self._waiting.pop(key, [])
        for future in waiting:
            if _wake(future, result):
                result = None

    def wake_all(self) -> None:
        """Wake everybody, so that they notice what changed for all (a closed gate, a lost connection)."""
        with self._lock:
            everybody = [future for waiting in self._waiting.values() for future in waiting]
            self._waiting.clear()
        for future in everybody:
            _wake(future)


def _wake(future: Waiter, result: Result | None = None) -> bool:
    loop = future.get_loop()
    is_here = asyncio._get_running_loop() is loop  # then nobody sleeps who had to be woken by a write to a socket
    try:
        (loop.call_soon if is_here else loop.call_soon_threadsafe)(_set, future, result)
    except RuntimeError:  # the loop of this waiter is closed: it waits no more
        return False
    return True


def _set(future: Waiter, result: Result | None) -> None:
    if not future.done():
        future.set_result(result)
