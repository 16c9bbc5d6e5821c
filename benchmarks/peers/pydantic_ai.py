"""pydantic-ai: `ToolManager.handle_call`, which its agent loop uses for each call of a model response.

No capability, hook or instrumentation is attached: this is its plain path, without approval or events.
"""

# mypy: disable-error-code="import-not-found"

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.workload import Step, Workload
from pydantic_ai import FunctionToolset
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage

DISTRIBUTION = "pydantic-ai-slim"


@asynccontextmanager
async def handle_call(work: Workload) -> AsyncIterator[Step]:
    """Yield a step that handles one call part with a manager prepared for a run step."""
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage(), run_step=1)
    manager = await ToolManager(FunctionToolset([work.function])).for_run_step(context)
    sent = work.sent()

    async def step() -> str:
        part = ToolCallPart(tool_name=work.name, args=next(sent), tool_call_id="call_1")
        return json.dumps(await manager.handle_call(part))

    yield step


CASES = {"pydantic_ai": handle_call}
