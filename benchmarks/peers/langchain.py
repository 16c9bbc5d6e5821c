"""LangChain: `tool.ainvoke` of a tool call, which validates, runs and answers with a `ToolMessage`.

Its providers parse the argument text before they build the tool call, so the step parses it too. No callback
handler is attached and tracing is off.
"""

# mypy: disable-error-code="import-not-found"

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.workload import Step, Workload
from langchain_core.tools import tool

DISTRIBUTION = "langchain-core"


@asynccontextmanager
async def invoke(work: Workload) -> AsyncIterator[Step]:
    """Yield a step that invokes the tool; the message's content is already JSON text."""
    offered, sent = tool(work.function), work.sent()

    async def step() -> str:
        call = {"type": "tool_call", "name": work.name, "args": json.loads(next(sent)), "id": "call_1"}
        message = await offered.ainvoke(call)
        return str(message.content)

    yield step


CASES = {"langchain": invoke}
