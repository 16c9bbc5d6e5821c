"""The gate's own event loop, on one daemon thread: timers, calls nobody waits for, and the sync face."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from toolgate.errors import GateClosedError

T = TypeVar("T")
log = logging.getLogger("toolgate.background")


class Background:
    """Started at first use, so that opening a gate stays cheap."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._spawned: set[concurrent.futures.Future[Any]] = set()
        """What runs here and nobody else holds: an event loop keeps no task alive that waits for something."""
        self.is_closed = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop of the background thread."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._main, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    @staticmethod
    def _main(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on the background thread itself."""
        return self._thread is threading.current_thread()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine here and return its future; raise GateClosedError once it is closed."""
        loop = None if self.is_closed else self.loop
        with self._lock:  # so that what is accepted comes before the last drain
            if loop is not None and not self.is_closed:
                return asyncio.run_coroutine_threadsafe(coroutine, loop)
        coroutine.close()
        raise GateClosedError("This gate is closed; open a new one.")

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine here; what it raises is logged. Once closed, nothing is run any more."""
        with contextlib.suppress(GateClosedError):
            future = self.submit(coroutine)
            self._spawned.add(future)
            future.add_done_callback(self._report)

    def _report(self, future: concurrent.futures.Future[Any]) -> None:
        self._spawned.discard(future)
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            log.error("background work failed: %s", type(error).__name__)

    def close(self) -> None:
        """Stop the loop and wait for the thread, unless called on it."""
        with self._lock:
            self.is_closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(_drain(), loop).add_done_callback(
            lambda _done: loop.call_soon_threadsafe(loop.stop)
        )
        if not self.is_current:
            thread.join(timeout=5)


async def _drain() -> None:
    """Cancel what still runs on this loop and let it end."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
