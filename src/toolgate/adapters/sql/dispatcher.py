"""The dispatcher without an engine: workers look into the store for calls that wait, at a hint or after a while.

For processes that share a SQLite file. Every worker sees every order; the claim lets one have it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection

from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.tool import Placement
from toolgate.ports.bus import Bus, Hint
from toolgate.ports.dispatcher import Order, Take
from toolgate.ports.store import CallQuery, Store

LOOK_EVERY_S = 0.25
TRY_AGAIN_S = 1.0
"""How long an order that was given back is left to others: this worker may not hold its tool."""
PAGE = 200
log = logging.getLogger("toolgate.worker")


class LookingDispatcher:
    """Finds orders where they are: in the store. `registry` says which queue a tool's calls wait in."""

    def __init__(self, store: Store, bus: Bus, registry: ToolRegistry) -> None:
        self._store, self._bus, self._registry = store, bus, registry

    def send(self, order: Order) -> None:
        """Nothing to send: the call's row is the order, and its commit was told on the bus."""

    async def deliver(self, queues: Collection[str], take: Take, *, concurrency: int) -> None:
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        taken: dict[tuple[str, str], asyncio.Task[None]] = {}
        tried: dict[tuple[str, str], float] = {}

        def wake(hint: Hint) -> None:
            if hint.status is Status.EXECUTING and not loop.is_closed():
                loop.call_soon_threadsafe(news.set)

        def forget(key: tuple[str, str]) -> None:
            del taken[key]
            tried[key] = loop.time()
            news.set()

        leave = self._bus.subscribe(wake)
        try:
            while True:
                news.clear()
                tried = {key: at for key, at in tried.items() if loop.time() - at < TRY_AGAIN_S}
                async for order in self._waiting(queues):
                    key = order[:2]
                    if len(taken) >= concurrency:
                        break
                    if key not in taken and key not in tried:
                        taken[key] = task = loop.create_task(_take(take, order))
                        task.add_done_callback(lambda _done, key=key: forget(key))  # type: ignore[misc]  # bound now
                await _either(news, LOOK_EVERY_S)
        finally:
            leave()
            if taken:
                await asyncio.wait(tuple(taken.values()))

    async def _waiting(self, queues: Collection[str]) -> AsyncIterator[Order]:
        query = CallQuery(statuses=frozenset({Status.EXECUTING}), limit=PAGE)
        while True:
            try:
                calls = await self._store.calls(query)
            except StoreError as error:
                log.warning("the store cannot be read now: %s", error.code)
                return
            for call in calls:
                tool = self._registry.find(call.tool_name)
                is_waiting = call.placement == Placement.WORKER and call.runner is None
                if is_waiting and tool is not None and tool.queue in queues:
                    yield Order(call.project, call.id, tool.queue)
            if len(calls) < PAGE:
                return
            query = CallQuery(statuses=query.statuses, limit=PAGE, after=calls[-1])

    async def close(self) -> None:
        """Nothing is held."""


async def _take(take: Take, order: Order) -> None:
    await take(order)


async def _either(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
