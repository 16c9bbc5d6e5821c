"""Google ADK, with a scripted model and sessions in memory."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool
from google.genai import types
from tests.real.frameworks.contract import EFFECTS, PAY, Ended, Scene, Tools, Turn, main

from toolgate import Gate
from toolgate.integrations.google_adk import Toolgate

APP = "bank"


class Scripted(BaseLlm):
    turns: Any

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        seen = {part.function_response.id for part in parts if part.function_response}
        turn = next((turn for turn in self.turns if not {id for id, _, _ in turn} <= seen), ())
        said = [types.Part(function_call=types.FunctionCall(id=id, name=name, args=args)) for id, name, args in turn]
        yield LlmResponse(content=types.Content(role="model", parts=said or [types.Part(text="done")]))


class Driver:
    def __init__(self, gate: Gate, turns: Sequence[Turn], tools: Tools) -> None:
        made = [FunctionTool(one) for one in (tools.pay, tools.look, tools.wipe, tools.fail, tools.delegate)]
        self._agent = LlmAgent(name="a", model=Scripted(model="scripted", turns=turns), tools=made)
        self._gate = gate

    async def _send(self, service: Any, session: str, *parts: Any, before: Sequence[str] = ()) -> Ended:
        runner = Runner(
            app_name=APP,
            agent=self._agent,
            session_service=service,
            plugins=[Toolgate(self._gate, effects=EFFECTS)],
        )
        asked: list[str] = []
        is_paused = False
        message = types.Content(role="user", parts=list(parts))
        async for event in runner.run_async(user_id="u", session_id=session, new_message=message):
            asked += [call.id for call in event.get_function_calls() if call.name == "adk_request_confirmation"]
            is_paused |= bool(event.actions.requested_tool_confirmations)
        kept = await service.get_session(app_name=APP, user_id="u", session_id=session)
        saved = (copy.deepcopy(service.sessions), session, asked or list(before))
        return Ended(is_paused, saved, str(kept.events))

    async def run(self, prompt: str) -> Ended:
        service, session = InMemorySessionService(), str(uuid4())
        await service.create_session(app_name=APP, user_id="u", session_id=session)
        return await self._send(service, session, types.Part(text=prompt))

    async def resume(self, saved: Any) -> Ended:
        sessions, session, asked = saved
        service = InMemorySessionService()
        service.sessions = copy.deepcopy(sessions)
        name = "adk_request_confirmation"
        answers = [types.FunctionResponse(id=id, name=name, response={"confirmed": True}) for id in asked]
        return await self._send(service, session, *(types.Part(function_response=one) for one in answers), before=asked)

    async def run_plain(self, prompt: str) -> Ended:
        return await asyncio.to_thread(lambda: asyncio.run(self.run(prompt)))

    async def run_streamed(self, prompt: str) -> Ended:
        return await self.run(prompt)

    def dump(self, saved: Any) -> bytes:
        return pickle.dumps(saved)

    def load(self, data: bytes) -> Any:
        return pickle.loads(data)  # our own file


async def sub_agents_are_governed_by_the_same_plugin(scene: Scene) -> None:
    inner: Any = scene.driver([PAY])
    inner._agent.name = "inner"
    outer: Any = scene.driver([("t", "transfer_to_agent", {"agent_name": "inner"})])
    outer._agent = LlmAgent(name="outer", model=outer._agent.model, sub_agents=[inner._agent])
    paused = await outer.run("pay")
    assert (paused.is_paused, scene.paid) == (True, [])
    await scene.answer()
    await outer.resume(paused.saved)
    assert scene.paid == [("pay", "bob", 10)], scene.paid


if __name__ == "__main__":
    main(Driver, sub_agents_are_governed_by_the_same_plugin)
