"""From an approval on one server to the handler's first line on a worker, beside one commit plus one NOTIFY.

The two take turns on the same database. Between approval and handler lie three durable commits (the decision, the
claim, and the one that names the worker) and the order's way through the queue.
"""

import asyncio
import statistics
import time
from typing import Any

import asyncpg
from benchmarks.scale.tools import PAYLOAD, POLICY, TOOLS

import toolgate
from toolgate import Context
from toolgate.gate import Gate
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change

CONTEXT = Context(principal="agent:bench")


class Plain:
    """Two connections: one commits rows and notifies, the other listens."""

    def __init__(self, writing: Any, hearing: Any) -> None:
        self._writing = writing
        self._hearing = hearing
        self._heard = asyncio.Event()

    @classmethod
    async def connect(cls, url: str) -> "Plain":
        """Connect both and listen."""
        plain = cls(await asyncpg.connect(url), await asyncpg.connect(url))
        await plain._writing.execute("CREATE TABLE IF NOT EXISTS plain (number bigserial PRIMARY KEY, told text)")
        await plain._hearing.add_listener("plain", lambda *_told: plain._heard.set())
        return plain

    async def commit_ms(self) -> float:
        """One durable commit of one row."""
        began = time.perf_counter()
        await self._writing.execute("INSERT INTO plain (told) VALUES ($1)", "x" * 500)
        return (time.perf_counter() - began) * 1e3

    async def notify_ms(self) -> float:
        """From a NOTIFY to whoever hears it on another connection."""
        self._heard.clear()
        began = time.perf_counter()
        await self._writing.execute("SELECT pg_notify('plain', 'x')")
        await self._heard.wait()
        return (time.perf_counter() - began) * 1e3

    async def close(self) -> None:
        """Close both."""
        await self._writing.close()
        await self._hearing.close()


async def _one(gate: Gate, committed: dict[str, int]) -> tuple[float, float]:
    """Return the milliseconds to the handler since `decide` was called, and since its commit."""
    asked = await gate.call("pay_far", PAYLOAD, context=CONTEXT, wait=False)
    began = time.monotonic_ns()
    await gate.decide(str(asked.approval_id), "approve", by="alice")
    data: Any = (await gate.wait(asked.call_id)).unwrap()
    started = data["started_ns"]
    return (started - began) / 1e6, (started - committed[asked.call_id]) / 1e6


async def wake(url: str, *, decisions: int) -> dict[str, float]:
    """Alternate approvals and the plain pair; return the medians. A worker must be there."""
    committed: dict[str, int] = {}

    def note(change: Change) -> None:
        if change.call is not None and change.call.status is Status.APPROVED:
            committed[change.call.id] = time.monotonic_ns()

    found: dict[str, list[float]] = {"called_ms": [], "committed_ms": [], "commit_ms": [], "notify_ms": []}
    plain = await Plain.connect(url)
    async with toolgate.open(url, tools=TOOLS, policy=POLICY) as gate:
        leave = gate.host.on_change(note)
        for _ in range(decisions):
            called, since_commit = await _one(gate, committed)
            pair = await plain.commit_ms(), await plain.notify_ms()
            for name, value in zip(found, (called, since_commit, *pair), strict=True):
                found[name].append(value)
        leave()
    await plain.close()
    warm = decisions // 10
    return {name: statistics.median(values[warm:]) for name, values in found.items()}
