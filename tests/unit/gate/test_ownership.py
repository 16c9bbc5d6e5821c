"""Calls that end with whoever made them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import toolgate
from toolgate.errors import ConflictError
from toolgate.kernel.call import Status
from toolgate.kernel.output import Result
from toolgate.kernel.tool import Prepared
from toolgate.testing.stores import RemoteStore


@toolgate.tool(requires_approval=True)
async def ask(what: str = "") -> str:
    return what


async def leave(waiting: asyncio.Future[Any]) -> None:
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_owned_call_gets_an_id_and_ends_with_its_owner() -> None:
    async with toolgate.open(tools=[ask]) as gate:
        waiting = asyncio.ensure_future(gate.call("ask", own=True))
        while not (pending := await gate.pending()):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)
        await leave(waiting)
        assert (await gate.get(pending[0].call_id)).status is Status.CANCELLED
        assert [event.type for event in await gate.events()] == [
            "tool.invoked",
            "approval.requested",
            "approval.expired",
            "tool.cancelled",
        ]


async def test_a_call_that_only_waits_is_left_alone() -> None:
    async with toolgate.open(tools=[ask]) as gate:
        waiting = asyncio.ensure_future(gate.call("ask", call_id="c"))
        while not await gate.pending():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)
        await leave(waiting)
        assert (await gate.get("c")).status is Status.AWAITING_APPROVAL


async def test_an_owned_call_is_seen_through_to_its_end() -> None:
    async with toolgate.open(tools=[ask], approver=lambda _approval: True) as gate:
        result = await gate.call("ask", {"what": "x"}, call_id="c", own=True)
        assert (result.data, result.joined) == ("x", False)
        again = await gate.call("ask", {"what": "x"}, call_id="c", own=True)
        assert (again.data, again.joined) == ("x", True)


async def test_who_joined_a_waiting_call_is_told_so() -> None:
    async with toolgate.open(tools=[ask]) as gate:
        first = asyncio.ensure_future(gate.call("ask", call_id="c", own=True))
        while not (pending := await gate.pending()):  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)
        second = asyncio.ensure_future(gate.call("ask", call_id="c", own=True))
        await asyncio.sleep(0.01)
        await gate.decide(pending[0].id, "approve", by="ann")
        assert ((await first).joined, (await second).joined) == (False, True)


async def test_a_call_that_is_still_being_made_is_given_up() -> None:
    begun = asyncio.Event()

    async def look(_given: toolgate.ToolInput) -> Prepared:
        begun.set()
        await asyncio.sleep(60)
        return Prepared()

    @toolgate.tool(prepare=look, timeout_seconds=60)
    async def slow() -> None: ...

    async with toolgate.open(tools=[slow]) as gate:
        waiting = asyncio.ensure_future(gate.call("slow", call_id="c", own=True))
        await begun.wait()
        await leave(waiting)
        assert (await gate.get("c")).status is Status.CANCELLED


async def test_a_call_whose_row_is_on_its_way_is_ended_when_it_is_there() -> None:
    from toolgate.adapters.memory.bus import MemoryBus
    from toolgate.adapters.memory.store import MemoryStore
    from toolgate.adapters.runners.inline import InlineRunner

    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(RemoteStore):
        def commit(self, change: Any) -> Any:
            async def write() -> None:
                begun.set()
                await go_on.wait()
                await super(Slow, self).commit(change)

            return write()

    gate = toolgate.Gate(store=Slow(MemoryStore()), bus=MemoryBus(), runners={"inline": InlineRunner()}, tools=[ask])
    waiting = asyncio.ensure_future(gate.call("ask", call_id="c", own=True))
    await begun.wait()
    waiting.cancel()
    await asyncio.sleep(0.02)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await gate.get("c")).status is Status.CANCELLED
    await gate.aclose()


async def test_a_call_that_runs_elsewhere_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async with toolgate.open(tools=[ask]) as gate:

        async def refuse(*_what: object, **_how: object) -> Result:
            raise ConflictError("it executes elsewhere")

        gate._owners._cancel = refuse
        waiting = asyncio.ensure_future(gate.call("ask", call_id="c", own=True))
        while not await gate.pending():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)
        with caplog.at_level(logging.WARNING):
            await leave(waiting)
        assert "goes on without its caller" in caplog.text
