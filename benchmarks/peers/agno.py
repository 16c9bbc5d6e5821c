"""Agno: `get_function_call` parses the argument text, `FunctionCall.aexecute` validates and runs.

No hook, cache or user confirmation is configured.
"""

# mypy: disable-error-code="import-not-found"

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agno.tools.function import Function
from agno.utils.functions import get_function_call
from benchmarks.workload import Step, Workload

DISTRIBUTION = "agno"


@asynccontextmanager
async def execute(work: Workload) -> AsyncIterator[Step]:
    """Yield a step that builds one function call from text and executes it."""
    function = Function.from_callable(work.function)
    function.process_entrypoint()
    functions, sent = {work.name: function}, work.sent()

    async def step() -> str:
        call = get_function_call(name=work.name, arguments=next(sent), call_id="call_1", functions=functions)
        outcome = await call.aexecute()
        return json.dumps(outcome.result)

    yield step


CASES = {"agno": execute}
