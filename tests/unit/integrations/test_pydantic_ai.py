"""Pydantic AI is installed here: what must hold for every adapter is played with it in every build."""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, RunContext, ToolReturn
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset
from tests.real.frameworks.contract import SCENARIOS, Scene, killed_after_the_claim, play
from tests.real.frameworks.with_pydantic_ai import Driver, tools_of_the_framework_that_ask_are_asked_about

import toolgate
from toolgate.errors import ToolInputError, UsageError
from toolgate.integrations.pydantic_ai import Toolgate

PLAYED = [one for one in SCENARIOS if one is not killed_after_the_claim]  # processes of its own: `make test-real`


@pytest.mark.parametrize(
    "scenario", [*PLAYED, tools_of_the_framework_that_ask_are_asked_about], ids=lambda one: one.__name__
)
async def test_what_must_hold_for_every_adapter(scenario: Callable[[Scene], Awaitable[None]]) -> None:
    await play(scenario, Driver)


def calling(name: str, times: int = 1, **arguments: Any) -> FunctionModel:
    def say(messages: list[Any], _info: Any) -> ModelResponse:
        made = sum(isinstance(message, ModelResponse) for message in messages)
        call = ToolCallPart(name, arguments, tool_call_id=f"c{made}")
        return ModelResponse(parts=[call] if made < times else [TextPart("done")])

    return FunctionModel(say)


async def test_one_toolset_alone_can_be_governed() -> None:
    async with toolgate.open("memory://") as gate:
        tools = FunctionToolset[Any]()
        tools.add_function(lambda: "seen", name="look")
        agent = Agent(calling("look"), toolsets=[Toolgate(gate).around(tools)])
        assert (await agent.run("look")).output == "done"
        assert [call.tool_name for call in await gate.calls.list(toolgate.CallQuery())] == ["look"]


async def test_what_the_framework_raises_and_returns_stays_its_own() -> None:
    tries: list[int] = []

    def pick(n: int) -> ToolReturn[str]:
        tries.append(n)
        if len(tries) == 1:
            raise ModelRetry("another number")
        return ToolReturn(return_value="picked", content="and more")

    async with toolgate.open("memory://") as gate:
        agent = Agent(calling("pick", 2, n=1), tools=[pick], capabilities=[Toolgate(gate)])
        said = (await agent.run("pick")).all_messages_json().decode()
    assert ("another number" in said, "picked" in said, "and more" in said) == (True, True, True)


async def test_an_edit_is_told_beside_what_the_tool_says_itself() -> None:
    def pick(n: int) -> ToolReturn[str]:
        return ToolReturn(return_value=f"picked {n}", content="and more" if n == 2 else ["and", "more"])

    for chosen in (2, 3):
        async with toolgate.open("memory://") as gate:
            gated = Toolgate(gate, effects={"pick": "irreversible"}, wait=True)
            agent = Agent(calling("pick", n=1), tools=[pick], capabilities=[gated])
            scene = Scene.__new__(Scene)
            scene.gate = gate
            running = asyncio.create_task(agent.run("pick"))
            await scene.answer("edit", arguments={"n": chosen})
            said = (await running).all_messages_json().decode()
        assert (f"picked {chosen}" in said, "changed the arguments" in said, "more" in said) == (True, True, True)


@dataclass
class Odd:
    what: Any


async def test_arguments_that_cannot_be_written_are_refused() -> None:
    async with toolgate.open("memory://") as gate:
        tools = FunctionToolset[Any]()
        tools.add_function(lambda: None, name="look")
        gated: Any = Toolgate(gate).around(tools)
        agent = Agent(calling("look"), toolsets=[gated])
        seen: list[Any] = []
        call_tool = gated.call_tool

        async def note(name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            seen.append((ctx, tool))
            return await call_tool(name, tool_args, ctx, tool)

        gated.call_tool = note
        await agent.run("look")
        with pytest.raises(ToolInputError, match="Pydantic AI: tool `look` was not called"):
            await call_tool("look", {"x": Odd(object())}, *seen[0])


async def test_a_call_outside_of_any_message_has_the_run_of_its_context() -> None:
    async with toolgate.open("memory://") as gate:
        tools = FunctionToolset[Any]()
        gated: Any = Toolgate(gate).around(tools)

        @tools.tool
        async def outer(ctx: RunContext[Any]) -> str:
            tool = (await tools.get_tools(ctx))["inner"]
            alone = replace(ctx, tool_call_id="not-in-a-message", messages=[])
            return str(await gated.call_tool("inner", {}, alone, tool))

        tools.add_function(lambda: "in", name="inner")
        agent = Agent(calling("outer"), toolsets=[gated])
        assert "in" in (await agent.run("go")).all_messages_json().decode()


def test_a_version_outside_the_tested_range_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with toolgate.open("memory://") as gate:
        monkeypatch.setattr(importlib.metadata, "version", lambda _name: "1.0.0")
        with pytest.raises(UsageError, match="Pydantic AI adapter was tested with pydantic-ai-slim"):
            Toolgate(gate)
        assert Toolgate(gate, any_version=True).bridge.gate is gate
