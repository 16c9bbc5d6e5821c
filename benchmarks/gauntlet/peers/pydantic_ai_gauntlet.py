"""Pydantic AI: tools with `requires_approval`, deferred requests, and results passed back with the messages."""

# mypy: ignore-errors
# ruff: noqa: ASYNC110, ASYNC221, RUF100

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.gauntlet.sheet import Cell, absent, fill_in, judge
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolDenied
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

RAN: list[Any] = []
EFFECTS: list[str] = []
Output = str | DeferredToolRequests


def script(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    returned = any(part.part_kind in ("tool-return", "retry-prompt") for message in messages for part in message.parts)
    if returned:
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart("pay", {"to": "bob", "amount": 10}, tool_call_id="c1")])


def agent(*, asks: bool = True, factor: int = 1, description: str = "Pay somebody.") -> Agent[None, Any]:
    def pay(to: str, amount: int) -> str:
        RAN.append((to, amount * factor))
        if EFFECTS:
            with open(EFFECTS[0], "a") as file:
                file.write("paid\n")
            if len(EFFECTS) > 1:
                import os

                os._exit(9)
        return "paid"

    tool = Tool(pay, requires_approval=asks, description=description)
    return Agent(FunctionModel(script), tools=[tool], output_type=[str, DeferredToolRequests])


async def paused(of: Agent[None, Any]) -> bytes:
    RAN.clear()
    result = await of.run("pay bob")
    assert isinstance(result.output, DeferredToolRequests)
    return result.all_messages_json()


async def go_on(of: Agent[None, Any], messages: bytes, answer: Any) -> None:
    history = ModelMessagesTypeAdapter.validate_json(messages)
    await of.run(message_history=history, deferred_tool_results=DeferredToolResults(approvals={"c1": answer}))


async def reject_while_relaxed() -> Cell:
    messages = await paused(agent())
    await go_on(agent(asks=False), messages, ToolDenied("no"))
    return judge(not RAN, "the rejected call did not run", f"the rejected call ran: {RAN}")


async def resume_twice() -> Cell:
    of = agent()
    messages = await paused(of)
    await asyncio.gather(*(go_on(of, messages, True) for _ in range(2)))
    await go_on(of, messages, True)
    return judge(
        len(RAN) == 1, "it ran once", f"the messages were resumed three times and the tool ran {len(RAN)} times"
    )


async def changed_arguments() -> Cell:
    of = agent()
    messages = await paused(of)
    await go_on(of, messages.replace(b'"amount":10', b'"amount":10000'), True)
    is_kept = not RAN or RAN == [("bob", 10)]
    return judge(is_kept, "what was reviewed ran", f"the saved messages were altered after the yes; it ran: {RAN}")


async def changed_definition() -> Cell:
    messages = await paused(agent())
    await go_on(agent(factor=2, description="Pay twice the amount."), messages, True)
    return judge(
        not RAN, "the old approval did not run the new tool", f"the yes for the old tool ran the new one: {RAN}"
    )


async def double_click() -> Cell:
    of = agent()
    messages = await paused(of)
    await go_on(of, messages, ToolDenied("no"))
    await go_on(of, messages, True)
    return judge(not RAN, "the first decision stayed", "a yes after the no was accepted, and the call ran")


CRASH = """
import asyncio, sys
from benchmarks.gauntlet.peers import pydantic_ai_gauntlet as it

it.EFFECTS[:] = [sys.argv[2]] + (["die"] if sys.argv[3] == "die" else [])
asyncio.run(it.go_on(it.agent(), open(sys.argv[1], "rb").read(), True))
"""


async def crash() -> Cell:
    messages = await paused(agent())
    with tempfile.TemporaryDirectory() as folder:
        saved, effects = Path(folder) / "messages", Path(folder) / "effects"
        saved.write_bytes(messages)
        for how in ("die", "go on"):
            command = [sys.executable, "-c", CRASH, str(saved), str(effects), how]
            subprocess.run(command, check=False, capture_output=True)
        count = effects.read_text().count("paid")
    return judge(count == 1, "one effect", f"the messages were resumed after the crash: {count} effects")


def run(scenario: Any) -> Any:
    return lambda: asyncio.run(scenario())


if __name__ == "__main__":
    fill_in(
        "pydantic-ai-slim",
        {
            "reject_while_relaxed": run(reject_while_relaxed),
            "resume_twice": run(resume_twice),
            "changed_arguments": run(changed_arguments),
            "expired": absent("an approval has no time to end"),
            "hidden_positional": ("holds", "arguments are one JSON object, shown by name"),
            "quorum": absent("one decision decides"),
            "undo": absent("no undo"),
            "changed_definition": run(changed_definition),
            "double_click": run(double_click),
            "crash": run(crash),
            "own_approval": absent("a decision carries no person; who may decide is left to the host"),
        },
    )
