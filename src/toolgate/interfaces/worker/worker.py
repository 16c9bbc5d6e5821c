"""Running a worker: take orders of its queues, run the calls through a gate, and end in good order on a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Collection
from typing import Protocol

from toolgate.errors import ConflictError, NotFoundError, ToolgateError
from toolgate.gate import Gate
from toolgate.kernel.call import Call
from toolgate.kernel.change import Change
from toolgate.kernel.output import Result
from toolgate.ports.dispatcher import Dispatcher, Order

log = logging.getLogger("toolgate.worker")


class View(Protocol):
    """Who is shown what the worker does."""

    def ready(self, name: str, queues: Collection[str], concurrency: int) -> None: ...

    def started(self, call: Call) -> None: ...

    def ended(self, call_id: str, result: Result | None) -> None: ...

    def draining(self, running: int) -> None: ...

    def close(self) -> None: ...


class Worker:
    """One worker: its name is that of this opening of the store, so no later process is taken for it."""

    def __init__(
        self, gate: Gate, dispatcher: Dispatcher, view: View, *, name: str, concurrency: int, lease_s: float
    ) -> None:
        self._gate, self._dispatcher, self._view = gate, dispatcher, view
        self.name, self._concurrency, self._lease_s = name, concurrency, lease_s
        self._running: set[str] = set()
        self._told: set[str] = set()

    async def run(self, queues: Collection[str], *, drain_s: float) -> None:
        """Work until SIGTERM or Ctrl-C; then finish what runs, for at most `drain_s`. A second signal ends that."""
        loop, stop, hurry = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

        def on_signal() -> None:
            (hurry if stop.is_set() else stop).set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal)
        leave = self._gate.host.on_change(self._on_change)
        delivering = loop.create_task(
            self._dispatcher.deliver(queues, self._take, concurrency=self._concurrency), name="toolgate-deliver"
        )
        self._view.ready(self.name, queues, self._concurrency)
        try:
            stopping = loop.create_task(stop.wait())
            await asyncio.wait({stopping, delivering}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            self._view.draining(len(self._running))
            if not delivering.done():
                delivering.cancel()
                hurrying = loop.create_task(hurry.wait())
                await asyncio.wait({delivering, hurrying}, timeout=drain_s, return_when=asyncio.FIRST_COMPLETED)
                hurrying.cancel()
        finally:
            leave()
            if not delivering.cancelling():  # something failed before it was told to stop
                delivering.cancel()
            await self._gate.aclose()  # what still runs is asked to stop, and how it ended is recorded
            await asyncio.gather(delivering, return_exceptions=True)
            self._view.close()
        if not delivering.cancelled() and (error := delivering.exception()) is not None:
            raise error

    def _on_change(self, change: Change) -> None:
        call = change.call
        if call is not None and call.runner == self.name and change.events and change.events[0][0] == "tool.dispatched":
            self._told.add(call.id)
            self._view.started(call)

    async def _take(self, order: Order) -> None:
        result: Result | None = None
        self._running.add(order.call_id)
        try:
            result = await self._gate.remote.work(
                order.call_id, by=self.name, project=order.project, lease_s=self._lease_s
            )
        except (ConflictError, NotFoundError) as error:
            log.debug("order of call %s passed over: %s", order.call_id, error)
        except ToolgateError as error:
            log.warning("call %s could not be taken or recorded now (%s)", order.call_id, error.code)
        finally:
            self._running.discard(order.call_id)
            if order.call_id in self._told:
                self._told.discard(order.call_id)
                self._view.ended(order.call_id, result)
