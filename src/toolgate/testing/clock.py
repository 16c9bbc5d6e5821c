"""A clock that stands still until it is told to move."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class FakeClock:
    """Pass `clock.now` where a function returning the time is wanted. Safe to share between threads."""

    def __init__(self, start: datetime = NOON) -> None:
        if start.tzinfo is None:
            raise ValueError("A clock needs an aware datetime; add tzinfo=UTC.")
        self._lock = threading.Lock()
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> datetime:
        """Move by `seconds` and return the new time. A negative number moves back, as real clocks do."""
        with self._lock:
            self._now += timedelta(seconds=seconds)
            return self._now

    def set(self, at: datetime) -> None:
        """Jump to an aware time."""
        with self._lock:
            self._now = at.astimezone(UTC)
