"""A pipeline without a gate: a driver on fakes, with the clock in the test's hand."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import count
from typing import Any

from toolgate.adapters.memory.bus import MemoryBus
from toolgate.adapters.memory.store import MemoryStore
from toolgate.adapters.runners.inline import InlineRunner
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call
from toolgate.kernel.context import Principal
from toolgate.kernel.output import Result
from toolgate.kernel.policy import Policy
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.text.masking import Masker
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline import Pipeline
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.flight import Flights
from toolgate.pipeline.people.answers import Answers
from toolgate.pipeline.people.deciding import Deciding, Said
from toolgate.pipeline.people.delegating import Delegating
from toolgate.pipeline.people.undoing import Undoing
from toolgate.pipeline.recording import Recorder
from toolgate.pipeline.remote.leasing import Leases
from toolgate.pipeline.time.recovery import Recovery
from toolgate.pipeline.time.sweeper import Sweeper
from toolgate.ports.runner import PARKED, Job
from toolgate.testing.clock import FakeClock
from toolgate.testing.stores import RemoteStore


class Park:
    """A runner whose results come later."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.recalled: list[tuple[str, str]] = []

    async def run(self, job: Job) -> object:
        self.jobs.append(job)
        return PARKED

    def recall(self, call: Call, reason: str) -> None:
        self.recalled.append((call.id, reason))

    async def close(self) -> None:
        """Nothing to close."""


class Rig:
    def __init__(self, *tools: ToolDefinition, policy: Policy | None = None) -> None:
        self.clock = FakeClock()
        self.store = RemoteStore(MemoryStore())
        self.offered: list[Call] = []
        self.spawned: set[asyncio.Task[Any]] = set()
        self.inline, self.client = InlineRunner(), Park()
        numbers = count(1)
        self.driver = Driver(
            store=self.store,
            bus=MemoryBus(),
            registry=ToolRegistry(tools),
            masker=Masker(),
            runners={"inline": self.inline, "client": self.client},
            spawn=self.spawn,
            policy=policy or Policy(),
            now=self.clock.now,
            new_id=lambda: f"id-{next(numbers)}",
        )
        self.recorder = Recorder(self.driver)
        self.flights = Flights(self.driver, self.recorder)
        self.pipeline = Pipeline(self.driver, self.flights)
        self.answers = Answers(self.driver, self.flights)
        self.deciding = Deciding(self.driver, self.pipeline, Delegating(self.driver))
        self.undoing = Undoing(self.driver, self.pipeline)
        self.recovery = Recovery(self.driver, self.flights, self.recorder, self.offered.append)
        self.leases = Leases(self.driver, self.recorder, self.pipeline.take)
        self.sweeper = Sweeper(self.driver, self.offered.append, self.recovery, self.leases)

    async def decide(self, approval_id: str, *, approve_it: bool, by: Principal, **more: Any) -> Result:
        said = Said(approval_id=approval_id, by=by, reason=more.pop("reason", None), digest=more.pop("digest", None))
        return await self.deciding.decide(said, approve_it=approve_it, **more)

    async def extend(self, approval_id: str, *, seconds: float, by: Principal) -> Approval:
        return await self.deciding.extend(Said(approval_id=approval_id, by=by), seconds=seconds)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self.spawned.add(task)
        task.add_done_callback(self.spawned.discard)

    async def names(self, call_id: str) -> list[str]:
        return [event.type for event in await self.store.events("default", call_id=call_id)]

    async def close(self) -> None:
        await self.inline.close()
