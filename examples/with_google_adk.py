"""An agent of Google ADK whose payments a person approves, offline."""

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

import toolgate
from toolgate.integrations.google_adk import Toolgate

CONFIRM = "adk_request_confirmation"


class Scripted(BaseLlm):
    """Says what a model would: pay the bill, then report."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        call = types.FunctionCall(id="call_1", name="wire", args={"to": "ACC-0042", "cents": 1200})
        is_paid = any(part.function_response for part in parts)
        said = types.Part(text="The bill is paid.") if is_paid else types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[said]))


def wire(to: str, cents: int) -> str:
    """Send money."""
    return f"sent {cents} to {to}"


async def main() -> None:
    async with toolgate.open("memory://") as gate:
        agent = LlmAgent(name="bookkeeper", model=Scripted(model="scripted"), tools=[wire])
        runner = InMemoryRunner(agent, app_name="bank", plugins=[Toolgate(gate, effects={"wire": "irreversible"})])
        session = await runner.session_service.create_session(app_name="bank", user_id="u")

        async def send(part: types.Part) -> list[Any]:
            message = types.Content(role="user", parts=[part])
            return [one async for one in runner.run_async(user_id="u", session_id=session.id, new_message=message)]

        paused = await send(types.Part(text="Pay the bill of May."))
        [request] = [call for event in paused for call in event.get_function_calls() if call.name == CONFIRM]
        [question] = await gate.pending()
        print(f"{question.tool_name} {question.arguments} waits; ann makes it less")
        await gate.approvals.edit(question.id, {"to": "ACC-0042", "cents": 5}, by="ann")

        confirmed = types.FunctionResponse(id=request.id, name=CONFIRM, response={"confirmed": True})
        for event in await send(types.Part(function_response=confirmed)):
            for response in event.get_function_responses():
                print(response.response)
            if event.is_final_response():
                print(event.content.parts[0].text)


if __name__ == "__main__":
    asyncio.run(main())
