"""Workers that look into the store themselves: what waits is found, by queue, and not more at a time than wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.adapters.sql import dispatcher as looking
from toolgate.adapters.sql.dispatcher import LookingDispatcher
from toolgate.errors import StoreError
from toolgate.gate import Gate
from toolgate.ports.dispatcher import Order
from toolgate.testing.patience import until


def a_tool(name: str, queue: str = "default") -> toolgate.ToolDefinition:
    return toolgate.ToolDefinition(
        name, {}, lambda _given: toolgate.ToolOutput.ok(name), placement="worker", queue=queue, timeout_seconds=20
    )


@pytest.fixture
async def gate(database: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    monkeypatch.setattr(looking, "LOOK_EVERY_S", 0.02)
    monkeypatch.setattr(looking, "TRY_AGAIN_S", 0.05)
    tools = [a_tool("quick"), a_tool("slow", "slow")]
    async with toolgate.open(f"sqlite:///{database}", tools=tools, workers=True) as gate:
        yield gate


def dispatcher_of(gate: Gate) -> LookingDispatcher:
    runner: Any = gate.host.runner("worker")
    found: LookingDispatcher = runner.dispatcher
    return found


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


async def test_orders_of_a_queue_are_found_and_run(gate: Gate) -> None:
    given: list[Order] = []

    async def take(order: Order) -> None:
        given.append(order)
        await gate.remote.work(order.call_id, by="worker:1", project=order.project)

    delivering = asyncio.ensure_future(dispatcher_of(gate).deliver(["default"], take, concurrency=2))
    await gate.call("slow", wait=False)
    assert (await gate.call("quick")).data == "quick"
    assert {order.queue for order in given} == {"default"}
    await ended(delivering)


async def test_no_more_at_a_time_than_wanted_and_a_stop_waits_for_what_runs(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "PAGE", 2)
    running, most, release, done = 0, 0, asyncio.Event(), list[str]()

    async def take(order: Order) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.wait()
        await gate.remote.work(order.call_id, by="worker:1", project=order.project)
        done.append(order.call_id)
        running -= 1

    for number in range(5):
        await gate.call("quick", call_id=f"c{number}", wait=False)
    delivering = asyncio.ensure_future(dispatcher_of(gate).deliver(["default"], take, concurrency=2))
    await until(lambda: running == 2)
    release.set()
    await until(lambda: len(done) == 5)
    assert most == 2
    release.clear()
    await gate.call("quick", call_id="last", wait=False)
    await until(lambda: running == 1)
    delivering.cancel()
    await asyncio.sleep(0)
    assert not delivering.done()
    release.set()
    await asyncio.wait({delivering})
    assert done[-1] == "last"


async def test_an_order_that_was_given_back_is_tried_again_later(gate: Gate) -> None:
    tries: list[str] = []

    async def refuse(order: Order) -> None:
        tries.append(order.call_id)

    await gate.call("quick", wait=False)
    delivering = asyncio.ensure_future(dispatcher_of(gate).deliver(["default"], refuse, concurrency=1))
    await until(lambda: len(tries) == 2)
    await ended(delivering)


async def test_a_store_that_is_away_is_asked_again(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatcher, taken = dispatcher_of(gate), list[str]()
    calls, failed = dispatcher._store.calls, list[Any]()

    async def away(query: Any) -> Any:
        if not failed:
            failed.append(query)
            raise StoreError("away")
        return await calls(query)

    monkeypatch.setattr(dispatcher._store, "calls", away)

    async def take(order: Order) -> None:
        taken.append(order.call_id)

    await gate.call("quick", wait=False)
    delivering = asyncio.ensure_future(dispatcher.deliver(["default"], take, concurrency=1))
    await until(lambda: taken)
    await ended(delivering)
