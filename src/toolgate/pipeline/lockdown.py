"""What LOCKDOWN does to calls that run: those it does not permit are stopped where their runner can.

Nothing new starts: every claim names the mode its rules saw. Questions cannot be answered, and calls that were
approved end DENIED when they are about to run.
"""

from __future__ import annotations

from typing import NamedTuple

from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.tool import Placement
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.flight import Flight, Flights
from toolgate.pipeline.outcome import decode
from toolgate.ports.store import ApprovalQuery, CallQuery

LISTED = 100
"""How many calls the event names; it counts all."""


class Frozen(NamedTuple):
    """What LOCKDOWN found: calls asked to stop, and those that cannot be stopped from here."""

    stopped: tuple[str, ...]
    still_running: tuple[str, ...]


class Lockdown:
    """Enforces LOCKDOWN in this process."""

    def __init__(self, driver: Driver, flights: Flights) -> None:
        self._driver = driver
        self._flights = flights

    async def enforce(self) -> Frozen:
        """Stop what runs here and is not permitted in LOCKDOWN."""
        stopped: list[str] = []
        left: list[str] = []
        for job in self._flights.running():
            if job.stop is not None or await self._is_permitted(job) or job.is_over:
                continue
            if self._can_stop(job) and self._flights.stop(job.call.project, job.call.id, "cancelled", "LOCKDOWN"):
                stopped.append(job.call.id)
            else:
                left.append(job.call.id)
        return Frozen(tuple(stopped), tuple(left))

    async def announce(self, by: str) -> None:
        """Enforce, and record what that did: what is frozen, what was stopped, what could not be."""
        driver = self._driver
        frozen = await self.enforce()
        pending = await driver.store.approvals(ApprovalQuery(status=ApprovalStatus.PENDING, limit=100_000))
        queued = await driver.store.calls(CallQuery(statuses=frozenset({Status.APPROVED}), limit=100_000))
        data = {
            "by": by,
            "pending": len(pending),
            "queued": len(queued),
            "stopped": list(frozen.stopped[:LISTED]),
            "stopped_count": len(frozen.stopped),
            "still_running": list(frozen.still_running[:LISTED]),
            "still_running_count": len(frozen.still_running),
        }
        event = ("mode.enforced", None, data, None)
        await driver.commit(Change(project=SYSTEM_PROJECT, at=driver.now(), events=(event,)))

    async def _is_permitted(self, job: Flight) -> bool:
        driver, call = self._driver, job.call
        plan = driver.plan_of(job.tool, call.project)
        _, ruling = await plan.judge_aside(call, decode(call.arguments), driver.now())
        return ruling.denial is None

    @staticmethod
    def _can_stop(job: Flight) -> bool:
        """A thread cannot be stopped: asking it to would only make its outcome unknown."""
        return job.is_async or job.inside != Placement.INLINE
