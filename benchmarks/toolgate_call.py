"""Toolgate's side of the comparison: `gate.call` with the argument text, and an approval workflow, on the memory store.

Nothing is switched off for the measurement: each stage commits its events, arguments and results pass the
masking choke point, and every event is chained to the one before. The gate keeps all calls and events of the
run, so the collector's work on that history is part of the time. An earlier commit runs this very file in an
environment of its own, so only what both know is used here.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.workload import Step, Workload

import toolgate

DISTRIBUTION = "toolgate"


@asynccontextmanager
async def governed(work: Workload) -> AsyncIterator[Step]:
    """Yield a step that makes one governed call of a read-only tool."""
    gate = toolgate.open("memory://", tools=[toolgate.tool(effects="read")(work.function)])
    sent = work.sent()

    async def step() -> str:
        result = await gate.call(work.name, next(sent))
        return json.dumps(result.unwrap())

    try:
        yield step
    finally:
        await gate.aclose()


@asynccontextmanager
async def approved(work: Workload) -> AsyncIterator[Step]:
    """Yield a step that asks, is approved while its caller waits, runs and is recorded."""
    tool = toolgate.tool(effects="read", requires_approval=True)(work.function)
    gate = toolgate.open("memory://", tools=[tool])
    sent = work.sent()

    async def step() -> str:
        asked = await gate.call(work.name, next(sent), wait=False)
        assert asked.approval_id is not None
        waiting = asyncio.create_task(gate.wait(asked.call_id))
        await gate.decide(asked.approval_id, "approve", by="alice")
        return json.dumps((await waiting).unwrap())

    try:
        yield step
    finally:
        await gate.aclose()


CASES = {"toolgate": governed, "approval": approved}
