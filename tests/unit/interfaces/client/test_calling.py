"""Calling tools, waiting for people and running calls, over a real socket."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.interfaces.server.house import House

from toolgate.client import Client
from toolgate.errors import (
    DecisionConflictError,
    NotAllowedError,
    NotFoundError,
    NotSignedInError,
    ServerError,
    StaleFenceError,
    UsageError,
)
from toolgate.testing.patience import until


async def question(client: Client) -> str:
    """The id of the only open question."""

    async def asked() -> bool:
        return len((await client.approvals(status="pending")).approvals) == 1

    await until(asked)
    return (await client.approvals(status="pending")).approvals[0].approval_id


async def test_a_call_returns_its_result(ann: Client) -> None:
    done = await ann.execute("add", {"left": 1, "right": 2})
    assert (done.success, done.status, done.result, done.is_final) == (True, "completed", 3, True)
    assert (await ann.call(done.tool_id)).result == 3


async def test_the_same_id_runs_once(ann: Client) -> None:
    first = await ann.execute("keep", {"value": 1}, call_id="mine")
    again = await ann.execute("keep", {"value": 1}, call_id="mine")
    assert (first, len((await ann.calls()).tools)) == (again, 1)


async def test_a_call_waits_for_a_person(ann: Client, bob: Client) -> None:
    waiting = asyncio.create_task(ann.execute("pay", {"amount": 5}))
    approval_id = await question(bob)
    shown = await bob.approval(approval_id)
    decided = await bob.approve(approval_id, "fine", digest=shown.digest)
    assert decided.status == "approved"
    assert (await waiting).result == {"paid": 5, "password": ""}


async def test_who_does_not_wait_can_wait_later(ann: Client, bob: Client) -> None:
    asked = await ann.execute("pay", {"amount": 5}, wait=False)
    assert (asked.status, asked.is_final) == ("awaiting_approval", False)
    waiters = [asyncio.create_task(ann.wait(asked.tool_id)) for _ in range(5)]
    await bob.reject(await question(bob), "too much")
    ended = await asyncio.gather(*waiters)
    assert {one.status for one in ended} == {"rejected"}
    assert "too much" in str(ended[0].error)


async def test_a_wait_that_is_too_long_raises_and_the_call_goes_on(ann: Client, bob: Client) -> None:
    asked = await ann.execute("pay", {"amount": 5}, wait=0.01)
    assert asked.status == "awaiting_approval"
    with pytest.raises(TimeoutError):
        await ann.wait(asked.tool_id, timeout=0.01)
    await bob.edit(await question(bob), {"amount": 2}, "less")
    assert (await ann.wait(asked.tool_id)).result == {"paid": 2, "password": ""}


async def test_a_second_answer_hears_the_first(ann: Client, bob: Client) -> None:
    asked = await ann.execute("pay", {"amount": 5}, wait=False)
    assert asked.approval_id is not None
    await bob.approve(asked.approval_id)
    with pytest.raises(DecisionConflictError) as caught:
        await ann.reject(asked.approval_id)
    assert caught.value.decided is not None
    assert (caught.value.decided["status"], caught.value.decided["decided_by"]) == ("approved", "bob")


async def test_a_call_runs_at_who_listens(ann: Client) -> None:
    async with ann.stream(tools=["far"]) as events:
        assert (await anext(events)).name == "stream.ready"
        asked = await ann.execute("far", {"q": 1}, wait=False)
        async for event in events:
            if event.name == "tool.execution_signal":
                break
        fence = event.data["fence"]
        assert event.data["tool_params"] == {"q": 1}
        await ann.progress(asked.tool_id, 0.5, "half", fence=fence)
        told = await ann.result(asked.tool_id, {"found": 1}, fence=fence)
        assert (told.success, told.status) == (True, "completed")
        with pytest.raises(StaleFenceError) as late:
            await ann.result(asked.tool_id, {"found": 2}, fence=fence)
        assert late.value.tool_status == "completed"
    assert (await ann.wait(asked.tool_id)).result == {"found": 1}


async def test_errors_are_those_of_the_gate(house: House, ann: Client) -> None:
    with pytest.raises(NotFoundError):
        await ann.call("nothing")
    with pytest.raises(NotFoundError):
        await ann.wait("nothing")
    with pytest.raises(UsageError, match="limit"):
        await ann.calls(limit=0)
    with pytest.raises(ServerError, match="No agent") as none:
        await ann.send("hello")
    assert (none.value.status, none.value.problem) == (501, "no_agent")
    async with Client(house.url, token=house.tokens["bot"], project="demo") as bot:
        asked = await bot.execute("pay", {"amount": 1}, wait=False)
        with pytest.raises(NotAllowedError, match="may not decide"):
            await bot.approve(asked.approval_id or "")
    async with Client(house.url, token="tg_nobody", project="demo") as nobody:
        with pytest.raises(NotSignedInError, match="toolgate token create"):
            await nobody.calls()


async def test_a_closed_client_says_so(ann: Client) -> None:
    asked = await ann.execute("pay", {"amount": 5}, wait=False)
    waiting = asyncio.create_task(ann.wait(asked.tool_id))
    await asyncio.sleep(0)
    await ann.aclose()
    with pytest.raises(UsageError, match="closed"):
        await waiting
    with pytest.raises(UsageError, match="closed"):
        await anext(ann.stream())
