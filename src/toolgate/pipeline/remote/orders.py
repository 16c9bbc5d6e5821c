"""Running calls here that were claimed elsewhere: what a worker does with an order.

Taking the call is the commit that names this worker; only then does its handler start. While it runs its lease is
renewed, so that a worker that dies is noticed when the lease ends and not when the tool's time is over.
"""

from __future__ import annotations

import asyncio
import logging

from toolgate.errors import AlreadyToldError, ConflictError, StoreError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Principal
from toolgate.kernel.output import Result
from toolgate.kernel.tool import Placement
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.flight import Flights
from toolgate.pipeline.remote.leasing import Leases
from toolgate.pipeline.waiting import Key
from toolgate.ports.bus import Hint
from toolgate.ports.runner import Job, Runner

RENEWALS = 3
"""How often a lease is renewed in the time it lasts."""
log = logging.getLogger("toolgate.worker")


class Orders:
    """Takes calls that wait for a worker and runs them in this process."""

    def __init__(self, driver: Driver, flights: Flights, leases: Leases) -> None:
        self._driver = driver
        self._flights = flights
        self._leases = leases
        self._held: dict[Key, Job] = {}
        self._listens = False

    async def perform(self, project: str, call_id: str, *, by: Principal, lease_s: float) -> Result:
        """Take a waiting call, run it, and return how it ended.

        Raises ConflictError where it waits for nobody, is denied now, or needs another tool than the one here.
        """
        driver = self._driver
        if not self._listens:
            self._listens = True
            driver.bus.subscribe(self._on_hint)
        while True:
            taking = await self._leases.handover(project, call_id, to=by, lease_s=lease_s)
            call = taking.call
            assert call is not None
            tool = driver.realm(project).registry.find(call.tool_name)
            assert tool is not None  # the handover looked
            inside = Placement.SANDBOX.value if tool.requires_sandbox else Placement.INLINE.value
            holding = Holding(self, driver.runners[inside], lease_s)
            keeps_undo = call.undo_of is not None or tool.prepare is not None
            undo = await driver.store.undo(project, call.undo_of or call.id) if keeps_undo else None
            try:
                plan = driver.plan_of(tool, call.context)
                return await self._flights.fly(taking, plan, undo, runner=holding, inside=inside)
            except AlreadyToldError:
                await self._leases.end_told(call, taking.expect)
            except ConflictError:
                log.debug("call %s changed while it was taken; looking again", call_id)

    def _on_hint(self, hint: Hint) -> None:
        if hint.status is Status.EXECUTING and (hint.project, hint.call_id) in self._held:
            self._driver.spawn(self._look(hint.project, hint.call_id))

    async def _look(self, project: str, call_id: str) -> None:
        self._heed(await self._driver.read(project, call_id))

    def _heed(self, call: Call) -> None:
        if call.recalled is not None:
            self._flights.stop(call.project, call.id, "cancelled", call.recalled)

    async def hold(self, job: Job, runner: Runner, lease_s: float) -> object:
        """Run a job that was taken, renewing its lease until it ends."""
        key = (job.call.project, job.call.id)
        self._held[key] = job
        ended = asyncio.Event()
        renewing = asyncio.get_running_loop().create_task(self._renew(job, lease_s, ended))
        try:
            return await runner.run(job)
        finally:
            ended.set()
            del self._held[key]
            await asyncio.shield(renewing)  # its commit decides which row the result must meet

    async def _renew(self, job: Job, lease_s: float, ended: asyncio.Event) -> None:
        while not await _within(ended, lease_s / RENEWALS) and await self._renewed(job, lease_s):
            pass

    async def _renewed(self, job: Job, lease_s: float) -> bool:
        """Renew a lease; False where it was lost. A store that is away costs this renewal, not the lease."""
        try:
            job.call = await self._leases.renew(job.call, lease_s)
        except StoreError as error:
            log.warning("the lease of call %s cannot be renewed now: %s", job.call.id, error.code)
        except ConflictError:
            if not await self._is_mine(job):
                self._flights.stop(job.call.project, job.call.id, "cancelled", "its lease was lost")
                return False
        return True

    async def _is_mine(self, job: Job) -> bool:
        """Look at a row that changed: a recall leaves it this worker's, anything else does not."""
        standing = await self._driver.read(job.call.project, job.call.id)
        mine = (Status.EXECUTING, job.call.fence, job.call.runner)
        if (standing.status, standing.fence, standing.runner) != mine:
            return False
        job.call = standing
        self._heed(standing)
        return True


class Holding:
    """The runner of one call at a worker: another runner, with the lease renewed while that one runs."""

    def __init__(self, orders: Orders, runner: Runner, lease_s: float) -> None:
        self._orders, self._runner, self._lease_s = orders, runner, lease_s

    async def run(self, job: Job) -> object:
        return await self._orders.hold(job, self._runner, self._lease_s)

    async def close(self) -> None:
        """The other runner is closed by whoever opened it."""


async def _within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
