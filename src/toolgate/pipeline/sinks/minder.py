"""Looks after a relay on the gate's own loop: retries, loops that ended, other processes' events, and how far it is.

It is there only while there is something to look after. A quick sink of a private project never needs it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

from toolgate.errors import StoreError
from toolgate.pipeline.sinks.relay import Relay
from toolgate.ports.bus import LOOK_AGAIN, Bus, Hint

LOOK_S = 0.05
PATIENCE_S = 30.0
"""How long a sink may take over one event before that counts as a failure. No call waits for it so long."""
NEWS_S = 0.5
"""How long an event of another process stays unseen at most: not every one comes with a hint."""
SAVE_S = 1.0
"""How often it is written down how far a named sink was told; after a crash it hears so much again."""
TAKEOVER_S = 2.0
CLOSING_S = 2.0
log = logging.getLogger("toolgate.events")


class Minder:
    """Looks after one relay for as long as `is_wanted`; what it leaves untold then stays in the record."""

    def __init__(
        self,
        relay: Relay,
        spawn: Callable[[Coroutine[Any, Any, Any]], None],
        bus: Bus,
        *,
        is_wanted: Callable[[], bool],
        clock: Callable[[], float] = monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.relay = relay
        self.is_wanted = is_wanted
        relay.mind = self.wake
        self._spawn = spawn
        self._bus = bus
        self._clock = clock
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._is_awake = False
        self._has_news = False
        self._unsubscribe: Callable[[], None] | None = None
        self._looked_at = self._saved_at = self._asked_at = clock()

    def wake(self) -> None:
        """See that somebody looks after the relay, until there is nothing to do. From any thread."""
        with self._lock:
            if self._is_awake:
                return
            self._is_awake = True
        self._spawn(self._run())

    async def _run(self) -> None:
        while self._stays_awake():
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
            except StoreError as error:
                self.relay.fail(str(error))

    def _stays_awake(self) -> bool:
        relay = self.relay
        with self._lock:
            self._is_awake = not relay.is_closed and (
                relay.is_shared or relay.is_told_now or not (relay.is_open and relay.is_settled and self.is_wanted())
            )
            return self._is_awake

    async def _look(self) -> None:
        relay, task = self.relay, self.relay.task
        if task is not None:
            if task.get_loop().is_closed():
                relay.bury(task)
            elif self._clock() - relay.moved_at > self._patience_s:
                relay.give_up(task)
        if not self.is_wanted() and not relay.is_told_now and (relay.is_settled or relay.trouble or not relay.is_ours):
            await self.close()
            return
        if relay.pauses.is_over:
            await self._go_on()

    async def _go_on(self) -> None:
        relay = self.relay
        if not relay.is_open:
            await relay.open()
        if relay.is_shared:
            await self._follow_others()
        if not relay.is_settled and not relay.is_told_now:
            relay.start_at_home()

    async def _follow_others(self) -> None:
        """Hear of what other processes do, take the sink over from one that is gone, write down how far it is."""
        relay, now = self.relay, self._clock()
        if self._unsubscribe is None:
            self._unsubscribe = self._bus.subscribe(self._hear)
        if not relay.is_ours:
            if now - self._asked_at >= TAKEOVER_S:
                self._asked_at = now
                await relay.ask_for_it()
            return
        if self._has_news or now - self._looked_at >= NEWS_S:
            self._has_news, self._looked_at = False, now
            relay.hearing.note()
        if now - self._saved_at >= SAVE_S:
            self._saved_at = now
            await relay.save()

    def _hear(self, hint: Hint) -> None:
        if hint.project == self.relay.project or hint is LOOK_AGAIN:
            self._has_news = True

    async def close(self) -> None:
        """Give the sink a last moment and let go of it, whatever it does."""
        relay = self.relay
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        try:
            async with asyncio.timeout(CLOSING_S):
                if relay.is_open and not await relay.moment() and relay.is_ours:
                    log.warning("the event sink was not told of everything in project %s", relay.project)
                await relay.close()
        except (StoreError, TimeoutError) as error:
            log.warning("it could not be noted how far the event sink was told: %s", type(error).__name__)
