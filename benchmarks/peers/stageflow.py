"""stageflow: `AdvancedToolExecutor.execute` with an event sink that keeps every event.

The executor emits invoked, started and completed events for the call. It is given the function's schema but never
looks at it, so arguments are not validated in `stageflow`; `stageflow_validating` adds pydantic's `validate_call` in
the handler to make up for that, and is shown for information.
"""

# mypy: disable-error-code="import-not-found"

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from benchmarks.workload import Step, Workload
from pydantic import TypeAdapter, validate_call
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


@asynccontextmanager
async def plain(work: Workload, *, is_validating: bool = False) -> AsyncIterator[Step]:
    """Yield a step that executes one action whose handler is the workload's function."""
    function: Handler = validate_call(work.function) if is_validating else work.function

    async def handler(call: Any) -> Any:
        return ToolOutput.ok(data=await function(**call.payload))

    set_event_sink(KeepingSink())
    executor = AdvancedToolExecutor()
    typed: Any = work.function
    schema = TypeAdapter(typed).json_schema()
    executor.register(ToolDefinition(name=work.name, action_type=work.name, handler=handler, input_schema=schema))
    context = SimpleNamespace(pipeline_run_id=uuid4(), request_id=uuid4(), execution_mode="default")
    sent = work.sent()

    async def step() -> str:
        action = SimpleNamespace(id=uuid4(), type=work.name, payload=json.loads(next(sent)))
        output = await executor.execute(action, context)
        return json.dumps(output.data)

    yield step


CASES = {"stageflow": plain, "stageflow_validating": partial(plain, is_validating=True)}
