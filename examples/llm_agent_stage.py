"""An agent stage with a model: offers it the registry's tools, makes the calls it asks for, and lets it answer.

A stage in document 001's sense. The model here is a stand-in that speaks the format of OpenAI's chat, so that nothing
but this file is needed; a real client has the same two steps. One call waits for a person, played here.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import toolgate
from toolgate import (
    Gate,
    StageContext,
    StageKind,
    StageOutput,
    export_tools,
    parse_calls,
    render_message,
    render_result,
)


@toolgate.tool(effects="read")
async def balance(account: str) -> int:
    """Tell what is on an account."""
    return {"savings": 900, "daily": 40}[account]


@toolgate.tool(requires_approval=True)
async def transfer(source: str, target: str, amount: int) -> str:
    """Move money between accounts."""
    return f"moved {amount} from {source} to {target}"


class StandIn:
    """Answers as a model would: asks for two calls, then says what came of them."""

    async def chat(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        results = [message["content"] for message in messages if message["role"] == "tool"]
        if results:
            return {"role": "assistant", "content": f"Here is what I found: {'; '.join(results)}"}
        wanted = [
            ("balance", {"account": "daily"}),
            ("transfer", {"source": "savings", "target": "daily", "amount": 60}),
        ]
        offered = {tool["function"]["name"] for tool in tools}
        calls = [
            {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for at, (name, given) in enumerate(wanted)
            if name in offered
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}


class Banker:
    """Asks the model, makes its calls through the gate together, and asks again until it calls nothing."""

    name = "banker"
    kind = StageKind.AGENT

    def __init__(self, model: StandIn, gate: Gate) -> None:
        self._model = model
        self._gate = gate

    async def execute(self, ctx: StageContext) -> StageOutput:
        context = toolgate.Context(principal="agent:banker", user="ann")
        offered = self._gate.host.offers(context)
        tools = export_tools(offered, "openai")
        messages: list[dict[str, Any]] = [{"role": "user", "content": ctx.snapshot.input_text}]
        made = 0
        while (answer := await self._model.chat(messages, tools)).get("tool_calls"):
            resolved, unresolved = parse_calls(answer, self._gate.registry.find)
            results = await asyncio.gather(
                *(self._gate.call(call.name, call.arguments, context=context) for call in resolved)
            )
            rendered = [render_result(call, result) for call, result in zip(resolved, results, strict=True)]
            rendered += [render_result(call) for call in unresolved]
            messages += [answer, *render_message(rendered, "openai")]
            made += len(rendered)
        return StageOutput.ok(response=answer["content"], calls=made)


async def approve_next(gate: Gate) -> None:
    """Play the person who is asked."""
    while not (questions := await gate.pending()):  # noqa: ASYNC110  # a person looks now and then
        await asyncio.sleep(0.01)
    print(f"  ann is asked: {questions[0].tool_name} {questions[0].arguments}")
    await gate.decide(questions[0].id, "approve", by="ann")


async def main() -> None:
    """Run the stage once."""
    async with toolgate.open("memory://", tools=[balance, transfer]) as gate, asyncio.TaskGroup() as tasks:
        tasks.create_task(approve_next(gate))
        output = await Banker(StandIn(), gate).execute(StageContext(input_text="Move 60 to my daily account."))
        print(f"{output.data['calls']} calls. {output.data['response']}")


if __name__ == "__main__":
    asyncio.run(main())
