"""Effects have an identity over HTTP, too: who joins, who conflicts, and what of it the answers say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house
from tests.unit.interfaces.server.shop import SHOP

import toolgate

KEY = {"Idempotency-Key": "again-1"}


@pytest.fixture
async def shop() -> AsyncIterator[House]:
    async with open_house(tools=SHOP) as house:
        yield house


async def ask(
    house: House, tool: str = "refund", *, by: str = "bot", headers: Any = None, **more: Any
) -> httpx2.Response:
    params = {"payment": "p1", "amount": 5} if tool == "refund" else {"to": "ann"}
    params |= more.pop("params", {})
    return await house.client(by).post(f"{P}/tools/execute", json=execute(tool, params, **more), headers=headers)


async def test_a_second_call_answers_with_the_first_one_and_that_it_joined(shop: House) -> None:
    first, again = await ask(shop, tool_id="one"), await ask(shop, tool_id="two")
    assert (first.json()["tool_id"], first.json()["joined"]) == ("one", False)
    assert again.json() == first.json() | {"joined": True}


async def test_the_same_id_sent_again_is_the_same_call_and_joined_none(shop: House) -> None:
    assert (await ask(shop, tool_id="one")).json() == (await ask(shop, tool_id="one")).json()


async def test_a_call_that_waited_still_says_that_it_joined(shop: House) -> None:
    first = (await ask(shop, "send", run_id="run-1", wait=False)).json()
    waiting = asyncio.create_task(ask(shop, "send", run_id="run-1"))
    looking = await ask(shop, "send", run_id="run-1", wait_seconds=0)
    assert (looking.status_code, looking.json()["joined"]) == (202, True)
    await shop.client("ann").post(f"{P}/approvals/{first['approval_id']}/approve")
    told = (await waiting).json()
    assert (told["tool_id"], told["status"], told["joined"]) == (first["tool_id"], "completed", True)


@pytest.mark.parametrize("more", [{"distinct": True}, {"step_id": "step-1"}])
async def test_a_call_that_is_another_one_on_purpose_asks_anew(shop: House, more: dict[str, Any]) -> None:
    asked = [(await ask(shop, "send", run_id="run-1", step_id="step-1", wait=False)).json()]
    asked.append((await ask(shop, "send", run_id="run-1", wait=False, **more)).json())
    assert (asked[1]["joined"], len({one["tool_id"] for one in asked})) == (False, 2)


async def test_another_effect_under_the_same_key_is_a_conflict_that_names_its_holder(shop: House) -> None:
    first = (await ask(shop)).json()
    for more in ({"params": {"amount": 6}}, {"distinct": True}):
        refused = await ask(shop, **more)
        told = refused.json()
        assert (refused.status_code, told["code"], told["holder"]) == (409, "effect_held", first["tool_id"])


async def test_somebody_elses_effect_is_a_conflict_that_tells_nothing(shop: House) -> None:
    first = (await ask(shop)).json()
    refused = await ask(shop, by="ann")
    assert (refused.status_code, refused.json()["code"]) == (409, "effect_held")
    assert "holder" not in refused.json()
    assert first["tool_id"] not in refused.text


async def test_a_request_that_joined_is_answered_alike_by_a_server_started_again(tmp_path: Path) -> None:
    answers = []
    async with open_house(f"sqlite:///{tmp_path / 'toolgate.db'}", tools=SHOP) as house:
        await ask(house)
        answers += [await ask(house, headers=KEY) for _ in range(2)]
    async with open_house(f"sqlite:///{tmp_path / 'toolgate.db'}", tools=SHOP) as house:
        answers.append(await ask(house, headers=KEY))
    assert answers[0].json()["joined"]
    assert len({(one.status_code, one.content) for one in answers}) == 1


async def test_a_record_says_what_effect_it_had_and_what_it_repeats(shop: House) -> None:
    first = (await ask(shop, run_id="run-1", step_id="step-1")).json()
    again = (await ask(shop, repeat_of=first["tool_id"], wait=False)).json()
    ann = shop.client("ann")
    row, repeat = [(await ann.get(f"{P}/tools/{one['tool_id']}")).json() for one in (first, again)]
    assert (row["effect_key"], row["step_id"], row["repeat_of"]) == ("refund:p1", "step-1", None)
    assert (repeat["effect_key"], repeat["repeat_of"], repeat["status"]) == (
        "refund:p1",
        first["tool_id"],
        "awaiting_approval",
    )


async def test_a_record_says_who_settled_it() -> None:
    @toolgate.tool(effects="irreversible", risk_level="low")
    async def lose() -> None:
        """Lose the answer."""
        raise ConnectionResetError

    async with open_house(tools=[lose]) as house:
        lost = (await house.client("bot").post(f"{P}/tools/execute", json=execute("lose"))).json()
        path, ann = f"{P}/tools/{lost['tool_id']}", house.client("ann")
        assert (await ann.get(path)).json()["settled_by"] is None
        await ann.post(f"{path}/settle", json={"happened": True, "reason": "the bank says so"})
        assert (await ann.get(path)).json()["settled_by"] == "ann"
