"""A client's call that was made before is that call: it waits for it, and says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.unit.interfaces.server.house import House, open_house
from tests.unit.interfaces.server.shop import SHOP

from toolgate import Status
from toolgate.client import Client
from toolgate.errors import EffectHeldError


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house(tools=SHOP) as house:
        yield house


async def test_a_call_of_the_same_effect_gets_the_first_ones_result(ann: Client) -> None:
    first, again = await ann.call("refund", {"payment": "p1"}), await ann.call("refund", {"payment": "p1"})
    assert (again.call_id, again.data, again.joined, first.joined) == (first.call_id, "p1: 5", True, False)


async def test_a_joined_call_waits_for_the_first_one(ann: Client, bob: Client) -> None:
    first = await ann.call("send", {"to": "cid"}, run_id="run-1", wait=False)
    looking = await ann.call("send", {"to": "cid"}, run_id="run-1", wait=0.01)
    assert (looking.call_id, looking.joined, looking.is_final) == (first.call_id, True, False)
    waiting = asyncio.create_task(ann.call("send", {"to": "cid"}, run_id="run-1"))
    await bob.approvals.approve(str(first.approval_id))
    ended = await waiting
    assert (ended.call_id, ended.status, ended.joined) == (first.call_id, Status.COMPLETED, True)


async def test_steps_and_distinct_calls_are_calls_of_their_own(ann: Client) -> None:
    made = [await ann.call("send", {"to": "cid"}, run_id="run-1", step_id="s1", wait=False) for _ in range(2)]
    made.append(await ann.call("send", {"to": "cid"}, run_id="run-1", distinct=True, wait=False))
    assert ({one.joined for one in made}, len({one.call_id for one in made})) == ({False}, 3)


async def test_another_effect_under_the_same_key_is_an_error_with_its_holder(ann: Client, bob: Client) -> None:
    first = await ann.call("refund", {"payment": "p1"})
    for client, holder in ((ann, first.call_id), (bob, None)):
        with pytest.raises(EffectHeldError) as caught:
            await client.call("refund", {"payment": "p1", "amount": 6}, call_id=f"other-{holder}")
        assert caught.value.holder == holder
        refused = await client.get(f"other-{holder}")
        assert (refused.status, refused.error_code) == (Status.DENIED, "effect_held")


async def test_a_repeat_on_purpose_asks_and_names_what_it_repeats(ann: Client) -> None:
    first = await ann.call("refund", {"payment": "p1"})
    again = await ann.call("refund", {"payment": "p1"}, repeat_of=first.call_id, wait=False)
    assert (again.status, again.joined) == (Status.AWAITING_APPROVAL, False)
    assert (await ann.calls.get(again.call_id)).repeat_of == first.call_id
