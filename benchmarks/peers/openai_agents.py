"""OpenAI Agents SDK: `FunctionTool.on_invoke_tool` with a fresh `ToolContext`, as its runner builds per call.

The runner's tracing span, guardrails and approval check sit outside this path and are not timed.
"""

# mypy: disable-error-code="import-not-found"

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents import function_tool
from agents.tool_context import ToolContext
from benchmarks.workload import Step, Workload

DISTRIBUTION = "openai-agents"


@asynccontextmanager
async def invoke(work: Workload) -> AsyncIterator[Step]:
    """Yield a step that invokes the function tool once."""
    tool, sent = function_tool(work.function), work.sent()

    async def step() -> str:
        text = next(sent)
        context = ToolContext(None, tool_name=work.name, tool_call_id="call_1", tool_arguments=text)
        return json.dumps(await tool.on_invoke_tool(context, text))

    yield step


CASES = {"openai_agents": invoke}
