"""OpenAI Agents SDK: `FunctionTool.on_invoke_tool` with a fresh `ToolContext`, as its runner builds per call.

The runner's tracing span, guardrails and approval check sit outside this path and are not timed.
"""

# mypy: disable-error-code="import-not-found"

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents import function_tool
from agents.tool_context import ToolContext
from benchmarks.workload import ARG, NAME, Step, weather

DISTRIBUTION = "openai-agents"


@asynccontextmanager
async def invoke() -> AsyncIterator[Step]:
    """Yield a step that invokes the function tool once."""
    tool = function_tool(weather)

    async def step() -> str:
        context = ToolContext(None, tool_name=NAME, tool_call_id="call_1", tool_arguments=ARG)
        return json.dumps(await tool.on_invoke_tool(context, ARG))

    yield step


CASES = {"openai_agents": invoke}
