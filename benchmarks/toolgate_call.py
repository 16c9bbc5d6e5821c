"""Toolgate's side of the comparison: `gate.call` with the argument text, on the memory store.

Nothing is switched off for the measurement: each stage commits its events, arguments and results pass the
masking choke point, and every event is chained to the one before. The gate keeps all calls and events of the
run, so the collector's work on that history is part of the time.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.workload import ARG, NAME, Step, weather

import toolgate

DISTRIBUTION = "toolgate"


@asynccontextmanager
async def governed() -> AsyncIterator[Step]:
    """Yield a step that makes one governed call of a read-only tool."""
    gate = toolgate.open("memory://", tools=[toolgate.tool(effects="read")(weather)])

    async def step() -> str:
        result = await gate.call(NAME, ARG)
        return json.dumps(result.unwrap())

    try:
        yield step
    finally:
        await gate.aclose()


CASES = {"toolgate": governed}
