"""Run handlers at workers: send the order, and let the worker that takes the call run it.

This file sends; which worker runs the call is decided by the claim in the store, and once.
"""

from __future__ import annotations

from collections.abc import Awaitable

from toolgate.kernel.call import Call
from toolgate.ports.dispatcher import Dispatcher, Order
from toolgate.ports.runner import PARKED, Job


class WorkerRunner:
    """Sends an order for each call. An order that is lost is sent again when the call's deadline comes."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher

    def run(self, job: Job) -> Awaitable[object]:
        return self._run(job)

    async def _run(self, job: Job) -> object:
        self.dispatcher.send(Order(job.call.project, job.call.id, job.tool.queue))
        return PARKED

    def recall(self, call: Call, reason: str) -> None:
        """Nothing to send: the recall is on the row, and its worker is told by the bus or its next renewal."""

    async def close(self) -> None:
        await self.dispatcher.close()
