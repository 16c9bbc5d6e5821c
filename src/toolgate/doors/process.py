"""One object for the whole process: made when it is first asked for, unless somebody gave one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class ProcessWide(Generic[T]):
    """Holds one object for every thread."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._value: T | None = None

    def get(self) -> T:
        """Return the object; the first time, make it."""
        with self._lock:
            if self._value is None:
                self._value = self._make()
            return self._value

    def put(self, value: T | None) -> T | None:
        """Put another in its place and return the one before. After None, the next one asked for is new."""
        with self._lock:
            previous, self._value = self._value, value
            return previous
