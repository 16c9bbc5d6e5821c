"""One gate serves many tasks, threads and event loops at the same time, and several loops one after another."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest
from tests.journeys.scene import Open, park

from toolgate import Context, ToolDefinition, ToolInput, ToolOutput, tool
from toolgate.kernel.call import Status
from toolgate.kernel.event import verify
from toolgate.testing.conformance.rows import losers, race_tasks, race_threads, winners
from toolgate.testing.patience import PATIENCE_S, until

TENANT: ContextVar[str] = ContextVar("tenant")


@tool
async def double(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


@tool
def double_plainly(number: int) -> int:
    return number * 2


@pytest.mark.parametrize("name", ["double", "double_plainly"])
async def test_parallel_calls_do_not_mix_up_their_results(open_gate: Open, name: str) -> None:
    async with open_gate(tools=[double, double_plainly]) as gate:
        results = await asyncio.gather(*(gate.call(name, {"number": number}) for number in range(200)))
        assert [result.data for result in results] == [number * 2 for number in range(200)]
        assert verify(await gate.events(limit=10_000)) == 600


async def test_calls_from_many_threads_and_loops_form_one_history(open_gate: Open) -> None:
    async with open_gate(tools=[double]) as gate:

        async def many(start: int) -> list[int]:
            calls = (gate.call("double", {"number": number}) for number in range(start, start + 20))
            return [result.data for result in await asyncio.gather(*calls)]

        outcomes = await race_threads(8, many)
        assert losers(outcomes) == []
        assert verify(await gate.events(limit=10_000)) == 8 * 20 * 3


async def test_a_plain_handler_does_not_hold_up_the_loop(open_gate: Open) -> None:
    together = threading.Barrier(4, timeout=PATIENCE_S)

    def meet(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(together.wait())

    async with open_gate(tools=[ToolDefinition(name="meet", handler=meet)]) as gate:
        results = await asyncio.gather(*(gate.call("meet") for _ in range(4)))
        assert sorted(result.data for result in results) == [0, 1, 2, 3]


async def test_a_handler_may_call_the_gate(open_gate: Open) -> None:
    async with open_gate(tools=[double, double_plainly]) as gate:

        @tool
        async def quadruple(number: int) -> int:
            once = await gate.call("double", {"number": number})
            twice = await gate.call("double_plainly", {"number": once.data})
            assert isinstance(twice.data, int)
            return twice.data

        gate.register(quadruple)
        assert (await gate.call("quadruple", {"number": 3})).data == 12


@pytest.mark.parametrize("race", [race_tasks, race_threads])
async def test_a_rate_limit_is_never_exceeded(open_gate: Open, race: object) -> None:
    ran: list[str] = []

    async def send(_given: ToolInput) -> ToolOutput:
        ran.append("send")
        await asyncio.sleep(0)
        return ToolOutput.ok()

    limited = ToolDefinition(name="send", handler=send, rate_limit_per_hour=7)
    async with open_gate(tools=[limited]) as gate:
        results = winners(await race(50, lambda _: gate.call("send")))  # type: ignore[operator]
        codes = [result.error_code for result in results]
        assert (codes.count(None), codes.count("rate_limited"), len(ran)) == (7, 43, 7)
        assert {result.status for result in results} == {Status.COMPLETED, Status.DENIED}
        other = await gate.call("send", context=Context(project="other"))
        assert other.success


async def test_handlers_may_wait_for_the_same_thing(open_gate: Open) -> None:
    login = asyncio.ensure_future(asyncio.sleep(0.01, "token"))

    async def use(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(await login)

    async with open_gate(tools=[ToolDefinition(name="use", handler=use)]) as gate:
        results = await asyncio.gather(*(gate.call("use") for _ in range(10)))
        assert [result.data for result in results] == ["token"] * 10


async def test_handlers_see_the_contextvars_of_their_own_caller(open_gate: Open) -> None:
    async def look(_given: ToolInput) -> ToolOutput:
        before = TENANT.get()
        TENANT.set("changed by a handler")
        await asyncio.sleep(0)
        return ToolOutput.ok(before)

    async with open_gate(tools=[ToolDefinition(name="look", handler=look)]) as gate:

        async def as_tenant(name: str) -> tuple[str, str]:
            TENANT.set(name)
            return (await gate.call("look")).data, TENANT.get()

        names = [f"tenant {number}" for number in range(20)]
        assert await asyncio.gather(*map(as_tenant, names)) == [(name, name) for name in names]


def test_a_gate_survives_several_event_loops(open_gate: Open) -> None:
    with open_gate(tools=[double, double_plainly]) as gate:

        async def one(number: int) -> int:
            first = await gate.call("double", {"number": number})
            second = await gate.call("double_plainly", {"number": first.data})
            assert isinstance(second.data, int)
            return second.data

        assert [asyncio.run(one(number)) for number in range(5)] == [0, 4, 8, 12, 16]


def test_a_call_parked_in_one_loop_is_decided_and_awaited_in_others(open_gate: Open) -> None:
    asking = ToolDefinition(name="ask", handler=lambda _given: ToolOutput.ok("ran"), requires_approval=True)
    with open_gate(tools=[asking]) as gate:
        approval = asyncio.run(park(gate, "ask"))

        async def decide() -> None:
            await gate.decide(approval.id, "approve", by="ann")

        async def wait() -> object:
            return (await gate.wait(approval.call_id)).data

        asyncio.run(decide())
        assert asyncio.run(wait()) == "ran"


async def test_two_loops_in_two_threads_share_one_gate(open_gate: Open) -> None:
    asking = ToolDefinition(name="ask", handler=lambda _given: ToolOutput.ok("ran"), requires_approval=True)
    async with open_gate(tools=[asking]) as gate:

        async def call() -> object:
            return (await gate.call("ask", call_id="c1")).data

        elsewhere = asyncio.ensure_future(asyncio.to_thread(lambda: asyncio.run(call())))
        await until(gate.pending)
        await gate.decide((await gate.pending())[0].id, "approve", by="ann")
        assert await elsewhere == "ran"


async def test_a_mode_that_changes_all_the_time_loses_no_call(open_gate: Open) -> None:
    async with open_gate(tools=[double]) as gate:
        running = asyncio.gather(*(gate.call("double", {"number": number}) for number in range(50)))
        for number in range(20):
            await gate.set_mode("ALERT" if number % 2 else "NORMAL", by="ann")
            await asyncio.sleep(0)
        assert [result.data for result in await running] == [number * 2 for number in range(50)]
