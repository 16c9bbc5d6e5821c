"""`toolgate call` and calls that were made before: it says what it joined, and what holds an effect."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.interfaces.at_a_terminal import Person
from tests.unit.interfaces.server.house import House, open_house
from tests.unit.interfaces.server.shop import SHOP


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house(tools=SHOP) as house:
        yield house


async def test_a_call_that_joined_says_so_and_prints_the_first_ones_result(house: House, tmp_path: Path) -> None:
    ann = Person(house, "ann", tmp_path)
    first = (await ann("call", "refund", '{"payment": "p1"}', "--json")).json
    again = await ann("call", "refund", '{"payment": "p1"}')
    assert (again.code, again.out) == (0, '"p1: 5"\n')
    assert again.err == f"Joined call {first['tool_id']}, which was made before.\n"
    told = (await ann("call", "refund", '{"payment": "p1"}', "--json")).json
    assert told == first | {"joined": True}


async def test_a_call_of_a_run_joins_and_of_another_step_or_distinct_does_not(house: House, tmp_path: Path) -> None:
    ann = Person(house, "ann", tmp_path)
    send = ("call", "send", '{"to": "cid"}', "--run", "run-1", "--no-wait", "--json")
    first = (await ann(*send, "--step", "s1")).json
    assert (await ann(*send, "--step", "s2")).json["tool_id"] == first["tool_id"]
    for more in (("--step", "s1"), ("--distinct",)):
        other = (await ann(*send, *more)).json
        assert (other["joined"], other["tool_id"] == first["tool_id"]) == (False, False)


async def test_an_effect_of_another_call_is_an_error_and_a_repeat_is_asked_about(house: House, tmp_path: Path) -> None:
    ann = Person(house, "ann", tmp_path)
    await ann("call", "refund", '{"payment": "p1"}', "--id", "one")
    refused = await ann("call", "refund", '{"payment": "p1", "amount": 6}')
    assert (refused.code, refused.out, "Call one" in refused.err) == (1, "", True)
    again = (await ann("call", "refund", '{"payment": "p1"}', "--repeat-of", "one", "--no-wait", "--json")).json
    assert (again["status"], again["joined"]) == ("awaiting_approval", False)
