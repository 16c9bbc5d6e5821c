"""An agent stage: makes calls of what a person wrote and answers with what came of them.

A stage in document 001's sense, on one registry and its gate: a call that works, a tool that does not exist, and one
that its behavior does not allow. Nothing is kept.
"""

from __future__ import annotations

import asyncio
from typing import Any

import toolgate
from toolgate import StageContext, StageKind, StageOutput
from toolgate.errors import ToolError
from toolgate.tools import Action, ToolRegistry


@toolgate.tool(effects="read")
async def weather(what: str) -> str:
    """Tell the weather in a city."""
    return f"rain in {what}"


@toolgate.tool(allowed_behaviors=("cleanup",))
async def archive(what: str) -> str:
    """Put something away."""
    return f"{what} archived"


class TownCrier:
    """Takes lines such as `weather Oslo`, one action each, and executes them through the registry."""

    name = "town_crier"
    kind = StageKind.AGENT

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    async def execute(self, ctx: StageContext) -> StageOutput:
        told: list[dict[str, Any]] = []
        for line in (ctx.snapshot.input_text or "").splitlines():
            word, _, rest = line.partition(" ")
            try:
                output = await self._registry.execute(Action(type=word, payload={"what": rest}), ctx.to_dict())
            except ToolError as error:
                told.append({"action": word, "success": False, "error": str(error)})
            else:
                told.append({"action": word, "success": output.success, "data": output.data})
        return StageOutput.ok(response=f"{sum(one['success'] for one in told)} of {len(told)} done", results=told)


async def main() -> None:
    """Run the stage once."""
    registry = ToolRegistry()
    registry.register(weather)
    registry.register(archive)
    output = await TownCrier(registry).execute(StageContext(input_text="weather Oslo\nsing loudly\narchive notes"))
    print(output.data["response"])
    for one in output.data["results"]:
        print(f"  {one['action']}: {one.get('data') or one['error']}")


if __name__ == "__main__":
    asyncio.run(main())
