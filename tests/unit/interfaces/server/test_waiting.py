"""The riskiest questions come first, however many wait."""

from __future__ import annotations

import pytest
from tests.unit.interfaces.server.house import House, P

from toolgate.interfaces.server import waiting
from toolgate.kernel.context import Context

HERE = Context(principal="bot", project="demo")


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PAGE", 3)


@pytest.mark.usefixtures("small_pages")
async def test_pages_are_in_order_and_none_is_left_out(house: House) -> None:
    for number in range(4):
        await house.gate.call("pay", {"amount": number}, context=HERE, wait=False)
    await house.gate.call("drop", {"name": "last"}, context=HERE, wait=False)
    first = await waiting.riskiest(house.gate, project="demo", limit=2)
    assert ([one.tool_name for one in first.approvals], first.total) == (["drop", "pay"], 5)
    assert first.next == first.approvals[-1]
    rest = await waiting.riskiest(house.gate, project="demo", after=first.next, limit=3)
    assert ([one.arguments["amount"] for one in rest.approvals], rest.next) == ([1, 2, 3], None)
    assert [one.tool_name for one in first.oldest_first] == ["pay", "drop"]
    elsewhere = await waiting.riskiest(house.gate, project="elsewhere")
    assert (elsewhere.approvals, elsewhere.total, elsewhere.next) == ([], 0, None)


async def test_a_page_is_asked_for_over_http(house: House) -> None:
    for number in range(2):
        await house.gate.call("pay", {"amount": number}, context=HERE, wait=False)
    await house.gate.call("drop", {"name": "last"}, context=HERE, wait=False)
    ann = house.client("ann")
    page = (await ann.get(f"{P}/inbox/waiting?limit=1")).json()
    assert ([card["tool_name"] for card in page["cards"]], page["waiting"]) == (["drop"], 3)
    after = (await ann.get(f"{P}/inbox/waiting?limit=5&after={page['next']}")).json()
    assert ([card["tool_name"] for card in after["cards"]], after["next"]) == (["pay", "pay"], None)
    assert (await ann.get(f"{P}/inbox/waiting?after=gone")).status_code == 404
    assert (await house.client("eve").get(f"{P}/inbox/waiting")).status_code == 404


async def test_a_stream_tells_the_riskiest_and_how_many_there_are(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MOST", 2)
    for number in range(3):
        await house.gate.call("pay", {"amount": number}, context=HERE, wait=False)
    await house.gate.call("drop", {"name": "last"}, context=HERE, wait=False)
    async with house.listen("ann", f"{P}/inbox") as inbox:
        ready = await inbox.ready()
        told = [data for name, _, data in inbox.heard if name == "inbox.card"]
    assert [card["tool_name"] for card in told] == ["drop", "pay"]
    assert (ready["waiting"], ready["next"]) == (4, told[-1]["approval_id"])
    async with house.listen("ann") as chat:
        assert "waiting" not in await chat.ready()
        asked = [data["tool_name"] for name, _, data in chat.heard if name == "tool.approval_request"]
    assert asked == ["pay", "drop"]  # oldest first
