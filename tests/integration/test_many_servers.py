"""Two servers on one store: any of them takes any request, and each hears within a second what the other did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house

from toolgate.kernel.call import Status
from toolgate.kernel.context import Mode
from toolgate.testing.patience import until


@asynccontextmanager
async def two_on(url: str, people: str) -> AsyncIterator[tuple[House, House]]:
    async with open_house(url, people=people) as here, open_house(url, people=people) as there:
        here.tokens = there.tokens  # the second one made new tokens for the same people
        yield here, there


@pytest.fixture
async def houses(postgres_url: str, database: Path) -> AsyncIterator[tuple[House, House]]:
    async with two_on(postgres_url, f"sqlite:///{database}") as both:
        yield both


async def started(house: House, tool: str, **more: Any) -> dict[str, Any]:
    answer = await house.client("ann").post(f"{P}/tools/execute", json=execute(tool, wait=False, **more))
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


async def test_a_client_at_one_server_runs_what_another_claimed(houses: tuple[House, House]) -> None:
    here, there = houses
    async with there.listen("ann") as stream:
        await stream.ready()
        waiting = asyncio.ensure_future(here.client("ann").post(f"{P}/tools/execute", json=execute("far")))
        signal = await stream.next("tool.execution_signal")
        reported = await here.client("ann").post(
            f"{P}/tools/{signal['tool_id']}/result", json={"status": "completed", "result": {"n": 1}}
        )
        assert reported.status_code == 200, reported.text
        assert (await waiting).json()["status"] == "completed"


async def test_a_client_that_comes_later_finds_what_waits_at_another_server(houses: tuple[House, House]) -> None:
    here, there = houses
    asked = await started(here, "far")
    async with there.listen("ann") as stream:
        assert (await stream.next("tool.execution_signal"))["tool_id"] == asked["tool_id"]


async def test_one_of_the_clients_at_several_servers_gets_a_call(houses: tuple[House, House]) -> None:
    here, there = houses
    async with here.listen("ann") as near, there.listen("ann") as far:
        await near.ready()
        await far.ready()
        for number in range(6):
            asked = await started(here, "far", tool_id=f"one-{number}")
            await until(lambda: "tool.execution_signal" in near.names + far.names)
            done = {"status": "completed"}
            assert (
                await there.client("ann").post(f"{P}/tools/{asked['tool_id']}/result", json=done)
            ).status_code == 200
            for stream in (near, far):
                await stream.next("tool.completed")
            signals = [data for stream in (near, far) for name, _, data in stream.heard if name.endswith("_signal")]
            assert [signal["tool_id"] for signal in signals] == [asked["tool_id"]]
            for stream in (near, far):
                stream.heard.clear()


async def test_a_cancellation_reaches_a_client_at_another_server_once(houses: tuple[House, House]) -> None:
    here, there = houses
    async with there.listen("ann") as stream:
        await stream.ready()
        asked = await started(here, "far")
        await stream.next("tool.execution_signal")
        answer = await here.client("ann").post(f"{P}/tools/{asked['tool_id']}/cancel", json={"reason": "enough"})
        assert answer.status_code in (200, 202), answer.text
        assert "enough" in str(await stream.next("tool.cancel_signal"))
        assert "tool.cancel_signal" not in stream.names


async def test_a_decision_at_one_server_runs_what_was_asked_at_another(houses: tuple[House, House]) -> None:
    here, there = houses
    waiting = asyncio.ensure_future(here.client("ann").post(f"{P}/tools/execute", json=execute("pay", {"amount": 3})))
    pending: list[Any] = []

    async def is_asked() -> bool:
        pending[:] = await there.gate.pending(project="demo")
        return bool(pending)

    await until(is_asked)
    answer = await there.client("bob").post(f"{P}/approvals/{pending[0].id}/approve", json={"decision": "approved"})
    assert answer.status_code == 200, answer.text
    assert (await waiting).json()["status"] == "completed"


async def test_a_stream_shows_what_happened_at_another_server(houses: tuple[House, House]) -> None:
    here, there = houses
    async with there.listen("ann", f"{P}/events", headers={"Accept": "text/event-stream"}) as stream:
        await stream.until(lambda: stream.response is not None)
        await here.client("ann").post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 2}))
        assert (await stream.next("tool.completed"))["data"]["tool_name"] == "add"


async def test_a_mode_set_at_one_server_counts_at_another(houses: tuple[House, House]) -> None:
    here, there = houses
    await here.gate.set_mode(Mode.LOCKDOWN, by="root")
    denied = await there.gate.call("add", {"left": 1, "right": 2})
    assert denied.status is Status.DENIED  # whatever it has heard: the claim looks
    await until(lambda: there.gate.mode is Mode.LOCKDOWN)
