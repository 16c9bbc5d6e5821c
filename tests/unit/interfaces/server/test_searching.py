"""Finding calls and runs among many: both orders, every filter, masked values only, bounded work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.interfaces.server.house import SECRET, House, P, execute

from toolgate.interfaces.server import searching


async def ids(house: House, who: str = "ann", **query: Any) -> list[str]:
    found = await house.client(who).get(f"{P}/tools", params=query)
    assert found.status_code == 200, found.text
    return [one["tool_id"] for one in found.json()["tools"]]


async def some_calls(house: House) -> None:
    bot, ann = house.client("bot"), house.client("ann")
    for number in range(4):
        body = execute("add", {"left": number, "right": 100}, tool_id=f"a{number}", run_id="r1")
        assert (await bot.post(f"{P}/tools/execute", json=body)).status_code == 200
    body = execute("pay", {"amount": 5, "password": SECRET}, tool_id="p1", run_id="r2", wait=False)
    assert (await ann.post(f"{P}/tools/execute", json=body)).status_code == 202


async def test_calls_are_paged_in_both_orders(house: House) -> None:
    await some_calls(house)
    assert await ids(house) == ["a0", "a1", "a2", "a3", "p1"]
    client = house.client("ann")
    page = (await client.get(f"{P}/tools", params={"order": "newest", "limit": 2})).json()
    assert [one["tool_id"] for one in page["tools"]] == ["p1", "a3"]
    assert await ids(house, order="newest", after=page["next"]) == ["a2", "a1", "a0"]
    assert await ids(house, order="oldest", after="a2") == ["a3", "p1"]


async def test_calls_are_found_by_what_readers_see_of_them(house: House) -> None:
    await some_calls(house)
    assert await ids(house, tool_name="pay") == ["p1"]
    assert await ids(house, status="awaiting_approval") == ["p1"]
    assert await ids(house, requester="bot") == ["a0", "a1", "a2", "a3"]
    assert await ids(house, requester="ann", run_id="r2") == ["p1"]
    assert await ids(house, text="AMOUNT ann") == ["p1"]
    assert await ids(house, text="100 add", order="newest", limit=3) == ["a3", "a2", "a1"]
    later = datetime.now(UTC) + timedelta(minutes=1)
    assert await ids(house, since=later.isoformat()) == []
    assert await ids(house, since=(later - timedelta(hours=1)).isoformat(), limit=1) == ["a0"]


async def test_what_is_hidden_is_never_found(house: House) -> None:
    await some_calls(house)
    assert await ids(house, text=SECRET) == []
    assert await ids(house, text=SECRET[:6]) == []


async def test_one_request_looks_at_a_bounded_number_of_calls(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await some_calls(house)
    monkeypatch.setattr(searching, "MOST", 2)
    client = house.client("ann")
    query = {"text": "a0", "order": "newest"}
    first = (await client.get(f"{P}/tools", params=query)).json()
    assert (first["tools"], first["next"]) == ([], "a3")
    assert first["reached"] is not None
    second = (await client.get(f"{P}/tools", params={**query, "after": first["next"]})).json()
    third = (await client.get(f"{P}/tools", params={**query, "after": second["next"]})).json()
    assert ([one["tool_id"] for one in third["tools"]], third["next"]) == (["a0"], None)


async def test_bad_filters_are_refused_with_their_name(house: House) -> None:
    for query in ({"order": "random"}, {"since": "yesterday"}, {"since": "2026-01-01T00:00:00"}, {"text": "x" * 201}):
        answer = await house.client("ann").get(f"{P}/tools", params=query)
        assert answer.status_code == 400
        assert next(iter(query)) in answer.json()["detail"]
    missing = await house.client("ann").get(f"{P}/tools", params={"after": "nobody"})
    assert missing.status_code == 404


async def test_runs_are_listed_with_the_newest_first_and_each_once(house: House) -> None:
    await some_calls(house)
    bot, ann = house.client("bot"), house.client("ann")
    await bot.post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 1}, tool_id="lone"))
    await bot.post(f"{P}/tools/execute", json=execute("keep", {"value": 1}, tool_id="k1", run_id="r1"))
    listed = (await ann.get(f"{P}/runs")).json()
    first, second = listed["runs"]
    assert listed["next"] is None
    assert (first["run_id"], first["calls"], first["statuses"]) == ("r1", 5, {"COMPLETED": 5})
    assert (first["tools"], first["requester"], first["user"]) == (["add", "keep"], "bot", "ann")
    assert (second["run_id"], second["statuses"]) == ("r2", {"AWAITING_APPROVAL": 1})
    page = (await ann.get(f"{P}/runs", params={"limit": 1})).json()
    assert [run["run_id"] for run in page["runs"]] == ["r1"]
    rest = (await ann.get(f"{P}/runs", params={"limit": 1, "after": page["next"]})).json()
    assert [run["run_id"] for run in rest["runs"]] == ["r2"]
    end = (await ann.get(f"{P}/runs", params={"limit": 1, "after": rest["next"]})).json()
    assert (end["runs"], end["next"]) == ([], None)


async def test_no_run_is_no_error(house: House) -> None:
    assert (await house.client("ann").get(f"{P}/runs")).json() == {"success": True, "runs": [], "next": None}
    assert (await house.client("eve").get(f"{P}/runs")).status_code == 404
