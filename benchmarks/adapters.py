"""What an adapter adds to a framework's own tool call: a governed no-op over the same one, ungoverned.

Both go through Pydantic AI's tool manager, in turns in one process, on a gate in memory: asked, claimed and reported.
`wrap` is `gate.wrap` over the bare function.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

import toolgate
from toolgate.integrations.pydantic_ai import Toolgate

CALLS, ROUNDS = 500, 15


async def nothing(what: str) -> str:
    """Do nothing."""
    return what


async def manager(toolset: Any) -> ToolManager[Any]:
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage(), run_id="run", messages=[])
    return await ToolManager(toolset=toolset).for_run_step(context)


async def taken_us(call: Callable[[int], Awaitable[Any]], first: int) -> float:
    """Return the CPU time of one of many calls."""
    began = time.process_time()
    for number in range(first, first + CALLS):
        await call(number)
    return (time.process_time() - began) / CALLS * 1e6


async def measure() -> dict[str, float]:
    async with toolgate.open("memory://") as gate:
        tools = FunctionToolset[Any]([nothing])
        gated = Toolgate(gate, effects={"nothing": "read"})
        plain, governed = await manager(tools), await manager(gated.around(tools))
        wrapped = gate.wrap(nothing, name="wrapped", effects="read")

        def through(tool_manager: ToolManager[Any]) -> Callable[[int], Awaitable[Any]]:
            return lambda n: tool_manager.handle_call(ToolCallPart("nothing", {"what": "x"}, tool_call_id=f"call_{n}"))

        ways = {
            "ungoverned": through(plain),
            "governed": through(governed),
            "bare": lambda _n: nothing("x"),
            "wrapped": lambda _n: wrapped("x"),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for round_number in range(ROUNDS):
            for name, call in ways.items():
                taken[name].append(await taken_us(call, round_number * CALLS))
    found = {f"{name}_us": statistics.median(lines) for name, lines in taken.items()}
    added = {"adapter_added_us": found["governed_us"] - found["ungoverned_us"]}
    return found | added | {"wrap_added_us": found["wrapped_us"] - found["bare_us"]}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
