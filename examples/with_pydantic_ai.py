"""An agent of Pydantic AI whose payments a person approves. Offline: `python examples/with_pydantic_ai.py`."""

import asyncio

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import toolgate
from toolgate.integrations.pydantic_ai import Toolgate


def scripted(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """What a model would say: look at the bill, pay it, report."""
    turn = sum(isinstance(message, ModelResponse) for message in messages)
    if turn == 0:
        return ModelResponse(parts=[ToolCallPart("read_bill", {"month": "May"})])
    if turn == 1:
        return ModelResponse(parts=[ToolCallPart("wire", {"to": "ACC-0042", "cents": 1200})])
    return ModelResponse(parts=[TextPart("The bill is paid.")])


def read_bill(month: str) -> dict[str, object]:
    """Read the bill of a month."""
    return {"month": month, "to": "ACC-0042", "cents": 1200}


def wire(to: str, cents: int) -> str:
    """Send money."""
    return f"sent {cents} to {to}"


async def main() -> None:
    async with toolgate.open("memory://") as gate:
        gated = Toolgate(gate, effects={"read_bill": "read", "wire": "irreversible"})
        agent = Agent(
            FunctionModel(scripted),
            tools=[read_bill, wire],
            output_type=[str, DeferredToolRequests],
            capabilities=[gated],
        )
        result = await agent.run("Pay the bill of May.")
        while isinstance(result.output, DeferredToolRequests):
            for question in await gate.pending():
                print(f"{question.tool_name} {question.arguments} waits; ann says yes")
                await gate.decide(question.id, "approve", by="ann")
            answers = result.output.build_results(approve_all=True)
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=answers)
        print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
