"""A store that cannot write lets nothing run, loses nothing it promised, and does not take the gate with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.journeys.conftest import open_remote

from toolgate import Gate, ToolDefinition, ToolInput, ToolOutput
from toolgate.adapters.memory.store import MemoryStore
from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.testing.patience import until
from toolgate.testing.stores import RemoteStore

ran: list[str] = []


async def write(_given: ToolInput) -> ToolOutput:
    ran.append("write")
    return ToolOutput.ok("written")


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def opened(*tools: ToolDefinition) -> tuple[Gate, RemoteStore]:
    store = RemoteStore(MemoryStore())
    return open_remote(tools=tools, store=store), store


async def full(_change: Change) -> None:
    raise StoreError("disk full")


async def test_nothing_runs_while_the_store_cannot_write() -> None:
    gate, store = opened(ToolDefinition(name="write", handler=write))
    async with gate:
        store.before = full
        with pytest.raises(StoreError):
            await gate.call("write", call_id="c1")
        assert ran == []
        store.before = None
        assert (await gate.call("write", call_id="c1")).data == "written"


async def test_a_question_that_cannot_be_written_is_not_asked() -> None:
    gate, store = opened(ToolDefinition(name="write", handler=write, requires_approval=True))
    async with gate:
        store.before = full
        with pytest.raises(StoreError):
            await gate.call("write")
        assert await gate.pending() == []


async def test_an_answer_that_cannot_be_written_can_be_given_again() -> None:
    gate, store = opened(ToolDefinition(name="write", handler=write, requires_approval=True))
    async with gate:
        parked = await gate.call("write", wait=False)
        store.before = full
        with pytest.raises(StoreError):
            await gate.decide(str(parked.approval_id), "approve", by="ann")
        store.before = None
        await gate.decide(str(parked.approval_id), "approve", by="ann")
        assert (await gate.wait(parked.call_id)).success


async def test_a_result_that_cannot_be_written_is_not_claimed_to_be(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse_ends(change: Change) -> None:
        if change.call is not None and change.call.is_final:
            raise StoreError("disk full")

    gate, store = opened(ToolDefinition(name="write", handler=write))
    async with gate:
        store.before = refuse_ends
        with pytest.raises(StoreError):
            await gate.call("write", call_id="c1")
        assert (await gate.get("c1")).status is Status.EXECUTING
        assert "could not be recorded" in caplog.text


async def test_deadlines_are_kept_once_the_store_is_back(caplog: pytest.LogCaptureFixture) -> None:
    gate, store = opened(ToolDefinition(name="write", handler=write, requires_approval=True))
    async with gate:
        parked = await gate.call("write", wait=False, approval_timeout_s=0.02)
        store.before = full
        await until(lambda: "a sweep failed" in caplog.text)
        store.before = None

        async def is_over() -> bool:
            return (await gate.get(parked.call_id)).status is Status.TIMEOUT

        await until(is_over)


async def test_a_claim_whose_writing_is_cancelled_is_wholly_there_or_not() -> None:
    held, let_go = asyncio.Event(), asyncio.Event()

    async def hold(_change: Any) -> None:
        store.before = None
        held.set()
        await let_go.wait()

    gate, store = opened(ToolDefinition(name="write", handler=write))
    async with gate:
        store.before = hold
        calling = asyncio.ensure_future(gate.call("write", call_id="c1"))
        await held.wait()
        calling.cancel()
        await asyncio.wait({calling})
        let_go.set()
        await until(lambda: ran)
        assert (await gate.wait("c1")).data == "written"
