"""Deciding one approval among many that wait, and listing the first page of them."""

import asyncio
import random
import statistics
import time
from contextlib import AsyncExitStack
from typing import NamedTuple

from benchmarks.scale.stores import Places
from benchmarks.scale.tools import POLICY, TOOLS
from benchmarks.sqlite_approvals import four_changes

import toolgate
from toolgate.gate import Gate
from toolgate.kernel.approval import ApprovalStatus
from toolgate.ports.store import ApprovalQuery

PAY = next(tool for tool in TOOLS if tool.name == "pay")
DAY_S = 86_400.0
AT_A_TIME = 256
PAGE = ApprovalQuery(project="default", status=ApprovalStatus.PENDING, limit=50)


class Waiting(NamedTuple):
    """What one decision and one page take among so many."""

    decide_ms: float
    decide_p95_ms: float
    page_ms: float
    ask_per_s: float


class Crowd:
    """A gate with approvals that wait in its store."""

    def __init__(self, gate: Gate, count: int) -> None:
        self.gate, self.count = gate, count
        self.ask_per_s = 0.0
        self.decided: list[float] = []
        self.listed: list[float] = []
        self._asked: list[str] = []
        self._dice = random.Random(count)

    async def _ask(self) -> None:
        """Commit the change with which a call begins to wait, as the pipeline makes it."""
        change = next(four_changes(PAY, timeout_s=DAY_S))
        writing = self.gate._driver.store.commit(change)
        if writing is not None:
            await writing
        self._asked.append(change.approvals[0].id)

    async def gather(self) -> None:
        """Ask until as many wait as should."""
        started = time.perf_counter()

        async def work() -> None:
            while len(self._asked) + asking[0] < self.count:
                asking[0] += 1
                await self._ask()
                asking[0] -= 1

        asking = [0]
        await asyncio.gather(*(work() for _ in range(AT_A_TIME)))
        self.ask_per_s = len(self._asked) / (time.perf_counter() - started)

    async def decide_one(self) -> None:
        """Decide any of them, list the first page, and ask another in its place."""
        place = self._dice.randrange(len(self._asked))
        self._asked[place], self._asked[-1] = self._asked[-1], self._asked[place]
        approval_id = self._asked.pop()
        began = time.perf_counter()
        await self.gate.decide(approval_id, "approve", by="alice")
        self.decided.append((time.perf_counter() - began) * 1e3)
        began = time.perf_counter()
        await self.gate.approvals.list(PAGE)
        self.listed.append((time.perf_counter() - began) * 1e3)
        await self._ask()

    def told(self) -> Waiting:
        """Summarise, without the first tenth."""
        warm = len(self.decided) // 10
        decided = sorted(self.decided[warm:])
        return Waiting(
            decide_ms=statistics.median(decided),
            decide_p95_ms=decided[int(len(decided) * 0.95)],
            page_ms=statistics.median(self.listed[warm:]),
            ask_per_s=self.ask_per_s,
        )


async def pending(places: Places, store: str, *, counts: tuple[int, ...], decisions: int) -> dict[int, Waiting]:
    """Return what a decision takes among each number that waits; the sizes take turns, decision by decision."""
    async with AsyncExitStack() as stack:
        crowds = []
        for count in counts:
            url = await stack.enter_async_context(places.empty(store))
            gate = await stack.enter_async_context(toolgate.open(url, tools=TOOLS, policy=POLICY))
            crowds.append(Crowd(gate, count))
            await crowds[-1].gather()
        for _ in range(decisions):
            for crowd in crowds:
                await crowd.decide_one()
        return {crowd.count: crowd.told() for crowd in crowds}
