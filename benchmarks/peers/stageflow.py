"""stageflow: `AdvancedToolExecutor.execute` with an event sink that keeps every event.

The executor emits invoked, started and completed events for the call. It never looks at `input_schema`, so
arguments are not validated in `stageflow`; `stageflow_validating` adds pydantic's `validate_call` in the
handler to make up for that, and is shown for information.
"""

# mypy: disable-error-code="import-not-found"

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from benchmarks.workload import ARG, NAME, Step, weather
from pydantic import validate_call
from stageflow.events import set_event_sink
from stageflow.tools import AdvancedToolExecutor, ToolDefinition, ToolOutput

DISTRIBUTION = "stageflow-core"
KEPT_EVENTS = 1_000

Handler = Callable[..., Awaitable[dict[str, Any]]]


class KeepingSink:
    """Holds the newest events; bounded, so that keeping them gives the collector no extra work."""

    def __init__(self) -> None:
        self.events: deque[tuple[str, dict[str, Any] | None]] = deque(maxlen=KEPT_EVENTS)

    async def emit(self, *, type: str, data: dict[str, Any] | None) -> None:
        self.try_emit(type=type, data=data)

    def try_emit(self, *, type: str, data: dict[str, Any] | None) -> None:
        self.events.append((type, data))


def case(function: Handler) -> Callable[[], AbstractAsyncContextManager[Step]]:
    """Return the case that runs `function` as the handler."""

    async def handler(call: Any) -> Any:
        return ToolOutput.ok(data=await function(**call.payload))

    @asynccontextmanager
    async def prepared() -> AsyncIterator[Step]:
        set_event_sink(KeepingSink())
        executor = AdvancedToolExecutor()
        executor.register(ToolDefinition(name=NAME, action_type=NAME, handler=handler, input_schema={}))
        context = SimpleNamespace(pipeline_run_id=uuid4(), request_id=uuid4(), execution_mode="default")

        async def step() -> str:
            action = SimpleNamespace(id=uuid4(), type=NAME, payload=json.loads(ARG))
            output = await executor.execute(action, context)
            return json.dumps(output.data)

        yield step

    return prepared


CASES = {"stageflow": case(weather), "stageflow_validating": case(validate_call(weather))}
