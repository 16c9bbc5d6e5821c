from __future__ import annotations

import asyncio

import pytest
from tests.journeys.scene import Open, names, park

from toolgate import Context, tool
from toolgate.errors import ConflictError
from toolgate.kernel.call import Status
from toolgate.testing.conformance.rows import race_threads, winners

ran: list[int] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool
async def pay(amount: int) -> int:
    ran.append(amount)
    await asyncio.sleep(0)
    return amount


@tool
async def pay_at_once(amount: int) -> int:
    ran.append(amount)
    return amount


@tool(requires_approval=True)
async def pay_later(amount: int) -> int:
    ran.append(amount)
    return amount


@pytest.mark.parametrize("name", ["pay", "pay_at_once"])
async def test_a_second_call_gets_the_result_of_the_first(open_gate: Open, name: str) -> None:
    async with open_gate(tools=[pay, pay_at_once]) as gate:
        first = await gate.call(name, {"amount": 3}, call_id="c1")
        second = await gate.call(name, '{ "amount" : 3 }', call_id="c1")
        assert (first.data, second.data, ran) == (3, 3, [3])


@pytest.mark.parametrize("name", ["pay", "pay_at_once"])
async def test_fifty_calls_at_once_run_once(open_gate: Open, name: str) -> None:
    async with open_gate(tools=[pay, pay_at_once]) as gate:
        results = await asyncio.gather(*(gate.call(name, {"amount": 3}, call_id="c1") for _ in range(50)))
        assert [result.data for result in results] == [3] * 50
        assert ran == [3]
        assert names(await gate.events()) == ["tool.invoked", "tool.started", "tool.completed"]


async def test_calls_from_many_threads_run_once(open_gate: Open) -> None:
    async with open_gate(tools=[pay]) as gate:
        results = winners(await race_threads(20, lambda _: gate.call("pay", {"amount": 3}, call_id="c1")))
        assert [result.data for result in results] == [3] * 20
        assert ran == [3]


async def test_a_second_call_joins_one_that_waits_for_a_person(open_gate: Open) -> None:
    async with open_gate(tools=[pay_later]) as gate:
        approval = await park(gate, "pay_later", {"amount": 3}, call_id="c1")
        joined = await gate.call("pay_later", {"amount": 3}, call_id="c1", wait=False)
        assert (joined.status, joined.approval_id) == (Status.AWAITING_APPROVAL, approval.id)
        assert len(await gate.pending()) == 1


async def test_the_same_id_with_other_arguments_is_a_conflict(open_gate: Open) -> None:
    async with open_gate(tools=[pay, pay_at_once]) as gate:
        await gate.call("pay", {"amount": 3}, call_id="c1")
        with pytest.raises(ConflictError, match="use a new id"):
            await gate.call("pay", {"amount": 4}, call_id="c1")
        with pytest.raises(ConflictError):
            await gate.call("pay_at_once", {"amount": 3}, call_id="c1")
        with pytest.raises(ConflictError):
            await gate.call("pay", {"amount": "not a number"}, call_id="c1")
        with pytest.raises(ConflictError):
            await gate.call("nothing", call_id="c1")
        assert ran == [3]


async def test_another_project_may_use_the_same_id(open_gate: Open) -> None:
    async with open_gate(tools=[pay]) as gate:
        for project in ("one", "two"):
            result = await gate.call("pay", {"amount": 3}, call_id="c1", context=Context(project=project))
            assert result.success
        assert ran == [3, 3]


async def test_a_failed_call_is_not_tried_again_under_its_id(open_gate: Open) -> None:
    async def broken() -> None:
        ran.append(0)
        raise OSError("no")

    async with open_gate(tools=[tool(broken)]) as gate:
        for _ in range(2):
            result = await gate.call("broken", call_id="c1")
            assert (result.status, result.error) == (Status.FAILED, "no")
        assert ran == [0]


ANN = Context(principal="agent:ann", user="ann")


@pytest.mark.parametrize(("principal", "user"), [("bob", "bob"), ("ann", "bob"), ("bob", "ann"), ("ann", None)])
@pytest.mark.parametrize("name", ["pay_at_once", "pay_later"])
async def test_nobody_but_who_made_a_call_joins_it(
    open_gate: Open, name: str, principal: str, user: str | None
) -> None:
    who = Context(principal=f"agent:{principal}", user=user)
    async with open_gate(tools=[pay_at_once, pay_later]) as gate:
        made = await gate.call(name, {"amount": 3}, call_id="c1", context=ANN, wait=False)
        told = []
        for amount in (3, 4):
            with pytest.raises(ConflictError, match="use a new id") as refused:
                await gate.call(name, {"amount": amount}, call_id="c1", context=who, wait=False)
            told.append(str(refused.value))
        assert told[0] == told[1]  # what the call was, or whose, is not to be found out by trying
        joined = await gate.call(name, {"amount": 3}, call_id="c1", context=ANN, wait=False)
        assert (joined.status, joined.data, joined.joined) == (made.status, made.data, True)
