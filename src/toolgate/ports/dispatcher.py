"""Dispatcher: carries orders to workers. It delivers; the claim in the store decides who runs a call, and once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple, Protocol


class Order(NamedTuple):
    """A call that waits for a worker of a queue. It holds nothing that anybody must not read."""

    project: str
    call_id: str
    queue: str


Take = Callable[[Order], Awaitable[None]]
"""What a worker does with an order; it returns when the call is over, and does not raise."""


class Dispatcher(Protocol):
    """Delivers at least once, or not at all where it fails: orders that are lost are sent again from the store."""

    def send(self, order: Order) -> None:
        """Have an order delivered soon. From any thread; returns at once and does not raise."""
        ...

    async def deliver(self, queues: Collection[str], take: Take, *, concurrency: int) -> None:
        """Give orders of these queues to `take`, at most `concurrency` at a time, until cancelled.

        A lost connection is made again. Cancelling takes no new orders and waits for those that were given.
        """
        ...

    async def close(self) -> None: ...
