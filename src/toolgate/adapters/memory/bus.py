"""The bus of a single process: listeners are simply called."""

from __future__ import annotations

import threading
from collections.abc import Callable

from toolgate.ports.bus import Hint, Listener


class MemoryBus:
    """Calls every listener in the publishing thread."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()

    def publish(self, hint: Hint) -> None:
        for listener in self._listeners:
            listener(hint)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return unsubscribe

    def close(self) -> None:
        self._listeners = ()
