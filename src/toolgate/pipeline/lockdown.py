"""What LOCKDOWN, over everybody or less, does to calls that run: those it does not permit are stopped, if they can be.

Nothing new starts: every claim names the mode its rules saw. Questions cannot be answered, and calls that were
approved end DENIED when they are about to run.
"""

from __future__ import annotations

from typing import NamedTuple

from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.brake import EVERYBODY, Brake
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import SYSTEM_PROJECT, Mode
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
        """Stop what runs here and is not permitted in the LOCKDOWN it is in."""
        stopped: list[str] = []
        left: list[str] = []
        for job in self._flights.running():
            if job.stop is not None or Mode.LOCKDOWN not in self._driver.store.brakes.over(job.call.context):
                continue
            if await self._is_permitted(job) or job.is_over:
                continue
            if self._can_stop(job) and self._flights.stop(job.call.project, job.call.id, "cancelled", "LOCKDOWN"):
                stopped.append(job.call.id)
            else:
                left.append(job.call.id)
        return Frozen(tuple(stopped), tuple(left))

    async def announce(self, brake: Brake) -> None:
        """Enforce, and record what that did: what is frozen, what was stopped, what could not be."""
        driver, project = self._driver, brake.scope.project
        frozen = await self.enforce()
        questions = await driver.store.approvals(
            ApprovalQuery(project=project, status=ApprovalStatus.PENDING, limit=100_000)
        )
        waiting = frozenset({Status.APPROVED, Status.AWAITING_APPROVAL})
        calls = await driver.store.calls(CallQuery(project=project, statuses=waiting, limit=100_000))
        braked = [call for call in calls if brake.scope == EVERYBODY or brake in driver.store.brakes.on(call.context)]
        asked = {(call.project, call.id) for call in braked}
        data: dict[str, object] = {
            "by": brake.by,
            "pending": sum((one.project, one.call_id) in asked for one in questions),
            "queued": sum(call.status is Status.APPROVED for call in braked),
            "stopped": list(frozen.stopped[:LISTED]),
            "stopped_count": len(frozen.stopped),
            "still_running": list(frozen.still_running[:LISTED]),
            "still_running_count": len(frozen.still_running),
        }
        if project is not None:
            data["scope"] = brake.scope.told()
        event = ("mode.enforced", None, data, None)
        await driver.commit(Change(project=project or SYSTEM_PROJECT, at=driver.now(), events=(event,)))

    async def _is_permitted(self, job: Flight) -> bool:
        driver, call = self._driver, job.call
        plan = driver.plan_of(job.tool, call.context)
        _, ruling = await plan.judge_aside(call, decode(call.arguments), driver.now())
        return ruling.denial is None

    @staticmethod
    def _can_stop(job: Flight) -> bool:
        """A thread cannot be stopped: asking it to would only make its outcome unknown."""
        return job.is_async or job.inside != Placement.INLINE
