"""The brake of a project, an agent or a run, over HTTP: who may pull it, who may release it, and who sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house

from toolgate.client import Client
from toolgate.errors import NotAllowedError

BRAKES = f"{P}/brakes"


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house() as house:
        yield house


async def set_brake(house: House, who: str, mode: str, **body: Any) -> int:
    return (await house.client(who).put(BRAKES, json={"mode": mode, **body})).status_code


async def add(house: House, who: str, **body: Any) -> str:
    asked = execute("add", {"left": 1, "right": 2}, **body)
    status: str = (await house.client(who).post(f"{P}/tools/execute", json=asked)).json()["status"]
    return status


async def test_who_may_decide_pulls_the_brake_and_an_admin_releases_it(house: House) -> None:
    assert await set_brake(house, "ann", "LOCKDOWN", agent="bot", reason="it loops") == 200
    assert [await add(house, who) for who in ("bot", "ann")] == ["failed", "completed"]
    assert await set_brake(house, "ann", "NORMAL", agent="bot") == 403
    assert await set_brake(house, "bot", "LOCKDOWN") == 403
    assert await set_brake(house, "root", "NORMAL", agent="bot") == 200
    assert await add(house, "bot") == "completed"


async def test_everybody_of_the_project_sees_its_brakes_and_no_others(house: House) -> None:
    await house.gate.set_mode("LOCKDOWN", by="zoe", project="elsewhere")
    await set_brake(house, "ann", "ALERT", run="r1", reason="odd")
    seen = (await house.client("bot").get(BRAKES)).json()
    (brake,) = seen["brakes"]
    assert (seen["mode"], seen["fault"]) == ("NORMAL", None)
    assert {name: brake[name] for name in ("mode", "project", "agent", "run", "by", "reason")} == {
        "mode": "ALERT",
        "project": "demo",
        "agent": None,
        "run": "r1",
        "by": "ann",
        "reason": "odd",
    }


async def test_an_agent_does_not_leave_a_braked_run_by_naming_another(house: House) -> None:
    assert await add(house, "bot", run_id="r1") == "completed"
    assert await set_brake(house, "ann", "LOCKDOWN", run="r1") == 200
    assert [await add(house, "bot", run_id=run) for run in ("r1", "r2", None)] == ["failed"] * 3
    assert await add(house, "ann", run_id="r2") == "completed"


async def test_a_brake_names_an_agent_or_a_run(house: House) -> None:
    assert await set_brake(house, "root", "LOCKDOWN", agent="bot", run="r1") == 400
    assert await set_brake(house, "root", "PARTY") == 400
    assert await set_brake(house, "root", "LOCKDOWN", run="a/b") == 400


async def test_an_inbox_hears_of_the_brakes_of_its_project(house: House) -> None:
    async with house.listen("ann", f"{P}/inbox") as heard:
        assert (await heard.ready())["brakes"] == []
        await set_brake(house, "ann", "ALERT", run="r1", reason="odd")
        told = await heard.next("inbox.mode")
        assert (told["mode"], [brake["run"] for brake in told["brakes"]]) == ("NORMAL", ["r1"])


async def test_a_client_sets_and_lists_brakes(house: House) -> None:
    async with Client(house.url, token=house.tokens["ann"], project="demo") as ann:
        set_now = await ann.set_brake("LOCKDOWN", "drill", run="r1")
        assert set_now == await ann.brakes()
        with pytest.raises(NotAllowedError, match="not release"):
            await ann.set_brake("NORMAL", run="r1")


async def test_a_call_is_explained_under_every_mode_over_it(house: House) -> None:
    body = {"tool_name": "add", "tool_params": {"left": 1, "right": 2}}
    await set_brake(house, "ann", "LOCKDOWN", agent="bot")
    told = [(await house.client(who).post(f"{P}/policy/explain", json=body)).json() for who in ("bot", "bob")]
    assert [one["explanation"]["verdict"] for one in told] == ["deny", "allow"]


async def test_the_numbers_count_brakes_and_name_nobody(house: House) -> None:
    await set_brake(house, "ann", "LOCKDOWN", agent="bot", reason="it loops")
    text = (await house.client("root").get("/metrics")).text
    assert 'toolgate_brakes{mode="LOCKDOWN"} 1.0' in text
    assert 'toolgate_brakes{mode="ALERT"} 0.0' in text
    assert "it loops" not in text
