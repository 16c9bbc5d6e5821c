"""What time does to calls: approvals are warned about and expire, approved ones are offered again, leases end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from toolgate.errors import ConflictError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.record import evolve
from toolgate.pipeline import steps
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.lockdown import Lockdown
from toolgate.pipeline.remote.leasing import MOST_BETWEEN_S, Leases
from toolgate.pipeline.time.recovery import Recovery
from toolgate.ports.store import ApprovalQuery

BATCH = 100
LOOK_AFTER_S = 0.8
"""How often a shared store is searched for the calls of dead processes, and its brakes read anew."""

log = logging.getLogger("toolgate.sweeper")


class Sweeper:
    """Does what has come due. Several sweepers on one store do no harm: the first commit wins."""

    def __init__(
        self,
        driver: Driver,
        offer: Callable[[Call], None],
        recovery: Recovery,
        leases: Leases,
        lockdown: Lockdown | None = None,
    ) -> None:
        self._driver = driver
        self._lockdown = lockdown
        self._offer = offer
        self._recovery = recovery
        self._leases = leases

    async def sweep(self) -> datetime | None:
        """Handle everything due now; return when to look again."""
        store = self._driver.store
        if store.is_shared:
            await self._recovery.look_after_orphans()
        self._recovery.reconciling.look()
        next_at = await self._handle_due()
        if store.is_shared and store.brakes.has_lockdown and self._lockdown is not None:
            await self._lockdown.enforce()  # another process may have set it
        if not store.is_shared:
            return next_at
        again = self._driver.now() + timedelta(seconds=LOOK_AFTER_S)
        return again if next_at is None else min(again, next_at)

    async def _handle_due(self) -> datetime | None:
        while True:
            due = await self._driver.store.due(self._driver.now(), limit=BATCH)
            # At once: a store that writes many changes together then does so with these.
            await asyncio.gather(*(self._handle(call) for call in due.calls))
            if len(due.calls) < BATCH:
                return due.next_at

    async def _handle(self, call: Call) -> None:
        tool = self._driver.realm(call.project).registry.find(call.tool_name)
        try:
            if call.status is Status.EXECUTING and self._leases.waits_in_queue(call):
                await self._leases.send_again(call, tool)
                return
            if call.status is Status.EXECUTING and tool is not None and self._leases.can_offer_again(call):
                await self._recovery.try_again(call, tool)
                return
            change = await self._change(call)
            await self._driver.commit(change)
        except ConflictError:
            log.debug("call %s moved on before its deadline was handled", call.id)
            return
        if call.status is Status.APPROVED and self._driver.is_free(call):
            self._offer(call)  # after the commit, or the row it takes up would change under it
        if change.events and change.events[0][0] == "approval.escalated" and self._driver.on_asked is not None:
            self._driver.on_asked(change.approvals[0])  # the channels carry it to the people who are asked now

    async def _change(self, call: Call) -> Change:
        if call.status is Status.AWAITING_APPROVAL:
            return await self._approval(call)
        now = self._driver.now()
        if call.waits_for_caller:
            return steps.unclaimed(call, now=now)
        if call.status is Status.APPROVED:
            return self._again(call, now)
        return self._leases.ended(call)

    def _again(self, call: Call, now: datetime) -> Change:
        """Announce an approved call nobody runs once more; where it is not to run here, less often the longer it waits.

        One that is this process's own and cannot run here is given up, for whoever can.
        """
        driver, wait_s = self._driver, self._driver.grace_s(call.project)
        can_run = driver.can_run(call)
        if not can_run or not driver.is_free(call):
            waited_s = (now - (call.approved_at or call.created_at)).total_seconds()
            wait_s = max(wait_s, min(waited_s, MOST_BETWEEN_S))
        owner = None if call.owner == driver.owner and not can_run else call.owner
        waiting = evolve(call.stay(), due_at=now + timedelta(seconds=wait_s), owner=owner)
        return Change(project=call.project, at=now, call=waiting, expect=call.version)

    async def _approval(self, call: Call) -> Change:
        found = await self._driver.store.approvals(ApprovalQuery(project=call.project, id=call.approval_id))
        approval, now = found[0], self._driver.now()
        if now >= approval.expires_at:
            return steps.expire(call, approval, now=now)
        if approval.escalate_at is not None and now >= approval.escalate_at:
            marks = self._driver.store.marks
            if marks.hold(approval):
                return steps.escalate(call, approval, by=None, now=now, marks=marks)
            approval = evolve(approval, escalate_at=None)  # nobody here asked so: it makes nobody a decider
        return steps.warn(call, approval, now=now)
