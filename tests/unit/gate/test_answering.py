"""A loop of one's own: every call of a response is made once and answered in the provider's form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from openai.types.chat import ChatCompletion

import toolgate
from toolgate import Gate, Status, ToolDefinition
from toolgate.testing.patience import until

RAN: list[Any] = []


@toolgate.tool(effects="read")
async def look(what: str) -> str:
    RAN.append(what)
    return f"saw {what}"


@toolgate.tool(effects="irreversible")
async def pay(cents: int) -> str:
    RAN.append(cents)
    return f"paid {cents}"


OWN = ToolDefinition("own", {"type": "object"}, placement="caller")


@pytest_asyncio.fixture
async def gate() -> AsyncIterator[Gate]:
    RAN.clear()
    async with toolgate.open("memory://", tools=[look, pay, OWN]) as opened:
        yield opened


def openai(*calls: tuple[str, str, str]) -> dict[str, Any]:
    made = [{"id": id, "type": "function", "function": {"name": name, "arguments": text}} for id, name, text in calls]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


LOOK = ("c1", "look", '{"what": "sky"}')
PAY = ("c2", "pay", '{"cents": 5}')


async def test_calls_are_made_and_answered_once_per_run(gate: Gate) -> None:
    for _ in range(2):
        answers = await gate.answer(openai(LOOK), run_id="r1")
        assert list(answers) == [{"role": "tool", "tool_call_id": "c1", "content": "saw sky"}]
        assert len(answers) == 1
    await gate.answer(openai(LOOK), run_id="r2")
    assert RAN == ["sky", "sky"]


async def test_what_cannot_be_read_is_answered_in_its_place(gate: Gate) -> None:
    answers = await gate.answer(openai(("c0", "look", "{"), LOOK, ("c3", "gone", "{}")), run_id="r1")
    told = {one["tool_call_id"]: one["content"] for one in answers}
    assert [*told] == ["c0", "c1", "c3"]
    assert ("error" in told["c0"], told["c1"], "No tool named" in told["c3"]) == (True, "saw sky", True)


async def test_a_question_is_answered_as_pending_and_later_with_what_was_approved(gate: Gate) -> None:
    answers = await gate.answer(openai(LOOK, PAY), run_id="r1", wait=False)
    [waiting] = answers.pending
    assert "The call waits" in list(answers)[1]["content"]
    await gate.approvals.edit(str(waiting.approval_id), {"cents": 3}, by="ann")
    await until(lambda: 3 in RAN)
    answers = await gate.answer(openai(LOOK, PAY), run_id="r1")
    told = json.loads(list(answers)[1]["content"])
    assert (told["output"], "changed the arguments" in told["note"], RAN) == ("paid 3", True, ["sky", 3])


async def test_people_are_waited_for(gate: Gate) -> None:
    running = asyncio.create_task(gate.answer(openai(PAY), run_id="r1"))
    await until(gate.pending)
    await gate.decide((await gate.pending())[0].id, "deny", by="ann", reason="too much")
    assert "too much" in next(iter(await running))["content"]


async def test_other_arguments_under_the_same_id_run_nothing(gate: Gate) -> None:
    await gate.answer(openai(LOOK), run_id="r1")
    answers = await gate.answer(openai(("c1", "look", '{"what": "sea"}')), run_id="r1")
    assert ([result.status for result in answers.results], RAN) == ([Status.DENIED], ["sky"])


async def test_a_tool_at_its_caller_runs_with_its_function(gate: Gate) -> None:
    functions = {"own": lambda arguments: RAN.append(arguments)}
    await gate.answer(openai(("c1", "own", '{"n": 1}')), run_id="r1", functions=functions)
    assert RAN == [{"n": 1}]


async def test_anthropic_and_gemini_are_answered_in_their_own_form(gate: Gate) -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"what": "sky"}}
    claude = {"type": "message", "role": "assistant", "content": [block], "stop_reason": "tool_use"}
    [message] = await gate.answer(claude, run_id="r1")
    assert message["content"][0] == {"type": "tool_result", "tool_use_id": "toolu_1", "content": "saw sky"}
    part = {"functionCall": {"name": "look", "args": {"what": "sea"}}}
    gemini = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
    for times in (1, 2):
        [message] = await gate.answer(gemini, run_id="r1")
        assert message["parts"][0]["functionResponse"]["response"] == {"output": "saw sea"}
        assert RAN.count("sea") == times  # it has no id, so it is new each time
    for _ in range(2):
        await gate.answer(gemini, run_id="r1", step="3")
    assert RAN.count("sea") == 3


async def test_an_object_of_the_sdk_is_read_and_no_calls_are_no_messages(gate: Gate) -> None:
    completion = ChatCompletion(id="x", created=0, model="m", object="chat.completion", **openai(LOOK))
    assert [message["content"] for message in await gate.answer(completion, run_id="r1")] == ["saw sky"]
    assert (
        list(await gate.answer({"choices": [{"message": {"role": "assistant", "content": "hi"}}]}, run_id="r1")) == []
    )


def test_plain_threads_have_it_too() -> None:
    RAN.clear()
    with toolgate.open("memory://", tools=[look]) as gate:
        assert [message["content"] for message in gate.sync.answer(openai(LOOK), run_id="r1")] == ["saw sky"]
