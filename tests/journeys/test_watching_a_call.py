"""A call made without waiting can be looked at, followed and joined later."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.journeys.scene import Open, names, park

from toolgate import Context, Gate, ToolDefinition, ToolInput, ToolOutput, tool
from toolgate.errors import NotFoundError, UsageError
from toolgate.kernel.call import Status
from toolgate.kernel.event import Event
from toolgate.ports.store import CallQuery
from toolgate.testing.patience import until


@tool
async def double(number: int) -> int:
    return number * 2


@tool(requires_approval=True)
async def send(text: str) -> str:
    return text.upper()


async def test_a_call_made_without_waiting_says_what_it_waits_for(open_gate: Open) -> None:
    async with open_gate(tools=[send]) as gate:
        parked = await gate.call("send", {"text": "hi"}, wait=False)
        assert parked.is_pending
        assert parked.status is Status.AWAITING_APPROVAL
        assert (await gate.get(parked.call_id)).approval_id == parked.approval_id
        with pytest.raises(UsageError, match=r"gate\.wait"):
            parked.unwrap()


async def test_a_call_that_needs_nobody_is_done_without_waiting(open_gate: Open) -> None:
    async with open_gate(tools=[double]) as gate:
        done = await gate.call("double", {"number": 2}, wait=False)
        assert (done.is_final, done.data) == (True, 4)


async def test_a_finished_call_can_be_looked_up(open_gate: Open) -> None:
    async with open_gate(tools=[double]) as gate:
        done = await gate.call("double", {"number": 2})
        again = await gate.get(done.call_id)
        assert (again.data, again.duration_ms, again.approved_by) == (4, done.duration_ms, "policy:auto")
        row = await gate.calls.get(done.call_id)
        assert (row.shown, row.shown_result, row.status) == ({"number": 2}, 4, Status.COMPLETED)
        assert await gate.calls.list(CallQuery(project="default")) == [row]


async def test_an_unknown_call_is_not_found(open_gate: Open) -> None:
    async with open_gate(tools=[double]) as gate:
        done = await gate.call("double", {"number": 2})
        for call_id, project in (("nobody", "default"), (done.call_id, "other")):
            for look in (gate.get, gate.calls.get, gate.wait):
                with pytest.raises(NotFoundError):
                    await look(call_id, project=project)


async def test_approvals_that_wait_are_listed_by_project_oldest_first(open_gate: Open) -> None:
    async with open_gate(tools=[send]) as gate:
        mine = [await park(gate, "send", {"text": str(number)}) for number in range(3)]
        theirs = await park(gate, "send", {"text": "x"}, context=Context(project="other"))
        assert [one.id for one in await gate.pending(project="default")] == [one.id for one in mine]
        assert [one.id for one in await gate.pending(project="other")] == [theirs.id]
        assert len(await gate.pending()) == 4
        assert len(await gate.pending(limit=2)) == 2


async def test_changes_of_mode_and_policy_are_told_in_the_system_project(open_gate: Open) -> None:
    from tests.journeys.scene import saying

    async with open_gate() as gate:
        await gate.set_mode("ALERT", by="ann", reason="drill")
        await gate.set_policy(saying("deny"), by="bob")
        mode, policy = await gate.events(project="_system")
        assert (mode.type, mode.data["from"], mode.data["to"], mode.data["by"]) == (
            "mode.changed",
            "NORMAL",
            "ALERT",
            "ann",
        )
        assert (policy.type, policy.data["to"], policy.data["by"]) == ("policy.changed", "says-deny", "bob")
        with pytest.raises(UsageError, match="not a mode"):
            await gate.set_mode("PANIC", by="ann")


async def _collect(gate: Gate, into: list[Event], **options: Any) -> None:
    async for event in gate.follow(**options):
        into.append(event)  # noqa: PERF401  # one by one, as they come


async def test_a_follower_sees_what_was_and_what_comes(open_gate: Open) -> None:
    async with open_gate(tools=[double]) as gate:
        await gate.call("double", {"number": 1})
        seen: list[Event] = []
        following = asyncio.ensure_future(_collect(gate, seen))
        await until(lambda: len(seen) == 3)
        await gate.call("double", {"number": 2})
        await until(lambda: len(seen) == 6)
        assert [event.seq for event in seen] == [1, 2, 3, 4, 5, 6]
        following.cancel()
        await asyncio.wait({following})


async def test_a_follower_may_look_at_one_call_or_start_later(open_gate: Open) -> None:
    async with open_gate(tools=[double]) as gate:
        await gate.call("double", {"number": 1}, call_id="c1")
        await gate.call("double", {"number": 2}, call_id="c2")
        one: list[Event] = []
        later: list[Event] = []
        tasks = {
            asyncio.ensure_future(_collect(gate, one, call_id="c2")),
            asyncio.ensure_future(_collect(gate, later, after=5)),
        }
        await until(lambda: len(one) == 3 and len(later) == 1)
        assert names(one) == ["tool.invoked", "tool.started", "tool.completed"]
        assert later[0].seq == 6
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_many_followers_come_and_go_and_none_misses_anything(open_gate: Open) -> None:
    async with open_gate(tools=[double]) as gate:
        lasting: list[Event] = []
        staying = asyncio.ensure_future(_collect(gate, lasting))
        for number in range(20):
            brief: list[Event] = []
            leaving = asyncio.ensure_future(_collect(gate, brief))
            await gate.call("double", {"number": number})
            await until(lambda brief=brief: brief)  # type: ignore[misc]  # bound now
            leaving.cancel()
            await asyncio.wait({leaving})
        await until(lambda: len(lasting) == 60)
        assert [event.seq for event in lasting] == list(range(1, 61))
        staying.cancel()
        await asyncio.wait({staying})


def test_a_follower_on_a_loop_that_is_gone_does_not_disturb_others(open_gate: Open) -> None:
    with open_gate(tools=[double]) as gate:
        abandoned = []

        async def begin() -> None:
            follower = gate.follow()
            abandoned.append(follower)
            asking = asyncio.ensure_future(anext(follower))
            await asyncio.sleep(0)
            asking.cancel()

        asyncio.run(begin())
        assert gate.sync.call("double", {"number": 2}).data == 4


async def test_a_tool_says_where_it_was_called_from(open_gate: Open) -> None:
    class Host:
        name = "app"

    async def look(given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(str(given.ctx.name))

    async with open_gate(tools=[ToolDefinition(name="look", handler=look)]) as gate:
        context = Context(run_id="r1", request_id="q1", host=Host())
        result = await gate.call("look", context=context)
        assert result.data == "app"
        data = (await gate.events())[0].data
        assert (data["pipeline_run_id"], data["request_id"], data["action_id"]) == ("r1", "q1", result.call_id)
