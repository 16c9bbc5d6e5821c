"""The bus of processes that share one SQLite file: own changes at once, others' as soon as the file tells.

SQLite counts the writes of other connections; a thread looks at that counter and, when it moved,
reads which calls were told of since.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.ports.bus import Hint, Listener

LOOK_EVERY_S = 0.005
MOST_REMEMBERED = 10_000
log = logging.getLogger("toolgate.bus")


class News(Protocol):
    """What the bus reads from: a connection of its own to the file."""

    def data_version(self) -> int: ...

    def position(self) -> int: ...

    def news(self, position: int) -> tuple[int, list[tuple[str, str, str]]]: ...

    def close(self) -> None: ...


class SqliteBus:
    """Publishes to listeners of this process, and what other processes write to the same file."""

    def __init__(self, open_news: Callable[[], News]) -> None:
        self._open_news = open_news
        self._listeners: tuple[Listener, ...] = ()
        self._own: dict[tuple[str, str], Status] = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def publish(self, hint: Hint) -> None:
        if len(self._own) > MOST_REMEMBERED:
            self._own.clear()
        self._own[hint.project, hint.call_id] = hint.status
        self._tell(hint)

    def _tell(self, hint: Hint) -> None:
        for listener in self._listeners:
            listener(hint)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        with self._lock:
            self._listeners = (*self._listeners, listener)
            if self._thread is None:
                news = self._open_news()
                self._thread = threading.Thread(
                    target=self._watch, args=(news, news.position()), name="toolgate-bus", daemon=True
                )
                self._thread.start()

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return unsubscribe

    def _watch(self, news: News, position: int) -> None:
        seen = -1
        while not self._stop.wait(LOOK_EVERY_S):
            try:
                version = news.data_version()
                if version == seen:
                    continue
                position, told = news.news(position)
                seen = version
            except StoreError as error:
                log.warning("the file cannot be watched just now: %s", error)
                continue
            for project, call_id, status in told:
                # What this process wrote it has told already.
                if status != Status.EXECUTING and self._own.pop((project, call_id), None) != status:
                    self._tell(Hint(project, call_id, Status(status)))
        news.close()

    def close(self) -> None:
        self._listeners = ()
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)
