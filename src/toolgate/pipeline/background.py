"""The gate's own event loop, on one daemon thread: timers, calls nobody waits for, and the sync face."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
log = logging.getLogger("toolgate.background")


class Background:
    """Started at first use, so that opening a gate stays cheap."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
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
        """Run a coroutine here and return its future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine here; what it raises is logged."""
        if self.is_closed:
            coroutine.close()
            return
        try:
            self.submit(coroutine).add_done_callback(_report)
        except RuntimeError:  # the loop was closed just now
            coroutine.close()

    def close(self) -> None:
        """Stop the loop and wait for the thread, unless called on it."""
        self.is_closed = True
        with self._lock:
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


def _report(future: concurrent.futures.Future[Any]) -> None:
    if future.cancelled():
        return
    error = future.exception()
    if error is not None:
        log.error("background work failed: %s", type(error).__name__)
