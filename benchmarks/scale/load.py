"""What a server does under load: tasks that call, or ask, approve and wait, until the time is up."""

import asyncio
import statistics
import time
from typing import Any, NamedTuple

from benchmarks.scale.tools import PAYLOAD

from toolgate import Context
from toolgate.gate import Gate


class Load(NamedTuple):
    """What was done and how long each took; latencies in milliseconds."""

    per_s: float
    p50_ms: float
    p95_ms: float

    @classmethod
    def of(cls, seconds: float, taken: list[float]) -> "Load":
        """Summarise the seconds each piece of work took."""
        if not taken:
            raise SystemExit("Nothing was finished in the time given; measure longer.")
        ranked = sorted(taken)
        return cls(
            per_s=len(taken) / seconds,
            p50_ms=statistics.median(ranked) * 1e3,
            p95_ms=ranked[min(int(len(ranked) * 0.95), len(ranked) - 1)] * 1e3,
        )


async def finish(gate: Gate, tool: str, context: Context) -> Any:
    """Make one call to its end, approved by somebody where it asks; return its data."""
    asked = await gate.call(tool, PAYLOAD, context=context, wait=False)
    if asked.approval_id is not None:
        await gate.decide(asked.approval_id, "approve", by="alice", project=context.project)
    return (await gate.wait(asked.call_id, project=context.project)).unwrap()


async def drive(gate: Gate, tool: str, *, tasks: int, seconds: float, project: str = "default") -> Load:
    """Return what `tasks` tasks finish in these seconds; what is under way at the end is finished, and counts."""
    context = Context(project=project, principal="agent:bench")
    taken: list[float] = []

    async def work(until: float) -> None:
        while (began := time.perf_counter()) < until:
            await finish(gate, tool, context)
            taken.append(time.perf_counter() - began)

    # Before the clock runs, connections are opened, statements prepared and modules loaded.
    await asyncio.gather(*(finish(gate, tool, context) for _ in range(tasks)))
    started = time.perf_counter()
    await asyncio.gather(*(work(started + seconds) for _ in range(tasks)))
    return Load.of(time.perf_counter() - started, taken)
