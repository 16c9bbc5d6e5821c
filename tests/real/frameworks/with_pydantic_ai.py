"""Pydantic AI, with its FunctionModel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from tests.real.frameworks.contract import EFFECTS, Ended, Scene, Tools, Turn, main

from toolgate import Gate
from toolgate.integrations.pydantic_ai import Toolgate


class Driver:
    def __init__(self, gate: Gate, turns: Sequence[Turn], tools: Tools) -> None:
        self._turns = turns
        self._agent: Agent[None, Any] = Agent(
            FunctionModel(self._say, stream_function=self._stream),
            tools=[tools.pay, tools.look, tools.wipe, tools.fail, tools.delegate],
            output_type=[str, DeferredToolRequests],
            capabilities=[Toolgate(gate, effects=EFFECTS)],
        )

    def _turn(self, messages: list[ModelMessage]) -> Turn:
        made = sum(isinstance(message, ModelResponse) for message in messages)
        return self._turns[made] if made < len(self._turns) else ()

    def _say(self, messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        calls: list[Any] = [ToolCallPart(name, args, tool_call_id=id) for id, name, args in self._turn(messages)]
        return ModelResponse(parts=calls or [TextPart("done")])

    async def _stream(self, messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        turn = self._turn(messages)
        if not turn:
            yield "done"
        for at, (id, name, args) in enumerate(turn):
            yield {at: DeltaToolCall(name=name, json_args=json.dumps(args), tool_call_id=id)}

    def _ended(self, result: Any) -> Ended:
        saved = result.all_messages_json()
        return Ended(isinstance(result.output, DeferredToolRequests), saved, saved.decode())

    async def run(self, prompt: str) -> Ended:
        return self._ended(await self._agent.run(prompt))

    async def resume(self, saved: bytes) -> Ended:
        history = ModelMessagesTypeAdapter.validate_json(saved)
        answered = {
            part.tool_call_id for message in history for part in message.parts if part.part_kind == "tool-return"
        }
        calls = [part for message in history for part in message.parts if isinstance(part, ToolCallPart)]
        approvals: dict[str, Any] = {call.tool_call_id: True for call in calls if call.tool_call_id not in answered}
        results = DeferredToolResults(approvals=approvals)
        return self._ended(await self._agent.run(message_history=history, deferred_tool_results=results))

    async def run_plain(self, prompt: str) -> Ended:
        def plain() -> Any:
            loop = asyncio.new_event_loop()  # the framework would make one, and leave it open
            asyncio.set_event_loop(loop)
            try:
                return self._agent.run_sync(prompt)
            finally:
                loop.close()

        return self._ended(await asyncio.to_thread(plain))

    async def run_streamed(self, prompt: str) -> Ended:
        async with self._agent.run_stream(prompt) as stream:
            output = await stream.get_output()
            saved = stream.all_messages_json()
        return Ended(isinstance(output, DeferredToolRequests), saved, saved.decode())

    def dump(self, saved: bytes) -> bytes:
        return saved

    def load(self, data: bytes) -> bytes:
        return data


async def tools_of_the_framework_that_ask_are_asked_about(scene: Scene) -> None:
    """A tool with `requires_approval` is asked about at the gate, once, although its effects need nobody."""
    agent = Agent(
        FunctionModel(Driver(scene.gate, [[("c", "look", {"what": "sky"})]], scene.tools)._say),
        output_type=[str, DeferredToolRequests],
        capabilities=[Toolgate(scene.gate, effects=EFFECTS)],
    )
    agent.tool_plain(requires_approval=True)(scene.tools.look)
    paused = await agent.run("look")
    assert isinstance(paused.output, DeferredToolRequests)
    question = paused.output.metadata["c"]["toolgate"]
    assert not scene.tools.ran
    await scene.gate.decide(question["approval_id"], "approve", by="ann")
    results = paused.output.build_results(approve_all=True)
    ended = await agent.run(message_history=paused.all_messages(), deferred_tool_results=results)
    assert (ended.output, scene.tools.ran) == ("done", [("look", "sky")])


if __name__ == "__main__":
    main(Driver, tools_of_the_framework_that_ask_are_asked_about)
