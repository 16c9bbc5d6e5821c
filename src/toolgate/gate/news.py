"""Events as they happen, here and in other processes, for whoever reads along."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_PROJECT
from toolgate.kernel.event import Event
from toolgate.pipeline.driver import Driver
from toolgate.ports.bus import LOOK_AGAIN, Hint

BATCH = 1000
FOREIGN_NEWS_S = 0.5
"""How long an event of another process stays unseen at most: not every one comes with a hint."""


class News:
    """Wakes those who follow the events of a project."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._readers: list[Callable[[], None]] = []
        self._is_closed = False

    async def follow(
        self, *, project: str = DEFAULT_PROJECT, after: int = 0, call_id: str | None = None
    ) -> AsyncIterator[Event]:
        """Yield events as they happen, from after a sequence number, until the reader stops."""
        loop = asyncio.get_running_loop()
        news = asyncio.Event()
        listeners = self._driver.listeners

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(news.set)

        def on_change(change: Change) -> None:
            if change.project == project and change.events:
                wake()

        def on_hint(hint: Hint) -> None:
            if hint.project == project or hint is LOOK_AGAIN:
                wake()  # also what other processes did

        listeners.append(on_change)
        unsubscribe = self._driver.bus.subscribe(on_hint)
        self._readers.append(wake)
        try:
            while not self._is_closed:
                news.clear()
                while batch := await self._driver.store.events(project, after=after, limit=BATCH, call_id=call_id):
                    for event in batch:
                        yield event
                    after = batch[-1].seq
                await self._wait(news)
        finally:
            unsubscribe()
            listeners.remove(on_change)
            self._readers.remove(wake)

    async def _wait(self, news: asyncio.Event) -> None:
        """Wait until something happened; where others write too, no longer than it may take until it is seen."""
        if not self._driver.store.is_shared:
            await news.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FOREIGN_NEWS_S):
                await news.wait()

    def close(self) -> None:
        """Let everybody who reads along come to their end."""
        self._is_closed = True
        for wake in tuple(self._readers):
            wake()
