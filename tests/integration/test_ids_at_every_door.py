"""The same id is refused with the same error, wherever it comes in, and none is hidden once it was taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unit.interfaces.server.house import House, P, add, open_house

import toolgate
from toolgate.agent_tools.approval import ApprovalManager
from toolgate.errors import InvalidIdError
from toolgate.interfaces.client import Client
from toolgate.interfaces.runner.signals import signal_of
from toolgate.tools import Action, ToolExecutor

SECRET = "correct-horse-battery-9"
BAD = {
    "long": ("i" * 129, "at most 128 characters"),
    "empty": ("", "is not empty"),
    "slash": ("a/b", "no `/`"),
    "control": ("a\nb", "control characters"),
    "secret": (f"x{SECRET}", "holds a secret"),
    "token": ("ghp_GkiCkEWjYZmAxggEVVNa4STeMRp16b0DNhcC", "holds a secret"),
}
Door = Callable[[toolgate.Gate, str], Awaitable[Any]]


async def _library(gate: toolgate.Gate, id: str) -> Any:
    return await gate.call("add", {"left": 1, "right": 2}, call_id=id)


async def _run(gate: toolgate.Gate, id: str) -> Any:
    return await gate.call("add", {"left": 1, "right": 2}, context=toolgate.Context(run_id=id))


async def _session(gate: toolgate.Gate, id: str) -> Any:
    return await gate.call("add", {"left": 1, "right": 2}, context=toolgate.Context(session_id=id))


async def _undo(gate: toolgate.Gate, id: str) -> Any:
    made = await gate.call("add", {"left": 1, "right": 2})
    return await gate.undo(made.call_id, context=toolgate.Context(run_id=id))


async def _executor(gate: toolgate.Gate, id: str) -> Any:
    return await ToolExecutor(gate=gate).execute(Action(id=id, type="add", payload={"left": 1, "right": 2}))


async def _execute_tool(gate: toolgate.Gate, id: str) -> Any:
    return await ToolExecutor(gate=gate).execute_tool("add", {"left": 1, "right": 2}, session_id=id)


async def _manager(gate: toolgate.Gate, id: str) -> Any:
    return await ApprovalManager(gate).request_tool_approval("add", tool_id=id)


@pytest.mark.parametrize("why", BAD)
@pytest.mark.parametrize("door", [_library, _run, _session, _undo, _executor, _execute_tool, _manager])
async def test_the_library_refuses_it_with_one_error(door: Door, why: str) -> None:
    id, sentence = BAD[why]
    if door is _executor and not id:
        return  # an action without an id is given one
    async with toolgate.open(tools=[add], secrets=[SECRET]) as gate:
        with pytest.raises(InvalidIdError, match=sentence) as raised:
            await door(gate, id)
        assert raised.value.code == "invalid_id"
        assert not id or id not in str(raised.value)
        told = repr(await gate.events(project="default"))
        assert not id or id not in told


@pytest.fixture
async def house() -> Any:
    async with open_house() as house:
        house.gate.host.masker.add(SECRET)
        yield house


@pytest.mark.parametrize("why", BAD)
@pytest.mark.parametrize("field", ["tool_id", "run_id", "session_id"])
async def test_the_server_answers_400_invalid_id(house: House, field: str, why: str) -> None:
    id, sentence = BAD[why]
    body = {"tool_name": "add", "tool_params": {"left": 1, "right": 2}, field: id}
    answer = await house.client("bot").post(f"{P}/tools/execute", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_id")
    assert sentence in answer.json()["detail"]
    assert not id or id not in answer.text


@pytest.mark.parametrize("path", ["tools/{}", "tools/{}/timeline", "runs/{}", "chat/conversations/{}/messages"])
@pytest.mark.parametrize("id", ["i" * 129, "a%0Ab", "a%1Bb"])
async def test_paths_are_held_to_the_same(house: House, path: str, id: str) -> None:
    answer = await house.client("ann").get(f"{P}/{path.format(id)}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_id")


async def test_who_may_not_look_learns_nothing_about_ids(house: House) -> None:
    answer = await house.client("bot").get(f"/my/projects/elsewhere/tools/{'i' * 129}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("why", BAD)
async def test_the_client_library_raises_what_the_gate_would(house: House, why: str) -> None:
    id, sentence = BAD[why]
    async with Client(house.url, token=house.tokens["bot"], project="demo") as bot:
        with pytest.raises(InvalidIdError, match=sentence):
            await bot.call("add", {"left": 1, "right": 2}, call_id=id)


@pytest.mark.parametrize("why", ["long", "empty", "slash", "control"])
def test_a_runner_does_not_take_it_from_its_server(why: str) -> None:
    id, sentence = BAD[why]
    data = {"tool_id": id, "tool_name": "t", "fence": "f", "attempt": 1, "timeout_seconds": 5, "tool_params": {}}
    with pytest.raises(toolgate.errors.UsageError, match=sentence):
        signal_of("tool.execution_signal", data)


@pytest.mark.parametrize(
    "id", ["call_e5GTkcLXnWGI5UDP7ttEibTC", "token-BoNLZ5gNIRNc1iHZUM5G", "a?b#c%2Fd e\u00e9", "i" * 128]
)
async def test_an_id_that_was_taken_is_usable_and_shown_everywhere(house: House, id: str) -> None:
    async with Client(house.url, token=house.tokens["bot"], project="demo") as bot:
        made = await bot.call("add", {"left": 1, "right": 2}, call_id=id, run_id=id, session_id=id)
        assert made.call_id == id
        found = await bot.calls.get(id)
        assert (found.tool_id, found.run_id, found.session_id) == (id, id, id)
    told = [event for event in await house.gate.events(project="demo") if event.call_id == id]
    assert {event.data["action_id"] for event in told} == {id}
    assert {event.data["pipeline_run_id"] for event in told} == {id}
    shown = await house.client("ann").get(f"{P}/runs/{id.replace('%', '%25').replace('?', '%3F').replace('#', '%23')}")
    assert shown.json()["run_id"] == id
