"""Calling tools, waiting for people and running calls, over a real socket."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.interfaces.server.house import House

from toolgate import Status
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
        return len((await client.approvals.list(status="pending")).approvals) == 1

    await until(asked)
    return (await client.approvals.list(status="pending")).approvals[0].approval_id


async def test_a_call_returns_its_result(ann: Client) -> None:
    done = await ann.call("add", {"left": 1, "right": 2})
    assert (done.success, done.status, done.data, done.is_final) == (True, Status.COMPLETED, 3, True)
    assert (await ann.calls.get(done.call_id)).result == 3


async def test_the_same_id_runs_once(ann: Client) -> None:
    first = await ann.call("keep", {"value": 1}, call_id="mine")
    again = await ann.call("keep", {"value": 1}, call_id="mine")
    assert (first, len((await ann.calls.list()).tools)) == (again, 1)


async def test_a_call_waits_for_a_person(ann: Client, bob: Client) -> None:
    waiting = asyncio.create_task(ann.call("pay", {"amount": 5}))
    approval_id = await question(bob)
    shown = await bob.approvals.get(approval_id)
    decided = await bob.approvals.approve(approval_id, "fine", digest=shown.digest)
    assert decided.status == "approved"
    assert (await waiting).data == {"paid": 5, "password": ""}


async def test_who_does_not_wait_can_wait_later(ann: Client, bob: Client) -> None:
    asked = await ann.call("pay", {"amount": 5}, wait=False)
    assert (asked.status, asked.is_final) == (Status.AWAITING_APPROVAL, False)
    waiters = [asyncio.create_task(ann.wait(asked.call_id)) for _ in range(5)]
    await bob.approvals.reject(await question(bob), "too much")
    ended = await asyncio.gather(*waiters)
    assert {one.status for one in ended} == {Status.REJECTED}
    assert "too much" in str(ended[0].error)


async def test_a_wait_that_is_too_long_raises_and_the_call_goes_on(ann: Client, bob: Client) -> None:
    asked = await ann.call("pay", {"amount": 5}, wait=0.01)
    assert asked.status is Status.AWAITING_APPROVAL
    with pytest.raises(TimeoutError):
        await ann.wait(asked.call_id, timeout=0.01)
    await bob.approvals.edit(await question(bob), {"amount": 2}, "less")
    assert (await ann.wait(asked.call_id)).data == {"paid": 2, "password": ""}


async def test_a_second_answer_hears_the_first(ann: Client, bob: Client) -> None:
    asked = await ann.call("pay", {"amount": 5}, wait=False)
    assert asked.approval_id is not None
    await bob.approvals.approve(asked.approval_id)
    with pytest.raises(DecisionConflictError) as caught:
        await ann.approvals.reject(asked.approval_id)
    assert caught.value.decided is not None
    assert (caught.value.decided["status"], caught.value.decided["decided_by"]) == ("approved", "bob")


async def test_a_call_runs_at_who_listens(ann: Client) -> None:
    async with ann.stream(tools=["far"]) as events:
        assert (await anext(events)).name == "stream.ready"
        asked = await ann.call("far", {"q": 1}, wait=False)
        async for event in events:
            if event.name == "tool.execution_signal":
                break
        fence = event.data["fence"]
        assert event.data["tool_params"] == {"q": 1}
        await ann.remote.progress(asked.call_id, 0.5, "half", fence=fence)
        told = await ann.remote.result(asked.call_id, {"found": 1}, fence=fence)
        assert (told.success, told.status) == (True, "completed")
        with pytest.raises(StaleFenceError) as late:
            await ann.remote.result(asked.call_id, {"found": 2}, fence=fence)
        assert late.value.tool_status == "completed"
    assert (await ann.wait(asked.call_id)).data == {"found": 1}


async def test_errors_are_those_of_the_gate(house: House, ann: Client) -> None:
    with pytest.raises(NotFoundError):
        await ann.calls.get("nothing")
    with pytest.raises(NotFoundError):
        await ann.wait("nothing")
    with pytest.raises(UsageError, match="limit"):
        await ann.calls.list(limit=0)
    with pytest.raises(ServerError, match="No agent") as none:
        await ann.send("hello")
    assert (none.value.status, none.value.problem) == (501, "no_agent")
    async with Client(house.url, token=house.tokens["bot"], project="demo") as bot:
        asked = await bot.call("pay", {"amount": 1}, wait=False)
        with pytest.raises(NotAllowedError, match="may not decide"):
            await bot.approvals.approve(asked.approval_id or "")
    async with Client(house.url, token="tg_nobody", project="demo") as nobody:
        with pytest.raises(NotSignedInError, match="toolgate token create"):
            await nobody.calls.list()


async def test_a_closed_client_says_so(ann: Client) -> None:
    asked = await ann.call("pay", {"amount": 5}, wait=False)
    waiting = asyncio.create_task(ann.wait(asked.call_id))
    await asyncio.sleep(0)
    await ann.aclose()
    with pytest.raises(UsageError, match="closed"):
        await waiting
    with pytest.raises(UsageError, match="closed"):
        await anext(ann.stream())
