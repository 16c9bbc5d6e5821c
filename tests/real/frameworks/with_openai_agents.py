"""OpenAI Agents SDK, with a scripted model and saved RunStates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from agents import (
    Agent,
    Model,
    ModelBehaviorError,
    ModelResponse,
    RunConfig,
    Runner,
    RunState,
    Usage,
    WebSearchTool,
    function_tool,
)
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from tests.real.frameworks.contract import EFFECTS, LOOK, PAY, Ended, Scene, Tools, Turn, main

from toolgate import Gate
from toolgate.errors import DefinitionError
from toolgate.integrations.openai_agents import govern, hear

CONFIG = RunConfig(tracing_disabled=True)


class Scripted(Model):
    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns

    def _output(self, given: Any) -> list[Any]:
        items = given if isinstance(given, list) else []
        seen = {item.get("call_id") for item in items if item.get("type") == "function_call_output"}
        made = 0
        while made < len(self._turns) and {id for id, _, _ in self._turns[made]} <= seen:
            made += 1
        if made == len(self._turns):
            text = ResponseOutputText(annotations=[], text="done", type="output_text")
            return [ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")]
        return [
            ResponseFunctionToolCall(arguments=json.dumps(args), call_id=id, name=name, type="function_call")
            for id, name, args in self._turns[made]
        ]

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        return ModelResponse(output=self._output(input), usage=Usage(), response_id=None)

    async def stream_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        response = Response(
            id="r",
            created_at=0,
            model="m",
            object="response",
            output=self._output(input),
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(response=response, sequence_number=0, type="response.completed")


class Driver:
    def __init__(self, gate: Gate, turns: Sequence[Turn], tools: Tools) -> None:
        made = [function_tool(one) for one in (tools.pay, tools.look, tools.wipe, tools.fail, tools.delegate)]
        self._agent = govern(Agent(name="a", model=Scripted(turns), tools=made), gate, effects=EFFECTS)

    def _ended(self, result: Any) -> Ended:
        said = "\n".join(str(item) for item in result.to_input_list())
        return Ended(bool(result.interruptions), result.to_state().to_string(), said)

    async def run(self, prompt: str) -> Ended:
        return self._ended(await Runner.run(self._agent, prompt, run_config=CONFIG))

    async def resume(self, saved: str) -> Ended:
        state = await RunState.from_string(self._agent, saved)
        await hear(self._agent, state)
        return self._ended(await Runner.run(self._agent, state, run_config=CONFIG))

    async def run_plain(self, prompt: str) -> Ended:
        def plain() -> Any:
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            try:
                return Runner.run_sync(self._agent, prompt, run_config=CONFIG)
            finally:
                loop.close()

        return self._ended(await asyncio.to_thread(plain))

    async def run_streamed(self, prompt: str) -> Ended:
        result = Runner.run_streamed(self._agent, prompt, run_config=CONFIG)
        async for _event in result.stream_events():
            pass
        return self._ended(result)

    def dump(self, saved: str) -> bytes:
        return saved.encode()

    def load(self, data: bytes) -> str:
        return data.decode()


async def its_own_yes_and_no_do_not_count(scene: Scene) -> None:
    driver: Any = scene.driver([PAY])
    paused = await driver.run("pay")
    state = await RunState.from_string(driver._agent, paused.saved)
    state.approve(state.get_interruptions()[0])
    ended = await Runner.run(driver._agent, state, run_config=CONFIG)
    assert not scene.paid
    assert "waits for a person's approval" in str(ended.to_input_list())


async def the_same_id_and_arguments_in_another_run_are_another_call(scene: Scene) -> None:
    for _ in range(2):
        await scene.driver([LOOK]).run("look")
    assert scene.tools.ran == [("look", "sky")] * 2, scene.tools.ran


async def altered_state_runs_nothing(scene: Scene) -> None:
    driver = scene.driver([PAY])
    paused = await driver.run("pay")
    await scene.answer()
    altered = paused.saved.replace('\\"amount\\": 10}', '\\"amount\\": 10000}')
    assert altered != paused.saved
    try:
        ended = await driver.resume(altered)
        assert ended.is_paused
    except ModelBehaviorError:
        pass  # the framework noticed by itself
    assert not scene.tools.ran, scene.tools.ran


async def handoffs_and_agents_that_are_tools(scene: Scene) -> None:
    pay = function_tool(scene.tools.pay)
    last = Agent(name="last", model=Scripted([[PAY]]), tools=[pay])
    first = Agent(name="first", model=Scripted([[("h", "transfer_to_last", {})]]), handoffs=[last])
    governed = govern(first, scene.gate, effects=EFFECTS)
    paused = await Runner.run(governed, "pay", run_config=CONFIG)
    assert (bool(paused.interruptions), scene.paid) == (True, [])
    await scene.answer()
    state = await RunState.from_string(governed, paused.to_state().to_string())
    await hear(governed, state)
    await Runner.run(governed, state, run_config=CONFIG)
    assert len(scene.paid) == 1

    again = ("call_7", "pay", {"to": "eve", "amount": 1})
    inner = govern(Agent(name="in", model=Scripted([[again]]), tools=[pay]), scene.gate, effects=EFFECTS)
    outer = Agent(
        name="out",
        model=Scripted([[("t", "ask", {"input": "pay"})]]),
        tools=[inner.as_tool("ask", "Ask another agent.")],
    )
    around = govern(outer, scene.gate)
    paused = await Runner.run(around, "pay", run_config=CONFIG)
    assert (bool(paused.interruptions), len(scene.paid)) == (True, 1)
    await scene.answer()
    state = paused.to_state()
    await hear(around, state)
    ended = await Runner.run(around, state, run_config=CONFIG)
    assert (ended.interruptions, scene.paid[1:]) == ([], [("pay", "eve", 1)])
    bare = Agent(name="bare", model=Scripted([]), tools=[pay]).as_tool("ask", "Ask.")
    for refused in (bare, WebSearchTool()):
        with suppress(DefinitionError):
            govern(Agent(name="x", tools=[refused]), scene.gate)
            raise AssertionError("it was taken")
    assert govern(Agent(name="x", tools=[WebSearchTool()]), scene.gate, ungoverned=["web_search"]).tools


if __name__ == "__main__":
    main(
        Driver,
        its_own_yes_and_no_do_not_count,
        the_same_id_and_arguments_in_another_run_are_another_call,
        altered_state_runs_nothing,
        handoffs_and_agents_that_are_tools,
    )
