"""An agent of the OpenAI Agents SDK whose payments a person approves, offline."""

import asyncio
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, RunState, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import toolgate
from toolgate.integrations.openai_agents import govern, hear

OFFLINE = RunConfig(tracing_disabled=True)


class Scripted(Model):
    """Says what a model would: pay the bill, then report."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        is_paid = isinstance(input, list) and any(item.get("type") == "function_call_output" for item in input)
        text = ResponseOutputText(annotations=[], text="The bill is paid.", type="output_text")
        said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        arguments = '{"to": "ACC-0042", "cents": 1200}'
        call = ResponseFunctionToolCall(arguments=arguments, call_id="call_1", name="wire", type="function_call")
        return ModelResponse(output=[said if is_paid else call], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


@function_tool
def wire(to: str, cents: int) -> str:
    """Send money."""
    return f"sent {cents} to {to}"


async def main() -> None:
    async with toolgate.open("memory://") as gate:
        bookkeeper = Agent(name="bookkeeper", model=Scripted(), tools=[wire])
        agent = govern(bookkeeper, gate, effects={"wire": "irreversible"})
        paused = await Runner.run(agent, "Pay the bill of May.", run_config=OFFLINE)
        saved = paused.to_state().to_string()
        [question] = await gate.pending()
        print(f"{question.tool_name} {question.arguments} waits; ann makes it less")
        await gate.approvals.edit(question.id, {"to": "ACC-0042", "cents": 5}, by="ann")

        for _ in range(2):  # resumed twice from the same state: sent once
            state = await RunState.from_string(agent, saved)
            await hear(agent, state)
            ended = await Runner.run(agent, state, run_config=OFFLINE)
            print(ended.to_input_list()[-2]["output"], ended.final_output)


if __name__ == "__main__":
    asyncio.run(main())
