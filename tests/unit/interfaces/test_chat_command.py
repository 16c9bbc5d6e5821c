"""`toolgate chat` and `toolgate call` against a server with its own agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.interfaces.at_a_terminal import Person
from tests.unit.interfaces.server.house import House, open_house

from toolgate.client import Client
from toolgate.testing.patience import until


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house(agent="settings") as house:
        yield house


async def answer_when_asked(house: House, *, yes: bool) -> None:
    async with Client(house.url, token=house.tokens["bob"], project="demo") as bob:

        async def is_asked() -> bool:
            return bool((await bob.approvals.list(status="pending")).approvals)

        await until(is_asked)
        waiting = (await bob.approvals.list(status="pending")).approvals[0].approval_id
        await (bob.approvals.approve(waiting) if yes else bob.approvals.reject(waiting, "too much"))


async def test_one_message_is_answered(house: House, tmp_path: Path) -> None:
    ann = Person(house, "ann", tmp_path)
    told = await ann("chat", '/tool add {"left": 2, "right": 3}')
    assert (told.code, "done: add" in told.out, "5" in told.out) == (0, True, True)


async def test_a_question_of_the_agent_is_shown_and_answered_elsewhere(house: House, tmp_path: Path) -> None:
    ann = Person(house, "ann", tmp_path)
    answering = asyncio.create_task(answer_when_asked(house, yes=True))
    told = await ann("chat", '/tool pay {"amount": 7}', "--session", "s1", "--json")
    await answering
    events = [json.loads(line) for line in told.out.splitlines()]
    (asked,) = [event for event in events if event["event"] == "asked"]
    assert (asked["tool_name"], asked["arguments"]) == ("pay", {"amount": 7})
    assert events[-1]["event"] == "ended"
    assert (events[-1]["status"], events[-1]["session_id"]) == ("completed", "s1")
    answering = asyncio.create_task(answer_when_asked(house, yes=False))
    plain = await ann("chat", '/tool pay {"amount": 8}', "--session", "s1")
    await answering
    assert "waits for somebody" in plain.out
    assert "too much" in plain.out


async def test_a_person_talks_and_answers_on_the_spot(house: House, tmp_path: Path) -> None:
    seat = Person(house, "ann", tmp_path).sits_down("chat")
    await seat.sees("> ")
    seat.types('/tool pay {"amount": 7}\n')
    await seat.sees("Arguments", '"amount": 7', "[a]pprove")
    seat.types("?\n")
    await seat.sees("[a]pprove")
    seat.types("a\n")
    await seat.sees("Reason")
    seat.types("fine\n")
    await seat.sees("The call is", "done: pay", "> ")
    seat.types('/tool pay {"amount": 9, "password": "' + "x" * 10 + '"}\n')
    await seat.sees("[a]pprove")
    seat.types("d\n")
    await seat.sees("Reason")
    seat.types("no more\n")
    await seat.sees("REJECTED", "no more", "> ")
    seat.types("/quit\n")
    assert await seat.leaves() == 0


async def test_a_tool_is_called_and_waited_for(house: House, tmp_path: Path) -> None:
    ann = Person(house, "ann", tmp_path)
    assert json.loads((await ann("call", "add", '{"left": 1, "right": 2}')).out) == 3
    answering = asyncio.create_task(answer_when_asked(house, yes=True))
    done = await ann("call", "pay", '{"amount": 5}', "--json")
    await answering
    assert (done.code, done.json["status"], done.json["result"]["paid"]) == (0, "completed", 5)
    assert "waits for approval" in done.err
    waiting = await ann("call", "pay", '{"amount": 6}', "--no-wait", "--id", "mine")
    assert (waiting.code, "mine" in waiting.out, "awaiting_approval" in waiting.out) == (0, True, True)
    await answer_when_asked(house, yes=False)
    again = await ann("call", "pay", '{"amount": 6}', "--id", "mine")
    assert (again.code, "too much" in again.out) == (1, True)
    assert (await ann("call", "add", "[]")).code == 1
    assert "not registered" in (await ann("call", "nothing")).out


async def test_a_server_without_an_agent_says_so(tmp_path: Path) -> None:
    async with open_house() as house:
        told = await Person(house, "ann", tmp_path)("chat", "hello")
        assert (told.code, "No agent" in told.err) == (1, True)
