"""OpenAI Agents SDK: tools with `needs_approval`, a run that is interrupted, and its saved state."""

# mypy: ignore-errors
# ruff: noqa: ASYNC110, ASYNC221, RUF100
# ruff: noqa: ASYNC221, BLE001

import asyncio
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, RunState, Usage, function_tool
from agents.items import TResponseOutputItem
from benchmarks.gauntlet.sheet import Cell, absent, fill_in, judge
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

RAN: list[Any] = []
RELAXED = [False]
EFFECTS: list[str] = []


class Script(Model):
    """Calls `pay` once, then says that it is done."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        has_output = isinstance(input, list) and any(
            isinstance(item, dict) and item.get("type") == "function_call_output" for item in input
        )
        output: list[TResponseOutputItem]
        if has_output:
            text = ResponseOutputText(annotations=[], text="done", type="output_text")
            output = [
                ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            ]
        else:
            arguments = '{"to": "bob", "amount": 10}'
            output = [ResponseFunctionToolCall(arguments=arguments, call_id="c1", name="pay", type="function_call")]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


async def asks(_context: Any, _arguments: Any, _call_id: str) -> bool:
    return not RELAXED[0]


def agent(*, factor: int = 1, description: str = "Pay somebody.") -> Agent[Any]:
    @function_tool(needs_approval=asks, description_override=description)
    def pay(to: str, amount: int) -> str:
        RAN.append((to, amount * factor))
        if EFFECTS:
            with open(EFFECTS[0], "a") as file:
                file.write("paid\n")
            if len(EFFECTS) > 1:
                import os

                os._exit(9)
        return "paid"

    return Agent(name="a", model=Script(), tools=[pay])


CONFIG = RunConfig(tracing_disabled=True)


async def paused(of: Agent[Any]) -> RunState[Any]:
    RAN.clear()
    RELAXED[0] = False
    result = await Runner.run(of, "pay bob", run_config=CONFIG)
    assert result.interruptions
    return result.to_state()


async def go_on(of: Agent[Any], state: RunState[Any]) -> None:
    await Runner.run(of, state, run_config=CONFIG)


async def reject_while_relaxed() -> Cell:
    of = agent()
    state = await paused(of)
    RELAXED[0] = True
    state.reject(state.get_interruptions()[0])
    await go_on(of, state)
    return judge(not RAN, "the rejected call did not run", f"the rejected call ran: {RAN}")


async def resume_twice() -> Cell:
    of = agent()
    state = await paused(of)
    state.approve(state.get_interruptions()[0])
    saved = state.to_json()
    copies = [await RunState.from_json(of, copy.deepcopy(saved)) for _ in range(3)]
    await asyncio.gather(*(go_on(of, one) for one in copies[:2]))
    await go_on(of, copies[2])
    return judge(
        len(RAN) == 1, "it ran once", f"the saved state was resumed three times and the tool ran {len(RAN)} times"
    )


async def changed_arguments() -> Cell:
    of = agent()
    state = await paused(of)
    state.approve(state.get_interruptions()[0])
    saved = json.loads(json.dumps(state.to_json()).replace('\\"amount\\": 10', '\\"amount\\": 10000'))
    try:
        await go_on(of, await RunState.from_json(of, saved))
    except Exception as error:
        return judge(not RAN, f"the altered state was refused: {type(error).__name__}", f"it ran: {RAN}")
    is_kept = not RAN or RAN == [("bob", 10)]
    return judge(
        is_kept, "what was reviewed ran, or nothing", f"the saved state was altered after the yes; it ran: {RAN}"
    )


async def changed_definition() -> Cell:
    state = await paused(agent())
    saved = state.to_json()
    other = agent(factor=2, description="Pay twice the amount.")
    resumed = await RunState.from_json(other, saved)
    resumed.approve(resumed.get_interruptions()[0])
    await go_on(other, resumed)
    return judge(
        not RAN, "the old approval did not run the new tool", f"the yes for the old tool ran the new one: {RAN}"
    )


async def double_click() -> Cell:
    of = agent()
    state = await paused(of)
    item = state.get_interruptions()[0]
    state.reject(item)
    state.approve(item)
    await go_on(of, state)
    return judge(not RAN, "the first decision stayed", "a yes after the no was accepted, and the call ran")


CRASH = """
import asyncio, json, sys
from benchmarks.gauntlet.peers import openai_agents_gauntlet as it

async def main():
    it.EFFECTS[:] = [sys.argv[2]] + (["die"] if sys.argv[3] == "die" else [])
    of = it.agent()
    state = await it.RunState.from_json(of, json.load(open(sys.argv[1])))
    await it.go_on(of, state)

asyncio.run(main())
"""


async def crash() -> Cell:
    state = await paused(agent())
    state.approve(state.get_interruptions()[0])
    with tempfile.TemporaryDirectory() as folder:
        saved, effects = Path(folder) / "state", Path(folder) / "effects"
        saved.write_text(json.dumps(state.to_json()))
        for how in ("die", "go on"):
            command = [sys.executable, "-c", CRASH, str(saved), str(effects), how]
            subprocess.run(command, check=False, capture_output=True)
        count = effects.read_text().count("paid")
    return judge(count == 1, "one effect", f"the state was resumed after the crash: {count} effects")


def run(scenario: Any) -> Any:
    return lambda: asyncio.run(scenario())


if __name__ == "__main__":
    fill_in(
        "openai-agents",
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
